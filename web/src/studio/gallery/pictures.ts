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
