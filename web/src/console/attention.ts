/**
 * Whether somebody is at the page. An operator's session ends when it has been idle for a while: a page that was left
 * open must not keep it alive by looking again and again.
 */

const GONE_AFTER_MS = 5 * 60_000
const SIGNS = ["pointerdown", "pointermove", "keydown", "wheel", "focus"]

let seenAt = Date.now()
for (const sign of SIGNS) window.addEventListener(sign, () => (seenAt = Date.now()), { passive: true })

export function isAttended(): boolean {
  return document.visibilityState === "visible" && Date.now() - seenAt < GONE_AFTER_MS
}
