/**
 * Rows of the operator's door. Its document leaves most of them open ("rows in our inner words"), so what the pages
 * read of them is named here, and nowhere else.
 */

import type { Schemas } from "@shared/api/client"

export interface TaskRow {
  id: string
  account_id: string
  account_name: string
  model: string
  provider: string
  operation: string
  n: number
  state: string
  version: number
  attempt: number
  looks: number
  review_reason: string | null
  failure_class: string | null
  failure_code: string | null
  held: number
  state_since: string
  wake_at: string | null
  created_at: string
  finished_at: string | null
}

export interface ReviewRow {
  id: string
  account_id: string
  account_name: string
  model: string
  provider: string
  version: number
  attempt: number
  n: number
  review_reason: string
  review_since: string
  decide_by: string | null
  held: number
  created_at: string
  cancel_requested_at: string | null
  provider_ref: string | null
  upstream_status: string | null
  excerpt: string | null
}

export interface AttemptRow {
  number: number
  provider: string
  upstream_model: string
  reference: string
  provider_ref: string | null
  sends: number
  throttled: number
  upstream_status: string | null
  sent_at: string | null
  accepted_at: string | null
  looked_at: string | null
  ended_at: string | null
  run_s: number | null
  noticed_by: string | null
  outcome: string | null
  failure_class: string | null
  failure_code: string | null
  excerpt: string | null
  cost: number | null
  outputs: unknown
}

export interface EventRow {
  version: number
  source: string | null
  target: string
  attempt: number
  cause: string
  detail: string
  created_at: string
}

export interface NoticeRow {
  id: string
  provider: string
  task_id: string | null
  attempt: number | null
  provider_ref: string | null
  upstream_status: string | null
  verdict: string | null
  size_bytes: number
  received_at: string
}

export interface EntryRow {
  id: string
  kind: string
  task_id: string | null
  available_delta: number
  held_delta: number
  note: string
  created_at: string
}

export interface AssetRow {
  id: string
  attempt: number
  position: number
  content_type: string
  width: number
  height: number
  size_bytes: number
  sha256: string
  created_at: string
  /** Its bytes are given to nobody any more. */
  doomed_at: string | null
}

/** An upload that the task started from; of one that has expired its id alone is left. */
export interface InputRow {
  id: string
  position: number
  is_mask: boolean
  content_type: string | null
  width: number | null
  height: number | null
  size_bytes: number | null
  sha256: string | null
}

export type Viewing = Schemas["Viewing"]

export interface DecisionRow {
  id: string
  attempt: number
  version: number
  review_reason: string
  decision: string
  reason_code: string
  note: string
  decided_by: string
  created_at: string
}

export interface LossRow {
  attempt: number
  provider: string
  cost: number | null
  reason: string
  created_at: string
}

export interface FindingRow {
  id: string
  kind: string
  provider: string | null
  task_id: string | null
  attempt: number | null
  detail: unknown
  cost: number | null
  created_at: string
  resolved_at: string | null
  resolved_by: string | null
  resolution: string | null
}

export interface WholeTask extends TaskRow {
  prompt: string | null
  size: string | null
  aspect_ratio: string | null
  options: Record<string, unknown>
  metadata: Record<string, unknown>
  upstream_model: string | null
  unit_price: number
  start_by: string | null
  deadline_at: string | null
  decide_by: string | null
  cancel_requested_at: string | null
  captured: number | null
  released: number | null
  attempts: AttemptRow[]
  events: EventRow[]
  notices: NoticeRow[]
  entries: EntryRow[]
  assets: AssetRow[]
  inputs: InputRow[]
  decisions: DecisionRow[]
  findings: FindingRow[]
  losses: LossRow[]
}

export interface EndingRow {
  accepted_at: string
  model: string
  provider: string
  state: string
  failure_class: string | null
  tasks: number
}

export interface Quantiles {
  p50_s: number
  p95_s: number
  p99_s: number
}

export interface WaitRow extends Quantiles {
  model: string
  tasks: number
}

export interface RunRow extends Quantiles {
  model: string
  provider: string
  upstream_model: string
  runs: number
  looked_at_after_s: number
}

export interface CallbackReport {
  mode: string
  days: number
  verdicts: Record<string, number>
  early: number
  unknown: number
  received: number
  forged: number
  finished: {
    finished: number
    never_came: number
    by_callback: number
    by_reconciliation: number
    median_delay_s: number | null
  }
}

export interface ProviderRow {
  name: string
  is_closed: boolean
  closed_until: string | null
  reason: string
  failures: number
  faults: number
  calls: number
  tasks: number
  images: number
  waiting: number
  callbacks: CallbackReport
  has_callback_alarm: boolean
}

export interface Figures {
  hours: number
  since: string
  open: Record<string, number>
  states: Record<string, number>
  endings: EndingRow[]
  waits: WaitRow[]
  runs: RunRow[]
  providers: ProviderRow[]
}

export interface RunReport {
  id: string
  provider: string
  day: string
  mode: string
  stage: string
  tries: number
  is_complete: boolean
  counts: Record<string, number>
  findings: Record<string, unknown>[]
  note: string
  started_at: string | null
  finished_at: string | null
}

export interface AccountRow {
  id: string
  name: string
  available: number
  held: number
  open_tasks: number
  created_at: string
}

export type WholeAccount = Schemas["OneAccount"]

export interface KeyRow {
  id: string
  name: string
  created_at: string
  revoked_at: string | null
}

export interface AuditRow {
  id: string
  actor: string
  address: string | null
  request_id: string | null
  action: string
  object: string
  account_id: string | null
  outcome: string
  detail: unknown
  created_at: string
  hash: string
}

export interface EndpointRow {
  id: string
  account_id: string
  account_name: string
  url: string
  types: string[]
  created_at: string
  disabled_at: string | null
  disabled_reason: string
  deleted_at: string | null
  failures: number
  failing_since: string | null
  succeeded_at: string | null
  pending: number
}

export interface DeliveryRow {
  id: string
  account_id: string
  endpoint_id: string
  event_id: string
  type: string
  task_id: string | null
  status: string
  reason: string
  tries: number
  last_status: number | null
  created_at: string
  ended_at: string | null
  due_at: string | null
  last_reason: string | null
  last_detail: string | null
  last_try_at: string | null
}
