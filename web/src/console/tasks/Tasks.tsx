import { goTo } from "@shared/route"
import { useState } from "react"
import { STATES } from "../charts/Funnel"
import { usePages } from "../door"
import { useWords } from "../messages"
import { Choice, Typed } from "../parts/Choice"
import { Listing } from "../parts/Listing"
import { Heading, Section } from "../parts/Section"
import { AccountLink, Count, Failure, Moment, State, TaskLink } from "../parts/words"
import type { TaskRow } from "../rows"
import { useProviderNames } from "./Reviews"

/** Tasks of all accounts, newest first. What the address names is filtered by: `#/tasks/state/failed`. */
export function Tasks({ by, value }: { by?: string | undefined; value?: string | undefined }) {
  const words = useWords()
  const [model, setModel] = useState("")
  const [provider, setProvider] = useState("")
  const named = (name: string) => (by === name ? (value ?? "") : "")
  const choose = (name: string) => (chosen: string) => (chosen ? goTo("tasks", name, chosen) : goTo("tasks"))
  const pages = usePages<TaskRow>("/admin/tasks", {
    state: named("state"),
    which: named("which"),
    account: named("account"),
    model,
    provider,
  })
  const providers = useProviderNames()
  return (
    <>
      <Heading
        title={by === "account" ? words.accounts.tasks : words.rooms.tasks}
        aside={
          <>
            <Choice
              label={words.tasks.which}
              value={named("which")}
              choices={[
                ["open", words.tasks.open],
                ["stuck", words.tasks.stuck],
              ]}
              onChange={choose("which")}
            />
            <Choice
              label={words.columns.state}
              value={named("state")}
              choices={STATES.map((state) => [state, words.states[state] ?? state])}
              onChange={choose("state")}
            />
            <Choice
              label={words.columns.provider}
              value={provider}
              choices={providers}
              onChange={setProvider}
            />
            <Typed label={words.columns.model} value={model} onChange={setModel} />
          </>
        }
      />
      <Section>
        <Listing
          name={words.rooms.tasks}
          pages={pages}
          keyOf={(row) => row.id}
          columns={[
            { title: words.columns.task, show: (row) => <TaskLink id={row.id} /> },
            { title: words.columns.state, show: (row) => <State of={row.state} /> },
            { title: words.columns.model, show: (row) => row.model },
            { title: words.columns.provider, show: (row) => row.provider },
            {
              title: words.columns.account,
              show: (row) => <AccountLink id={row.account_id} name={row.account_name} />,
            },
            { title: words.columns.failure, show: (row) => <Failure of={row} /> },
            { title: words.columns.attempt, show: (row) => <Count of={row.attempt} />, isNumber: true },
            { title: words.columns.held, show: (row) => <Count of={row.held} />, isNumber: true },
            { title: words.columns.accepted, show: (row) => <Moment at={row.created_at} /> },
            { title: words.columns.finished, show: (row) => <Moment at={row.finished_at} /> },
          ]}
        />
      </Section>
    </>
  )
}
