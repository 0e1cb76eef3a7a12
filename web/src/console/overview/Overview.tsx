import { SegmentedControl } from "@mantine/core"
import { useFormats } from "@shared/i18n/language"
import { hrefTo } from "@shared/route"
import { type ReactNode, useState } from "react"
import { Columns, useRates } from "../charts/Columns"
import { byRoute, countsOf, KINDS, type RouteCounts, stepsOf, sumOf, usableRate } from "../charts/endings"
import { Funnel } from "../charts/Funnel"
import { Latencies, useSeconds } from "../charts/Latencies"
import { useAnswer } from "../door"
import { useWords } from "../messages"
import { Choice } from "../parts/Choice"
import { Standing, Table } from "../parts/Listing"
import { Heading, Section } from "../parts/Section"
import type { EndingRow, Figures } from "../rows"
import classes from "./Overview.module.css"
import { ProviderCard } from "./ProviderCard"

const PERIODS = [6, 24, 48, 168]

/** How the service does: where tasks stand, what became of them, how fast and how sound the providers are. */
export function Overview() {
  const words = useWords()
  const [hours, setHours] = useState(24)
  const known = useAnswer<Figures>("/admin/figures", { hours: String(hours) })
  const figures = known.answer
  return (
    <>
      <Heading
        title={words.rooms.overview}
        aside={
          <SegmentedControl
            aria-label={words.overview.period}
            value={String(hours)}
            onChange={(value) => setHours(Number(value))}
            data={PERIODS.map((period) => ({ value: String(period), label: words.overview.hours(period) }))}
          />
        }
      />
      <Standing known={known} />
      {figures && (
        <>
          <Headlines figures={figures} />
          <div className={classes.pair}>
            <Endings figures={figures} />
            <Section title={words.overview.funnel} hint={words.overview.funnelHint}>
              <Funnel states={figures.states} />
            </Section>
          </div>
          <LatencySection figures={figures} />
          <Section title={words.overview.providers}>
            {figures.providers.length === 0 && <p className="quiet">{words.overview.noProviders}</p>}
            <div className={classes.providers}>
              {figures.providers.map((provider) => (
                <ProviderCard key={provider.name} provider={provider} />
              ))}
            </div>
          </Section>
        </>
      )}
    </>
  )
}

function Headlines({ figures }: { figures: Figures }) {
  const words = useWords()
  const { number } = useFormats()
  const percent = useRates()
  const counts = countsOf(figures.endings)
  const open = Object.values(figures.open).reduce((sum, tasks) => sum + tasks, 0)
  const accepted = Object.values(figures.states).reduce((sum, tasks) => sum + tasks, 0)
  const reviews = figures.open.review ?? 0
  return (
    <div className={classes.headlines}>
      <Headline name={words.overview.usable} hint={words.overview.usableHint}>
        {percent(usableRate(counts))}
      </Headline>
      <Headline name={words.overview.accepted}>{number(accepted)}</Headline>
      <Headline name={words.overview.open} to={hrefTo("tasks", "which", "open")}>
        {number(open)}
      </Headline>
      <Headline name={words.overview.reviews} to={hrefTo("reviews")} isAsking={reviews > 0}>
        {number(reviews)}
      </Headline>
    </div>
  )
}

interface HeadlineProps {
  name: string
  hint?: string
  to?: string
  isAsking?: boolean
  children: ReactNode
}

function Headline({ name, hint, to, isAsking = false, children }: HeadlineProps) {
  const inside = (
    <>
      <span className={classes.name}>{name}</span>
      <span className={classes.figure} data-asking={isAsking || undefined}>
        {children}
      </span>
      {hint && <span className={classes.small}>{hint}</span>}
    </>
  )
  if (!to) return <div className={`surface ${classes.headline}`}>{inside}</div>
  return (
    <a className={`surface ${classes.headline}`} href={to}>
      {inside}
    </a>
  )
}

function Endings({ figures }: { figures: Figures }) {
  const words = useWords()
  const percent = useRates()
  const [model, setModel] = useState("")
  const [provider, setProvider] = useState("")
  const rows = figures.endings.filter(
    (row) => (!model || row.model === model) && (!provider || row.provider === provider),
  )
  const kinds = KINDS.filter((kind) => countsOf(rows)[kind])
  return (
    <Section
      title={words.overview.endings}
      hint={words.overview.endingsHint}
      aside={
        <div className={classes.filters}>
          <Choice
            label={words.overview.filterModel}
            value={model}
            choices={namesIn(figures.endings, "model")}
            onChange={setModel}
          />
          <Choice
            label={words.overview.filterProvider}
            value={provider}
            choices={namesIn(figures.endings, "provider")}
            onChange={setProvider}
          />
        </div>
      }
    >
      {rows.length === 0 ? (
        <p className="quiet">{words.overview.nothing}</p>
      ) : (
        <>
          <Columns steps={stepsOf(rows, figures.since, figures.hours)} />
          <h3 className={classes.subtitle}>{words.overview.byRoute}</h3>
          <Table
            name={words.overview.byRoute}
            rows={byRoute(rows)}
            keyOf={(row) => `${row.model} ${row.provider}`}
            columns={[
              { title: words.columns.model, show: (row) => row.model },
              { title: words.columns.provider, show: (row) => row.provider },
              { title: words.columns.usable, show: (row) => percent(usableRate(row.counts)), isNumber: true },
              { title: words.columns.ended, show: (row) => sumOf(row.counts), isNumber: true },
              ...kinds.map((kind) => ({
                title: words.endings[kind] ?? kind,
                show: (row: RouteCounts) => row.counts[kind] ?? 0,
                isNumber: true,
              })),
            ]}
          />
        </>
      )}
    </Section>
  )
}

function LatencySection({ figures }: { figures: Figures }) {
  const words = useWords()
  const seconds = useSeconds()
  return (
    <Section title={words.overview.latency} hint={words.overview.latencyHint}>
      {figures.runs.length === 0 ? (
        <p className="quiet">{words.overview.noRuns}</p>
      ) : (
        <Latencies runs={figures.runs} />
      )}
      {figures.waits.length > 0 && (
        <>
          <h3 className={classes.subtitle}>{words.overview.wait}</h3>
          <Table
            name={words.overview.wait}
            rows={figures.waits}
            keyOf={(row) => row.model}
            columns={[
              { title: words.columns.model, show: (row) => row.model },
              { title: words.rooms.tasks, show: (row) => row.tasks, isNumber: true },
              { title: "P50", show: (row) => seconds(row.p50_s), isNumber: true },
              { title: "P95", show: (row) => seconds(row.p95_s), isNumber: true },
              { title: "P99", show: (row) => seconds(row.p99_s), isNumber: true },
            ]}
          />
        </>
      )}
    </Section>
  )
}

function namesIn(rows: readonly EndingRow[], by: "model" | "provider"): [string, string][] {
  return [...new Set(rows.map((row) => row[by]))].sort().map((name) => [name, name])
}
