import { Problem } from "@shared/api/problem"
import { useCallback, useEffect, useState } from "react"
import { type Known, read } from "../door"
import type { AccountRow } from "../rows"

const NO_SUCH = new Problem(404, "not-found", "There is no such account.", null, [])

/** One account. The door lists them only, oldest first; so the list is followed to where it stands. */
export function useAccount(id: string): Known<AccountRow> {
  const [known, setKnown] = useState<{ id: string; answer: AccountRow | null; fault: unknown }>()
  const look = useCallback(async () => {
    try {
      const answer = await find(id)
      setKnown({ id, answer, fault: answer ? null : NO_SUCH })
    } catch (fault) {
      setKnown((before) => ({ id, answer: before?.id === id ? before.answer : null, fault }))
    }
  }, [id])
  useEffect(() => void look(), [look])
  const isOfThis = known?.id === id
  return {
    answer: isOfThis ? known.answer : null,
    fault: isOfThis ? known.fault : null,
    lookAgain: () => void look(),
  }
}

interface AccountPage {
  data: AccountRow[]
  next_cursor: string | null
}

async function find(id: string): Promise<AccountRow | null> {
  let cursor: string | null = null
  for (;;) {
    const page: AccountPage = await read("/admin/accounts", { cursor, limit: "100" })
    const found = page.data.find((row) => row.id === id)
    if (found || page.next_cursor === null || page.data.some((row) => row.id > id)) return found ?? null
    cursor = page.next_cursor
  }
}
