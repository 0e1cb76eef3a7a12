import { goTo } from "@shared/route"
import { useCallback } from "react"
import { usePages } from "../door"
import { useWords } from "../messages"
import { Typed } from "../parts/Choice"
import { Listing } from "../parts/Listing"
import { Heading, Section } from "../parts/Section"
import { Moment, Plain, Raw } from "../parts/words"
import type { AuditRow } from "../rows"

/** Who did what, newest line first; `#/audit/task:…` is what was done to one thing. */
export function Audit({ object = "" }: { object?: string | undefined }) {
  const words = useWords()
  const pages = usePages<AuditRow>("/admin/audit", { object })
  const choose = useCallback(
    (text: string) => {
      if (text !== object) goTo(...(text ? ["audit", text] : ["audit"]))
    },
    [object],
  )
  return (
    <>
      <Heading
        title={words.rooms.audit}
        hint={words.audit.intro}
        aside={<Typed key={object} label={words.audit.object} value={object} onChange={choose} />}
      />
      <Section>
        <Listing
          name={words.rooms.audit}
          pages={pages}
          keyOf={(row) => row.id}
          columns={[
            { title: words.columns.time, show: (row) => <Moment at={row.created_at} /> },
            { title: words.columns.by, show: (row) => row.actor },
            { title: words.columns.action, show: (row) => row.action },
            { title: words.columns.object, show: (row) => row.object, isText: true },
            { title: words.columns.outcome, show: (row) => row.outcome },
            { title: words.columns.detail, show: (row) => <Raw of={row.detail} />, isText: true },
            { title: words.columns.address, show: (row) => <Plain of={row.address} /> },
          ]}
        />
      </Section>
    </>
  )
}
