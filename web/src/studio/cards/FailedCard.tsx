import { Button, Text } from "@mantine/core"
import { useFormats } from "@shared/i18n/language"
import { Icon } from "@shared/ui/Icon"
import { compose } from "../compose/draft"
import { useWords } from "../messages"
import { submit } from "../tasks/outbox"
import { bodyOfTask, type Task, wishOfTask } from "../tasks/wish"
import classes from "./cards.module.css"

/** A task that ended without a picture: why, in the customer's words, and what to do about it. */
export function FailedCard({ task, onDismiss }: { task: Task; onDismiss: () => void }) {
  const words = useWords()
  const { number } = useFormats()
  const failure = task.failure
  const kind = words.failure[failure?.class ?? "environment"]
  const what = words.failure.codes[failure?.code ?? ""] ?? kind.what
  const { captured } = task.credits
  return (
    <article className={`surface ${classes.card} ${classes.failed}`} data-task={task.id}>
      <div className={classes.body}>
        <div className={classes.state}>
          <Text fw={600} size="sm" className={classes.why}>
            <Icon name="alert" size={16} /> {what}
          </Text>
        </div>
        <Text size="sm">
          {kind.todo}{" "}
          {captured > 0
            ? words.developing.charged(words.credits(number(captured)))
            : words.developing.notCharged}
        </Text>
        <Text size="sm" lineClamp={2} className="quiet">
          {task.prompt}
        </Text>
        <div className={classes.actions}>
          {failure?.retryable && (
            <Button
              size="compact-sm"
              variant="light"
              onClick={() => {
                submit(bodyOfTask(task))
                onDismiss()
              }}
            >
              {words.developing.again}
            </Button>
          )}
          <Button size="compact-sm" variant="default" onClick={() => compose(wishOfTask(task))}>
            {words.developing.edit}
          </Button>
          <Button size="compact-sm" variant="subtle" color="gray" onClick={onDismiss}>
            {words.developing.dismiss}
          </Button>
        </div>
      </div>
    </article>
  )
}
