/** What became of the items of a batch that have no picture. */

import { answerOf, patientApi } from "@shared/api/client"
import type { Task } from "../tasks/wish"
import type { Batch } from "./shelf"

export interface Lost {
  position: number
  task: Task | null
  refusal: { code: string; detail: string } | null
}

/** The first of them in order. The list is read no further than to the last one wanted. */
export async function readLost(batch: Batch, most: number): Promise<Lost[]> {
  const params = { path: { id: batch.id } }
  const body = await answerOf(patientApi.GET("/v1/batches/{id}/results", { params, parseAs: "stream" }))
  const found: Lost[] = []
  const wanted = Math.min(most, batch.counts.failed + batch.counts.refused)
  for await (const line of linesOf(body as unknown as ReadableStream<Uint8Array>)) {
    const item = JSON.parse(line) as Lost
    if (item.refusal || item.task?.status === "failed") found.push(item)
    if (found.length >= wanted) break
  }
  return found
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = stream.getReader()
  const decoder = new TextDecoder()
  let rest = ""
  try {
    for (;;) {
      const { done, value } = await reader.read()
      rest += decoder.decode(value, { stream: !done })
      const lines = rest.split("\n")
      rest = lines.pop() ?? ""
      yield* lines
      if (done) return
    }
  } finally {
    await reader.cancel()
  }
}
