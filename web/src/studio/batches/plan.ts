/** From rows to items: their prompts, what is wrong with which of them, and what they cost. */

import type { Model, TaskBody } from "../tasks/wish"
import { shapeOf } from "../tasks/wish"
import type { Fault } from "./fault"
import type { Table, Values } from "./table"

const VARIABLE = /\{\{([^{}]+)\}\}/g

/** What holds for every item that does not say otherwise. */
export interface Settings {
  /** The prompt of all, with a `{{column}}` wherever a value of the row goes. */
  template: string
  model: string
  shape: string
  n: number
  atOnce: number
  /** Take what there are credits for; else it is all or nothing. */
  isPartly: boolean
}

export interface Item {
  line: number
  body: TaskBody
  price: number
}

export interface Plan {
  items: readonly Item[]
  faults: readonly Fault[]
  cost: number
  /** Names in the template for which there is no column. */
  strangers: readonly string[]
}

export function planOf(table: Table, settings: Settings, model: Model, offered: readonly Model[]): Plan {
  const named = [...settings.template.matchAll(VARIABLE)].map((found) => (found[1] ?? "").trim())
  const strangers = table.isWhole ? [] : named.filter((name) => !table.columns.includes(name))
  const items: Item[] = []
  const faults: Fault[] = []
  for (const { line, values } of strangers.length > 0 ? [] : table.rows) {
    const missing = table.isWhole ? undefined : named.find((name) => !Object.hasOwn(values, name))
    if (missing !== undefined) {
      faults.push({ line, kind: "noColumn", values: [missing] })
      continue
    }
    const body = table.isWhole ? wholeBody(values, settings, model) : filledBody(values, settings, model)
    const its = offered.find((one) => one.name === body.model)
    const fault = faultOf(body, its)
    if (fault) faults.push({ line, ...fault })
    items.push({ line, body, price: fault || !its ? 0 : its.price * (body.n ?? 1) })
  }
  return { items, faults, strangers, cost: items.reduce((sum, item) => sum + item.price, 0) }
}

/** How many items these credits are enough for, in order, and what those cost. */
export function affordable(items: readonly Item[], credits: number): { items: number; cost: number } {
  let cost = 0
  let count = 0
  for (const item of items) {
    if (cost + item.price > credits) continue
    cost += item.price
    count += 1
  }
  return { items: count, cost }
}

function filledBody(values: Values, settings: Settings, model: Model): TaskBody {
  const prompt = settings.template.replace(VARIABLE, (_, name: string) => textOfValue(values[name.trim()]))
  const notes = { shape: settings.shape, images: [], mask: null }
  return { ...fieldsOf(settings, model), prompt: prompt.trim(), metadata: { row: values, studio: notes } }
}

/** A row that is a task already: what it says itself goes first, and whatever else it says is the service's to judge. */
function wholeBody(values: Values, settings: Settings, model: Model): TaskBody {
  const { size, aspect_ratio, ...others } = fieldsOf(settings, model)
  const isShaped = "size" in values || "aspect_ratio" in values
  const shape = isShaped ? {} : { ...(size && { size }), ...(aspect_ratio && { aspect_ratio }) }
  return { ...others, ...shape, ...values } as TaskBody
}

function fieldsOf({ shape, n }: Settings, model: Model): Omit<TaskBody, "prompt"> {
  return { model: model.name, n, ...shapeOf(shape) }
}

function faultOf(body: TaskBody, model: Model | undefined): Omit<Fault, "line"> | null {
  const { prompt, n = 1 } = body
  if (typeof prompt !== "string") return { kind: "noPrompt", values: [] }
  if (prompt.trim() === "") return { kind: "emptyPrompt", values: [] }
  if (!model) return { kind: "noModel", values: [String(body.model)] }
  const [length, most] = [[...prompt].length, model.max_prompt_chars]
  if (length > most) return { kind: "longPrompt", values: [length, most] }
  const isCount = Number.isInteger(n) && n >= 1 && n <= model.max_n
  return isCount ? null : { kind: "badCount", values: [JSON.stringify(n), model.max_n] }
}

function textOfValue(value: unknown): string {
  return typeof value === "object" ? JSON.stringify(value) : String(value)
}
