import type { Schemas } from "@shared/api/client"
import type { Task } from "../tasks/wish"

/** One picture of a task that is ready. */
export interface Picture {
  task: Task
  asset: Schemas["Asset"]
}

export function picturesOf(tasks: readonly Task[]): Picture[] {
  return tasks.flatMap((task) =>
    task.status === "ready" && !task.erased_at ? task.assets.map((asset) => ({ task, asset })) : [],
  )
}

/** By the session's cookie: these addresses stay the same, while signed ones change with every answer. */
export const sourceOf = (picture: Picture): string => `/v1/assets/${picture.asset.id}`
export const thumbnailOf = (picture: Picture): string => `${sourceOf(picture)}/thumbnail`

const SUFFIXES: Record<string, string> = { "image/png": "png", "image/jpeg": "jpg", "image/webp": "webp" }

/** What a downloaded picture is called: its prompt, as far as a file system takes it. */
export function fileNameOf({ task, asset }: Picture): string {
  const words = task.prompt
    .replace(/[^\p{L}\p{N}]+/gu, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 60)
  return `${words || "picture"}-${asset.id.slice(-6)}.${SUFFIXES[asset.content_type] ?? "img"}`
}
