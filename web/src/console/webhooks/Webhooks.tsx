import { hrefTo } from "@shared/route"
import { useState } from "react"
import { usePages } from "../door"
import { useWords } from "../messages"
import { Choice } from "../parts/Choice"
import { Listing } from "../parts/Listing"
import parts from "../parts/parts.module.css"
import { Heading, Section } from "../parts/Section"
import { AccountLink, Count, Moment, Plain, State, TaskLink } from "../parts/words"
import type { DeliveryRow, EndpointRow } from "../rows"

interface WebhooksProps {
  /** `account` or `endpoint`, as in `#/webhooks/endpoint/…`. */
  by?: string | undefined
  value?: string | undefined
}

/** Where customers are told of their tasks, and how that goes. Nothing is changed here. */
export function Webhooks({ by, value }: WebhooksProps) {
  const words = useWords()
  const isOfEndpoint = by === "endpoint"
  return (
    <>
      <Heading
        title={words.rooms.webhooks}
        aside={
          by && (
            <a className={parts.link} href={hrefTo("webhooks")}>
              {words.list.all}
            </a>
          )
        }
      />
      {!isOfEndpoint && <Endpoints account={by === "account" ? value : undefined} />}
      {by !== "account" && <Deliveries endpoint={isOfEndpoint ? value : undefined} />}
    </>
  )
}

function Endpoints({ account }: { account: string | undefined }) {
  const words = useWords()
  const said = words.webhooks
  const pages = usePages<EndpointRow>("/admin/webhook-endpoints", { account })
  const standing = (row: EndpointRow) => {
    if (row.deleted_at) return <State of="canceled" text={said.deleted} />
    if (!row.disabled_at) return <State of="enabled" text={said.enabled} />
    return <State of="disabled" text={`${said.disabled} · ${row.disabled_reason}`} />
  }
  return (
    <Section title={said.endpoints}>
      <Listing
        name={said.endpoints}
        pages={pages}
        keyOf={(row) => row.id}
        columns={[
          {
            title: words.columns.endpoint,
            isText: true,
            show: (row) => (
              <a className={parts.link} href={hrefTo("webhooks", "endpoint", row.id)}>
                {row.url}
              </a>
            ),
          },
          {
            title: words.columns.account,
            show: (row) => <AccountLink id={row.account_id} name={row.account_name} />,
          },
          { title: words.columns.state, show: standing },
          {
            title: words.columns.events,
            show: (row) => (row.types.length > 0 ? row.types.join(", ") : said.allEvents),
            isText: true,
          },
          { title: words.columns.pending, show: (row) => <Count of={row.pending} />, isNumber: true },
          { title: words.columns.failures, show: (row) => <Count of={row.failures} />, isNumber: true },
          { title: words.columns.lastSuccess, show: (row) => <Moment at={row.succeeded_at} /> },
          { title: words.columns.made, show: (row) => <Moment at={row.created_at} /> },
        ]}
      />
    </Section>
  )
}

function Deliveries({ endpoint }: { endpoint: string | undefined }) {
  const words = useWords()
  const said = words.webhooks
  const [status, setStatus] = useState("")
  const pages = usePages<DeliveryRow>("/admin/deliveries", { endpoint, status })
  const answer = (row: DeliveryRow) =>
    [row.last_status, row.last_reason, row.last_detail].filter(Boolean).join(" · ") || "–"
  return (
    <Section
      title={endpoint ? said.ofOne : said.deliveries}
      aside={
        <Choice
          label={said.status}
          value={status}
          choices={Object.entries(said.statuses)}
          onChange={setStatus}
        />
      }
    >
      <Listing
        name={said.deliveries}
        pages={pages}
        keyOf={(row) => row.id}
        columns={[
          { title: words.columns.event, show: (row) => row.type },
          {
            title: words.columns.status,
            show: (row) => <State of={row.status} text={said.statuses[row.status] ?? row.status} />,
          },
          { title: words.columns.task, show: (row) => <TaskLink id={row.task_id} /> },
          { title: words.columns.tries, show: (row) => <Count of={row.tries} />, isNumber: true },
          { title: words.columns.answer, show: answer, isText: true },
          { title: words.columns.reason, show: (row) => <Plain of={row.reason} /> },
          { title: words.columns.due, show: (row) => <Moment at={row.due_at} /> },
          { title: words.columns.made, show: (row) => <Moment at={row.created_at} /> },
          { title: words.columns.finished, show: (row) => <Moment at={row.ended_at} /> },
        ]}
      />
    </Section>
  )
}
