import { useState } from "react"
import { usePages } from "../door"
import { useWords } from "../messages"
import { Choice } from "../parts/Choice"
import { Listing } from "../parts/Listing"
import { Heading, Section } from "../parts/Section"
import { Count, Moment, Plain, TaskLink } from "../parts/words"
import type { NoticeRow } from "../rows"
import { useProviderNames } from "../tasks/Reviews"

const VERDICTS = [
  "applied",
  "progress",
  "duplicate",
  "out_of_order",
  "stale",
  "unknown",
  "hint",
  "unusable",
  "would_apply",
]

/** Callbacks as they came, each with what became of it. */
export function Notices() {
  const words = useWords()
  const [provider, setProvider] = useState("")
  const [verdict, setVerdict] = useState("")
  const pages = usePages<NoticeRow>("/admin/notices", { provider, verdict })
  return (
    <>
      <Heading
        title={words.rooms.notices}
        hint={words.notices.intro}
        aside={
          <>
            <Choice
              label={words.columns.provider}
              value={provider}
              choices={useProviderNames()}
              onChange={setProvider}
            />
            <Choice
              label={words.columns.verdict}
              value={verdict}
              choices={VERDICTS.map((one) => [one, one.replaceAll("_", " ")])}
              onChange={setVerdict}
            />
          </>
        }
      />
      <Section>
        <Listing
          name={words.rooms.notices}
          pages={pages}
          keyOf={(row) => row.id}
          columns={[
            { title: words.columns.time, show: (row) => <Moment at={row.received_at} /> },
            { title: words.columns.provider, show: (row) => row.provider },
            { title: words.columns.task, show: (row) => <TaskLink id={row.task_id} /> },
            { title: words.columns.attempt, show: (row) => <Plain of={row.attempt} />, isNumber: true },
            {
              title: words.columns.providerRef,
              show: (row) => <Plain of={row.provider_ref} />,
              isText: true,
            },
            { title: words.task.upstreamStatus, show: (row) => <Plain of={row.upstream_status} /> },
            { title: words.columns.verdict, show: (row) => row.verdict?.replaceAll("_", " ") ?? "–" },
            { title: words.columns.size, show: (row) => <Count of={row.size_bytes} />, isNumber: true },
          ]}
        />
      </Section>
    </>
  )
}
