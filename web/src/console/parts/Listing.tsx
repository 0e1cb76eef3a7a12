import { Alert, Button, Loader } from "@mantine/core"
import { Problem } from "@shared/api/problem"
import { useShared } from "@shared/i18n/messages"
import { Icon } from "@shared/ui/Icon"
import type { ReactNode } from "react"
import type { Pages } from "../door"
import { useWords } from "../messages"
import classes from "./parts.module.css"

export interface Column<R> {
  title: string
  show: (row: R) => ReactNode
  /** Numbers stand to the right, under each other. */
  isNumber?: boolean
  /** It may be broken over lines; everything else is short. */
  isText?: boolean
}

interface TableProps<R> {
  name: string
  rows: readonly R[]
  columns: readonly Column<R>[]
  keyOf: (row: R) => string
  empty?: string
}

/** Rows under their titles; on a phone each row is a card whose values carry their titles. */
export function Table<R>({ name, rows, columns, keyOf, empty }: TableProps<R>) {
  const words = useWords()
  if (rows.length === 0) return <p className={classes.empty}>{empty ?? words.list.empty}</p>
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a wide table scrolls, and must do so by keyboard too
    <section className={classes.scroll} aria-label={name} tabIndex={0}>
      <table className={classes.table}>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.title} scope="col" data-number={column.isNumber || undefined}>
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map((column) => (
                <td
                  key={column.title}
                  data-title={column.title}
                  data-number={column.isNumber || undefined}
                  data-text={column.isText || undefined}
                >
                  {column.show(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

interface ListingProps<R> extends Omit<TableProps<R>, "rows"> {
  pages: Pages<R>
}

/** A list with what it is waiting for, what went wrong, and the way to its further rows. */
export function Listing<R>({ pages, ...table }: ListingProps<R>) {
  const words = useWords()
  return (
    <>
      <Standing known={pages} />
      {pages.answer && <Table rows={pages.answer} {...table} />}
      {pages.answer && pages.hasMore && (
        <Button variant="default" mt="sm" loading={pages.isLoading} onClick={pages.more}>
          {words.list.more}
        </Button>
      )}
    </>
  )
}

interface StandingProps {
  known: { answer: unknown; fault: unknown; lookAgain: () => void }
  /** What a 404 means here. */
  missing?: string
}

/** How a look stands: still looking, or not answered. */
export function Standing({ known, missing }: StandingProps) {
  const words = useWords()
  if (known.fault) {
    const isMissing = known.fault instanceof Problem && known.fault.status === 404
    if (isMissing) return <p className={classes.empty}>{missing ?? words.list.missing}</p>
    return (
      <>
        <Fault fault={known.fault} />
        {known.answer !== null && <p className={classes.hint}>{words.list.stale}</p>}
      </>
    )
  }
  if (known.answer === null) {
    return (
      <p className={classes.empty} role="status" data-looking>
        <Loader type="dots" size="sm" aria-hidden="true" /> {words.list.loading}
      </p>
    )
  }
  return null
}

interface FaultProps {
  fault: unknown
  uncertain?: string | undefined
  /** What fields are called on the page, where that is not their name in the API. */
  names?: Record<string, string>
}

/** What went wrong, in words. */
export function Fault({ fault, uncertain, names = {} }: FaultProps) {
  const words = useShared().problem
  if (!fault) return null
  const text = uncertain ?? (fault instanceof Problem ? words.other(fault.detail) : words.unreachable)
  // Where fields are named, the detail only says the first of them once more.
  const fields = fault instanceof Problem && !uncertain ? fault.fields : []
  return (
    <Alert color="lamp" variant="light" role="alert" my="sm" icon={<Icon name="alert" />}>
      {fields.length === 0 ? (
        text
      ) : (
        <ul className={classes.faults}>
          {fields.map(({ field, message }) => (
            <li key={field}>
              <code>{names[field] ?? field}</code> {message}
            </li>
          ))}
        </ul>
      )}
    </Alert>
  )
}
