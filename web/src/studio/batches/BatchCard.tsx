import { Button, Progress, Text, Title } from "@mantine/core"
import { useFormats } from "@shared/i18n/language"
import { Icon } from "@shared/ui/Icon"
import { useState } from "react"
import classes from "./batches.module.css"
import { Failures } from "./Failures"
import { useCredits } from "./SettingsForm"
import { type Batch, cancelBatch, endedOf, isOpen } from "./shelf"
import { useBatchWords } from "./words"

const COUNTS = ["ready", "at_work", "waiting", "failed", "refused"] as const

/** How far a batch is, what it has cost, the way out while it is at work, and the way home when it is done. */
export function BatchCard({ batch }: { batch: Batch }) {
  const words = useBatchWords().list
  const { number, time } = useFormats()
  const credits = useCredits()
  const { counts, items } = batch
  const [isAsked, setAsked] = useState(false)
  const hasFailures = counts.failed + counts.refused > 0
  return (
    <article className={`surface ${classes.card}`} data-batch={batch.id}>
      <div className={classes.head}>
        <Title order={3} size="sm" className={classes.name}>
          {batch.name || words.unnamed}
        </Title>
        <Text size="xs" className="quiet">
          {batch.canceled_at !== null && `${words.canceled} · `}
          {time(batch.created_at)}
        </Text>
      </div>
      <Bar batch={batch} label={words.progress(number(endedOf(batch)), number(items))} />
      <div className={classes.counts}>
        {COUNTS.filter((name) => counts[name] > 0 || name === "ready").map((name) => (
          <span key={name} data-count={name}>
            {words.counts[name](number(counts[name]))}
          </span>
        ))}
        <span className="quiet">
          {words.paid(credits(batch.credits.captured))}
          {batch.credits.held > 0 && ` · ${words.held(number(batch.credits.held))}`}
        </span>
      </div>
      <div className={classes.actions}>
        {isOpen(batch) && batch.canceled_at === null && <Cancel id={batch.id} />}
        {!isOpen(batch) && counts.ready > 0 && (
          <Button
            component="a"
            href={`/v1/batches/${batch.id}/results?format=zip`}
            download
            size="compact-sm"
            variant="light"
            leftSection={<Icon name="download" size={15} />}
          >
            {words.download}
          </Button>
        )}
        {hasFailures && (
          <Button
            size="compact-sm"
            variant="subtle"
            color="gray"
            aria-expanded={isAsked}
            onClick={() => setAsked(!isAsked)}
          >
            {words.why}
          </Button>
        )}
      </div>
      {hasFailures && isAsked && <Failures batch={batch} />}
    </article>
  )
}

function Bar({ batch, label }: { batch: Batch; label: string }) {
  const { counts, items } = batch
  const percent = (n: number) => (100 * n) / items
  return (
    <Progress.Root
      size="md"
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={items}
      aria-valuenow={endedOf(batch)}
      aria-valuetext={label}
    >
      <Progress.Section withAria={false} value={percent(counts.ready)} />
      <Progress.Section withAria={false} value={percent(counts.at_work)} color="lamp.3" animated />
      <Progress.Section withAria={false} value={percent(counts.failed + counts.refused)} color="gray.5" />
    </Progress.Root>
  )
}

/** Asked twice, since what was taken back has to be handed in again. */
function Cancel({ id }: { id: string }) {
  const words = useBatchWords().list
  const [stage, setStage] = useState<"no" | "asked" | "busy" | "late">("no")
  const cancel = () => {
    setStage("busy")
    cancelBatch(id).catch(() => setStage("late"))
  }
  if (stage === "no" || stage === "late")
    return (
      <>
        <Button size="compact-sm" variant="subtle" color="gray" onClick={() => setStage("asked")}>
          {words.cancel}
        </Button>
        {stage === "late" && (
          <Text size="xs" role="alert">
            {words.late}
          </Text>
        )}
      </>
    )
  return (
    <>
      <Text size="sm" role="status">
        {words.cancelAsk}
      </Text>
      <Button size="compact-sm" variant="default" loading={stage === "busy"} onClick={cancel} autoFocus>
        {words.cancelYes}
      </Button>
      <Button size="compact-sm" variant="subtle" color="gray" onClick={() => setStage("no")}>
        {words.cancelNo}
      </Button>
    </>
  )
}
