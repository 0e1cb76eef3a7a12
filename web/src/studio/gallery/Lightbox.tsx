import { ActionIcon, Button, Modal, Stack, Text } from "@mantine/core"
import { useFormats } from "@shared/i18n/language"
import { useShared } from "@shared/i18n/messages"
import { goTo, hrefTo } from "@shared/route"
import { useStore } from "@shared/store"
import { Icon } from "@shared/ui/Icon"
import { type ReactNode, useEffect, useRef, useState } from "react"
import { change, compose, draft } from "../compose/draft"
import { uploadPicture } from "../compose/upload"
import { useWords } from "../messages"
import { submit } from "../tasks/outbox"
import { shelf } from "../tasks/shelf"
import { bodyOfTask, wishOfTask } from "../tasks/wish"
import classes from "./Lightbox.module.css"
import { type Picture, picturesOf, sourceOf } from "./pictures"

/** One picture as large as the window, with what it was made from, and the ones beside it. */
export function Lightbox({ assetId }: { assetId: string }) {
  const shared = useShared()
  const words = useWords()
  const { tasks, older } = useStore(shelf)
  const pictures = picturesOf(tasks)
  const at = pictures.findIndex((picture) => picture.asset.id === assetId)
  const picture = pictures[at]
  const show = (other: Picture | undefined) => other && goTo("picture", other.asset.id)
  useArrows(
    () => show(pictures[at - 1]),
    () => show(pictures[at + 1]),
  )

  useFocusBack(assetId)

  if (older === undefined) return null
  return (
    <Modal
      opened
      fullScreen
      onClose={() => goTo()}
      title={words.lightbox.title}
      closeButtonProps={{ "aria-label": shared.close }}
      classNames={{ content: classes.room ?? "", header: classes.header ?? "", body: classes.body ?? "" }}
      transitionProps={{ transition: "fade", duration: 120 }}
    >
      {picture ? (
        <div className={classes.layout}>
          <figure className={classes.stage}>
            <Beside label={words.lightbox.previous} side="left" to={pictures[at - 1]} show={show} />
            <img
              key={picture.asset.id}
              src={sourceOf(picture)}
              alt={picture.task.prompt}
              width={picture.asset.width}
              height={picture.asset.height}
            />
            <Beside label={words.lightbox.next} side="right" to={pictures[at + 1]} show={show} />
          </figure>
          <About picture={picture} />
        </div>
      ) : (
        <Text>{words.gallery.gone}</Text>
      )}
    </Modal>
  )
}

interface BesideProps {
  label: string
  side: "left" | "right"
  to: Picture | undefined
  show: (picture: Picture | undefined) => void
}

function Beside({ label, side, to, show }: BesideProps) {
  return (
    <ActionIcon
      className={classes[side]}
      variant="filled"
      color="dark"
      size="xl"
      radius="xl"
      aria-label={label}
      disabled={!to}
      onClick={() => show(to)}
    >
      <Icon name={side} />
    </ActionIcon>
  )
}

function About({ picture }: { picture: Picture }) {
  const words = useWords()
  const { number, time } = useFormats()
  const { task, asset } = picture
  const [isBusy, setBusy] = useState(false)

  const startFrom = async () => {
    setBusy(true)
    try {
      const bytes = await (await fetch(sourceOf(picture))).blob()
      change({ references: [await uploadPicture(bytes)], mask: null })
      goTo()
      compose(draft.get())
    } catch {
      setBusy(false)
    }
  }

  return (
    <aside className={classes.about}>
      <Stack gap="md">
        <Fact name={words.lightbox.prompt}>
          <span className={classes.prompt}>{task.prompt}</span>
        </Fact>
        <div className={classes.facts}>
          <Fact name={words.lightbox.model}>{task.model}</Fact>
          <Fact name={words.lightbox.size}>
            {asset.width} × {asset.height}
          </Fact>
          <Fact name={words.lightbox.made}>{time(task.finished_at ?? task.created_at)}</Fact>
          <Fact name={words.lightbox.cost}>{words.credits(number(task.credits.captured))}</Fact>
        </div>
        <Stack gap="xs">
          <Button
            component="a"
            href={sourceOf(picture)}
            download
            leftSection={<Icon name="download" size={16} />}
          >
            {words.lightbox.download}
          </Button>
          <Button
            variant="default"
            leftSection={<Icon name="repeat" size={16} />}
            onClick={() => {
              submit(bodyOfTask(task))
              goTo()
            }}
          >
            {words.lightbox.again}
          </Button>
          <Button
            variant="default"
            onClick={() => {
              goTo()
              compose(wishOfTask(task))
            }}
          >
            {words.lightbox.reuse}
          </Button>
          <Button
            variant="default"
            loading={isBusy}
            leftSection={<Icon name="picture" size={16} />}
            onClick={() => void startFrom()}
          >
            {words.lightbox.startFrom}
          </Button>
        </Stack>
      </Stack>
    </aside>
  )
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <Text size="xs" className="quiet">
        {name}
      </Text>
      <Text size="sm" component="div">
        {children}
      </Text>
    </div>
  )
}

/** Closed, the focus is on the thumbnail of the picture that was shown last. */
function useFocusBack(assetId: string): void {
  const last = useRef(assetId)
  last.current = assetId
  useEffect(
    () => () => {
      const thumbnail = document.querySelector<HTMLElement>(`a[href="${hrefTo("picture", last.current)}"]`)
      // After the dialog has let go of it.
      setTimeout(() => thumbnail?.focus())
    },
    [],
  )
}

function useArrows(left: () => void, right: () => void): void {
  useEffect(() => {
    const turn = (event: KeyboardEvent) => {
      if (event.key === "ArrowLeft") left()
      if (event.key === "ArrowRight") right()
    }
    window.addEventListener("keydown", turn)
    return () => window.removeEventListener("keydown", turn)
  })
}
