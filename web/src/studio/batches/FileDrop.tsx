import { Button, FileButton, Group, Text } from "@mantine/core"
import { useFormats } from "@shared/i18n/language"
import { useStore } from "@shared/store"
import { DropZone } from "@shared/ui/DropZone"
import { Icon } from "@shared/ui/Icon"
import { useRef, useState } from "react"
import classes from "./batches.module.css"
import { choose, chosen, putAside } from "./draft"
import { Faults } from "./Faults"
import { type Fault, FileFault } from "./fault"
import { textOf } from "./table"
import { useBatchWords } from "./words"

const TYPES = ".csv,.tsv,.jsonl,.ndjson,.json,text/csv,application/x-ndjson"

/** Takes a file, dropped or chosen, and says at once if nothing can be made of it. */
export function FileDrop() {
  const words = useBatchWords().file
  const { number } = useFormats()
  const file = useStore(chosen)
  const [fault, setFault] = useState<Fault | null>(null)
  // So that the same file can be chosen again when it was mended.
  const forgetPicked = useRef<() => void>(null)

  const take = async (picked: File | null | undefined) => {
    if (!picked) return
    forgetPicked.current?.()
    setFault(null)
    try {
      choose(picked.name, await textOf(picked))
    } catch (error) {
      putAside()
      // What cannot even be read, such as a folder, is no text either.
      setFault(error instanceof FileFault ? error : new FileFault(1, "notText"))
    }
  }

  return (
    <>
      <DropZone label={words.title} onFiles={([first]) => void take(first)}>
        {file && (
          <Text size="sm">
            <strong className={classes.name}>{file.name}</strong>{" "}
            <span className="quiet">
              {words.holds(number(file.table.rows.length), file.table.rows.length === 1)}
            </span>
          </Text>
        )}
        <Group gap="sm" wrap="nowrap">
          <FileButton accept={TYPES} resetRef={forgetPicked} onChange={(picked) => void take(picked)}>
            {(props) => (
              <Button
                {...props}
                variant={file ? "default" : "light"}
                size="xs"
                flex="none"
                data-autofocus={!file || undefined}
                leftSection={<Icon name="stack" size={15} />}
              >
                {file ? words.other : words.choose}
              </Button>
            )}
          </FileButton>
          {!file && (
            <Text size="xs" className="quiet">
              {words.drop}
            </Text>
          )}
        </Group>
      </DropZone>
      <Faults faults={fault ? [fault] : []} />
    </>
  )
}
