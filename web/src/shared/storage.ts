/** What this browser remembers. Storage may be full or forbidden: then a page works on without memory. */

export function remember(name: string, value: string): void {
  try {
    localStorage.setItem(`safelight.${name}`, value)
  } catch {
    // Nothing depends on it but comfort; the outbox checks for itself what was kept.
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
