/**
 * Grants on their way. A grant gets its idempotency key before it is sent for the first time, and lies in this browser
 * until it is answered: so neither a reload nor a lost answer grants twice.
 */

import { forget, recall, remember } from "@shared/storage"
import { change, isUnanswered, newKey } from "../door"

export interface GrantBody {
  amount: number
  reason: string
}

interface Sent {
  key: string
  body: GrantBody
}

const nameOf = (accountId: string) => `console.grant.${accountId}`

/** What was sent to this account and not answered. */
export function unanswered(accountId: string): GrantBody | null {
  return kept(accountId)?.body ?? null
}

export const hasUnanswered = (accountId: string): boolean => kept(accountId) !== null

/** Send a grant, or the unanswered one again; throws what it ends with. Gives the credits that are available then. */
export async function grant(accountId: string, wanted: GrantBody): Promise<number> {
  const sent = kept(accountId) ?? { key: newKey(), body: wanted }
  remember(nameOf(accountId), JSON.stringify(sent))
  try {
    const path = `/admin/accounts/${accountId}/grants`
    const { available } = await change<{ available: number }>(path, sent.body, sent.key)
    forget(nameOf(accountId))
    return available
  } catch (fault) {
    if (!isUnanswered(fault)) forget(nameOf(accountId))
    throw fault
  }
}

function kept(accountId: string): Sent | null {
  try {
    const found: unknown = JSON.parse(recall(nameOf(accountId)) ?? "null")
    return isSent(found) ? found : null
  } catch {
    return null
  }
}

function isSent(found: unknown): found is Sent {
  const sent = found as Sent | null
  return (
    typeof sent?.key === "string" &&
    Number.isInteger(sent.body?.amount) &&
    typeof sent.body.reason === "string"
  )
}
