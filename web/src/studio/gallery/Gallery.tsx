import { Button, Center, Text, Title } from "@mantine/core"
import { hrefTo } from "@shared/route"
import { useStore } from "@shared/store"
import { useEffect, useRef, useState } from "react"
import { useWords } from "../messages"
import { readOlder, shelf } from "../tasks/shelf"
import classes from "./Gallery.module.css"
import { type Picture, picturesOf, thumbnailOf } from "./pictures"

/** Every picture, newest first, in rows of one height, as on a contact sheet; older ones come page by page. */
export function Gallery() {
  const words = useWords().gallery
  const { tasks, older } = useStore(shelf)
  const pictures = picturesOf(tasks)
  const [isBusy, setBusy] = useState(false)

  const more = async () => {
    setBusy(true)
    await readOlder().catch(() => undefined)
    setBusy(false)
  }

  if (older === undefined) return null
  return (
    <section aria-labelledby="gallery-title">
      <Title order={2} size="h4" id="gallery-title" mb="sm">
        {words.title}
      </Title>
      {pictures.length === 0 && <Text className={`quiet ${classes.empty}`}>{words.empty}</Text>}
      <ul className={classes.sheet}>
        {pictures.map((picture) => (
          <Thumbnail key={picture.asset.id} picture={picture} />
        ))}
      </ul>
      {older && (
        <Center mt="lg">
          <Button variant="default" loading={isBusy} onClick={() => void more()}>
            {words.more}
          </Button>
        </Center>
      )}
    </section>
  )
}

function Thumbnail({ picture }: { picture: Picture }) {
  const words = useWords().gallery
  const { task, asset } = picture
  const ratio = asset.width / asset.height
  const [isThere, setThere] = useState(false)
  const image = useRef<HTMLImageElement>(null)
  // One that came from the cache was there before anybody listened.
  useEffect(() => setThere(image.current?.complete ?? false), [])
  return (
    <li style={{ flexGrow: ratio, flexBasis: `calc(var(--row) * ${ratio})` }}>
      <a
        href={hrefTo("picture", asset.id)}
        className={classes.frame}
        style={{ aspectRatio: `${asset.width} / ${asset.height}` }}
        aria-label={words.open(task.prompt)}
        data-task={task.id}
      >
        <img
          ref={image}
          src={thumbnailOf(picture)}
          alt=""
          loading="lazy"
          data-there={isThere || undefined}
          onLoad={() => setThere(true)}
        />
        <span className={classes.caption} aria-hidden="true">
          {task.prompt}
        </span>
      </a>
    </li>
  )
}
