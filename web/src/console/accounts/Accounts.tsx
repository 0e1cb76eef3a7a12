import { Alert, Button, Group, Stack, TextInput } from "@mantine/core"
import { goTo } from "@shared/route"
import { Icon } from "@shared/ui/Icon"
import { type FormEvent, useState } from "react"
import { useChange, usePages } from "../door"
import { useWords } from "../messages"
import { Dialog } from "../parts/Dialog"
import { Fault, Listing } from "../parts/Listing"
import { Heading, Section } from "../parts/Section"
import { AccountLink, Count, Moment } from "../parts/words"
import type { AccountRow } from "../rows"

/** Every account with its balance, oldest first. */
export function Accounts() {
  const words = useWords()
  const [isMaking, setMaking] = useState(false)
  const pages = usePages<AccountRow>("/admin/accounts")
  return (
    <>
      <Heading
        title={words.rooms.accounts}
        aside={<Button onClick={() => setMaking(true)}>{words.accounts.make}</Button>}
      />
      <Section>
        <Listing
          name={words.rooms.accounts}
          pages={pages}
          keyOf={(row) => row.id}
          columns={[
            { title: words.columns.name, show: (row) => <AccountLink id={row.id} name={row.name} /> },
            { title: words.columns.available, show: (row) => <Count of={row.available} />, isNumber: true },
            { title: words.columns.held, show: (row) => <Count of={row.held} />, isNumber: true },
            { title: words.columns.open, show: (row) => <Count of={row.open_tasks} />, isNumber: true },
            { title: words.columns.made, show: (row) => <Moment at={row.created_at} /> },
          ]}
        />
      </Section>
      {isMaking && <MakeAccount onClose={() => setMaking(false)} />}
    </>
  )
}

function MakeAccount({ onClose }: { onClose: () => void }) {
  const words = useWords()
  const [name, setName] = useState("")
  const { send, isBusy, fault, isUncertain } = useChange<{ id: string }>("/admin/accounts")
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    const made = await send({ name: name.trim() })
    if (made) goTo("accounts", made.id)
  }
  return (
    <Dialog title={words.accounts.make} isFirm={isBusy || isUncertain} onClose={onClose}>
      <form onSubmit={(event) => void submit(event)}>
        <Stack>
          <TextInput
            label={words.accounts.name}
            required
            withAsterisk={false}
            maxLength={200}
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
            readOnly={isUncertain}
            autoComplete="off"
            data-autofocus
          />
          <Alert color="gray" variant="light" icon={<Icon name="coin" />}>
            {words.accounts.makeMoney}
          </Alert>
          <Fault fault={fault} uncertain={isUncertain ? words.decide.uncertain : undefined} />
          <Group justify="flex-end">
            <Button variant="default" disabled={isBusy || isUncertain} onClick={onClose}>
              {words.decide.cancel}
            </Button>
            <Button type="submit" loading={isBusy} disabled={!name.trim()}>
              {words.accounts.make}
            </Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  )
}
