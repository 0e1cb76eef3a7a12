import { Loader, Text } from "@mantine/core"
import { useFormats } from "@shared/i18n/language"
import { useEffect, useState } from "react"
import { type StudioMessages, useWords } from "../messages"
import classes from "./batches.module.css"
import { type Lost, readLost } from "./failed"
import type { Batch } from "./shelf"
import { useBatchWords } from "./words"

const MOST = 50

/** The items without a picture, and why, in the customer's words. */
export function Failures({ batch }: { batch: Batch }) {
  const words = useWords()
  const own = useBatchWords().list
  const { number } = useFormats()
  const [found, setFound] = useState<readonly Lost[] | "asking" | "unread">("asking")
  const lost = batch.counts.failed + batch.counts.refused

  // biome-ignore lint/correctness/useExhaustiveDependencies: read again when there are more of them, not at every look.
  useEffect(() => {
    let isOver = false
    const become = (next: readonly Lost[] | "unread") => {
      if (!isOver) setFound(next)
    }
    readLost(batch, MOST).then(become, () => become("unread"))
    return () => {
      isOver = true
    }
  }, [batch.id, lost])

  if (found === "asking") return <Loader size="xs" type="dots" />
  if (found === "unread")
    return (
      <Text size="sm" role="alert">
        {own.whyNot}
      </Text>
    )
  return (
    <ul className={classes.failures}>
      {found.map((item) => (
        <li key={item.position}>
          {own.item(number(item.position + 1), reasonOf(item, words))}{" "}
          <span className="quiet">{item.task?.prompt}</span>
        </li>
      ))}
      {lost > found.length && <li className="quiet">…</li>}
    </ul>
  )
}

function reasonOf({ task, refusal }: Lost, words: StudioMessages): string {
  if (refusal) return words.failure.refused[refusal.code]?.what ?? refusal.detail
  const failure = task?.failure
  return words.failure.codes[failure?.code ?? ""] ?? words.failure[failure?.class ?? "environment"].what
}
