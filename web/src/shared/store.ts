import { useSyncExternalStore } from "react"

/** A value that parts of a page watch; it is replaced, never changed in place. */
export class Store<T> {
  private readonly listeners = new Set<() => void>()

  constructor(private value: T) {}

  readonly get = (): T => this.value

  set(next: T): void {
    if (Object.is(next, this.value)) return
    this.value = next
    for (const listener of this.listeners) listener()
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }
}

export function useStore<T>(store: Store<T>): T {
  return useSyncExternalStore(store.subscribe, store.get)
}
