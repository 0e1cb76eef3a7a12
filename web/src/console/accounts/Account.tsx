import { Button } from "@mantine/core"
import { hrefTo } from "@shared/route"
import { useState } from "react"
import { useAnswer, usePages } from "../door"
import { useWords } from "../messages"
import { Listing, Standing } from "../parts/Listing"
import parts from "../parts/parts.module.css"
import { Heading, Section } from "../parts/Section"
import { Count, Facts, Moment, TaskLink } from "../parts/words"
import type { EntryRow, WholeAccount } from "../rows"
import { Grant } from "./Grant"
import { hasUnanswered } from "./grants"
import { Keys } from "./Keys"

/** One account: balance, grants, keys, entries. */
export function Account({ id }: { id: string }) {
  const words = useWords()
  const known = useAnswer<WholeAccount>(`/admin/accounts/${encodeURIComponent(id)}`)
  const account = known.answer
  return (
    <>
      <Heading
        title={account?.name ?? words.rooms.account}
        hint={id}
        aside={
          <>
            <a className={parts.link} href={hrefTo("tasks", "account", id)}>
              {words.accounts.tasks}
            </a>
            <a className={parts.link} href={hrefTo("webhooks", "account", id)}>
              {words.accounts.endpoints}
            </a>
          </>
        }
      />
      <Standing known={known} missing={words.accounts.notFound} />
      {account && <Books account={account} onChanged={known.lookAgain} />}
    </>
  )
}

function Books({ account, onChanged }: { account: WholeAccount; onChanged: () => void }) {
  const words = useWords()
  const path = `/admin/accounts/${account.id}`
  const entries = usePages<EntryRow>(`${path}/entries`)
  const [isGranting, setGranting] = useState(false)
  const granted = () => {
    onChanged()
    entries.lookAgain()
  }
  return (
    <>
      <Section
        title={words.accounts.balance}
        aside={
          <Button variant="light" onClick={() => setGranting(true)}>
            {hasUnanswered(account.id) ? words.accounts.sendAgain : words.accounts.grant}
          </Button>
        }
      >
        <Facts
          of={[
            [words.columns.available, <Count key="available" of={account.available} />],
            [words.columns.held, <Count key="held" of={account.held} />],
            [words.columns.open, <Count key="open" of={account.open_tasks} />],
            [words.accounts.keysActive, <Count key="keys" of={account.keys_active} />],
            [words.accounts.endpointsEnabled, <Count key="enabled" of={account.endpoints_enabled} />],
            [
              words.accounts.endpointsDisabled,
              account.endpoints_disabled > 0 && <Count key="disabled" of={account.endpoints_disabled} />,
            ],
            [words.columns.made, <Moment key="made" at={account.created_at} />],
          ]}
        />
      </Section>
      <Keys accountId={account.id} />
      <Section title={words.accounts.entries}>
        <Listing
          name={words.accounts.entries}
          pages={entries}
          keyOf={(row) => row.id}
          columns={[
            { title: words.columns.time, show: (row) => <Moment at={row.created_at} /> },
            { title: words.columns.kind, show: (row) => row.kind },
            {
              title: words.columns.available,
              show: (row) => <Count of={row.available_delta} signed />,
              isNumber: true,
            },
            {
              title: words.accounts.heldDelta,
              show: (row) => <Count of={row.held_delta} signed />,
              isNumber: true,
            },
            { title: words.columns.task, show: (row) => <TaskLink id={row.task_id} /> },
            { title: words.columns.note, show: (row) => row.note || "–", isText: true },
          ]}
        />
      </Section>
      {isGranting && <Grant account={account} onClose={() => setGranting(false)} onGranted={granted} />}
    </>
  )
}
