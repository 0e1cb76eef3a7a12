import { Alert, Button } from "@mantine/core"
import { goTo, hrefTo } from "@shared/route"
import { useState } from "react"
import { useAnswer } from "../door"
import { useWords } from "../messages"
import { Standing } from "../parts/Listing"
import { Heading, Section } from "../parts/Section"
import { AccountLink, Count, Facts, Failure, Moment, Plain, Raw, Reason, State } from "../parts/words"
import type { WholeTask } from "../rows"
import { Attempts } from "./Attempts"
import { Decide } from "./Decide"
import { Pictures } from "./Pictures"
import { Decisions, Entries, Findings, Losses, Notices, Timeline } from "./records"
import classes from "./Task.module.css"

/** Everything that is known of one task, and the decision if it waits for one. */
export function Task({ id, isDeciding }: { id: string; isDeciding: boolean }) {
  const words = useWords()
  const known = useAnswer<WholeTask>(`/admin/tasks/${encodeURIComponent(id)}`)
  const [told, setTold] = useState("")
  const [isSent, setSent] = useState(false)
  const task = known.answer
  const hasMoved = isDeciding && !isSent && task !== null && task.state !== "review"
  const close = () => goTo("tasks", id)

  const decided = (state: string | null) => {
    setTold(state === null ? words.decide.moved : words.decide.done(words.states[state] ?? state))
    known.lookAgain()
    close()
  }

  return (
    <>
      <Heading
        title={words.rooms.task}
        hint={id}
        aside={
          task?.state === "review" && (
            <Button onClick={() => goTo("tasks", id, "decide")}>{words.reviews.decide}</Button>
          )
        }
      />
      <Standing known={known} missing={words.task.notFound} />
      {(told || hasMoved) && (
        <Alert color="gray" variant="light" role="status">
          {told || words.decide.moved}
        </Alert>
      )}
      {task && (
        <>
          {task.state === "review" && <Waiting task={task} />}
          <TaskFacts task={task} />
          <div className={classes.pair}>
            <Timeline rows={task.events} />
            <Entries rows={task.entries} />
          </div>
          <Attempts rows={task.attempts} />
          <Notices rows={task.notices} />
          <Pictures task={task} />
          <Decisions rows={task.decisions} />
          <Findings rows={task.findings} />
          <Losses rows={task.losses} />
          {isDeciding && (isSent || task.state === "review") && (
            <Decide task={task} onSent={setSent} onClose={close} onDecided={decided} />
          )}
        </>
      )}
    </>
  )
}

function Waiting({ task }: { task: WholeTask }) {
  const words = useWords()
  const reason = task.review_reason ?? ""
  return (
    <Alert color="lamp" variant="light" title={<Reason of={reason} />}>
      {words.reasonAdvice[reason]} {words.columns.decideBy}: <Moment at={task.decide_by} />
    </Alert>
  )
}

function TaskFacts({ task }: { task: WholeTask }) {
  const words = useWords()
  const said = words.task
  return (
    <Section
      title={said.facts}
      aside={
        <a className={classes.link} href={hrefTo("audit", `task:${task.id}`)}>
          {said.audit}
        </a>
      }
    >
      <blockquote className={classes.prompt} aria-label={said.prompt}>
        {task.prompt || <span className="quiet">{said.erased}</span>}
      </blockquote>
      <Facts
        of={[
          [words.columns.state, <State key="state" of={task.state} />],
          [
            words.columns.account,
            <AccountLink key="account" id={task.account_id} name={task.account_name} />,
          ],
          [words.columns.model, task.model],
          [words.columns.provider, task.provider],
          [said.upstreamModel, task.upstream_model],
          [said.operation, task.operation],
          [said.pictures, task.n],
          [said.size, task.size ?? task.aspect_ratio],
          [words.columns.failure, task.failure_class && <Failure key="failure" of={task} />],
          [said.unitPrice, <Count key="price" of={task.unit_price} />],
          [words.columns.held, <Count key="held" of={task.held} />],
          [said.captured, <Count key="captured" of={task.captured} />],
          [said.released, <Count key="released" of={task.released} />],
          [words.columns.attempt, <Plain key="attempt" of={task.attempt} />],
          [said.version, <Plain key="version" of={task.version} />],
          [words.columns.looks, <Count key="looks" of={task.looks} />],
          [words.columns.accepted, <Moment key="accepted" at={task.created_at} />],
          [words.columns.since, <Moment key="since" at={task.state_since} />],
          [words.columns.finished, task.finished_at && <Moment key="finished" at={task.finished_at} />],
          [said.startBy, !task.finished_at && <Moment key="start" at={task.start_by} />],
          [said.deadline, task.deadline_at && <Moment key="deadline" at={task.deadline_at} />],
          [said.nextStep, !task.finished_at && <Moment key="next" at={task.wake_at} />],
          [
            said.cancelAsked,
            task.cancel_requested_at && <Moment key="cancel" at={task.cancel_requested_at} />,
          ],
          [said.options, hasAny(task.options) && <Raw key="options" of={task.options} />],
          [said.metadata, hasAny(task.metadata) && <Raw key="metadata" of={task.metadata} />],
        ]}
      />
    </Section>
  )
}

function hasAny(of: Record<string, unknown> | null): boolean {
  return of !== null && Object.keys(of).length > 0
}
