import { type DragEvent, type ReactNode, useState } from "react"
import classes from "./DropZone.module.css"

interface DropZoneProps {
  label: string
  onFiles: (files: readonly File[]) => void
  children: ReactNode
}

/** A part of a page that takes files which are dropped on it. */
export function DropZone({ label, onFiles, children }: DropZoneProps) {
  const [isOver, setOver] = useState(false)
  const over = (event: DragEvent) => {
    event.preventDefault()
    setOver(true)
  }
  const dropped = (event: DragEvent) => {
    event.preventDefault()
    setOver(false)
    onFiles([...event.dataTransfer.files])
  }
  return (
    <section
      aria-label={label}
      className={classes.zone}
      data-over={isOver || undefined}
      onDragOver={over}
      onDragLeave={() => setOver(false)}
      onDrop={dropped}
    >
      {children}
    </section>
  )
}
