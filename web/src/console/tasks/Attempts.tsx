import { useSeconds } from "../charts/Latencies"
import { useWords } from "../messages"
import { Section } from "../parts/Section"
import { Count, Facts, Failure, Moment, Raw } from "../parts/words"
import type { AttemptRow } from "../rows"
import classes from "./Task.module.css"

/** Every try at a provider: what was told, what came back (redacted before it was kept), and what it cost. */
export function Attempts({ rows }: { rows: readonly AttemptRow[] }) {
  const words = useWords()
  if (rows.length === 0) return null
  return (
    <Section title={words.task.attempts}>
      <div className={classes.attempts}>
        {rows.map((attempt) => (
          <Attempt key={attempt.number} attempt={attempt} />
        ))}
      </div>
    </Section>
  )
}

function Attempt({ attempt }: { attempt: AttemptRow }) {
  const words = useWords()
  const said = words.task
  const seconds = useSeconds()
  return (
    <article className={classes.attempt}>
      <h3>{said.attempt(attempt.number)}</h3>
      <Facts
        of={[
          [words.columns.provider, attempt.provider],
          [said.upstreamModel, attempt.upstream_model],
          [said.reference, <code key="reference">{attempt.reference}</code>],
          [said.providerRef, attempt.provider_ref && <code key="ref">{attempt.provider_ref}</code>],
          [said.upstreamStatus, attempt.upstream_status],
          [words.columns.outcome, attempt.outcome],
          [words.columns.failure, attempt.failure_class && <Failure key="failure" of={attempt} />],
          [said.sends, <Count key="sends" of={attempt.sends} />],
          [said.throttled, attempt.throttled > 0 && <Count key="throttled" of={attempt.throttled} />],
          [said.sentAt, <Moment key="sent" at={attempt.sent_at} />],
          [said.acceptedAt, attempt.accepted_at && <Moment key="accepted" at={attempt.accepted_at} />],
          [said.lookedAt, attempt.looked_at && <Moment key="looked" at={attempt.looked_at} />],
          [said.endedAt, attempt.ended_at && <Moment key="ended" at={attempt.ended_at} />],
          [said.ran, attempt.run_s !== null && seconds(attempt.run_s)],
          [said.noticedBy, attempt.noticed_by],
          [words.columns.cost, attempt.cost],
        ]}
      />
      {attempt.excerpt && (
        <div>
          <h4>{said.excerpt}</h4>
          <Raw of={attempt.excerpt} />
        </div>
      )}
      {Array.isArray(attempt.outputs) && attempt.outputs.length > 0 && (
        <div>
          <h4>{said.outputs}</h4>
          <Raw of={attempt.outputs} />
        </div>
      )}
    </article>
  )
}
