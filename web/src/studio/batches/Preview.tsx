import { Text, Title } from "@mantine/core"
import { useFormats } from "@shared/i18n/language"
import classes from "./batches.module.css"
import type { Item } from "./plan"
import { useBatchWords } from "./words"

const SHOWN = 4

/** The first prompts as they will be sent, each with its line in the file. */
export function Preview({ items }: { items: readonly Item[] }) {
  const words = useBatchWords().preview
  const { number } = useFormats()
  const rest = items.length - SHOWN
  if (items.length === 0) return null
  return (
    <section aria-labelledby="preview-title">
      <Title order={3} size="h6" id="preview-title">
        {words.title}
      </Title>
      <ol className={classes.preview}>
        {items.slice(0, SHOWN).map(({ line, body }) => (
          <li key={line}>
            <span className={`quiet ${classes.place}`} title={words.line(number(line))}>
              {number(line)}
            </span>
            <span className={classes.prompt}>{body.prompt}</span>
          </li>
        ))}
      </ol>
      {rest > 0 && (
        <Text size="sm" mt={6} className="quiet">
          {words.more(number(rest))}
        </Text>
      )}
    </section>
  )
}
