import type { Schemas } from "@shared/api/client"

export type Task = Schemas["Task"]
export type Model = Schemas["Model"]
export type TaskBody = Schemas["TaskBody"]

/** A picture that a task starts from: an upload of ours, and a small copy of it to look at. */
export interface Reference {
  id: string
  width: number
  height: number
  preview: string
}

/** What somebody wants, as the composer holds it. `shape` is a size or an aspect ratio; empty: as the model likes. */
export interface Wish {
  prompt: string
  model: string
  shape: string
  n: number
  references: Reference[]
  mask: string | null
}

export const NO_WISH: Wish = { prompt: "", model: "", shape: "", n: 1, references: [], mask: null }

/** What the API is sent. The task's metadata carries what it does not give back, so that it can be made again. */
export function bodyOf(wish: Wish): TaskBody {
  const images = wish.references.map((reference) => reference.id)
  const mask = images.length > 0 ? wish.mask : null
  return {
    model: wish.model,
    operation: images.length > 0 ? "edit" : "generate",
    prompt: wish.prompt.trim(),
    n: wish.n,
    ...shapeOf(wish.shape),
    ...(images.length > 0 && { images }),
    ...(mask && { mask }),
    metadata: { studio: { shape: wish.shape, images, mask } },
  }
}

/** The same again: what the studio wrote down beside the task, as far as it did. */
export function bodyOfTask(task: Task): TaskBody {
  const { shape, images, mask } = notesOf(task)
  return {
    model: task.model,
    operation: task.operation,
    prompt: task.prompt,
    n: task.n,
    ...shapeOf(shape),
    ...(task.operation === "edit" && { images, ...(mask && { mask }) }),
    // Made again it is a task by itself, whatever it was an item of.
    metadata: { ...task.metadata, studio: { shape, images, mask } },
  }
}

/** Whether it was handed in with a file of others: then it is watched as a part of that. */
export function isItem(task: Task): boolean {
  return typeof (task.metadata as { studio?: { batch?: unknown } }).studio?.batch === "string"
}

/** For the composer: its pictures are left out, since an upload cannot be looked at again. */
export function wishOfTask(task: Task): Wish {
  return { ...NO_WISH, prompt: task.prompt, model: task.model, n: task.n, shape: notesOf(task).shape }
}

export function wishOfBody(body: TaskBody): Wish {
  return {
    ...NO_WISH,
    prompt: body.prompt,
    model: body.model ?? "",
    n: body.n ?? 1,
    shape: body.size ?? body.aspect_ratio ?? "",
  }
}

export function shapeOf(shape: string): Pick<TaskBody, "size" | "aspect_ratio"> {
  if (!shape) return {}
  return shape.includes(":") ? { aspect_ratio: shape } : { size: shape }
}

interface Notes {
  shape: string
  images: string[]
  mask: string | null
}

/** Other programs write other metadata: nothing in it is taken for granted. */
function notesOf(task: Task): Notes {
  const notes = (task.metadata as { studio?: Partial<Notes> }).studio ?? {}
  return {
    shape: typeof notes.shape === "string" ? notes.shape : "",
    images: Array.isArray(notes.images) ? notes.images.filter((id) => typeof id === "string") : [],
    mask: typeof notes.mask === "string" ? notes.mask : null,
  }
}
