import { Alert, Tooltip } from "@mantine/core"
import type { Session } from "@shared/api/session"
import { useFormats } from "@shared/i18n/language"
import { useShared } from "@shared/i18n/messages"
import { useRoute } from "@shared/route"
import { useStore } from "@shared/store"
import { Frame } from "@shared/ui/Frame"
import { Icon } from "@shared/ui/Icon"
import { showPage } from "@shared/ui/Page"
import { SignIn } from "@shared/ui/SignIn"
import { useEffect } from "react"
import { balance, openAccount } from "./account"
import { BatchComposer } from "./batches/BatchComposer"
import { Batches } from "./batches/Batches"
import { batchOutbox } from "./batches/outbox"
import { followBatches } from "./batches/shelf"
import { Developing } from "./cards/Developing"
import { Composer } from "./compose/Composer"
import { Gallery } from "./gallery/Gallery"
import { Lightbox } from "./gallery/Lightbox"
import classes from "./main.module.css"
import { useWords } from "./messages"
import { follow, isReachable } from "./tasks/follow"
import { outbox } from "./tasks/outbox"
import { clearShelf } from "./tasks/shelf"

function StudioSignIn({ fault }: { fault: unknown }) {
  return <SignIn words={useWords().signIn} fault={fault} />
}

function Studio({ session }: { session: Session }) {
  const route = useRoute()
  const [room, assetId] = route
  useEffect(() => {
    const ends = [
      openAccount(),
      outbox.open(session.id),
      batchOutbox.open(session.id),
      follow(),
      followBatches(),
    ]
    return () => {
      for (const end of ends) end()
      clearShelf()
    }
  }, [session.id])
  return (
    <Frame aside={<Balance />}>
      <Offline />
      <h1 className={classes.title}>safelight</h1>
      <div className={classes.studio}>
        <div className={classes.composer}>
          <Composer />
        </div>
        <div>
          <Developing />
          <Batches />
          <Gallery />
        </div>
      </div>
      <BatchComposer isOpen={room === "batch"} />
      {room === "picture" && assetId && <Lightbox assetId={assetId} />}
    </Frame>
  )
}

function Balance() {
  const words = useWords()
  const { number } = useFormats()
  const known = useStore(balance)
  if (!known) return null
  const hint = known.held > 0 ? words.balance.held(number(known.held)) : words.balance.available
  return (
    <Tooltip label={hint}>
      <span className={classes.balance} data-balance={known.available}>
        <Icon name="coin" size={17} />
        {words.credits(number(known.available))}
      </span>
    </Tooltip>
  )
}

function Offline() {
  const words = useShared()
  if (useStore(isReachable)) return null
  return (
    <Alert color="lamp" variant="light" role="status" mb="md" icon={<Icon name="clock" />}>
      {words.offline}
    </Alert>
  )
}

showPage({
  door: "/v1/session",
  signIn: (fault) => <StudioSignIn fault={fault} />,
  children: (session) => <Studio session={session} />,
})
