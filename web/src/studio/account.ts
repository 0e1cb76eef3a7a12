/** What the account may ask for, and what it may spend. */

import { answerOf, api, type Schemas } from "@shared/api/client"
import { Store } from "@shared/store"
import { batchShelf, endedOf } from "./batches/shelf"
import { isOver, shelf } from "./tasks/shelf"
import type { Model } from "./tasks/wish"

export const balance = new Store<Schemas["Balance"] | null>(null)
export const models = new Store<readonly Model[] | null>(null)

const AGAIN_MS = 5_000

/** Read both, and the balance again whenever a task or an item of a batch begins or ends; until the returned function is called. */
export function openAccount(): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined
  let told = ""
  const readBalance = () => answerOf(api.GET("/v1/balance")).then((found) => balance.set(found))
  const readAll = async () => {
    try {
      await readBalance()
      models.set((await answerOf(api.GET("/v1/models"))).data)
    } catch {
      timer = setTimeout(() => void readAll(), AGAIN_MS)
    }
  }
  const look = () => {
    const { tasks } = shelf.get()
    const { batches } = batchShelf.get()
    const now = `${tasks.length} ${tasks.filter(isOver).length} ${batches.map(endedOf).join()}`
    if (now !== told) void readBalance().catch(() => undefined)
    told = now
  }
  const unwatch = [shelf.subscribe(look), batchShelf.subscribe(look)]
  void readAll()
  return () => {
    clearTimeout(timer)
    for (const end of unwatch) end()
    balance.set(null)
    models.set(null)
  }
}

/** What a model can do with this many pictures: nothing, if it takes none or not that many. */
export function canStartFrom(model: Model, pictures: number): boolean {
  if (pictures === 0) return model.operations.includes("generate")
  return model.operations.includes("edit") && pictures <= model.max_images
}

export function shapesOf(model: Model): string[] {
  return [...model.sizes, ...model.aspect_ratios]
}
