/** Reading at the operator's door, and changing what lies behind it. */

import { Problem, problemOf, Unreachable } from "@shared/api/problem"
import { csrfToken, sessionEnded } from "@shared/api/session"
import { useCallback, useEffect, useRef, useState } from "react"
import { isAttended } from "./attention"

const PATIENCE_MS = 30_000
const UPLOAD_PATIENCE_MS = 120_000
const LOOK_AGAIN_MS = 15_000

export type Query = Record<string, string | null | undefined>

interface PageOf<R> {
  data: R[]
  next_cursor: string | null
}

/**
 * What lies at a path below `/admin`; throws a `Problem`, or `Unreachable`.
 *
 * By path, and not by the typed client: every list here has the same open shape, so one table serves them all.
 */
export async function read<T>(path: string, query: Query = {}): Promise<T> {
  const given = Object.entries(query).filter((pair): pair is [string, string] => Boolean(pair[1]))
  const asked = new URLSearchParams(given).toString()
  return (await call(asked ? `${path}?${asked}` : path, {})) as T
}

/** Make a change. Sent again under the same key it is answered again, and not made again. */
export async function change<T>(path: string, body: unknown, key: string | null): Promise<T> {
  const headers: Record<string, string> = {
    "Content-Type": "application/json",
    "X-CSRF-Token": csrfToken(),
  }
  if (key) headers["Idempotency-Key"] = key
  return (await call(path, { method: "POST", headers, body: JSON.stringify(body) }, UPLOAD_PATIENCE_MS)) as T
}

export const newKey = (): string => Array.from(crypto.getRandomValues(new Uint32Array(4)), hex).join("")

const hex = (part: number): string => part.toString(16).padStart(8, "0")

async function call(path: string, more: RequestInit, patienceMs = PATIENCE_MS): Promise<unknown> {
  let response: Response
  try {
    const signal = AbortSignal.timeout(patienceMs)
    response = await fetch(path, { credentials: "same-origin", signal, ...more })
  } catch (cause) {
    throw new Unreachable("no answer", { cause })
  }
  if (response.status === 401) sessionEnded()
  if (response.status === 204) return null
  // A body that breaks off is no answer either: what was asked for may have happened.
  const body: unknown = await response.json().catch((cause: unknown) => {
    if (response.ok) throw new Unreachable("no whole answer", { cause })
    return null
  })
  if (!response.ok) throw problemOf(response, body)
  return body
}

export interface Known<T> {
  answer: T | null
  /** Why the latest look brought nothing; an earlier answer stays beside it. */
  fault: unknown
  lookAgain: () => void
}

/** What lies at a path, looked at again every few seconds while somebody is at the page. */
export function useAnswer<T>(path: string | null, query: Query = {}): Known<T> {
  const asked = JSON.stringify([path, query])
  const [known, setKnown] = useState<{ asked: string; answer: T | null; fault: unknown }>()
  const latest = useRef(0)

  const look = useCallback(async () => {
    const [at, by] = JSON.parse(asked) as [string | null, Query]
    if (at === null) return
    const number = ++latest.current
    try {
      const answer = await read<T>(at, by)
      if (number === latest.current) setKnown({ asked, answer, fault: null })
    } catch (fault) {
      if (number !== latest.current) return
      setKnown((before) => ({ asked, answer: before?.asked === asked ? before.answer : null, fault }))
    }
  }, [asked])

  useEffect(() => {
    void look()
    const timer = setInterval(() => isAttended() && void look(), LOOK_AGAIN_MS)
    return () => {
      latest.current++
      clearInterval(timer)
    }
  }, [look])

  const isOfThis = known?.asked === asked
  return {
    answer: isOfThis ? known.answer : null,
    fault: isOfThis ? known.fault : null,
    lookAgain: () => void look(),
  }
}

export interface Pages<R> extends Known<R[]> {
  hasMore: boolean
  isLoading: boolean
  more: () => void
}

/** A list: its first page is kept fresh, the further ones are as they were when they were asked for. */
export function usePages<R>(path: string, query: Query = {}): Pages<R> {
  const asked = JSON.stringify([path, query])
  const first = useAnswer<PageOf<R>>(path, query)
  const [further, setFurther] = useState<{ asked: string; rows: R[]; next: string | null; fault: unknown }>()
  const [isLoading, setLoading] = useState(false)
  // Further rows follow the page that they were asked after: once there are some, that page stays as it was.
  const [kept, setKept] = useState<{ asked: string; page: PageOf<R> }>()

  const isOfThis = further?.asked === asked
  const page = isOfThis && kept?.asked === asked ? kept.page : first.answer
  const next = isOfThis ? further.next : (page?.next_cursor ?? null)

  const more = async () => {
    if (!page || next === null) return
    const rows = isOfThis ? further.rows : []
    setLoading(true)
    try {
      const found = await read<PageOf<R>>(path, { ...query, cursor: next })
      setKept({ asked, page })
      setFurther({ asked, rows: [...rows, ...found.data], next: found.next_cursor, fault: null })
    } catch (fault) {
      if (isOfThis) setFurther({ ...further, fault })
      else {
        setKept({ asked, page })
        setFurther({ asked, rows, next, fault })
      }
    } finally {
      setLoading(false)
    }
  }

  return {
    answer: page ? [...page.data, ...(isOfThis ? further.rows : [])] : null,
    fault: (isOfThis ? further.fault : null) ?? first.fault,
    lookAgain: () => {
      setFurther(undefined)
      setKept(undefined)
      first.lookAgain()
    },
    hasMore: next !== null,
    isLoading,
    more: () => void more(),
  }
}

/** Whether a change may have been made although it was not answered, so that it must go again as it was. */
export function isUnanswered(fault: unknown): boolean {
  return fault instanceof Unreachable || (fault instanceof Problem && fault.isPassing)
}

/**
 * A change under a key that is made before it is sent for the first time. As long as it is unanswered the same body
 * goes under the same key; another body is another change.
 */
export function useChange<T>(path: string) {
  const sent = useRef<{ text: string; key: string } | null>(null)
  const [isBusy, setBusy] = useState(false)
  const [fault, setFault] = useState<unknown>(null)

  const send = async (body: unknown): Promise<T | null> => {
    const text = JSON.stringify(body)
    if (sent.current?.text !== text) sent.current = { text, key: newKey() }
    setBusy(true)
    setFault(null)
    try {
      const answer = await change<T>(path, body, sent.current.key)
      sent.current = null
      return answer
    } catch (error) {
      if (!isUnanswered(error)) sent.current = null
      setFault(error)
      return null
    } finally {
      setBusy(false)
    }
  }
  return { send, isBusy, fault, isUncertain: isUnanswered(fault) }
}
