import { Title, VisuallyHidden } from "@mantine/core"
import { recall, remember } from "@shared/storage"
import { Store, useStore } from "@shared/store"
import { useEffect, useRef, useState } from "react"
import { useWords } from "../messages"
import { outbox } from "../tasks/outbox"
import { isOver, shelf } from "../tasks/shelf"
import { isItem, type Task } from "../tasks/wish"
import classes from "./cards.module.css"
import { FailedCard } from "./FailedCard"
import { RunningCard } from "./RunningCard"
import { SubmitCard } from "./SubmitCard"

const KEEP_FAILED_MS = 86_400_000
const KEEP_DISMISSED = 200

const dismissed = new Store<readonly string[]>((recall("dismissed") ?? "").split(" ").filter(Boolean))

function dismiss(id: string): void {
  const next = [id, ...dismissed.get()].slice(0, KEEP_DISMISSED)
  remember("dismissed", next.join(" "))
  dismissed.set(next)
}

/** Everything that is not a picture yet: on its way, in the making, or failed and not yet seen. */
export function Developing() {
  const words = useWords().developing
  const submits = useStore(outbox.submits)
  const { tasks } = useStore(shelf)
  const seen = useStore(dismissed)
  const shown = tasks.filter((task) => !isItem(task) && (!isOver(task) || isFreshFailure(task, seen)))
  const announcement = useAnnouncement(tasks)
  return (
    <>
      <VisuallyHidden role="status">{announcement}</VisuallyHidden>
      {(submits.length > 0 || shown.length > 0) && (
        <section aria-labelledby="developing-title">
          <Title order={2} size="h4" id="developing-title" mb="sm">
            {words.title}
          </Title>
          <ul className={classes.cards}>
            {submits.map((one) => (
              <li key={one.key}>
                <SubmitCard submit={one} />
              </li>
            ))}
            {shown.map((task) => (
              <li key={task.id}>
                {isOver(task) ? (
                  <FailedCard task={task} onDismiss={() => dismiss(task.id)} />
                ) : (
                  <RunningCard task={task} />
                )}
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  )
}

function isFreshFailure(task: Task, seen: readonly string[]): boolean {
  if (task.status !== "failed" || task.erased_at || seen.includes(task.id)) return false
  return Date.now() - Date.parse(task.finished_at ?? task.created_at) < KEEP_FAILED_MS
}

/** What a screen reader says when a task ends that was open when this page first saw it. */
function useAnnouncement(tasks: readonly Task[]): string {
  const words = useWords().developing
  const open = useRef(new Set<string>())
  const [said, setSaid] = useState("")
  useEffect(() => {
    for (const task of tasks) {
      if (!isOver(task)) open.current.add(task.id)
      else if (open.current.delete(task.id)) {
        setSaid(task.status === "ready" ? words.ready(task.prompt) : words.failed(task.prompt))
      }
    }
  }, [tasks, words])
  return said
}
