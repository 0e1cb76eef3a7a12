/** Keeps the shelf true: by live events where they come, by asking every now and then where they do not. */

import { Unreachable } from "@shared/api/problem"
import { Store } from "@shared/store"
import { listen } from "./events"
import { isOver, PAGE, readNewest, readTask, shelf } from "./shelf"

const BUSY_MS = 1_500
const IDLE_MS = 15_000
const WITH_EVENTS_MS = 30_000
const MAX_WAIT_MS = 30_000
const UNTIL_WOKEN_MS = 2 ** 31 - 1
/** Open tasks older than the newest page are asked for one by one, so many in a round. */
const SINGLES = 8

/** Whether the service answers. */
export const isReachable = new Store(true)

let lookNow: () => void = () => undefined

/** Ask at once, because something was just done or undone. */
export function lookAgain(): void {
  lookNow()
}

/** Follow until the returned function is called; a page that nobody looks at is left alone until somebody does. */
export function follow(): () => void {
  let isEnded = false
  let isFlowing = false
  let failures = 0
  let wake: () => void = () => undefined
  let unlisten: (() => void) | null = null

  const wait = (ms: number) =>
    new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms)
      wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  lookNow = () => wake()

  const pause = () => {
    if (document.hidden) return UNTIL_WOKEN_MS
    if (failures > 0) return Math.min(MAX_WAIT_MS, 1_000 * 2 ** (failures - 1))
    if (isFlowing) return WITH_EVENTS_MS
    return shelf.get().tasks.some((task) => !isOver(task)) ? BUSY_MS : IDLE_MS
  }

  const run = async () => {
    while (!isEnded) {
      try {
        await round()
        failures = 0
        isReachable.set(true)
      } catch (error) {
        failures += 1
        if (error instanceof Unreachable) isReachable.set(false)
      }
      if (!isEnded) await wait(pause())
    }
  }

  const attend = () => {
    unlisten?.()
    unlisten = document.hidden ? null : listen(sink)
    if (!document.hidden) wake()
  }
  const sink = {
    changed: (id: string) => void (id ? readTask(id) : Promise.resolve()).catch(() => undefined),
    missed: () => wake(),
    flowing: (is: boolean) => {
      isFlowing = is
      if (!is) wake()
    },
  }
  const away = () => isReachable.set(false)
  const back = () => wake()
  window.addEventListener("online", back)
  window.addEventListener("offline", away)
  document.addEventListener("visibilitychange", attend)
  attend()
  void run()
  return () => {
    isEnded = true
    unlisten?.()
    window.removeEventListener("online", back)
    window.removeEventListener("offline", away)
    document.removeEventListener("visibilitychange", attend)
    wake()
  }
}

async function round(): Promise<void> {
  await readNewest()
  const behind = shelf
    .get()
    .tasks.slice(PAGE)
    .filter((task) => !isOver(task))
  await Promise.all(behind.slice(0, SINGLES).map((task) => readTask(task.id)))
}
