import { Button, Loader, Text } from "@mantine/core"
import { useStore } from "@shared/store"
import { Icon } from "@shared/ui/Icon"
import { compose } from "../compose/draft"
import { type StudioMessages, useWords } from "../messages"
import type { Refusal, Submit } from "../outbox"
import { isReachable } from "../tasks/follow"
import { outbox } from "../tasks/outbox"
import { type TaskBody, wishOfBody } from "../tasks/wish"
import classes from "./cards.module.css"

/** A submit that was not answered yet, or that the service did not take. */
export function SubmitCard({ submit }: { submit: Submit<TaskBody> }) {
  const words = useWords()
  const isOnline = useStore(isReachable)
  const { refusal } = submit
  if (!refusal) {
    return (
      <article className={`surface ${classes.card}`}>
        <div className={classes.body}>
          <div className={classes.state}>
            <Text fw={600} size="sm">
              {words.developing.sending}
            </Text>
            <Loader size="xs" type="dots" />
          </div>
          {!isOnline && <Text size="sm">{words.developing.unsent}</Text>}
          <Text size="sm" lineClamp={2} className="quiet">
            {submit.body.prompt}
          </Text>
        </div>
      </article>
    )
  }
  const { what, todo } = words.failure.refused[refusal.code] ?? words.failure.refusedOther
  return (
    <article className={`surface ${classes.card} ${classes.failed}`}>
      <div className={classes.body}>
        <Text fw={600} size="sm" className={classes.why}>
          <Icon name="alert" size={16} /> {what}
        </Text>
        <Text size="sm">
          {todo} {words.developing.notCharged}
        </Text>
        <Text size="xs" className="quiet">
          {detailsOf(refusal, words)}
        </Text>
        <Text size="sm" lineClamp={2} className="quiet">
          {submit.body.prompt}
        </Text>
        <div className={classes.actions}>
          <Button size="compact-sm" variant="light" onClick={() => outbox.again(submit)}>
            {words.developing.again}
          </Button>
          <Button
            size="compact-sm"
            variant="default"
            onClick={() => {
              compose(wishOfBody(submit.body))
              outbox.drop(submit.key)
            }}
          >
            {words.developing.edit}
          </Button>
          <Button size="compact-sm" variant="subtle" color="gray" onClick={() => outbox.drop(submit.key)}>
            {words.developing.dismiss}
          </Button>
        </div>
      </div>
    </article>
  )
}

/** What the service says itself, where our own words do not say it all. */
function detailsOf(refusal: Refusal, words: StudioMessages): string {
  if (refusal.fields.length > 0) return refusal.fields.map((one) => `${one.field}: ${one.message}`).join("; ")
  return refusal.code in words.failure.refused ? "" : refusal.detail
}
