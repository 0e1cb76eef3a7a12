/** Tasks on their way to the service. */

import { answerOf, api } from "@shared/api/client"
import { Outbox } from "../outbox"
import { lookAgain } from "./follow"
import { readTask } from "./shelf"
import type { TaskBody } from "./wish"

export const outbox = new Outbox<TaskBody>("outbox", async ({ key, body }) => {
  const receipt = await answerOf(
    api.POST("/v1/tasks", { params: { header: { "Idempotency-Key": key } }, body }),
  )
  // On the shelf before it leaves here: between the two there is no moment without it. Polling brings it if this fails.
  await readTask(receipt.id).catch(lookAgain)
})

export function submit(body: TaskBody): void {
  outbox.add(body)
}
