import { Alert, Button, CopyButton, Group, Stack, TextInput } from "@mantine/core"
import { Icon } from "@shared/ui/Icon"
import { type FormEvent, useState } from "react"
import { change, useAnswer } from "../door"
import { useWords } from "../messages"
import { Dialog } from "../parts/Dialog"
import { Fault, Standing, Table } from "../parts/Listing"
import { Section } from "../parts/Section"
import { Moment, State } from "../parts/words"
import type { KeyRow } from "../rows"
import classes from "./accounts.module.css"

/** The keys of an account: make one, which is shown once, and end one. */
export function Keys({ accountId }: { accountId: string }) {
  const words = useWords()
  const said = words.accounts
  const path = `/admin/accounts/${accountId}/keys`
  const known = useAnswer<{ data: KeyRow[] }>(path)
  const [isMaking, setMaking] = useState(false)
  const [revoking, setRevoking] = useState<KeyRow | null>(null)
  return (
    <Section
      title={said.keys}
      aside={
        <Button variant="light" onClick={() => setMaking(true)}>
          {said.makeKey}
        </Button>
      }
    >
      <Standing known={known} />
      {known.answer && (
        <Table
          name={said.keys}
          rows={known.answer.data}
          keyOf={(row) => row.id}
          columns={[
            { title: words.columns.name, show: (row) => row.name || said.unnamed, isText: true },
            { title: "id", show: (row) => <code>{row.id}</code> },
            {
              title: words.columns.state,
              show: (row) =>
                row.revoked_at ? (
                  <State of="canceled" text={said.revoked} />
                ) : (
                  <State of="active" text={said.active} />
                ),
            },
            { title: words.columns.made, show: (row) => <Moment at={row.created_at} /> },
            {
              title: said.revoke,
              show: (row) =>
                row.revoked_at ? (
                  <Moment at={row.revoked_at} />
                ) : (
                  <Button size="compact-sm" variant="default" onClick={() => setRevoking(row)}>
                    {said.revoke}
                  </Button>
                ),
            },
          ]}
        />
      )}
      {isMaking && <MakeKey path={path} onClose={() => setMaking(false)} onMade={known.lookAgain} />}
      {revoking && <Revoke row={revoking} onClose={() => setRevoking(null)} onRevoked={known.lookAgain} />}
    </Section>
  )
}

function MakeKey({ path, onClose, onMade }: { path: string; onClose: () => void; onMade: () => void }) {
  const words = useWords()
  const said = words.accounts
  const [name, setName] = useState("")
  const [made, setMade] = useState<string | null>(null)
  const { run, isBusy, fault } = useOnce()
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    // Without an idempotency key: nothing secret is kept, so that nothing could be answered again.
    await run(async () => setMade((await change<{ key: string }>(path, { name: name.trim() }, null)).key))
    onMade()
  }
  if (made) {
    return (
      <Dialog title={said.makeKey} isFirm onClose={onClose}>
        <Stack>
          <Alert color="lamp" variant="light" icon={<Icon name="key" />} role="status">
            {said.keyOnce}
          </Alert>
          <code className={classes.key}>{made}</code>
          <Group justify="flex-end">
            <CopyButton value={made}>
              {({ copied, copy }) => (
                <Button variant="default" onClick={copy}>
                  {copied ? said.copied : said.copy}
                </Button>
              )}
            </CopyButton>
            <Button onClick={onClose}>{said.keep}</Button>
          </Group>
        </Stack>
      </Dialog>
    )
  }
  return (
    <Dialog title={said.makeKey} isFirm={isBusy} onClose={onClose}>
      <form onSubmit={(event) => void submit(event)}>
        <Stack>
          <TextInput
            label={said.keyName}
            maxLength={200}
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
            autoComplete="off"
            data-autofocus
          />
          <Fault fault={fault} />
          <Group justify="flex-end">
            <Button variant="default" disabled={isBusy} onClick={onClose}>
              {words.decide.cancel}
            </Button>
            <Button type="submit" loading={isBusy}>
              {said.makeKey}
            </Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  )
}

function Revoke({ row, onClose, onRevoked }: { row: KeyRow; onClose: () => void; onRevoked: () => void }) {
  const words = useWords()
  const said = words.accounts
  const { run, isBusy, fault } = useOnce()
  const confirm = () =>
    run(async () => {
      await change(`/admin/keys/${row.id}/revoke`, {}, null)
      onRevoked()
      onClose()
    })
  return (
    <Dialog title={said.revokeTitle} isFirm={isBusy} onClose={onClose}>
      <Stack>
        <div>{said.revokeMoney(row.name || row.id)}</div>
        <Fault fault={fault} />
        <Group justify="flex-end">
          <Button variant="default" disabled={isBusy} onClick={onClose} data-autofocus>
            {words.decide.cancel}
          </Button>
          <Button loading={isBusy} onClick={() => void confirm()}>
            {said.revoke}
          </Button>
        </Group>
      </Stack>
    </Dialog>
  )
}

/** A step that is not under way twice. */
function useOnce() {
  const [isBusy, setBusy] = useState(false)
  const [fault, setFault] = useState<unknown>(null)
  const run = async (step: () => Promise<void>) => {
    setBusy(true)
    setFault(null)
    await step().catch(setFault)
    setBusy(false)
  }
  return { run, isBusy, fault }
}
