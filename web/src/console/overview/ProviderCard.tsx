import { Alert } from "@mantine/core"
import { useFormats } from "@shared/i18n/language"
import { Icon } from "@shared/ui/Icon"
import { useRates } from "../charts/Columns"
import { useSeconds } from "../charts/Latencies"
import { useWords } from "../messages"
import { Facts, State } from "../parts/words"
import type { ProviderRow } from "../rows"
import classes from "./Overview.module.css"

/** How one provider key stands: its gate, what is upstream, and what its callbacks are worth. */
export function ProviderCard({ provider }: { provider: ProviderRow }) {
  const words = useWords()
  const said = words.provider
  const { number, time } = useFormats()
  const percent = useRates()
  const seconds = useSeconds()
  const { callbacks } = provider
  const { finished } = callbacks
  const part = (some: number) => `${number(some)} (${percent(some / callbacks.received)})`
  const counted = (some: number) => (callbacks.received > 0 ? part(some) : number(some))
  return (
    <article className={classes.provider}>
      <header>
        <h3>{provider.name}</h3>
        <State
          of={provider.is_closed ? "failed" : "succeeded"}
          text={provider.is_closed ? said.closedGate : said.openGate}
        />
      </header>
      {provider.is_closed && (
        <p className={classes.small}>
          {provider.reason}
          {provider.closed_until && ` · ${said.until(time(provider.closed_until))}`}
        </p>
      )}
      {provider.has_callback_alarm && (
        <Alert color="lamp" variant="light" icon={<Icon name="alert" />}>
          {said.alarm}
        </Alert>
      )}
      <Facts
        isDense
        of={[
          [said.calls, number(provider.calls)],
          [said.tasks, number(provider.tasks)],
          [said.images, number(provider.images)],
          [said.waiting, number(provider.waiting)],
          [said.faults, number(provider.faults)],
          [said.closings, number(provider.failures)],
        ]}
      />
      <p className={classes.small}>
        {said.days(callbacks.days)} · {said.mode[callbacks.mode] ?? callbacks.mode}
      </p>
      <Facts
        isDense
        of={[
          [
            said.callbackRate,
            percent(finished.finished > 0 ? finished.by_callback / finished.finished : null),
          ],
          [said.received, number(callbacks.received)],
          [said.duplicates, counted(callbacks.verdicts.duplicate ?? 0)],
          [said.outOfOrder, counted(callbacks.verdicts.out_of_order ?? 0)],
          [said.early, counted(callbacks.early)],
          [said.unknown, counted(callbacks.unknown)],
          [said.forged, counted(callbacks.forged)],
          [said.delay, finished.median_delay_s === null ? null : seconds(finished.median_delay_s)],
        ]}
      />
    </article>
  )
}
