import { useElementSize } from "@mantine/hooks"
import { useFormats } from "@shared/i18n/language"
import { useWords } from "../messages"
import type { RunRow } from "../rows"
import classes from "./charts.module.css"

const HEIGHT = 34
const EDGE = 8

/** P50, P95 and P99 of each model on one scale, beside the moment at which a task is looked at. */
export function Latencies({ runs }: { runs: readonly RunRow[] }) {
  const words = useWords()
  const { ref, width } = useElementSize()
  const seconds = useSeconds()
  // The longest of them all ends the scale; its root leaves room for fast models beside slow ones.
  const longest = Math.max(0.1, ...runs.flatMap((run) => [run.p99_s, run.looked_at_after_s]))
  const xOf = (value: number) => EDGE + (width - 2 * EDGE) * Math.sqrt(Math.max(0, value) / longest)

  return (
    <figure className={classes.figure}>
      <figcaption className={classes.legend}>
        <span data-kind="p50">P50</span>
        <span data-kind="p95">P95</span>
        <span data-kind="p99">P99</span>
        <span data-kind="threshold">{words.overview.threshold}</span>
      </figcaption>
      <ul className={classes.latencies}>
        {runs.map((run, index) => (
          <li key={`${run.model} ${run.provider} ${run.upstream_model}`}>
            <div className={classes.label}>
              <strong>{run.model}</strong>
              <span>
                {run.provider} · {run.upstream_model}
              </span>
              <span>{words.overview.runs(String(run.runs))}</span>
            </div>
            <div ref={index === 0 ? ref : null} className={classes.track}>
              {width > 0 && (
                <svg width={width} height={HEIGHT} aria-hidden="true">
                  <line className={classes.grid} x1={EDGE} x2={width - EDGE} y1={17} y2={17} />
                  <line className={classes.span} x1={xOf(run.p50_s)} x2={xOf(run.p99_s)} y1={17} y2={17} />
                  <line
                    className={classes.threshold}
                    x1={xOf(run.looked_at_after_s)}
                    x2={xOf(run.looked_at_after_s)}
                    y1={3}
                    y2={31}
                  />
                  <circle data-kind="p99" cx={xOf(run.p99_s)} cy={17} r={5} />
                  <circle data-kind="p95" cx={xOf(run.p95_s)} cy={17} r={5} />
                  <circle data-kind="p50" cx={xOf(run.p50_s)} cy={17} r={5} />
                </svg>
              )}
            </div>
            <p className={classes.values}>
              <span>P50 {seconds(run.p50_s)}</span>
              <span>P95 {seconds(run.p95_s)}</span>
              <span>P99 {seconds(run.p99_s)}</span>
              <span>
                {words.overview.threshold} {seconds(run.looked_at_after_s)}
              </span>
            </p>
          </li>
        ))}
      </ul>
    </figure>
  )
}

/** Seconds as they are read: tenths while they are few. */
export function useSeconds(): (value: number | null | undefined) => string {
  const words = useWords()
  const { number } = useFormats()
  return (value) => {
    if (value === null || value === undefined) return "–"
    return words.overview.scale(number(value < 10 ? Math.round(value * 10) / 10 : Math.round(value)))
  }
}
