import { Button, Group, Modal, SegmentedControl, Slider, Stack, Text } from "@mantine/core"
import { Problem } from "@shared/api/problem"
import { useShared } from "@shared/i18n/messages"
import { Icon } from "@shared/ui/Icon"
import { type KeyboardEvent, type PointerEvent, useCallback, useEffect, useRef, useState } from "react"
import { useWords } from "../messages"
import type { Reference } from "../tasks/wish"
import classes from "./MaskPainter.module.css"
import { draw, EVERYTHING, maskOf, type Stroke } from "./strokes"
import { uploadPicture } from "./upload"

interface MaskPainterProps {
  picture: Reference
  isOpen: boolean
  onClose: () => void
  onDone: (uploadId: string) => void
}

const SIDE = 1024
const ARROWS: Record<string, readonly [number, number]> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
}

/** Paints a mask over a picture, by pointer or by keyboard. */
export function MaskPainter({ picture, isOpen, onClose, onDone }: MaskPainterProps) {
  const words = useWords().mask
  const shared = useShared()
  const canvas = useRef<HTMLCanvasElement>(null)
  const [strokes, setStrokes] = useState<readonly Stroke[]>([])
  const [size, setSize] = useState(0.09)
  const [isErasing, setErasing] = useState(false)
  const [brush, setBrush] = useState<readonly [number, number] | null>(null)
  const [isBusy, setBusy] = useState(false)
  const [fault, setFault] = useState("")

  const redraw = useCallback(
    (element: HTMLCanvasElement | null) => {
      canvas.current = element
      if (element) draw(element, strokes, { paint: "#ff5a2b", erase: null })
    },
    [strokes],
  )
  // biome-ignore lint/correctness/useExhaustiveDependencies: another picture is another mask
  useEffect(() => setStrokes([]), [picture.id])

  const begin = (point: readonly [number, number]) => {
    setStrokes((before) => [...before, { size, isErasing, points: [point] }])
  }
  const goOn = (point: readonly [number, number]) => {
    setStrokes((before) => {
      const last = before.at(-1)
      return last ? [...before.slice(0, -1), { ...last, points: [...last.points, point] }] : before
    })
  }
  const byPointer = (event: PointerEvent<HTMLElement>) => {
    const place = event.currentTarget.getBoundingClientRect()
    const point = [
      (event.clientX - place.left) / place.width,
      (event.clientY - place.top) / place.height,
    ] as const
    setBrush(point)
    if (event.type === "pointerdown") {
      event.currentTarget.setPointerCapture(event.pointerId)
      begin(point)
    } else if (event.buttons > 0) goOn(point)
  }
  const byKey = (event: KeyboardEvent) => {
    const [x, y] = brush ?? [0.5, 0.5]
    const arrow = ARROWS[event.key]
    if (arrow) {
      const step = size / 2
      setBrush([clamp(x + arrow[0] * step), clamp(y + arrow[1] * step)])
    } else if (event.key === " ") begin([x, y])
    else return
    event.preventDefault()
  }

  const finish = async () => {
    setBusy(true)
    setFault("")
    try {
      onDone((await uploadPicture(await maskOf(strokes, picture.width, picture.height))).id)
    } catch (error) {
      setFault(error instanceof Problem ? error.detail : shared.problem.unreachable)
    } finally {
      setBusy(false)
    }
  }

  const scale = SIDE / Math.max(picture.width, picture.height)
  const diameter = `${size * 100 * (Math.max(picture.width, picture.height) / picture.width)}%`
  return (
    <Modal
      opened={isOpen}
      onClose={onClose}
      title={words.title}
      size="xl"
      closeButtonProps={{ "aria-label": shared.close }}
    >
      <Stack gap="md">
        <div
          className={classes.stage}
          style={{ aspectRatio: `${picture.width} / ${picture.height}` }}
          // biome-ignore lint/a11y/noNoninteractiveTabindex: it is painted on, by keyboard too
          tabIndex={0}
          role="application"
          aria-label={words.canvas}
          aria-describedby="mask-help"
          onPointerDown={byPointer}
          onPointerMove={byPointer}
          onPointerLeave={() => setBrush(null)}
          onFocus={() => setBrush((known) => known ?? [0.5, 0.5])}
          onKeyDown={byKey}
        >
          <img src={picture.preview} alt="" className={classes.picture} draggable={false} />
          <canvas
            ref={redraw}
            width={Math.round(picture.width * scale)}
            height={Math.round(picture.height * scale)}
            className={classes.paint}
          />
          {brush && (
            <span
              className={classes.brush}
              style={{ left: `${brush[0] * 100}%`, top: `${brush[1] * 100}%`, width: diameter }}
            />
          )}
        </div>
        <Text id="mask-help" size="xs" className="quiet">
          {words.help}
        </Text>
        <Group justify="space-between" gap="md">
          <SegmentedControl
            value={isErasing ? "erase" : "paint"}
            onChange={(value) => setErasing(value === "erase")}
            data={[
              { value: "paint", label: words.paint },
              { value: "erase", label: words.erase },
            ]}
          />
          <Slider
            className={classes.size}
            label={null}
            thumbLabel={words.brush}
            min={0.01}
            max={0.4}
            step={0.01}
            value={size}
            onChange={setSize}
          />
          <Group gap="xs">
            <Button
              variant="default"
              size="xs"
              leftSection={<Icon name="undo" size={14} />}
              disabled={strokes.length === 0}
              onClick={() => setStrokes(strokes.slice(0, -1))}
            >
              {words.undo}
            </Button>
            <Button
              variant="default"
              size="xs"
              disabled={strokes.length === 0}
              onClick={() => setStrokes([])}
            >
              {words.clear}
            </Button>
            <Button variant="default" size="xs" onClick={() => setStrokes([...strokes, EVERYTHING])}>
              {words.all}
            </Button>
          </Group>
        </Group>
        {fault && (
          <Text size="sm" role="alert" c="var(--lamp-text)">
            {fault}
          </Text>
        )}
        <Group justify="flex-end" gap="xs">
          <Button variant="subtle" color="gray" onClick={onClose}>
            {words.cancel}
          </Button>
          <Button loading={isBusy} disabled={strokes.length === 0} onClick={() => void finish()}>
            {words.use}
          </Button>
        </Group>
      </Stack>
    </Modal>
  )
}

function clamp(part: number): number {
  return Math.min(1, Math.max(0, part))
}
