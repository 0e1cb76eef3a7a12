/** What is being composed: one for each tab, and still there after a reload. */

import { Store } from "@shared/store"
import { NO_WISH, type Wish } from "../tasks/wish"

const NAME = "safelight.draft"

export const draft = new Store<Wish>(kept())

draft.subscribe(() => {
  try {
    sessionStorage.setItem(NAME, JSON.stringify(draft.get()))
  } catch {
    // Too many pictures for the storage of a tab: then a reload loses the draft, and nothing else.
  }
})

export function change(part: Partial<Wish>): void {
  draft.set({ ...draft.get(), ...part })
}

/** Bring something into the composer, and the composer into view. */
export function compose(wish: Wish): void {
  draft.set(wish)
  const field = document.getElementById("prompt")
  field?.scrollIntoView({ block: "center", behavior: "smooth" })
  field?.focus({ preventScroll: true })
}

export function forgetDraft(): void {
  draft.set(NO_WISH)
}

function kept(): Wish {
  try {
    return { ...NO_WISH, ...JSON.parse(sessionStorage.getItem(NAME) ?? "{}") }
  } catch {
    return NO_WISH
  }
}
