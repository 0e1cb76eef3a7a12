/**
 * Submits on their way. A submit gets its idempotency key before it is sent for the first time, and lies in this
 * browser until it is answered: so neither a reload, nor a second tab, nor a lost answer loses one or makes two.
 */

import { answerOf, api } from "@shared/api/client"
import { type FieldFault, Problem } from "@shared/api/problem"
import { forget, recall, remember } from "@shared/storage"
import { Store } from "@shared/store"
import { lookAgain } from "./follow"
import { readTask } from "./shelf"
import type { TaskBody } from "./wish"

export interface Refusal {
  code: string
  detail: string
  fields: readonly FieldFault[]
}

export interface Submit {
  key: string
  body: TaskBody
  madeAt: string
  /** Why the service did not take it; null while it is still to be sent. */
  refusal: Refusal | null
}

const FIRST_WAIT_MS = 1_000
const MAX_WAIT_MS = 30_000

export const outbox = new Store<readonly Submit[]>([])

let account = ""
let timer: ReturnType<typeof setTimeout> | undefined
let waitMs = FIRST_WAIT_MS
const sending = new Set<string>()
/** Keys that the browser's storage had no room for. */
const unkept = new Set<string>()

/** Take up what earlier pages of this account left unanswered; until the returned function is called. */
export function openOutbox(accountId: string): () => void {
  account = accountId
  outbox.set(kept())
  const reread = () => outbox.set(kept())
  window.addEventListener("storage", reread)
  window.addEventListener("online", sendAll)
  sendAll()
  return () => {
    clearTimeout(timer)
    window.removeEventListener("storage", reread)
    window.removeEventListener("online", sendAll)
    outbox.set([])
    account = ""
  }
}

export function submit(body: TaskBody): void {
  keep({ key: newKey(), body, madeAt: new Date().toISOString(), refusal: null })
  sendAll()
}

/** A refused submit was never accepted, and keeps its key. */
export function submitAgain(refused: Submit): void {
  keep({ ...refused, refusal: null })
  sendAll()
}

export function drop(key: string): void {
  forget(nameOf(key))
  outbox.set(outbox.get().filter((one) => one.key !== key))
}

function sendAll(): void {
  clearTimeout(timer)
  for (const one of outbox.get()) if (!one.refusal) void sendOnce(one)
}

/** Two tabs may send the same: the service answers both with the same receipt. The lock only saves the traffic. */
async function sendOnce(one: Submit): Promise<void> {
  if (sending.has(one.key)) return
  sending.add(one.key)
  try {
    const alone = async (lock: Lock | null) => (lock ? send(one) : sendLater(null))
    if (navigator.locks) await navigator.locks.request(nameOf(one.key), { ifAvailable: true }, alone)
    else await send(one)
  } finally {
    sending.delete(one.key)
  }
}

async function send(one: Submit): Promise<void> {
  const sender = account
  try {
    const receipt = await answerOf(
      api.POST("/v1/tasks", { params: { header: { "Idempotency-Key": one.key } }, body: one.body }),
    )
    waitMs = FIRST_WAIT_MS
    // On the shelf first: between the two there is no moment without it. Polling brings it if this look fails.
    await readTask(receipt.id).catch(lookAgain)
    if (sender === account) drop(one.key)
  } catch (error) {
    if (sender !== account) return
    if (error instanceof Problem && !error.isPassing) refuse(one, error)
    else sendLater(error)
  }
}

function refuse(one: Submit, problem: Problem): void {
  // Signed out meanwhile: it waits here for whoever signs in to this account again.
  if (problem.status === 401 || problem.code === "csrf-refused") return
  keep({ ...one, refusal: { code: problem.code, detail: problem.detail, fields: problem.fields } })
}

function sendLater(error: unknown): void {
  const askedMs = error instanceof Problem && error.retryAfterS !== null ? error.retryAfterS * 1_000 : 0
  clearTimeout(timer)
  timer = setTimeout(sendAll, Math.max(askedMs, waitMs))
  waitMs = Math.min(MAX_WAIT_MS, waitMs * 2)
}

function keep(one: Submit): void {
  if (!remember(nameOf(one.key), JSON.stringify(one))) unkept.add(one.key)
  outbox.set([one, ...outbox.get().filter((other) => other.key !== one.key)].sort(newestFirst))
}

/** Each submit has a place of its own in the storage, so that two tabs never write over each other. */
function nameOf(key: string): string {
  return `outbox.${account}.${key}`
}

function kept(): Submit[] {
  const start = `safelight.${nameOf("")}`
  const found: Submit[] = outbox.get().filter((one) => unkept.has(one.key))
  try {
    for (const name of Object.keys(localStorage)) {
      const text = name.startsWith(start) ? recall(name.replace("safelight.", "")) : null
      if (text) found.push(JSON.parse(text) as Submit)
    }
  } catch {
    // No storage here: what this page holds itself is all there is.
  }
  return found.sort(newestFirst)
}

function newestFirst(one: Submit, other: Submit): number {
  return other.madeAt.localeCompare(one.madeAt)
}

/** `crypto.randomUUID` is missing where the page comes over plain http from another machine. */
function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return `studio-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`
}
