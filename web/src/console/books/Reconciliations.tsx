import { useState } from "react"
import { usePages } from "../door"
import { useWords } from "../messages"
import { Choice } from "../parts/Choice"
import { Listing } from "../parts/Listing"
import { Heading, Section } from "../parts/Section"
import { Moment, Raw, State } from "../parts/words"
import type { RunReport } from "../rows"
import { useProviderNames } from "../tasks/Reviews"

/** Runs over providers' days with what they found, the latest first. */
export function Reconciliations() {
  const words = useWords()
  const said = words.reconcile
  const [provider, setProvider] = useState("")
  const pages = usePages<RunReport>("/admin/reconciliations", { provider })
  const standing = (run: RunReport) => {
    if (!run.finished_at) return <State of="running" text={said.running} />
    if (run.is_complete) return <State of="succeeded" text={said.complete} />
    return <State of="review" text={said.incomplete} />
  }
  return (
    <>
      <Heading
        title={words.rooms.reconciliations}
        hint={said.intro}
        aside={
          <Choice
            label={words.columns.provider}
            value={provider}
            choices={useProviderNames()}
            onChange={setProvider}
          />
        }
      />
      <Section>
        <Listing
          name={words.rooms.reconciliations}
          pages={pages}
          keyOf={(run) => run.id}
          empty={said.empty}
          columns={[
            { title: said.provider, show: (run) => run.provider },
            { title: said.day, show: (run) => run.day },
            { title: words.columns.mode, show: (run) => run.mode },
            { title: words.columns.state, show: standing },
            { title: words.columns.counts, show: (run) => countsText(run.counts), isText: true },
            {
              title: words.columns.found,
              show: (run) => (run.findings.length > 0 ? <Raw of={run.findings} /> : said.nothingFound),
              isText: true,
            },
            { title: words.columns.note, show: (run) => run.note || "–", isText: true },
            { title: words.columns.finished, show: (run) => <Moment at={run.finished_at} /> },
          ]}
        />
      </Section>
    </>
  )
}

function countsText(counts: Record<string, number>): string {
  const parts = Object.entries(counts).map(([name, number]) => `${name.replaceAll("_", " ")} ${number}`)
  return parts.join(", ") || "–"
}
