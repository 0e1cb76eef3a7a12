import { Button, Progress, Text } from "@mantine/core"
import { useFormats } from "@shared/i18n/language"
import { useState } from "react"
import { useWords } from "../messages"
import { cancelTask } from "../tasks/shelf"
import type { Task } from "../tasks/wish"
import classes from "./cards.module.css"

/** A task in the making: where it stands, how far it is, and the way out. */
export function RunningCard({ task }: { task: Task }) {
  const words = useWords().developing
  const { number } = useFormats()
  const [cancel, setCancel] = useState<"no" | "asked" | "late">("no")
  const { stage, percent, position } = task.progress

  const ask = () => {
    setCancel("asked")
    cancelTask(task.id).catch(() => setCancel("late"))
  }

  return (
    <article className={`surface ${classes.card}`} data-task={task.id} data-stage={stage}>
      <div className={classes.tray} aria-hidden="true">
        <span className={classes.print} />
      </div>
      <div className={classes.body}>
        <div className={classes.state}>
          <Text fw={600} size="sm">
            {cancel === "asked" ? words.canceling : words.stage[stage]}
          </Text>
          <Text size="xs" className="quiet">
            {position != null && words.position(number(position))}
            {position == null && percent != null && words.percent(percent)}
          </Text>
        </div>
        <Progress
          value={Math.max(percent ?? BY_STAGE[stage], BY_STAGE.waiting)}
          animated
          size="sm"
          aria-label={words.stage[stage]}
          className={classes.progress}
        />
        <Text size="sm" lineClamp={2} className="quiet">
          {task.prompt}
        </Text>
        <div className={classes.actions}>
          {stage !== "saving" && (
            <Button variant="subtle" color="gray" size="compact-xs" disabled={cancel !== "no"} onClick={ask}>
              {words.cancel}
            </Button>
          )}
          {cancel === "late" && (
            <Text size="xs" role="alert" className="quiet">
              {words.tooLate}
            </Text>
          )}
        </div>
      </div>
    </article>
  )
}

/** Where the upstream tells no percent, the stage says at least which part it is in. */
const BY_STAGE = { waiting: 8, drawing: 45, saving: 90, done: 100 } as const
