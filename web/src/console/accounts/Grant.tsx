import { Alert, Button, Group, NumberInput, Stack, Textarea } from "@mantine/core"
import { useFormats } from "@shared/i18n/language"
import { Icon } from "@shared/ui/Icon"
import { type FormEvent, useState } from "react"
import { isUnanswered } from "../door"
import { useWords } from "../messages"
import { Dialog } from "../parts/Dialog"
import { Fault } from "../parts/Listing"
import type { AccountRow } from "../rows"
import { grant, unanswered } from "./grants"

interface GrantProps {
  account: AccountRow
  onClose: () => void
  onGranted: () => void
}

/** Credits for an account, in two steps: how many and why, and then what that does. */
export function Grant({ account, onClose, onGranted }: GrantProps) {
  const words = useWords()
  const said = words.accounts
  const { number } = useFormats()
  const [earlier, setEarlier] = useState(() => unanswered(account.id))
  const [amount, setAmount] = useState<number | "">(earlier?.amount ?? "")
  const [reason, setReason] = useState(earlier?.reason ?? "")
  const [isSure, setSure] = useState(earlier !== null)
  const [isBusy, setBusy] = useState(false)
  const [fault, setFault] = useState<unknown>(null)
  const [available, setAvailable] = useState<number | null>(null)
  const isWhole = amount !== "" && amount !== 0 && reason.trim() !== ""

  const submit = async (event: FormEvent) => {
    event.preventDefault()
    if (!isWhole) return
    if (!isSure) return setSure(true)
    setBusy(true)
    setFault(null)
    try {
      setAvailable(await grant(account.id, { amount, reason: reason.trim() }))
      onGranted()
    } catch (error) {
      setFault(error)
      setEarlier(unanswered(account.id))
      if (!isUnanswered(error)) setSure(false)
    } finally {
      setBusy(false)
    }
  }

  if (available !== null) {
    return (
      <Dialog title={said.grant} onClose={onClose}>
        <p role="status">{said.granted(number(available))}</p>
        <Button onClick={onClose} data-autofocus>
          OK
        </Button>
      </Dialog>
    )
  }
  return (
    <Dialog title={said.grant} isFirm={isBusy} onClose={onClose}>
      <form onSubmit={(event) => void submit(event)}>
        <Stack>
          <NumberInput
            label={said.amount}
            description={said.amountHint}
            value={amount}
            onChange={(value) => setAmount(typeof value === "number" ? value : "")}
            readOnly={isSure}
            allowDecimal={false}
            min={-1e15}
            max={1e15}
            hideControls
            data-autofocus
          />
          <Textarea
            label={said.grantReason}
            description={said.grantReasonHint}
            value={reason}
            onChange={(event) => setReason(event.currentTarget.value)}
            readOnly={isSure}
            maxLength={2_000}
          />
          {isSure && amount !== "" && (
            <Alert color="lamp" variant="light" icon={<Icon name="coin" />} role="status" data-money>
              {(amount > 0 ? said.grantMoney : said.takeMoney)(number(Math.abs(amount)), account.name)}
            </Alert>
          )}
          {earlier && !fault && <p className="quiet">{said.unanswered}</p>}
          <Fault fault={fault} uncertain={earlier ? said.unanswered : undefined} />
          <Group justify="flex-end">
            <Button
              variant="default"
              disabled={isBusy}
              onClick={() => (isSure && !earlier ? setSure(false) : onClose())}
            >
              {isSure && !earlier ? words.decide.back : words.decide.cancel}
            </Button>
            <Button type="submit" loading={isBusy} disabled={!isWhole}>
              {isSure ? words.decide.confirm : words.decide.review}
            </Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  )
}
