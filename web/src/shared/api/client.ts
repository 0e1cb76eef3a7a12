import createClient, { type FetchResponse, type Middleware } from "openapi-fetch"
import { problemOf, Unreachable } from "./problem"
import type { components, paths } from "./schema"
import { csrfToken, sessionEnded } from "./session"

export type Schemas = components["schemas"]

const PATIENCE_MS = 30_000
const LONG_PATIENCE_MS = 600_000

const withSession: Middleware = {
  onRequest({ request }) {
    if (request.method !== "GET") request.headers.set("X-CSRF-Token", csrfToken())
    return request
  },
  onResponse({ response }) {
    if (response.status === 401) sessionEnded()
  },
}

/** Every route of the API, typed from the OpenAPI document. */
export const api = clientOf(PATIENCE_MS)
/** The same for what may take its time: thousands of items in one body. */
export const patientApi = clientOf(LONG_PATIENCE_MS)

function clientOf(patienceMs: number) {
  const client = createClient<paths>({
    baseUrl: location.origin,
    credentials: "same-origin",
    fetch: (request) => fetch(request, { signal: AbortSignal.timeout(patienceMs) }),
  })
  client.use(withSession)
  return client
}

/** The answer of a call; throws a `Problem`, or `Unreachable`. */
export async function answerOf<
  R extends Record<string | number, unknown>,
  O,
  M extends `${string}/${string}`,
>(call: Promise<FetchResponse<R, O, M>>): Promise<NonNullable<FetchResponse<R, O, M>["data"]>> {
  const { data, error, response } = await call.catch((cause: unknown) => {
    throw new Unreachable("no answer", { cause })
  })
  if (!response.ok) throw problemOf(response, error)
  return data as NonNullable<FetchResponse<R, O, M>["data"]>
}
