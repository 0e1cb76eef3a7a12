/** The tasks that this page knows, newest first: one copy of each, whoever brought it. */

import { answerOf, api } from "@shared/api/client"
import { Store } from "@shared/store"
import type { Task } from "./wish"

export const PAGE = 24

interface Shelf {
  tasks: readonly Task[]
  /** Where older tasks begin; null when there are none, undefined before the first page came. */
  older: string | null | undefined
}

export const shelf = new Store<Shelf>({ tasks: [], older: undefined })

/** Put tasks where they belong. One that is over stays over, however late an older answer arrives. */
export function put(found: readonly Task[]): void {
  const byId = new Map(shelf.get().tasks.map((task) => [task.id, task]))
  let isChanged = false
  for (const task of found) {
    const known = byId.get(task.id)
    if (known && isOver(known) && !isOver(task)) continue
    if (known && isSame(known, task)) continue
    byId.set(task.id, task)
    isChanged = true
  }
  if (isChanged) shelf.set({ ...shelf.get(), tasks: [...byId.values()].sort(newestFirst) })
}

export function clearShelf(): void {
  shelf.set({ tasks: [], older: undefined })
}

export const isOver = (task: Task): boolean => task.status !== "processing"

/** The newest tasks, and at first every one that is still open, however old. */
export async function readNewest(): Promise<void> {
  const isFirst = shelf.get().older === undefined
  const [page, open] = await Promise.all([
    answerOf(api.GET("/v1/tasks", { params: { query: { limit: PAGE } } })),
    isFirst
      ? answerOf(api.GET("/v1/tasks", { params: { query: { limit: 100, status: "processing" } } }))
      : null,
  ])
  put([...page.data, ...(open?.data ?? [])])
  if (isFirst) shelf.set({ ...shelf.get(), older: page.next_cursor })
}

export async function readOlder(): Promise<void> {
  const cursor = shelf.get().older
  if (!cursor) return
  const page = await answerOf(api.GET("/v1/tasks", { params: { query: { limit: PAGE, cursor } } }))
  put(page.data)
  shelf.set({ ...shelf.get(), older: page.next_cursor })
}

export async function readTask(id: string): Promise<void> {
  put([await answerOf(api.GET("/v1/tasks/{id}", { params: { path: { id } } }))])
}

export async function cancelTask(id: string): Promise<void> {
  put([await answerOf(api.POST("/v1/tasks/{id}/cancel", { params: { path: { id } } }))])
}

/** Links are signed anew with every answer; a picture that is on the page already is not another one for that. */
function isSame(known: Task, task: Task): boolean {
  return JSON.stringify(plain(known)) === JSON.stringify(plain(task))
}

function plain(task: Task): unknown {
  return { ...task, assets: task.assets.map((asset) => asset.id) }
}

function newestFirst(one: Task, other: Task): number {
  return other.created_at.localeCompare(one.created_at) || other.id.localeCompare(one.id)
}
