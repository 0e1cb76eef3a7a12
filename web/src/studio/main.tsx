import type { Session } from "@shared/api/session"
import { Frame } from "@shared/ui/Frame"
import { showPage } from "@shared/ui/Page"
import { SignIn } from "@shared/ui/SignIn"
import { useWords } from "./messages"

function StudioSignIn({ fault }: { fault: unknown }) {
  return <SignIn words={useWords().signIn} fault={fault} />
}

function Studio({ session }: { session: Session }) {
  return (
    <Frame>
      <h1>{session.name}</h1>
    </Frame>
  )
}

showPage({
  door: "/v1/session",
  signIn: (fault) => <StudioSignIn fault={fault} />,
  children: (session) => <Studio session={session} />,
})
