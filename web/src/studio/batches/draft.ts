/** The batch that is being prepared: one for each tab, and still there after a reload. */

import { Store } from "@shared/store"
import type { Settings } from "./plan"
import { readTable, type Table } from "./table"

export interface Chosen {
  name: string
  text: string
  table: Table
}

const FILE = "safelight.batch.file"
const SETTINGS = "safelight.batch.settings"
const NO_SETTINGS: Settings = { template: "", model: "", shape: "", n: 1, atOnce: 5, isPartly: false }

export const chosen = new Store<Chosen | null>(keptFile())
export const settings = new Store<Settings>({ ...NO_SETTINGS, ...recalled<Settings>(SETTINGS) })

chosen.subscribe(() => {
  const file = chosen.get()
  keep(FILE, file && { name: file.name, text: file.text })
})
settings.subscribe(() => keep(SETTINGS, settings.get()))

/** Take a file; throws a `FileFault` if it cannot be read. */
export function choose(name: string, text: string): void {
  const table = readTable(name, text)
  chosen.set({ name, text, table })
  const isUnsaid = settings.get().template.trim() === ""
  if (isUnsaid && table.columns.includes("prompt")) change({ template: "{{prompt}}" })
}

export function change(part: Partial<Settings>): void {
  settings.set({ ...settings.get(), ...part })
}

/** Put the file aside; what was said about it may do for the next one. */
export function putAside(): void {
  chosen.set(null)
  change({ isPartly: false })
}

export function bringBack(file: { name: string; text: string }, said: Settings): void {
  settings.set(said)
  choose(file.name, file.text)
}

function keep(name: string, value: unknown): void {
  try {
    if (value === null) sessionStorage.removeItem(name)
    else sessionStorage.setItem(name, JSON.stringify(value))
  } catch {
    // More than the storage of a tab holds: then a reload asks for the file again.
    sessionStorage.removeItem(name)
  }
}

function recalled<T>(name: string): Partial<T> | null {
  try {
    return JSON.parse(sessionStorage.getItem(name) ?? "null") as Partial<T> | null
  } catch {
    return null
  }
}

function keptFile(): Chosen | null {
  const file = recalled<{ name: string; text: string }>(FILE)
  if (!file?.name || !file.text) return null
  try {
    return { name: file.name, text: file.text, table: readTable(file.name, file.text) }
  } catch {
    return null
  }
}
