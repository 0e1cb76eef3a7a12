/** Pictures on their way to the service, and small copies of them to look at. */

import { answerOf, api } from "@shared/api/client"
import type { Reference } from "../tasks/wish"

const PREVIEW_SIDE = 640

export async function uploadPicture(picture: Blob): Promise<Reference> {
  const upload = await answerOf(
    api.POST("/v1/uploads", {
      headers: { "Content-Type": picture.type || "application/octet-stream" },
      // The document calls the bytes a text; what is sent are the bytes.
      body: picture as unknown as string,
      bodySerializer: (body) => body,
    }),
  )
  return { id: upload.id, width: upload.width, height: upload.height, preview: await previewOf(picture) }
}

/** Empty where this browser cannot draw what the service could read. */
async function previewOf(picture: Blob): Promise<string> {
  try {
    const bitmap = await createImageBitmap(picture)
    const scale = Math.min(1, PREVIEW_SIDE / Math.max(bitmap.width, bitmap.height))
    const canvas = document.createElement("canvas")
    canvas.width = Math.max(1, Math.round(bitmap.width * scale))
    canvas.height = Math.max(1, Math.round(bitmap.height * scale))
    canvas.getContext("2d")?.drawImage(bitmap, 0, 0, canvas.width, canvas.height)
    bitmap.close()
    return canvas.toDataURL("image/webp", 0.8)
  } catch {
    return ""
  }
}
