/** The small things that stand in many rows: ids, moments, states, numbers. */

import { useFormats, useLanguage } from "@shared/i18n/language"
import { hrefTo } from "@shared/route"
import type { ReactNode } from "react"
import { useWords } from "../messages"
import classes from "./parts.module.css"

const NOTHING = "–"

/** To the second: what came first is often the question. The year stands there only if it is another one. */
export function Moment({ at }: { at: string | null | undefined }) {
  const { language } = useLanguage()
  if (!at) return NOTHING
  const moment = new Date(at)
  const isOfThisYear = moment.getFullYear() === new Date().getFullYear()
  return (
    <time dateTime={at} title={at}>
      {moment.toLocaleString(language, isOfThisYear ? SHORT : { ...SHORT, year: "numeric" })}
    </time>
  )
}

const SHORT: Intl.DateTimeFormatOptions = {
  month: "short",
  day: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
}

export function Count({ of, signed = false }: { of: number | null | undefined; signed?: boolean }) {
  const { number } = useFormats()
  if (of === null || of === undefined) return NOTHING
  return `${signed && of > 0 ? "+" : ""}${number(of)}`
}

/** The end of an id says enough in a row: those of one minute begin alike. */
function shortened(id: string): string {
  return id.length > 16 ? `…${id.slice(-10)}` : id
}

export function TaskLink({ id }: { id: string | null | undefined }) {
  if (!id) return NOTHING
  return (
    <a className={classes.id} href={hrefTo("tasks", id)} title={id}>
      {shortened(id)}
    </a>
  )
}

export function AccountLink({ id, name }: { id: string; name?: string }) {
  return (
    <a className={classes.link} href={hrefTo("accounts", id)} title={id}>
      {name ?? shortened(id)}
    </a>
  )
}

const TONES: Record<string, string> = {
  succeeded: "good",
  delivered: "good",
  enabled: "good",
  active: "good",
  review: "asks",
  uncertain: "asks",
  failed: "bad",
  blocked: "bad",
  disabled: "bad",
}

/** A state as a word with a dot; the word alone says everything. */
export function State({ of, text }: { of: string; text?: string }) {
  const words = useWords()
  return (
    <span className={classes.state} data-tone={TONES[of] ?? "plain"}>
      {text ?? words.states[of] ?? of}
    </span>
  )
}

export function Reason({ of }: { of: string | null | undefined }) {
  const words = useWords()
  return of ? (words.reasons[of] ?? of) : NOTHING
}

export function Plain({ of }: { of: string | number | null | undefined }) {
  return of === null || of === undefined || of === "" ? NOTHING : String(of)
}

/** A failure: its class for us, its code for the customer. */
export function Failure({ of }: { of: { failure_class: string | null; failure_code: string | null } }) {
  const words = useWords()
  if (!of.failure_class) return NOTHING
  const name = words.endings[of.failure_class] ?? of.failure_class
  return of.failure_code && of.failure_code !== of.failure_class ? `${name} · ${of.failure_code}` : name
}

/** Something of no fixed shape, as the service keeps it. */
export function Raw({ of }: { of: unknown }) {
  if (of === null || of === undefined || of === "") return NOTHING
  const text = typeof of === "string" ? of : JSON.stringify(of, null, 1)
  if (text === "{}" || text === "[]") return NOTHING
  if (text.length <= 60) return <code className={classes.code}>{text.replaceAll("\n", "")}</code>
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what is long scrolls, and must do so by keyboard too
    <section className={classes.raw} tabIndex={0} aria-label="JSON">
      {text}
    </section>
  )
}

export type Fact = readonly [name: string, value: ReactNode]

/** Names and values; those without a value are left out. */
export function Facts({ of, isDense = false }: { of: readonly Fact[]; isDense?: boolean }) {
  return (
    <dl className={classes.facts} data-dense={isDense || undefined}>
      {of
        .filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== false)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  )
}
