/** A file of items as this browser reads it: CSV with a row an item, or JSON lines. */

import { readCsv } from "./csv"
import { FileFault } from "./fault"

export const MAX_ITEMS = 10_000
const MAX_BYTES = 32 * 2 ** 20

export type Values = Record<string, unknown>

export interface Table {
  columns: readonly string[]
  rows: readonly { line: number; values: Values }[]
  /** Whether each row is a task of its own, with its prompt; else a prompt is made from its values. */
  isWhole: boolean
}

/** The text of a file; throws a `FileFault` if it is none. */
export async function textOf(file: Blob): Promise<string> {
  if (file.size > MAX_BYTES) throw new FileFault(null, "tooLarge", MAX_BYTES / 2 ** 20)
  const bytes = new Uint8Array(await file.arrayBuffer())
  const text = decoded(bytes)
  if (text === null) throw new FileFault(badLineOf(bytes), "notText")
  return text
}

/** Its items; throws a `FileFault` that names the line. */
export function readTable(name: string, text: string): Table {
  const table = isJson(name, text) ? tableOfJson(text) : tableOfCsv(text)
  if (table.rows.length === 0) throw new FileFault(null, "noItems")
  if (table.rows.length > MAX_ITEMS) throw new FileFault(null, "tooMany", table.rows.length, MAX_ITEMS)
  return table
}

function isJson(name: string, text: string): boolean {
  if (/\.(csv|tsv)$/i.test(name)) return false
  return /\.(jsonl|ndjson|json)$/i.test(name) || text.trimStart().startsWith("{")
}

function tableOfCsv(text: string): Table {
  const [head, ...rows] = readCsv(text)
  if (!head) throw new FileFault(null, "noItems")
  const columns = head.fields.map((name) => name.trim())
  for (const [index, name] of columns.entries()) {
    if (name === "") throw new FileFault(head.line, "noColumnName", index + 1)
    if (columns.indexOf(name) !== index) throw new FileFault(head.line, "sameColumn", name)
  }
  return {
    columns,
    isWhole: false,
    rows: rows.map(({ line, fields }) => {
      if (fields.length !== columns.length) throw new FileFault(line, "fields", fields.length, columns.length)
      return { line, values: Object.fromEntries(columns.map((name, index) => [name, fields[index]])) }
    }),
  }
}

function tableOfJson(text: string): Table {
  const rows = text
    .split("\n")
    .map((said, index) => ({ line: index + 1, said: said.trim() }))
    .filter(({ said }) => said !== "")
    .map(({ line, said }) => ({ line, values: objectOf(line, said) }))
  const columns = [...new Set(rows.flatMap(({ values }) => Object.keys(values)))]
  return { columns, rows, isWhole: rows.some(({ values }) => Object.hasOwn(values, "prompt")) }
}

function objectOf(line: number, said: string): Values {
  let value: unknown
  try {
    value = JSON.parse(said)
  } catch {
    throw new FileFault(line, "notJson")
  }
  if (value === null || typeof value !== "object" || Array.isArray(value))
    throw new FileFault(line, "noObject")
  return value as Values
}

/** The mark that spreadsheets write at the beginning is no part of the text. */
function decoded(bytes: Uint8Array): string | null {
  // Never in a text, and everywhere in what is none: pictures, archives, UTF-16.
  if (bytes.includes(0)) return null
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes)
  } catch {
    return null
  }
}

/** The first line that is no text. A line's end is no part of any other sign in UTF-8. */
function badLineOf(bytes: Uint8Array): number {
  let line = 1
  let from = 0
  for (;;) {
    const end = bytes.indexOf(10, from)
    if (end < 0 || decoded(bytes.subarray(from, end)) === null) return line
    from = end + 1
    line += 1
  }
}
