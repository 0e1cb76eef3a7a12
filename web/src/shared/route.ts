import { useSyncExternalStore } from "react"

/** Where in the page somebody is: the part of the address after `#`, as names between slashes. */
export function useRoute(): string[] {
  const hash = useSyncExternalStore(
    (listener) => {
      window.addEventListener("hashchange", listener)
      return () => window.removeEventListener("hashchange", listener)
    },
    () => location.hash,
  )
  return hash.replace(/^#\/?/, "").split("/").filter(Boolean).map(decodeURIComponent)
}

export function hrefTo(...names: string[]): string {
  return `#/${names.map(encodeURIComponent).join("/")}`
}

export function goTo(...names: string[]): void {
  location.hash = hrefTo(...names)
}
