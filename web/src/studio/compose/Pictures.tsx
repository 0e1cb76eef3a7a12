import { ActionIcon, Button, FileButton, Group, Text } from "@mantine/core"
import { Problem } from "@shared/api/problem"
import { useShared } from "@shared/i18n/messages"
import { useStore } from "@shared/store"
import { DropZone } from "@shared/ui/DropZone"
import { Icon } from "@shared/ui/Icon"
import { useState } from "react"
import { useWords } from "../messages"
import type { Model } from "../tasks/wish"
import { change, draft } from "./draft"
import { MaskPainter } from "./MaskPainter"
import classes from "./Pictures.module.css"
import { uploadPicture } from "./upload"

const TYPES = "image/png,image/jpeg,image/webp"

/** The pictures that a task starts from: dropped, pasted or chosen, and the mask over the first one. */
export function Pictures({ model, most }: { model: Model | undefined; most: number }) {
  const words = useWords().pictures
  const shared = useShared()
  const { references, mask } = useStore(draft)
  const [uploading, setUploading] = useState(0)
  const [fault, setFault] = useState("")
  const [isPainting, setPainting] = useState(false)

  const add = async (files: readonly File[]) => {
    setFault("")
    const room = most - draft.get().references.length
    if (files.length > room) setFault(words.most(most))
    for (const file of files.slice(0, Math.max(0, room))) {
      setUploading((count) => count + 1)
      try {
        const reference = await uploadPicture(file)
        change({ references: [...draft.get().references, reference] })
      } catch (error) {
        setFault(error instanceof Problem ? `${words.failed} ${error.detail}` : shared.problem.unreachable)
      } finally {
        setUploading((count) => count - 1)
      }
    }
  }
  const dropped = (files: readonly File[]) => add(files.filter((file) => file.type.startsWith("image/")))
  const remove = (index: number) => {
    // The mask belongs to the first picture.
    change({ references: references.filter((_, at) => at !== index), ...(index === 0 && { mask: null }) })
  }

  const first = references[0]
  return (
    <DropZone label={words.title} onFiles={(files) => void dropped(files)}>
      {references.length > 0 && (
        <ul className={classes.list}>
          {references.map((reference, index) => (
            <li key={reference.id} className={classes.item}>
              {reference.preview ? (
                <img src={reference.preview} alt={words.picture(index + 1)} />
              ) : (
                <span>{words.picture(index + 1)}</span>
              )}
              <ActionIcon
                className={classes.remove}
                size="sm"
                radius="xl"
                variant="filled"
                color="dark"
                aria-label={words.remove(index + 1)}
                onClick={() => remove(index)}
              >
                <Icon name="close" size={12} />
              </ActionIcon>
            </li>
          ))}
        </ul>
      )}
      <Group gap="xs" wrap="nowrap">
        <FileButton accept={TYPES} multiple onChange={(files) => void add(files)}>
          {(props) => (
            <Button
              {...props}
              variant="default"
              size="xs"
              flex="none"
              loading={uploading > 0}
              disabled={references.length >= most}
              leftSection={<Icon name="picture" size={15} />}
            >
              {words.add}
            </Button>
          )}
        </FileButton>
        {references.length === 0 && (
          <Text size="xs" className="quiet">
            {words.drop}
          </Text>
        )}
      </Group>
      {first && model?.takes_mask && (
        <Group gap="xs">
          <Button
            variant={mask ? "light" : "default"}
            size="xs"
            leftSection={<Icon name="brush" size={15} />}
            onClick={() => setPainting(true)}
          >
            {mask ? words.maskAgain : words.mask}
          </Button>
          {mask && (
            <ActionIcon
              variant="subtle"
              color="gray"
              aria-label={words.maskDrop}
              onClick={() => change({ mask: null })}
            >
              <Icon name="trash" size={15} />
            </ActionIcon>
          )}
        </Group>
      )}
      {fault && (
        <Text size="xs" role="alert" className={classes.fault}>
          {fault}
        </Text>
      )}
      {first && (
        <MaskPainter
          picture={first}
          isOpen={isPainting}
          onClose={() => setPainting(false)}
          onDone={(id) => {
            change({ mask: id })
            setPainting(false)
          }}
        />
      )}
    </DropZone>
  )
}
