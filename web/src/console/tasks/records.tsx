/** What is on record about one task; a part without rows is left out. */

import { useWords } from "../messages"
import { Table } from "../parts/Listing"
import { Section } from "../parts/Section"
import { Count, Moment, Plain, Raw, Reason, State } from "../parts/words"
import type { DecisionRow, EntryRow, EventRow, FindingRow, LossRow, NoticeRow } from "../rows"
import classes from "./Task.module.css"

export function Timeline({ rows }: { rows: readonly EventRow[] }) {
  const words = useWords()
  return (
    <Section title={words.task.timeline}>
      <ol className={classes.timeline}>
        {rows.map((event) => (
          <li key={event.version}>
            <div className={classes.move}>
              <State of={event.target} />
              <span className="quiet">
                <Moment at={event.created_at} />
              </span>
            </div>
            <p>
              {event.cause}
              {event.attempt > 0 && ` · ${words.task.attempt(event.attempt)}`}
              {event.detail && ` · ${event.detail}`}
            </p>
          </li>
        ))}
      </ol>
    </Section>
  )
}

export function Entries({ rows }: { rows: readonly EntryRow[] }) {
  const words = useWords()
  return (
    <Section title={words.task.entries}>
      <Table
        name={words.task.entries}
        rows={rows}
        keyOf={(row) => row.id}
        columns={[
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
          { title: words.columns.time, show: (row) => <Moment at={row.created_at} /> },
        ]}
      />
    </Section>
  )
}

export function Notices({ rows }: { rows: readonly NoticeRow[] }) {
  const words = useWords()
  if (rows.length === 0) return null
  return (
    <Section title={words.task.notices}>
      <Table
        name={words.task.notices}
        rows={rows}
        keyOf={(row) => row.id}
        columns={[
          { title: words.columns.time, show: (row) => <Moment at={row.received_at} /> },
          { title: words.columns.attempt, show: (row) => <Plain of={row.attempt} />, isNumber: true },
          { title: words.task.upstreamStatus, show: (row) => <Plain of={row.upstream_status} /> },
          { title: words.columns.verdict, show: (row) => <Plain of={row.verdict} /> },
          { title: words.columns.size, show: (row) => <Count of={row.size_bytes} />, isNumber: true },
        ]}
      />
    </Section>
  )
}

export function Decisions({ rows }: { rows: readonly DecisionRow[] }) {
  const words = useWords()
  if (rows.length === 0) return null
  const name = (decision: string) => (words.decide.choices as Record<string, string>)[decision] ?? decision
  return (
    <Section title={words.task.decisions}>
      <Table
        name={words.task.decisions}
        rows={rows}
        keyOf={(row) => row.id}
        columns={[
          { title: words.columns.decision, show: (row) => name(row.decision) },
          { title: words.columns.reason, show: (row) => <Plain of={row.reason_code} /> },
          { title: words.rooms.reviews, show: (row) => <Reason of={row.review_reason} /> },
          { title: words.columns.note, show: (row) => <Plain of={row.note} />, isText: true },
          { title: words.columns.by, show: (row) => row.decided_by },
          { title: words.columns.time, show: (row) => <Moment at={row.created_at} /> },
        ]}
      />
    </Section>
  )
}

export function Findings({ rows }: { rows: readonly FindingRow[] }) {
  const words = useWords()
  if (rows.length === 0) return null
  return (
    <Section title={words.task.findings}>
      <Table
        name={words.task.findings}
        rows={rows}
        keyOf={(row) => row.id}
        columns={[
          { title: words.columns.kind, show: (row) => row.kind },
          { title: words.columns.detail, show: (row) => <Raw of={row.detail} />, isText: true },
          { title: words.columns.cost, show: (row) => <Plain of={row.cost} />, isNumber: true },
          { title: words.columns.time, show: (row) => <Moment at={row.created_at} /> },
          { title: words.columns.resolved, show: (row) => <Plain of={row.resolution} />, isText: true },
        ]}
      />
    </Section>
  )
}

export function Losses({ rows }: { rows: readonly LossRow[] }) {
  const words = useWords()
  if (rows.length === 0) return null
  return (
    <Section title={words.task.losses}>
      <Table
        name={words.task.losses}
        rows={rows}
        keyOf={(row) => `${row.attempt} ${row.reason}`}
        columns={[
          { title: words.columns.attempt, show: (row) => row.attempt, isNumber: true },
          { title: words.columns.provider, show: (row) => row.provider },
          { title: words.columns.cost, show: (row) => <Plain of={row.cost} />, isNumber: true },
          { title: words.columns.reason, show: (row) => row.reason },
          { title: words.columns.time, show: (row) => <Moment at={row.created_at} /> },
        ]}
      />
    </Section>
  )
}
