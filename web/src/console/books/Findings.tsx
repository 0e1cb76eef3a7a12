import { Alert, Button, Group, Stack, Switch, Textarea } from "@mantine/core"
import { Icon } from "@shared/ui/Icon"
import { type FormEvent, useState } from "react"
import { useChange, usePages } from "../door"
import { useWords } from "../messages"
import { Choice } from "../parts/Choice"
import { Dialog } from "../parts/Dialog"
import { Fault, Listing } from "../parts/Listing"
import { Heading, Section } from "../parts/Section"
import { Moment, Plain, Raw, TaskLink } from "../parts/words"
import type { FindingRow } from "../rows"
import { useProviderNames } from "../tasks/Reviews"

/** Differences between our books and theirs, and the way to take one off the list. */
export function Findings() {
  const words = useWords()
  const [isOpen, setOpen] = useState(true)
  const [provider, setProvider] = useState("")
  const [resolving, setResolving] = useState<FindingRow | null>(null)
  const pages = usePages<FindingRow>("/admin/findings", { open: String(isOpen), provider })
  return (
    <>
      <Heading
        title={words.rooms.findings}
        hint={words.findings.intro}
        aside={
          <>
            <Choice
              label={words.columns.provider}
              value={provider}
              choices={useProviderNames()}
              onChange={setProvider}
            />
            <Switch
              label={words.findings.open}
              checked={isOpen}
              onChange={(event) => setOpen(event.currentTarget.checked)}
              mb={6}
            />
          </>
        }
      />
      <Section>
        <Listing
          name={words.rooms.findings}
          pages={pages}
          keyOf={(row) => row.id}
          empty={words.findings.empty}
          columns={[
            { title: words.columns.kind, show: (row) => row.kind },
            { title: words.columns.provider, show: (row) => <Plain of={row.provider} /> },
            { title: words.columns.task, show: (row) => <TaskLink id={row.task_id} /> },
            { title: words.columns.detail, show: (row) => <Raw of={row.detail} />, isText: true },
            { title: words.columns.cost, show: (row) => <Plain of={row.cost} />, isNumber: true },
            { title: words.columns.time, show: (row) => <Moment at={row.created_at} /> },
            {
              title: words.columns.resolved,
              isText: true,
              show: (row) =>
                row.resolved_at ? (
                  `${row.resolution} (${row.resolved_by})`
                ) : (
                  <Button size="compact-sm" variant="light" onClick={() => setResolving(row)}>
                    {words.findings.resolve}
                  </Button>
                ),
            },
          ]}
        />
      </Section>
      {resolving && (
        <Resolve
          finding={resolving}
          onClose={() => setResolving(null)}
          onResolved={() => {
            setResolving(null)
            pages.lookAgain()
          }}
        />
      )}
    </>
  )
}

interface ResolveProps {
  finding: FindingRow
  onClose: () => void
  onResolved: () => void
}

function Resolve({ finding, onClose, onResolved }: ResolveProps) {
  const words = useWords()
  const [note, setNote] = useState("")
  const { send, isBusy, fault, isUncertain } = useChange(`/admin/findings/${finding.id}/resolve`)
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    if (await send({ note: note.trim() })) onResolved()
  }
  // After a fault the list may be old: somebody was faster, or it was resolved without an answer.
  const close = fault ? onResolved : onClose
  return (
    <Dialog title={words.findings.resolveTitle} isFirm={isBusy} onClose={close}>
      <form onSubmit={(event) => void submit(event)}>
        <Stack>
          <div>
            <strong>{finding.kind}</strong> <Raw of={finding.detail} />
          </div>
          <Textarea
            label={words.findings.note}
            required
            withAsterisk={false}
            maxLength={2_000}
            value={note}
            onChange={(event) => setNote(event.currentTarget.value)}
            readOnly={isUncertain}
            data-autofocus
          />
          <Alert color="gray" variant="light" icon={<Icon name="coin" />}>
            {words.findings.money}
          </Alert>
          <Fault fault={fault} uncertain={isUncertain ? words.decide.uncertain : undefined} />
          <Group justify="flex-end">
            <Button variant="default" onClick={close} disabled={isBusy}>
              {words.decide.cancel}
            </Button>
            <Button type="submit" loading={isBusy} disabled={!note.trim()}>
              {words.findings.resolve}
            </Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  )
}
