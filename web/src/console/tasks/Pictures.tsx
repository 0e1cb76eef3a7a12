import { Alert, Button } from "@mantine/core"
import { Icon } from "@shared/ui/Icon"
import { useState } from "react"
import { useChange } from "../door"
import { useWords } from "../messages"
import { Fault, Table } from "../parts/Listing"
import { Section } from "../parts/Section"
import { Count, Moment, Plain } from "../parts/words"
import type { AssetRow, InputRow, Viewing, WholeTask } from "../rows"
import classes from "./Pictures.module.css"

/** The pictures of a task by what is on record of them. They themselves are read only when somebody asks to see them. */
export function Pictures({ task }: { task: WholeTask }) {
  const words = useWords()
  const { send, isBusy, fault } = useChange<Viewing>(`/admin/tasks/${task.id}/viewings`)
  const [viewing, setViewing] = useState<Viewing | null>(null)
  const [hasFailed, setFailed] = useState(false)
  if (task.assets.length + task.inputs.length === 0) return null

  const canShow =
    task.assets.some((asset) => !asset.doomed_at) || task.inputs.some((input) => input.content_type)
  const show = async () => {
    setFailed(false)
    setViewing(await send({}))
  }
  const button = viewing ? (
    <Button variant="default" onClick={() => setViewing(null)}>
      {words.task.hidePictures}
    </Button>
  ) : (
    <Button
      variant="light"
      leftSection={<Icon name="picture" />}
      loading={isBusy}
      onClick={() => void show()}
    >
      {words.task.showPictures}
    </Button>
  )
  return (
    <Section
      title={words.task.assets}
      hint={canShow ? words.task.picturesHint : words.task.picturesGone}
      aside={canShow && button}
    >
      <Fault fault={fault} />
      {viewing && hasFailed && (
        <Alert color="lamp" variant="light" role="alert" mb="sm" icon={<Icon name="alert" />}>
          {words.task.pictureFailed}
        </Alert>
      )}
      {viewing && <Shown task={task} viewing={viewing} onFailed={() => setFailed(true)} />}
      {task.assets.length > 0 && <Assets rows={task.assets} />}
      {task.inputs.length > 0 && <Inputs rows={task.inputs} />}
    </Section>
  )
}

interface ShownProps {
  task: WholeTask
  viewing: Viewing
  onFailed: () => void
}

/** What a viewing opens, each leading to the whole picture in a tab of its own. */
function Shown({ task, viewing, onFailed }: ShownProps) {
  const nameOf = useNameOf(task)
  return (
    <ul className={classes.shown}>
      {viewing.pictures.map((id) => {
        const place = `/admin/tasks/${task.id}/pictures/${id}`
        return (
          <li key={id}>
            <a href={`${place}?viewing=${viewing.id}`} target="_blank" rel="noreferrer">
              <img src={`${place}/thumbnail?viewing=${viewing.id}`} alt="" onError={onFailed} />
              {nameOf(id)}
            </a>
          </li>
        )
      })}
    </ul>
  )
}

/** What a picture is to its task. */
function useNameOf(task: WholeTask): (id: string) => string {
  const words = useWords()
  return (id) => {
    const asset = task.assets.find((one) => one.id === id)
    if (asset) return words.task.picture(asset.position + 1)
    const input = task.inputs.find((one) => one.id === id)
    if (!input) return id
    return input.is_mask ? words.task.mask : words.task.input(input.position + 1)
  }
}

function Assets({ rows }: { rows: readonly AssetRow[] }) {
  const words = useWords()
  const areSomeGone = rows.some((row) => row.doomed_at)
  return (
    <Table
      name={words.task.assets}
      rows={rows}
      keyOf={(row) => row.id}
      columns={[
        { title: words.columns.position, show: (row) => row.position + 1, isNumber: true },
        { title: words.columns.attempt, show: (row) => row.attempt, isNumber: true },
        { title: words.columns.kind, show: (row) => row.content_type },
        { title: words.task.size, show: (row) => <Sides of={row} /> },
        { title: words.columns.size, show: (row) => <Count of={row.size_bytes} />, isNumber: true },
        { title: words.columns.sha256, show: (row) => <Hash of={row.sha256} /> },
        { title: words.columns.made, show: (row) => <Moment at={row.created_at} /> },
        ...(areSomeGone
          ? [{ title: words.columns.deleted, show: (row: AssetRow) => <Moment at={row.doomed_at} /> }]
          : []),
      ]}
    />
  )
}

function Inputs({ rows }: { rows: readonly InputRow[] }) {
  const words = useWords()
  return (
    <>
      <h3 className={classes.inputs}>{words.task.inputs}</h3>
      <Table
        name={words.task.inputs}
        rows={rows}
        keyOf={(row) => String(row.position)}
        columns={[
          {
            title: words.columns.position,
            show: (row) => (row.is_mask ? words.task.mask : row.position + 1),
            isNumber: true,
          },
          { title: words.columns.kind, show: (row) => row.content_type ?? words.task.expired },
          { title: words.task.size, show: (row) => <Sides of={row} /> },
          { title: words.columns.size, show: (row) => <Count of={row.size_bytes} />, isNumber: true },
          { title: words.columns.sha256, show: (row) => <Hash of={row.sha256} /> },
        ]}
      />
    </>
  )
}

function Sides({ of }: { of: { width: number | null; height: number | null } }) {
  return <Plain of={of.width && `${of.width} × ${of.height}`} />
}

function Hash({ of }: { of: string | null }) {
  return of ? <code>{of.slice(0, 16)}…</code> : <Plain of={null} />
}
