/** The batches that this page knows, newest first, and how far each is. */

import { answerOf, api, type Schemas } from "@shared/api/client"
import { Store } from "@shared/store"

export type Batch = Schemas["Batch"]

interface Shelf {
  batches: readonly Batch[]
  /** Where older ones begin; null when there are none, undefined before the first page came. */
  older: string | null | undefined
}

const PAGE = 10
const BUSY_MS = 1_500
const IDLE_MS = 30_000
const MAX_WAIT_MS = 30_000
const EMPTY: Shelf = { batches: [], older: undefined }

export const batchShelf = new Store<Shelf>(EMPTY)

export const isOpen = (batch: Batch): boolean => batch.status === "processing"

export const endedOf = ({ counts }: Batch): number => counts.ready + counts.failed + counts.refused

let lookNow: () => void = () => undefined

/** Ask at once, because something was just handed in. */
export function lookAtBatches(): void {
  lookNow()
}

export async function readBatch(id: string): Promise<void> {
  put([await answerOf(api.GET("/v1/batches/{id}", { params: { path: { id } } }))])
}

export async function readOlder(): Promise<void> {
  const cursor = batchShelf.get().older
  if (cursor) await readPage({ cursor })
}

/** Take back what has not begun; what is ready stays. */
export async function cancelBatch(id: string): Promise<void> {
  put([await answerOf(api.POST("/v1/batches/{id}/cancel", { params: { path: { id } } }))])
}

/** Keep the shelf true until the returned function is called; a page that nobody looks at is left alone. */
export function followBatches(): () => void {
  let isEnded = false
  let failures = 0
  let timer: ReturnType<typeof setTimeout> | undefined
  let readAt = 0

  const round = async () => {
    clearTimeout(timer)
    if (document.hidden) return
    try {
      const open = batchShelf.get().batches.filter(isOpen)
      const isDue = Date.now() - readAt >= IDLE_MS
      await Promise.all([isDue ? readPage({}) : null, ...open.map(({ id }) => readBatch(id))])
      if (isDue) readAt = Date.now()
      failures = 0
    } catch {
      failures += 1
    }
    clearTimeout(timer)
    if (!isEnded) timer = setTimeout(() => void round(), pauseMs(failures))
  }
  const again = () => {
    readAt = 0
    void round()
  }
  lookNow = again
  // A batch that another tab handed in leaves this tab's outbox when it is accepted.
  window.addEventListener("storage", again)
  window.addEventListener("online", again)
  document.addEventListener("visibilitychange", again)
  void round()
  return () => {
    isEnded = true
    clearTimeout(timer)
    window.removeEventListener("storage", again)
    window.removeEventListener("online", again)
    document.removeEventListener("visibilitychange", again)
    batchShelf.set(EMPTY)
  }
}

function pauseMs(failures: number): number {
  if (failures > 0) return Math.min(MAX_WAIT_MS, 1_000 * 2 ** (failures - 1))
  return batchShelf.get().batches.some(isOpen) ? BUSY_MS : IDLE_MS
}

async function readPage({ cursor }: { cursor?: string }): Promise<void> {
  const query = { limit: PAGE, ...(cursor && { cursor }) }
  const page = await answerOf(api.GET("/v1/batches", { params: { query } }))
  put(page.data)
  const isNext = cursor !== undefined || batchShelf.get().older === undefined
  if (isNext) batchShelf.set({ ...batchShelf.get(), older: page.next_cursor })
}

/** One that is finished stays so, however late an older answer arrives. */
function put(found: readonly Batch[]): void {
  const byId = new Map(batchShelf.get().batches.map((batch) => [batch.id, batch]))
  for (const batch of found) {
    const known = byId.get(batch.id)
    if (known && (endedOf(known) > endedOf(batch) || (!isOpen(known) && isOpen(batch)))) continue
    byId.set(batch.id, batch)
  }
  const batches = [...byId.values()].sort((one, other) => other.created_at.localeCompare(one.created_at))
  batchShelf.set({ ...batchShelf.get(), batches })
}
