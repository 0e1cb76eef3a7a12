import { NativeSelect, TextInput } from "@mantine/core"
import { useEffect, useState } from "react"
import { useWords } from "../messages"

interface ChoiceProps {
  label: string
  value: string
  choices: readonly (readonly [value: string, text: string])[]
  onChange: (value: string) => void
}

/** One of several, or all: the system's own control, which every phone and screen reader knows. */
export function Choice({ label, value, choices, onChange }: ChoiceProps) {
  const words = useWords()
  return (
    <NativeSelect
      label={label}
      size="sm"
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
      data={[
        { value: "", label: words.list.all },
        ...choices.map(([one, text]) => ({ value: one, label: text })),
      ]}
    />
  )
}

const PAUSE_MS = 400

/** A filter that is typed; it counts when the typing pauses. */
export function Typed({ label, value, onChange }: Omit<ChoiceProps, "choices">) {
  const [text, setText] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => onChange(text.trim()), PAUSE_MS)
    return () => clearTimeout(timer)
  }, [text, onChange])
  return (
    <TextInput
      label={label}
      size="sm"
      value={text}
      onChange={(event) => setText(event.currentTarget.value)}
      autoComplete="off"
      spellCheck={false}
    />
  )
}
