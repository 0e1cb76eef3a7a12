/** Batches on their way to the service: each goes out under one key, and every item's key follows from it. */

import { answerOf, patientApi, type Schemas } from "@shared/api/client"
import { Problem } from "@shared/api/problem"
import { newKey, Outbox, type Submit } from "../outbox"
import type { TaskBody } from "../tasks/wish"
import { forgetAbandoned, forgetParcel, keepParcel, parcelOf } from "./parcels"
import type { Item, Settings } from "./plan"
import { lookAtBatches, readBatch } from "./shelf"

export interface Handover {
  name: string
  items: number
  cost: number
  atOnce: number
  accept: "all" | "partly"
}

export type BatchSubmit = Submit<Handover>

const POSITION = /^items\[(\d+)\]\.?/
const MAX_NAME = 200

export const batchOutbox = new Outbox<Handover>("batches", deliver, (key) => void forgetParcel(key))

async function deliver({ key, body }: BatchSubmit): Promise<void> {
  const receipt = await send(key, body)
  // On the shelf before it leaves here, as with a task.
  await readBatch(receipt.id).catch(() => undefined)
  lookAtBatches()
}

/** Hand in a batch; when it returns, neither a reload nor a closed lid can lose it. */
export async function handIn(
  file: { name: string; text: string },
  settings: Settings,
  plan: { items: readonly Item[]; cost: number },
): Promise<void> {
  const key = newKey()
  const isKept = await keepParcel({
    key,
    text: plan.items.map(({ body }) => JSON.stringify(marked(body, key))).join("\n"),
    lines: plan.items.map(({ line }) => line),
    file,
    settings,
    madeAt: Date.now(),
  })
  const accept = settings.isPartly ? "partly" : "all"
  const handover = {
    name: printable(file.name),
    items: plan.items.length,
    cost: plan.cost,
    atOnce: settings.atOnce,
    accept,
  } as const
  batchOutbox.add(handover, key, { isKept })
  void forgetAbandoned().catch(() => undefined)
}

async function send(key: string, handover: Handover): Promise<Schemas["BatchReceipt"]> {
  const parcel = await parcelOf(key)
  if (!parcel) throw new Problem(410, "items-lost", "", null, [])
  const { name, atOnce, accept } = handover
  try {
    return await answerOf(
      patientApi.POST("/v1/batches", {
        params: { header: { "Idempotency-Key": key }, query: { at_once: atOnce, accept, name } },
        headers: { "Content-Type": "application/x-ndjson" },
        body: parcel.text,
        bodySerializer: (text) => text,
      }),
    )
  } catch (error) {
    throw error instanceof Problem ? withLines(error, parcel.lines) : error
  }
}

/** The service counts items; whoever has the file counts its lines. */
function withLines(problem: Problem, lines: readonly number[]): Problem {
  const fields = problem.fields.map(({ field, message }) => {
    const line = lines[Number(POSITION.exec(field)?.[1])]
    return { field: field.replace(POSITION, ""), message, ...(line !== undefined && { line }) }
  })
  // Room for so many tasks comes in hours rather than seconds: a person decides when to ask again.
  const isFull = problem.code === "too-many-open-tasks"
  return isFull
    ? new Problem(409, problem.code, problem.detail, null, fields)
    : new Problem(problem.status, problem.code, problem.detail, problem.retryAfterS, fields)
}

/** The items are shown as a batch, not one by one; what can be made again from a task stands in it too. */
function marked(body: TaskBody, key: string): TaskBody {
  const metadata = body.metadata ?? {}
  const notes = {
    shape: body.size ?? body.aspect_ratio ?? "",
    images: body.images ?? [],
    mask: body.mask ?? null,
  }
  return { ...body, metadata: { ...metadata, studio: { ...notes, batch: key } } }
}

function printable(name: string): string {
  return [...name.replace(/[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu, " ")].slice(0, MAX_NAME).join("")
}
