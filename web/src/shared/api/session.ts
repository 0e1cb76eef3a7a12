/**
 * Who is signed in. The browser keeps nothing of it but an HttpOnly cookie: a key is typed once, exchanged for a
 * session and forgotten, so that no script can read it, every tab shares it, and it ends by itself.
 */

import { useSyncExternalStore } from "react"
import { problemOf, Unreachable } from "./problem"

export interface Session {
  id: string
  name: string
  csrf_token: string
  expires_at: string
}

/** The two doors have sessions of their own; neither is worth anything at the other. */
export type SessionDoor = "/v1/session" | "/admin/session"

type Known = Session | null | "asking" | "unreachable"

let door: SessionDoor = "/v1/session"
let known: Known = "asking"
const listeners = new Set<() => void>()

function become(next: Known): void {
  known = next
  for (const listener of listeners) listener()
}

/** The door of this page; ask once whether somebody is signed in, or open the one-time link in the address. */
export async function beginSession(at: SessionDoor): Promise<void> {
  door = at
  const ticket = takeTicket()
  become("asking")
  try {
    if (ticket) await signIn({ ticket })
    else become(await ask("GET"))
  } catch (error) {
    if (ticket && !(error instanceof Unreachable)) throw error
    become(error instanceof Unreachable ? "unreachable" : null)
  }
}

export async function signIn(by: { key: string } | { ticket: string }): Promise<void> {
  const headers: HeadersInit = "key" in by ? { Authorization: `Bearer ${by.key}` } : {}
  const body = "ticket" in by ? JSON.stringify({ ticket: by.ticket }) : "{}"
  try {
    become(await ask("POST", { headers: { ...headers, "Content-Type": "application/json" }, body }))
  } catch (error) {
    become(null)
    throw error
  }
}

export async function signOut(): Promise<void> {
  try {
    await ask("DELETE", { headers: { "X-CSRF-Token": csrfToken() } })
  } finally {
    become(null)
  }
}

/** Called by whoever gets a 401: the session has ended, here or for all tabs. */
export function sessionEnded(): void {
  if (known !== null) become(null)
}

export function csrfToken(): string {
  return known !== null && typeof known === "object" ? known.csrf_token : ""
}

export function useSession(): Known {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => known,
  )
}

async function ask(method: "GET" | "POST" | "DELETE", more: RequestInit = {}): Promise<Session | null> {
  let response: Response
  try {
    response = await fetch(door, { method, credentials: "same-origin", ...more })
  } catch (cause) {
    throw new Unreachable("no answer", { cause })
  }
  if (response.status === 204) return null
  const body = await response.json().catch(() => null)
  if (response.ok) return body as Session
  throw problemOf(response, body)
}

/** The ticket of a one-time link, taken out of the address before anything else can read it there. */
function takeTicket(): string | null {
  const ticket = /^#ticket=([\w-]+)$/.exec(location.hash)?.[1] ?? null
  if (ticket) history.replaceState(null, "", location.pathname + location.search)
  return ticket
}
