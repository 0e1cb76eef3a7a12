import { Alert } from "@mantine/core"
import { useFormats } from "@shared/i18n/language"
import { Icon } from "@shared/ui/Icon"
import type { Fault } from "./fault"
import { useBatchWords } from "./words"

const SHOWN = 5

/** What is wrong with a file, and in which lines. */
export function Faults({ faults }: { faults: readonly Fault[] }) {
  const words = useBatchWords().faults
  const { number } = useFormats()
  if (faults.length === 0) return null
  const rest = faults.length - SHOWN
  return (
    <Alert color="lamp" variant="light" role="alert" title={words.title} icon={<Icon name="alert" />}>
      {faults.slice(0, SHOWN).map((fault) => (
        <div key={`${fault.line} ${fault.kind}`}>{sentenceOf(fault, words, number)}</div>
      ))}
      {rest > 0 && words.more(number(rest))}
    </Alert>
  )
}

function sentenceOf(
  { line, kind, values }: Fault,
  words: ReturnType<typeof useBatchWords>["faults"],
  number: (value: number) => string,
): string {
  const [one = "", other = ""] = values.map((value) => (typeof value === "number" ? number(value) : value))
  const what = words.kinds[kind](one, other)
  return line === null ? what : words.atLine(number(line), what)
}
