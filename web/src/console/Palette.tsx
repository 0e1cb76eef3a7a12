import { Modal, TextInput } from "@mantine/core"
import { useHotkeys } from "@mantine/hooks"
import { useShared } from "@shared/i18n/messages"
import { goTo } from "@shared/route"
import { Icon } from "@shared/ui/Icon"
import { type KeyboardEvent, useId, useState } from "react"
import classes from "./main.module.css"
import { type Messages, useWords } from "./messages"
import { ROOMS } from "./rooms"

interface Place {
  name: string
  path: string[]
}

const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** Ctrl+K, ⌘K or `/`: go to a page by its name, or to a task or an account by its id. */
export function Palette() {
  const words = useWords()
  const [isOpen, setOpen] = useState(false)
  useHotkeys(
    [
      ["mod+K", () => setOpen(true)],
      ["/", () => setOpen(true)],
    ],
    ["INPUT", "TEXTAREA", "SELECT"],
  )
  return (
    <>
      <button
        type="button"
        className={classes.palette}
        onClick={() => setOpen(true)}
        aria-keyshortcuts="Control+K Meta+K /"
      >
        <Icon name="search" size={16} />
        <span>{words.palette.open}</span>
        <kbd>{words.palette.keys}</kbd>
      </button>
      {isOpen && <Places onClose={() => setOpen(false)} />}
    </>
  )
}

function Places({ onClose }: { onClose: () => void }) {
  const words = useWords()
  const shared = useShared()
  const list = useId()
  const [text, setText] = useState("")
  const [chosen, setChosen] = useState(0)
  const places = placesFor(text.trim(), words)
  const go = (place: Place | undefined) => {
    if (!place) return
    onClose()
    goTo(...place.path)
  }
  const press = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (event.key === "Enter") go(places[chosen])
    else if (step) setChosen((chosen + step + places.length) % Math.max(1, places.length))
    else return
    event.preventDefault()
  }
  return (
    <Modal
      opened
      onClose={onClose}
      title={words.palette.open}
      transitionProps={{ duration: 0 }}
      closeButtonProps={{ "aria-label": shared.close }}
    >
      <TextInput
        aria-label={words.palette.hint}
        placeholder={words.palette.hint}
        value={text}
        onChange={(event) => {
          setText(event.currentTarget.value)
          setChosen(0)
        }}
        onKeyDown={press}
        role="combobox"
        aria-expanded
        aria-controls={list}
        aria-activedescendant={places[chosen] ? `${list}-${chosen}` : undefined}
        autoComplete="off"
        spellCheck={false}
        data-autofocus
      />
      <div id={list} role="listbox" aria-label={words.palette.open} className={classes.places}>
        {places.map((place, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are the input's, which keeps the focus
          <div
            key={place.path.join("/")}
            id={`${list}-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === chosen}
            className={classes.place}
            onClick={() => go(place)}
          >
            {place.name}
          </div>
        ))}
      </div>
      {places.length === 0 && <p className="quiet">{words.palette.none}</p>}
    </Modal>
  )
}

function placesFor(text: string, words: Messages): Place[] {
  if (ID.test(text)) {
    return [
      { name: words.palette.task(text), path: ["tasks", text] },
      { name: words.palette.account(text), path: ["accounts", text] },
    ]
  }
  const wanted = text.toLowerCase()
  return ROOMS.map((room) => ({ name: words.rooms[room], path: [room] })).filter(
    ({ name, path }) => name.toLowerCase().includes(wanted) || path[0]?.includes(wanted),
  )
}
