import { useFormats } from "@shared/i18n/language"
import { hrefTo } from "@shared/route"
import { useWords } from "../messages"
import classes from "./charts.module.css"

/** In the order of a task's life. */
export const STATES = [
  "queued",
  "submitting",
  "uncertain",
  "running",
  "retrying",
  "archiving",
  "review",
  "succeeded",
  "failed",
  "blocked",
  "canceled",
] as const

/** How many tasks stand where; each bar leads to them. */
export function Funnel({ states }: { states: Record<string, number> }) {
  const words = useWords()
  const { number } = useFormats()
  const most = Math.max(1, ...Object.values(states))
  return (
    <ul className={classes.funnel}>
      {STATES.map((state) => {
        const tasks = states[state] ?? 0
        return (
          <li key={state} data-state={state} data-empty={tasks === 0 || undefined}>
            <a href={hrefTo("tasks", "state", state)}>
              <span>{words.states[state]}</span>
              <span className={classes.bar} aria-hidden="true">
                <span style={{ width: `${(100 * tasks) / most}%` }} />
              </span>
              <span className={classes.number}>{number(tasks)}</span>
            </a>
          </li>
        )
      })}
    </ul>
  )
}
