/** Reads comma-separated values as spreadsheets write them: quotes, line breaks within quotes, `,` or `;` or tabs. */

import { FileFault } from "./fault"

export interface Row {
  /** Where it begins, counted from 1. */
  line: number
  fields: string[]
}

const DELIMITERS = [",", ";", "\t"]
const QUOTED = /"([^"]*(?:""[^"]*)*)"/y
const BREAK = /\r\n|\n|\r/y
const BREAKS = /\r\n|\n|\r/g

/** Every row that says something; throws a `FileFault` that names the line. */
export function readCsv(text: string): Row[] {
  const delimiter = delimiterOf(text)
  const plain = new RegExp(`[^${delimiter}\\r\\n]*`, "y")
  const rows: Row[] = []
  let at = 0
  let line = 1
  while (at < text.length) {
    const row: Row = { line, fields: [] }
    let isMore = true
    while (isMore) {
      const { field, end, breaks } = fieldAt(text, at, line, plain)
      row.fields.push(field)
      line += breaks
      isMore = text[end] === delimiter
      at = isMore ? end + 1 : end
    }
    const rest = match(BREAK, text, at)
    if (rest === null && at < text.length) throw new FileFault(line, "afterQuote")
    at += rest?.[0].length ?? 0
    line += 1
    if (row.fields.some((field) => field.trim() !== "")) rows.push(row)
  }
  return rows
}

interface Field {
  field: string
  end: number
  breaks: number
}

function fieldAt(text: string, at: number, line: number, plain: RegExp): Field {
  if (text[at] !== '"') {
    const field = match(plain, text, at)?.[0] ?? ""
    return { field, end: at + field.length, breaks: 0 }
  }
  const found = match(QUOTED, text, at)
  if (!found) throw new FileFault(line, "openQuote")
  const field = (found[1] ?? "").replaceAll('""', '"')
  return { field, end: at + found[0].length, breaks: found[0].match(BREAKS)?.length ?? 0 }
}

/** What stands most often between the names of the columns. */
function delimiterOf(text: string): string {
  const counts = new Map(DELIMITERS.map((one) => [one, 0]))
  let isQuoted = false
  for (const sign of text.trimStart()) {
    if (sign === '"') isQuoted = !isQuoted
    else if (!isQuoted && (sign === "\n" || sign === "\r")) break
    else if (!isQuoted && counts.has(sign)) counts.set(sign, (counts.get(sign) ?? 0) + 1)
  }
  const [most] = [...counts].sort(([, one], [, other]) => other - one)
  return most?.[0] ?? ","
}

function match(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at
  return pattern.exec(text)
}
