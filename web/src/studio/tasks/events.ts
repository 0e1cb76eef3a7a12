/** Live events, as far as the service sends them; whoever follows tasks works without them too. */

export interface EventSink {
  /** Something about this task changed. */
  changed: (taskId: string) => void
  /** Events may have been missed: look at everything. */
  missed: () => void
  /** Whether events come in now. */
  flowing: (isFlowing: boolean) => void
}

const AGAIN_MS = 30_000

/** The browser resumes a broken stream by itself, after the last event it saw. */
export function listen(sink: EventSink): () => void {
  let source: EventSource | null = null
  let timer: ReturnType<typeof setTimeout> | undefined

  const open = () => {
    source = new EventSource("/v1/events")
    source.addEventListener("open", () => {
      sink.flowing(true)
      sink.missed()
    })
    source.addEventListener("reset", sink.missed)
    source.addEventListener("task", (event) => sink.changed(taskOf(event.data)))
    source.addEventListener("error", () => {
      sink.flowing(false)
      // Closed for good: there is no such route, the session is over, or there are too many streams.
      if (source?.readyState === EventSource.CLOSED) timer = setTimeout(open, AGAIN_MS)
    })
  }
  open()
  return () => {
    clearTimeout(timer)
    source?.close()
    sink.flowing(false)
  }
}

function taskOf(data: string): string {
  const document: unknown = JSON.parse(data)
  const id = document !== null && typeof document === "object" ? (document as { id?: unknown }).id : undefined
  return typeof id === "string" ? id : ""
}
