import type { Session } from "@shared/api/session"
import { Frame } from "@shared/ui/Frame"
import { showPage } from "@shared/ui/Page"
import { SignIn } from "@shared/ui/SignIn"
import { useWords } from "./messages"

function ConsoleSignIn({ fault }: { fault: unknown }) {
  const words = useWords()
  return <SignIn words={words.signIn} room={words.room} fault={fault} />
}

function Console({ session }: { session: Session }) {
  const words = useWords()
  return (
    <Frame room={words.room}>
      <h1>{session.name}</h1>
    </Frame>
  )
}

showPage({
  door: "/admin/session",
  signIn: (fault) => <ConsoleSignIn fault={fault} />,
  children: (session) => <Console session={session} />,
})
