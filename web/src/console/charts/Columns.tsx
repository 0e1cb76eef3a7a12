import { useElementSize } from "@mantine/hooks"
import { useFormats, useLanguage } from "@shared/i18n/language"
import { useMemo } from "react"
import { useWords } from "../messages"
import { Table } from "../parts/Listing"
import classes from "./charts.module.css"
import { KINDS, type Kind, type Step, sumOf, usableRate } from "./endings"

const HEIGHT = 200
const TOP = 12
const BOTTOM = 24
const LEFT = 34
const RIGHT = 40
const PLOT = HEIGHT - TOP - BOTTOM

/** Endings stacked over time, with the usable rate as a line; the numbers are below, for those who want them. */
export function Columns({ steps }: { steps: readonly Step[] }) {
  const words = useWords()
  const { ref, width } = useElementSize()
  const { stepName, percent } = useNames(steps)
  const top = roundUp(Math.max(1, ...steps.map((step) => sumOf(step.counts))))
  const slot = Math.max(1, (width - LEFT - RIGHT) / steps.length)
  const middle = (index: number) => LEFT + slot * (index + 0.5)
  const present = KINDS.filter((kind) => steps.some((step) => step.counts[kind]))
  const every = Math.ceil(steps.length / Math.max(2, Math.floor(width / 90)))

  return (
    <figure className={classes.figure}>
      <div ref={ref}>
        {width > 0 && (
          <svg width={width} height={HEIGHT} role="img" aria-label={words.overview.endings}>
            {[0, top / 2, top].map((mark) => (
              <g key={mark}>
                <line
                  className={classes.grid}
                  x1={LEFT}
                  x2={width - RIGHT}
                  y1={yOf(mark, top)}
                  y2={yOf(mark, top)}
                />
                <text className={classes.mark} x={LEFT - 8} y={yOf(mark, top) + 4} textAnchor="end">
                  {mark}
                </text>
              </g>
            ))}
            {[0, 1].map((rate) => (
              <text key={rate} className={classes.mark} x={width - RIGHT + 8} y={yOf(rate, 1) + 4}>
                {percent(rate)}
              </text>
            ))}
            {steps.map((step, index) => (
              <g key={step.at}>
                <title>{titleOf(step, stepName(step.at), words.endings, percent)}</title>
                <rect
                  className={classes.touch}
                  x={middle(index) - slot / 2}
                  y={TOP}
                  width={slot}
                  height={PLOT}
                />
                <Stack
                  step={step}
                  top={top}
                  x={middle(index)}
                  width={Math.min(28, Math.max(2, slot * 0.7))}
                />
                {index % every === 0 && (
                  <text className={classes.mark} x={middle(index)} y={HEIGHT - 6} textAnchor="middle">
                    {stepName(step.at)}
                  </text>
                )}
              </g>
            ))}
            <RateLine steps={steps} middle={middle} />
          </svg>
        )}
      </div>
      <figcaption className={classes.legend}>
        {present.map((kind) => (
          <span key={kind} data-kind={kind}>
            {words.endings[kind]}
          </span>
        ))}
        <span data-kind="rate">{words.overview.usable}</span>
      </figcaption>
      <details className={classes.numbers}>
        <summary>{words.overview.asTable}</summary>
        <Table
          name={words.overview.endings}
          rows={steps.filter((step) => sumOf(step.counts) > 0)}
          keyOf={(step) => step.at}
          columns={[
            { title: words.columns.accepted, show: (step) => stepName(step.at) },
            ...present.map((kind) => ({
              title: words.endings[kind] ?? kind,
              show: (step: Step) => step.counts[kind] ?? 0,
              isNumber: true,
            })),
            {
              title: words.overview.usable,
              show: (step) => percent(usableRate(step.counts)),
              isNumber: true,
            },
          ]}
        />
      </details>
    </figure>
  )
}

function Stack({ step, top, x, width }: { step: Step; top: number; x: number; width: number }) {
  let below = 0
  return KINDS.map((kind) => {
    const tasks = step.counts[kind] ?? 0
    if (!tasks) return null
    const from = below
    below += tasks
    // A line of the ground between two parts keeps them apart for those who see no colours.
    const height = Math.max(1, yOf(from, top) - yOf(below, top) - 1)
    return (
      <rect
        key={kind}
        data-kind={kind}
        x={x - width / 2}
        y={yOf(below, top)}
        width={width}
        height={height}
        rx={1.5}
      />
    )
  })
}

function RateLine({ steps, middle }: { steps: readonly Step[]; middle: (index: number) => number }) {
  const points = steps.flatMap((step, index) => {
    const rate = usableRate(step.counts)
    return rate === null ? [] : [{ at: step.at, x: middle(index), y: yOf(rate, 1) }]
  })
  return (
    <g className={classes.rate}>
      <polyline points={points.map(({ x, y }) => `${x},${y}`).join(" ")} />
      {points.map(({ at, x, y }) => (
        <circle key={at} cx={x} cy={y} r={3} />
      ))}
    </g>
  )
}

function yOf(value: number, top: number): number {
  return TOP + PLOT * (1 - value / top)
}

/** The next even number that is easily read. */
function roundUp(value: number): number {
  const size = 10 ** Math.floor(Math.log10(value))
  const found = [1, 2, 4, 5, 6, 8, 10].map((step) => step * size).find((step) => step >= value) ?? value
  return Math.max(2, found)
}

function titleOf(
  step: Step,
  name: string,
  words: Record<string, string>,
  percent: (rate: number | null) => string,
): string {
  const parts = KINDS.filter((kind: Kind) => step.counts[kind]).map(
    (kind) => `${words[kind]}: ${step.counts[kind]}`,
  )
  return [name, ...parts, percent(usableRate(step.counts))].join("\n")
}

function useNames(steps: readonly Step[]) {
  const { language } = useLanguage()
  const [first, second] = steps
  const isByDay = first && second && Date.parse(second.at) - Date.parse(first.at) > 3_600_000
  const percent = useRates()
  return useMemo(() => {
    const format = new Intl.DateTimeFormat(
      language,
      isByDay
        ? { month: "short", day: "numeric", timeZone: "UTC" }
        : { hour: "2-digit", minute: "2-digit", hourCycle: "h23" },
    )
    return { stepName: (at: string) => format.format(new Date(at)), percent }
  }, [language, isByDay, percent])
}

/** A rate as a percentage; a rate of nothing is none. */
export function useRates(): (rate: number | null) => string {
  const { number } = useFormats()
  return useMemo(
    () => (rate) => (rate === null ? "–" : `${number(Math.round(rate * 1000) / 10)} %`),
    [number],
  )
}
