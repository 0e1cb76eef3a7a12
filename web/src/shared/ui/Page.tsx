import { Center, Loader } from "@mantine/core"
import { type ReactNode, StrictMode, useEffect, useState } from "react"
import { createRoot } from "react-dom/client"
import { beginSession, type Session, type SessionDoor, useSession } from "../api/session"
import { LanguageProvider } from "../i18n/language"
import { PageTheme } from "../theme/PageTheme"

interface PageProps {
  door: SessionDoor
  signIn: (fault: unknown) => ReactNode
  children: (session: Session) => ReactNode
}

/** Puts a page into the document: theme, language, and its door's session around everything. */
export function showPage(props: PageProps): void {
  const place = document.getElementById("page")
  if (!place) throw new Error("the document has no place for a page")
  createRoot(place).render(
    <StrictMode>
      <PageTheme>
        <LanguageProvider>
          <BehindDoor {...props} />
        </LanguageProvider>
      </PageTheme>
    </StrictMode>,
  )
}

const ASK_AGAIN_MS = 3_000

function BehindDoor({ door, signIn, children }: PageProps) {
  const session = useSession()
  const [fault, setFault] = useState<unknown>()
  useEffect(() => {
    beginSession(door).catch(setFault)
  }, [door])
  useEffect(() => {
    if (session !== "unreachable") return
    const timer = setTimeout(() => void beginSession(door).catch(setFault), ASK_AGAIN_MS)
    return () => clearTimeout(timer)
  }, [session, door])

  if (session === null) return signIn(fault)
  if (typeof session === "object") return children(session)
  return (
    <Center mih="100dvh">
      <Loader type="dots" />
    </Center>
  )
}
