/**
 * Submits on their way. A submit gets its idempotency key before it is sent for the first time, and lies in this
 * browser until it is answered: so neither a reload, nor a second tab, nor a lost answer loses one or makes two.
 */

import { type FieldFault, Problem } from "@shared/api/problem"
import { forget, recall, remember } from "@shared/storage"
import { Store } from "@shared/store"

export interface Refusal {
  code: string
  detail: string
  fields: readonly FieldFault[]
}

export interface Submit<Body> {
  key: string
  body: Body
  madeAt: string
  /** Why the service did not take it; null while it is still to be sent. */
  refusal: Refusal | null
}

const FIRST_WAIT_MS = 1_000
const MAX_WAIT_MS = 30_000

/**
 * The submits of one kind; `deliver` sends one, and returns when what it became is on the page. `dropped` hears of each
 * that is over.
 */
export class Outbox<Body> {
  readonly submits = new Store<readonly Submit<Body>[]>([])
  private account = ""
  private timer: ReturnType<typeof setTimeout> | undefined
  private waitMs = FIRST_WAIT_MS
  private readonly sending = new Set<string>()
  /** Keys that the browser's storage had no room for. */
  private readonly unkept = new Set<string>()

  constructor(
    private readonly place: string,
    private readonly deliver: (submit: Submit<Body>) => Promise<void>,
    private readonly dropped: (key: string) => void = () => undefined,
  ) {}

  /** Take up what earlier pages of this account left unanswered; until the returned function is called. */
  open(accountId: string): () => void {
    this.account = accountId
    this.submits.set(this.kept())
    const reread = () => this.submits.set(this.kept())
    window.addEventListener("storage", reread)
    window.addEventListener("online", this.sendAll)
    this.sendAll()
    return () => {
      clearTimeout(this.timer)
      window.removeEventListener("storage", reread)
      window.removeEventListener("online", this.sendAll)
      this.submits.set([])
      this.account = ""
    }
  }

  /** What could not be kept whole is not kept at all. */
  add(body: Body, key = newKey(), { isKept = true } = {}): void {
    if (!isKept) this.unkept.add(key)
    this.keep({ key, body, madeAt: new Date().toISOString(), refusal: null })
    this.sendAll()
  }

  /** A refused submit was never accepted, and keeps its key. */
  again(refused: Submit<Body>, body = refused.body): void {
    this.keep({ ...refused, body, refusal: null })
    this.sendAll()
  }

  drop(key: string): void {
    forget(this.nameOf(key))
    this.unkept.delete(key)
    this.submits.set(this.submits.get().filter((one) => one.key !== key))
    this.dropped(key)
  }

  private readonly sendAll = (): void => {
    clearTimeout(this.timer)
    for (const one of this.submits.get()) if (!one.refusal) void this.sendOnce(one)
  }

  /** Two tabs may send the same: the service answers both with the same receipt. The lock only saves the traffic. */
  private async sendOnce(one: Submit<Body>): Promise<void> {
    if (this.sending.has(one.key)) return
    this.sending.add(one.key)
    try {
      const alone = async (lock: Lock | null) => (lock ? this.send(one) : this.sendLater(null))
      if (navigator.locks) await navigator.locks.request(this.nameOf(one.key), { ifAvailable: true }, alone)
      else await this.send(one)
    } finally {
      this.sending.delete(one.key)
    }
  }

  private async send(one: Submit<Body>): Promise<void> {
    const sender = this.account
    // Signed out, or dropped, since it was its turn.
    if (!this.submits.get().some((other) => other.key === one.key)) return
    // Another tab was quicker, and its word has not reached this one yet.
    const isOver = !this.unkept.has(one.key) && recall(this.nameOf(one.key)) === null
    try {
      if (!isOver) await this.deliver(one)
      this.waitMs = FIRST_WAIT_MS
      if (sender === this.account) this.drop(one.key)
    } catch (error) {
      if (sender !== this.account) return
      if (error instanceof Problem && !error.isPassing) this.refuse(one, error)
      else this.sendLater(error)
    }
  }

  private refuse(one: Submit<Body>, problem: Problem): void {
    // Signed out meanwhile: it waits here for whoever signs in to this account again.
    if (problem.status === 401 || problem.code === "csrf-refused") return
    this.keep({ ...one, refusal: { code: problem.code, detail: problem.detail, fields: problem.fields } })
  }

  private sendLater(error: unknown): void {
    const askedMs = error instanceof Problem && error.retryAfterS !== null ? error.retryAfterS * 1_000 : 0
    clearTimeout(this.timer)
    this.timer = setTimeout(this.sendAll, Math.max(askedMs, this.waitMs))
    this.waitMs = Math.min(MAX_WAIT_MS, this.waitMs * 2)
  }

  private keep(one: Submit<Body>): void {
    const isKept = !this.unkept.has(one.key) && remember(this.nameOf(one.key), JSON.stringify(one))
    if (!isKept) this.unkept.add(one.key)
    const others = this.submits.get().filter((other) => other.key !== one.key)
    this.submits.set([one, ...others].sort(newestFirst))
  }

  /** Each submit has a place of its own in the storage, so that two tabs never write over each other. */
  private nameOf(key: string): string {
    return `${this.place}.${this.account}.${key}`
  }

  private kept(): Submit<Body>[] {
    const start = `safelight.${this.nameOf("")}`
    const found = this.submits.get().filter((one) => this.unkept.has(one.key))
    try {
      for (const name of Object.keys(localStorage)) {
        const text = name.startsWith(start) ? recall(name.replace("safelight.", "")) : null
        if (text) found.push(JSON.parse(text) as Submit<Body>)
      }
    } catch {
      // No storage here: what this page holds itself is all there is.
    }
    return found.sort(newestFirst)
  }
}

function newestFirst(one: Submit<unknown>, other: Submit<unknown>): number {
  return other.madeAt.localeCompare(one.madeAt)
}

/** `crypto.randomUUID` is missing where the page comes over plain http from another machine. */
export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return `studio-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`
}
