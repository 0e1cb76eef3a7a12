import { Button, Title, VisuallyHidden } from "@mantine/core"
import { useStore } from "@shared/store"
import { useEffect, useRef, useState } from "react"
import { BatchCard } from "./BatchCard"
import { BatchSubmitCard } from "./BatchSubmitCard"
import classes from "./batches.module.css"
import { batchOutbox } from "./outbox"
import { type Batch, batchShelf, isOpen, readOlder } from "./shelf"
import { useBatchWords } from "./words"

const FINISHED_SHOWN = 2

/** Every batch that is on its way or at work, and the last that are done; older ones when they are asked for. */
export function Batches() {
  const words = useBatchWords().list
  const submits = useStore(batchOutbox.submits)
  const { batches, older } = useStore(batchShelf)
  const [isAll, setAll] = useState(false)
  const finished = batches.filter((batch) => !isOpen(batch))
  const latest = new Set(finished.slice(0, FINISHED_SHOWN))
  const shown = isAll ? batches : batches.filter((batch) => isOpen(batch) || latest.has(batch))
  const announcement = useAnnouncement(batches)

  const more = () => {
    if (isAll) void readOlder().catch(() => undefined)
    setAll(true)
  }

  return (
    <>
      <VisuallyHidden role="status">{announcement}</VisuallyHidden>
      {(submits.length > 0 || batches.length > 0) && (
        <section aria-labelledby="batches-title" className={classes.section}>
          <Title order={2} size="h4" id="batches-title" mb="sm">
            {words.title}
          </Title>
          <ul className={classes.batches}>
            {submits.map((one) => (
              <li key={one.key}>
                <BatchSubmitCard submit={one} />
              </li>
            ))}
            {shown.map((batch) => (
              <li key={batch.id}>
                <BatchCard batch={batch} />
              </li>
            ))}
          </ul>
          {(shown.length < batches.length || older) && (
            <Button variant="default" size="compact-sm" onClick={more}>
              {words.older}
            </Button>
          )}
        </section>
      )}
    </>
  )
}

/** What a screen reader says when a batch ends that was at work when this page first saw it. */
function useAnnouncement(batches: readonly Batch[]): string {
  const words = useBatchWords().list
  const open = useRef(new Set<string>())
  const [said, setSaid] = useState("")
  useEffect(() => {
    for (const batch of batches) {
      if (isOpen(batch)) open.current.add(batch.id)
      else if (open.current.delete(batch.id)) setSaid(words.done(batch.name || words.unnamed))
    }
  }, [batches, words])
  return said
}
