import { Alert, Button, FileInput, Group, NativeSelect, Radio, Stack, Textarea } from "@mantine/core"
import { Problem } from "@shared/api/problem"
import { useFormats } from "@shared/i18n/language"
import { Icon } from "@shared/ui/Icon"
import { type FormEvent, useEffect, useState } from "react"
import { useChange } from "../door"
import { useWords } from "../messages"
import { Dialog } from "../parts/Dialog"
import { Fault } from "../parts/Listing"
import type { WholeTask } from "../rows"
import {
  bodyOf,
  CHOICES,
  type Choice,
  type DecisionBody,
  emptyRuling,
  isWhole,
  namesOf,
  REASONS,
  type Ruling,
} from "./ruling"

const MOVED = ["already-decided", "task-moved-on", "not-in-review"]

interface DecideProps {
  task: WholeTask
  /** Whether a decision was sent from here: until its answer is read the dialog has to stay. */
  onSent: (isSent: boolean) => void
  onClose: () => void
  /** Where the decision left the task; null if it had moved on. */
  onDecided: (state: string | null) => void
}

/** A decision in two steps: what, and then what that does to money. It is about the task as it was when this opened. */
export function Decide({ task: latest, onSent, onClose, onDecided }: DecideProps) {
  const words = useWords()
  const [task] = useState(latest)
  const [ruling, setRuling] = useState<Ruling>(emptyRuling)
  const [body, setBody] = useState<DecisionBody | null>(null)
  const [isUnreadable, setUnreadable] = useState(false)
  const { send, isBusy, fault, isUncertain } = useChange<{ state: string }>(
    `/admin/tasks/${task.id}/decisions`,
  )
  const isSent = isBusy || fault !== null
  useEffect(() => {
    onSent(isSent)
    return () => onSent(false)
  }, [isSent, onSent])

  const next = async (event: FormEvent) => {
    event.preventDefault()
    setUnreadable(false)
    try {
      setBody(await bodyOf(ruling, task.version))
    } catch {
      setUnreadable(true)
    }
  }
  const confirm = async () => {
    if (!body) return
    const made = await send(body)
    if (made) onDecided(made.state)
  }

  if (fault instanceof Problem && MOVED.includes(fault.code)) {
    return (
      <Dialog title={words.decide.title} onClose={() => onDecided(null)}>
        <Fault fault={fault} />
        <Button onClick={() => onDecided(null)}>{words.decide.back}</Button>
      </Dialog>
    )
  }
  return (
    <Dialog title={words.decide.title} isWide isFirm={isBusy || isUncertain} onClose={onClose}>
      {body ? (
        <Stack>
          <Confirmation task={task} ruling={ruling} />
          <Fault
            fault={fault}
            uncertain={isUncertain ? words.decide.uncertain : undefined}
            names={namesOf(ruling)}
          />
          <Group justify="flex-end">
            <Button variant="default" disabled={isBusy || isUncertain} onClick={() => setBody(null)}>
              {words.decide.back}
            </Button>
            <Button loading={isBusy} onClick={() => void confirm()} data-autofocus>
              {words.decide.confirm}
            </Button>
          </Group>
        </Stack>
      ) : (
        <form onSubmit={(event) => void next(event)}>
          <Stack>
            <Form task={task} ruling={ruling} onChange={setRuling} />
            {isUnreadable && (
              <Alert color="lamp" variant="light" role="alert">
                {words.decide.unreadable}
              </Alert>
            )}
            <Group justify="flex-end">
              <Button variant="default" onClick={onClose}>
                {words.decide.cancel}
              </Button>
              <Button type="submit" disabled={!isWhole(ruling, task.n)}>
                {words.decide.review}
              </Button>
            </Group>
          </Stack>
        </form>
      )}
    </Dialog>
  )
}

interface FormProps {
  task: WholeTask
  ruling: Ruling
  onChange: (ruling: Ruling) => void
}

function Form({ task, ruling, onChange }: FormProps) {
  const words = useWords()
  const said = words.decide
  const reasons = REASONS[ruling.choice]
  const choose = (text: string) => {
    const choice = text as Choice
    onChange({ ...ruling, choice, reason: REASONS[choice]?.[0] ?? "" })
  }
  return (
    <>
      <Radio.Group label={said.legend} value={ruling.choice} onChange={choose}>
        <Stack gap="xs" mt="xs">
          {CHOICES.map((choice) => (
            <Radio
              key={choice}
              value={choice}
              label={said.choices[choice]}
              description={said.about[choice]}
            />
          ))}
        </Stack>
      </Radio.Group>
      {reasons && (
        <NativeSelect
          label={said.reason}
          value={ruling.reason}
          onChange={(event) => onChange({ ...ruling, reason: event.currentTarget.value as Ruling["reason"] })}
          data={reasons.map((reason) => ({ value: reason, label: said.reasons[reason] }))}
        />
      )}
      {ruling.choice === "attach_result" && (
        <>
          <Textarea
            label={said.urls}
            description={said.urlsHint}
            rows={Math.min(4, Math.max(2, task.n))}
            value={ruling.urls}
            onChange={(event) => onChange({ ...ruling, urls: event.currentTarget.value })}
          />
          <FileInput
            label={said.files}
            multiple
            clearable
            accept="image/*"
            value={ruling.files}
            onChange={(files) => onChange({ ...ruling, files })}
            valueComponent={({ value }) => said.chosen(Array.isArray(value) ? value.length : value ? 1 : 0)}
          />
        </>
      )}
      <Textarea
        label={said.note}
        description={said.noteHint}
        rows={2}
        maxLength={2_000}
        value={ruling.note}
        onChange={(event) => onChange({ ...ruling, note: event.currentTarget.value })}
      />
    </>
  )
}

/** What is about to be done, and what that does to money. */
function Confirmation({ task, ruling }: { task: WholeTask; ruling: Ruling }) {
  const said = useWords().decide
  const { number } = useFormats()
  return (
    <>
      <div>
        <strong>{said.choices[ruling.choice]}.</strong> {said.about[ruling.choice]}
      </div>
      {ruling.reason && (
        <div>
          {said.reason}: {said.reasons[ruling.reason]}
        </div>
      )}
      <Alert color="lamp" variant="light" icon={<Icon name="coin" />} data-money>
        {said.money[ruling.choice](number(task.held), number(task.unit_price))}
      </Alert>
      {ruling.note.trim() && (
        <div className="quiet">
          {said.note}: {ruling.note.trim()}
        </div>
      )}
    </>
  )
}
