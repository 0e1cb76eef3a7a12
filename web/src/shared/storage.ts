/** What this browser remembers. Storage may be full or forbidden: then a page works on without memory. */

/** False if it could not be kept. */
export function remember(name: string, value: string): boolean {
  try {
    localStorage.setItem(`safelight.${name}`, value)
    return true
  } catch {
    return false
  }
}

export function recall(name: string): string | null {
  try {
    return localStorage.getItem(`safelight.${name}`)
  } catch {
    return null
  }
}

export function forget(name: string): void {
  try {
    localStorage.removeItem(`safelight.${name}`)
  } catch {
    // There is nothing to forget.
  }
}
