/** What can be wrong with a file of items; the words for it are beside those of the page. */

export type FaultKind =
  | "tooLarge"
  | "notText"
  | "noItems"
  | "tooMany"
  | "noColumnName"
  | "sameColumn"
  | "fields"
  | "openQuote"
  | "afterQuote"
  | "notJson"
  | "noObject"
  | "noColumn"
  | "noPrompt"
  | "emptyPrompt"
  | "longPrompt"
  | "noModel"
  | "badCount"

export interface Fault {
  /** Counted from 1; null where it is about the whole file. */
  line: number | null
  kind: FaultKind
  values: readonly (string | number)[]
}

/** Thrown by what reads a file: from there on nothing can be made of it. */
export class FileFault extends Error implements Fault {
  readonly values: readonly (string | number)[]
  constructor(
    readonly line: number | null,
    readonly kind: FaultKind,
    ...values: (string | number)[]
  ) {
    super(kind)
    this.values = values
  }
}
