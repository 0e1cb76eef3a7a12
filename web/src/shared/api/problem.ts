/** What a call can end with besides its answer. */

export interface FieldFault {
  field: string
  message: string
  /** Where in a file of items it is, if that is known. */
  line?: number
}

export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly detail: string,
    readonly retryAfterS: number | null,
    readonly fields: readonly FieldFault[],
  ) {
    super(detail)
  }

  /** Whether sending the same again, with the same key, may bring another answer. */
  get isPassing(): boolean {
    const isInProgress = this.status === 409 && this.retryAfterS !== null
    return this.status >= 500 || this.status === 429 || this.status === 408 || isInProgress
  }
}

/** Nobody answered: what was sent may or may not have arrived. */
export class Unreachable extends Error {}

/** The problem in an answer; a proxy's page instead of our document is one too. */
export function problemOf(response: Response, body: unknown): Problem {
  const document = (body !== null && typeof body === "object" ? body : {}) as Record<string, unknown>
  const waitS = Number.parseInt(response.headers.get("Retry-After") ?? "", 10)
  return new Problem(
    response.status,
    typeof document.code === "string" ? document.code : "unknown",
    typeof document.detail === "string" ? document.detail : response.statusText,
    Number.isNaN(waitS) ? null : waitS,
    Array.isArray(document.errors) ? document.errors : [],
  )
}
