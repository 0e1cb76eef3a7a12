import { Button } from "@mantine/core"
import { goTo } from "@shared/route"
import { useState } from "react"
import { useAnswer, usePages } from "../door"
import { useWords } from "../messages"
import { Choice } from "../parts/Choice"
import { Listing } from "../parts/Listing"
import { Heading, Section } from "../parts/Section"
import { AccountLink, Count, Moment, Plain, Reason, State, TaskLink } from "../parts/words"
import type { ProviderRow, ReviewRow, TaskRow } from "../rows"

/** What waits for a person, and what is stuck but goes on by itself. */
export function Reviews() {
  const words = useWords()
  const [reason, setReason] = useState("")
  const [provider, setProvider] = useState("")
  const reviews = usePages<ReviewRow>("/admin/reviews", { reason, provider })
  const stuck = usePages<TaskRow>("/admin/tasks", { which: "stuck" })
  const providers = useProviderNames()
  return (
    <>
      <Heading
        title={words.rooms.reviews}
        hint={words.reviews.intro}
        aside={
          <>
            <Choice
              label={words.columns.reason}
              value={reason}
              choices={Object.entries(words.reasons)}
              onChange={setReason}
            />
            <Choice
              label={words.columns.provider}
              value={provider}
              choices={providers}
              onChange={setProvider}
            />
          </>
        }
      />
      <Section title={words.reviews.waiting}>
        <Listing
          name={words.reviews.waiting}
          pages={reviews}
          keyOf={(row) => row.id}
          empty={words.reviews.empty}
          columns={[
            { title: words.columns.task, show: (row) => <TaskLink id={row.id} /> },
            { title: words.columns.reason, show: (row) => <Reason of={row.review_reason} /> },
            { title: words.columns.model, show: (row) => row.model },
            { title: words.columns.provider, show: (row) => row.provider },
            {
              title: words.columns.account,
              show: (row) => <AccountLink id={row.account_id} name={row.account_name} />,
            },
            { title: words.columns.held, show: (row) => <Count of={row.held} />, isNumber: true },
            { title: words.columns.since, show: (row) => <Moment at={row.review_since} /> },
            { title: words.columns.decideBy, show: (row) => <Moment at={row.decide_by} /> },
            {
              title: words.columns.decision,
              show: (row) => (
                <Button size="compact-sm" variant="light" onClick={() => goTo("tasks", row.id, "decide")}>
                  {words.reviews.decide}
                </Button>
              ),
            },
          ]}
        />
      </Section>
      <Section title={words.reviews.stuck} hint={words.reviews.stuckIntro}>
        <Listing
          name={words.reviews.stuck}
          pages={stuck}
          keyOf={(row) => row.id}
          empty={words.reviews.noneStuck}
          columns={[
            { title: words.columns.task, show: (row) => <TaskLink id={row.id} /> },
            { title: words.columns.state, show: (row) => <State of={row.state} /> },
            { title: words.columns.model, show: (row) => row.model },
            { title: words.columns.provider, show: (row) => row.provider },
            { title: words.columns.looks, show: (row) => <Count of={row.looks} />, isNumber: true },
            { title: words.columns.attempt, show: (row) => <Plain of={row.attempt} />, isNumber: true },
            { title: words.columns.since, show: (row) => <Moment at={row.state_since} /> },
            { title: words.task.nextStep, show: (row) => <Moment at={row.wake_at} /> },
          ]}
        />
      </Section>
    </>
  )
}

/** The provider keys of this installation, for filters. */
export function useProviderNames(): [string, string][] {
  const { answer } = useAnswer<{ data: ProviderRow[] }>("/admin/providers")
  return (answer?.data ?? []).map(({ name }) => [name, name])
}
