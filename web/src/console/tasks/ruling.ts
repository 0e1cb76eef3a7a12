/** What an operator is about to decide, and the body that says so. */

import type { Schemas } from "@shared/api/client"

export type DecisionBody = Schemas["DecisionBody"]
export type Choice = DecisionBody["decision"]

/** The harmless one first. */
export const CHOICES = [
  "check_again",
  "resubmit",
  "attach_result",
  "accept_as_done",
  "fail_and_release",
] as const satisfies readonly Choice[]

type ReasonCode = "proved_absent" | "provider_confirmed" | "risk_accepted" | "no_result" | "operator_decision"

export const REASONS: Partial<Record<Choice, readonly ReasonCode[]>> = {
  resubmit: ["proved_absent", "provider_confirmed", "risk_accepted"],
  fail_and_release: ["no_result", "operator_decision"],
}

export interface Ruling {
  choice: Choice
  reason: ReasonCode | ""
  note: string
  /** One address a line. */
  urls: string
  files: File[]
}

export const emptyRuling: Ruling = { choice: "check_again", reason: "", note: "", urls: "", files: [] }

const MIN_NOTE = 10

function addressesOf(ruling: Ruling): string[] {
  return ruling.urls.split(/\s+/).filter(Boolean)
}

/** Whether nothing is missing that the service would ask for. */
export function isWhole(ruling: Ruling, pictures: number): boolean {
  if (ruling.choice === "resubmit") return ruling.note.trim().length >= MIN_NOTE
  if (ruling.choice !== "attach_result") return true
  const given = addressesOf(ruling).length + ruling.files.length
  return given > 0 && given <= pictures
}

/** What the operator calls each field of the body that holds a picture. */
export function namesOf(ruling: Ruling): Record<string, string> {
  const given = [...addressesOf(ruling), ...ruling.files.map((file) => file.name)]
  return Object.fromEntries(given.map((name, place) => [`urls[${place}]`, name]))
}

/** Files go as data URLs, after the addresses; throws if one cannot be read. */
export async function bodyOf(ruling: Ruling, version: number): Promise<DecisionBody> {
  const isAttaching = ruling.choice === "attach_result"
  const urls = isAttaching
    ? [...addressesOf(ruling), ...(await Promise.all(ruling.files.map(dataUrlOf)))]
    : []
  return { decision: ruling.choice, version, reason_code: ruling.reason, note: ruling.note.trim(), urls }
}

function dataUrlOf(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.onload = () => resolve(String(reader.result))
    reader.onerror = () => reject(reader.error)
    reader.readAsDataURL(file)
  })
}
