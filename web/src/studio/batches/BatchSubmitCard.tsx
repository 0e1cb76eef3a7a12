import { Button, Loader, Text } from "@mantine/core"
import { useFormats } from "@shared/i18n/language"
import { goTo } from "@shared/route"
import { useStore } from "@shared/store"
import { Icon } from "@shared/ui/Icon"
import cards from "../cards/cards.module.css"
import { type StudioMessages, useWords } from "../messages"
import type { Refusal } from "../outbox"
import { isReachable } from "../tasks/follow"
import classes from "./batches.module.css"
import { bringBack } from "./draft"
import { type BatchSubmit, batchOutbox } from "./outbox"
import { parcelOf } from "./parcels"
import { useBatchWords } from "./words"

const FAULTS_SHOWN = 5

/** A batch that was not answered yet, or that the service did not take. */
export function BatchSubmitCard({ submit }: { submit: BatchSubmit }) {
  const words = useBatchWords()
  const { number } = useFormats()
  const isOnline = useStore(isReachable)
  const { name, items } = submit.body
  const title = `${name} · ${words.file.holds(number(items), items === 1)}`
  if (submit.refusal) return <Refused submit={submit} refusal={submit.refusal} title={title} />
  return (
    <article className={`surface ${classes.card}`}>
      <div className={classes.head}>
        <Text fw={600} size="sm">
          {words.sending.title}
        </Text>
        <Loader size="xs" type="dots" />
      </div>
      {!isOnline && <Text size="sm">{words.sending.unsent}</Text>}
      <Text size="sm" className={`quiet ${classes.name}`}>
        {title}
      </Text>
    </article>
  )
}

interface RefusedProps {
  submit: BatchSubmit
  refusal: Refusal
  title: string
}

function Refused({ submit, refusal, title }: RefusedProps) {
  const studio = useWords()
  const words = useBatchWords()
  const isLost = refusal.code === "items-lost"
  const known = isLost ? words.sending.lost : studio.failure.refused[refusal.code]
  const { what, todo } = known ?? studio.failure.refusedOther
  const isPoor = refusal.code === "insufficient-credits" && submit.body.accept === "all"

  const edit = async () => {
    const parcel = await parcelOf(submit.key).catch(() => undefined)
    if (!parcel) return
    bringBack(parcel.file, parcel.settings)
    batchOutbox.drop(submit.key)
    goTo("batch")
  }

  return (
    <article className={`surface ${classes.card} ${cards.failed}`}>
      <Text fw={600} size="sm" className={cards.why}>
        <Icon name="alert" size={16} /> {what}
      </Text>
      <Text size="sm">
        {todo} {!isLost && studio.developing.notCharged}
      </Text>
      <Details refusal={refusal} words={studio} />
      <Text size="sm" className={`quiet ${classes.name}`}>
        {title}
      </Text>
      <div className={classes.actions}>
        {!isLost && (
          <>
            <Button size="compact-sm" variant="light" onClick={() => batchOutbox.again(submit)}>
              {words.sending.again}
            </Button>
            {isPoor && (
              <Button
                size="compact-sm"
                variant="light"
                onClick={() => batchOutbox.again(submit, { ...submit.body, accept: "partly" })}
              >
                {words.sending.partly}
              </Button>
            )}
            <Button size="compact-sm" variant="default" onClick={() => void edit()}>
              {words.sending.edit}
            </Button>
          </>
        )}
        <Button size="compact-sm" variant="subtle" color="gray" onClick={() => batchOutbox.drop(submit.key)}>
          {words.sending.dismiss}
        </Button>
      </div>
    </article>
  )
}

/** What the service says itself, by the lines of the file, where our own words do not say it all. */
function Details({ refusal, words }: { refusal: Refusal; words: StudioMessages }) {
  const faults = useBatchWords().faults
  const { number } = useFormats()
  const said = refusal.fields.map(({ field, message, line }) => {
    const what = field ? `${field}: ${message}` : message
    return line === undefined ? what : faults.atLine(number(line), what)
  })
  if (said.length === 0 && !(refusal.code in words.failure.refused)) said.push(refusal.detail)
  if (said.length === 0) return null
  return (
    <Text size="xs" className="quiet" component="div">
      {said.slice(0, FAULTS_SHOWN).map((one) => (
        <div key={one}>{one}</div>
      ))}
      {said.length > FAULTS_SHOWN && "…"}
    </Text>
  )
}
