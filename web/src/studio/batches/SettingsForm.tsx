import { Button, NumberInput, Select, Text, Textarea } from "@mantine/core"
import { useFormats } from "@shared/i18n/language"
import { useStore } from "@shared/store"
import { useEffect, useRef } from "react"
import { shapesOf } from "../account"
import { useWords } from "../messages"
import type { Model } from "../tasks/wish"
import classes from "./batches.module.css"
import { change, settings } from "./draft"
import type { Table } from "./table"
import { useBatchWords } from "./words"

const MAX_AT_ONCE = 1_000

interface SettingsFormProps {
  table: Table
  model: Model
  offered: readonly Model[]
  strangers: readonly string[]
}

/** What holds for all items: the prompt with its columns, model, size, how many. */
export function SettingsForm({ table, model, offered, strangers }: SettingsFormProps) {
  const words = useBatchWords().form
  const compose = useWords().compose
  const credits = useCredits()
  const said = useStore(settings)
  useEffect(() => {
    if (said.shape && !shapesOf(model).includes(said.shape)) change({ shape: "" })
    if (said.n > model.max_n) change({ n: model.max_n })
  }, [said, model])
  const able = offered.filter((one) => one.operations.includes("generate"))

  return (
    <>
      {table.isWhole ? (
        <Text size="sm" className="quiet">
          {words.whole}
        </Text>
      ) : (
        <Template table={table} strangers={strangers} />
      )}
      <div className={classes.row}>
        <Select
          label={words.model}
          data={able.map((one) => ({
            value: one.name,
            label: compose.modelLine(one.name, credits(one.price)),
          }))}
          value={model.name}
          onChange={(name) => name && change({ model: name })}
          allowDeselect={false}
          checkIconPosition="right"
        />
        {shapesOf(model).length > 0 && (
          <Select
            label={words.shape}
            data={[
              { value: "", label: compose.shapeDefault },
              ...shapesOf(model).map((shape) => ({ value: shape, label: shape.replace("x", " × ") })),
            ]}
            value={said.shape}
            onChange={(shape) => change({ shape: shape ?? "" })}
            allowDeselect={false}
            checkIconPosition="right"
          />
        )}
      </div>
      <div className={classes.row}>
        {model.max_n > 1 && (
          <Count label={words.count} max={model.max_n} value={said.n} onChange={(n) => change({ n })} />
        )}
        <Count
          label={words.atOnce}
          max={MAX_AT_ONCE}
          value={said.atOnce}
          onChange={(atOnce) => change({ atOnce })}
        />
      </div>
    </>
  )
}

function Template({ table, strangers }: Pick<SettingsFormProps, "table" | "strangers">) {
  const words = useBatchWords().form
  const { template } = useStore(settings)
  const field = useRef<HTMLTextAreaElement>(null)
  const [stranger] = strangers

  const insert = (column: string) => {
    const at = field.current?.selectionStart ?? template.length
    const name = `{{${column}}}`
    change({ template: template.slice(0, at) + name + template.slice(at) })
    field.current?.focus()
    // After the new text stands in the field.
    setTimeout(() => field.current?.setSelectionRange(at + name.length, at + name.length))
  }

  return (
    <div>
      <Textarea
        ref={field}
        label={words.template}
        placeholder={words.example(table.columns[0] ?? "")}
        value={template}
        onChange={(event) => change({ template: event.currentTarget.value })}
        error={stranger !== undefined && words.stranger(stranger, table.columns.join(", "))}
        autosize
        minRows={2}
        maxRows={8}
      />
      <fieldset className={classes.columns}>
        <Text component="legend" size="xs" className={`quiet ${classes.legend}`}>
          {words.columns}
        </Text>
        {table.columns.map((column) => (
          <Button
            key={column}
            size="compact-xs"
            variant="default"
            aria-label={words.insert(column)}
            onClick={() => insert(column)}
          >
            {column}
          </Button>
        ))}
      </fieldset>
    </div>
  )
}

interface CountProps {
  label: string
  max: number
  value: number
  onChange: (value: number) => void
}

function Count({ label, max, value, onChange }: CountProps) {
  return (
    <NumberInput
      label={label}
      min={1}
      max={max}
      clampBehavior="strict"
      allowDecimal={false}
      value={value}
      onChange={(next) => typeof next === "number" && onChange(next)}
    />
  )
}

/** Credits in words. */
export function useCredits(): (n: number) => string {
  const words = useWords()
  const { number } = useFormats()
  return (n) => words.credits(number(n))
}
