/** The rooms of the Console, as they stand in its navigation and in its addresses. */
export const ROOMS = [
  "overview",
  "reviews",
  "tasks",
  "reconciliations",
  "findings",
  "notices",
  "accounts",
  "webhooks",
  "audit",
] as const

export type Room = (typeof ROOMS)[number]
