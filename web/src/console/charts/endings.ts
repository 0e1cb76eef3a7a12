/** Endings, counted for the charts: by kind, over time, and by model and provider. */

import type { EndingRow } from "../rows"

/** In the order in which they are stacked: what was delivered lies at the bottom. */
export const KINDS = [
  "succeeded",
  "content_blocked",
  "invalid_request",
  "upstream_fault",
  "environment",
  "canceled",
  "other",
] as const
export type Kind = (typeof KINDS)[number]
export type Counts = Partial<Record<Kind, number>>

export function kindOf(row: EndingRow): Kind {
  if (row.state === "succeeded" || row.state === "canceled") return row.state
  return KINDS.find((kind) => kind === row.failure_class) ?? "other"
}

export function countsOf(rows: readonly EndingRow[]): Counts {
  const counts: Counts = {}
  for (const row of rows) counts[kindOf(row)] = (counts[kindOf(row)] ?? 0) + row.tasks
  return counts
}

export function sumOf(counts: Counts): number {
  return KINDS.reduce((sum, kind) => sum + (counts[kind] ?? 0), 0)
}

/** Of the tasks that ended, those that delivered. A customer who cancels says nothing about a provider. */
export function usableRate(counts: Counts): number | null {
  const ended = sumOf(counts) - (counts.canceled ?? 0)
  return ended > 0 ? (counts.succeeded ?? 0) / ended : null
}

export interface Step {
  at: string
  counts: Counts
}

const HOUR_MS = 3_600_000

/** One step for each hour or day of the period, those without any task too. */
export function stepsOf(rows: readonly EndingRow[], since: string, hours: number): Step[] {
  const stepMs = hours <= 48 ? HOUR_MS : 24 * HOUR_MS
  const first = Math.floor(Date.parse(since) / stepMs) * stepMs
  const last = Math.max(
    ...rows.map((row) => Date.parse(row.accepted_at)),
    Date.parse(since) + hours * HOUR_MS,
  )
  const steps: Step[] = []
  for (let at = first; at <= last; at += stepMs) {
    const ofStep = rows.filter((row) => Date.parse(row.accepted_at) === at)
    steps.push({ at: new Date(at).toISOString(), counts: countsOf(ofStep) })
  }
  return steps
}

export interface RouteCounts {
  model: string
  provider: string
  counts: Counts
}

/** By model and provider, those with the most tasks first. */
export function byRoute(rows: readonly EndingRow[]): RouteCounts[] {
  const groups = new Map<string, EndingRow[]>()
  for (const row of rows) {
    const name = JSON.stringify([row.model, row.provider])
    groups.set(name, [...(groups.get(name) ?? []), row])
  }
  return [...groups.values()]
    .flatMap((group) => {
      const [first] = group
      return first ? [{ model: first.model, provider: first.provider, counts: countsOf(group) }] : []
    })
    .sort((one, other) => sumOf(other.counts) - sumOf(one.counts))
}
