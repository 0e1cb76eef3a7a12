/**
 * The items of batches on their way, byte for byte as they are sent every time, until the service has answered.
 * They are too many for the storage that holds a submit.
 */

import type { Settings } from "./plan"

export interface Parcel {
  key: string
  /** JSON lines. */
  text: string
  /** Which line of the file each item came from. */
  lines: number[]
  file: { name: string; text: string }
  settings: Settings
  madeAt: number
}

const STORE = "parcels"
const ABANDONED_MS = 3_600_000
/** What the browser had no room for: then a reload loses it, and nothing else. */
const unkept = new Map<string, Parcel>()

/** Whether it will be there after a reload. */
export async function keepParcel(parcel: Parcel): Promise<boolean> {
  try {
    await within("readwrite", (store) => store.put(parcel))
    return true
  } catch {
    unkept.set(parcel.key, parcel)
    return false
  }
}

export async function parcelOf(key: string): Promise<Parcel | undefined> {
  return unkept.get(key) ?? (await within<Parcel | undefined>("readonly", (store) => store.get(key)))
}

export async function forgetParcel(key: string): Promise<void> {
  unkept.delete(key)
  await within("readwrite", (store) => store.delete(key)).catch(() => undefined)
}

/** Those whose submit was never made, because the page was closed at that moment, or is over already. */
export async function forgetAbandoned(): Promise<void> {
  const kept = await within<Parcel[]>("readonly", (store) => store.getAll())
  const names = Object.keys(localStorage)
  const isWanted = (key: string) => names.some((name) => name.endsWith(key))
  const old = kept.filter(({ key, madeAt }) => !isWanted(key) && Date.now() - madeAt > ABANDONED_MS)
  await Promise.all(old.map(({ key }) => forgetParcel(key)))
}

let opened: Promise<IDBDatabase> | undefined

function database(): Promise<IDBDatabase> {
  opened ??= new Promise<IDBDatabase>((resolve, reject) => {
    const opening = indexedDB.open("safelight", 1)
    opening.onupgradeneeded = () => opening.result.createObjectStore(STORE, { keyPath: "key" })
    opening.onsuccess = () => resolve(opening.result)
    opening.onerror = () => reject(opening.error)
  })
  // Once refused is not for ever.
  opened.catch(() => {
    opened = undefined
  })
  return opened
}

async function within<T>(
  mode: IDBTransactionMode,
  ask: (store: IDBObjectStore) => IDBRequest<T> | IDBRequest,
): Promise<T> {
  const transaction = (await database()).transaction(STORE, mode)
  const asked = ask(transaction.objectStore(STORE))
  return new Promise<T>((resolve, reject) => {
    transaction.oncomplete = () => resolve(asked.result as T)
    transaction.onerror = () => reject(transaction.error)
    transaction.onabort = () => reject(transaction.error)
  })
}
