import "./palette.css"

import { hrefTo, useRoute } from "@shared/route"
import { Frame } from "@shared/ui/Frame"
import { showPage } from "@shared/ui/Page"
import { SignIn } from "@shared/ui/SignIn"
import { useEffect, useRef } from "react"
import { Account } from "./accounts/Account"
import { Accounts } from "./accounts/Accounts"
import { Audit } from "./books/Audit"
import { Findings } from "./books/Findings"
import { Notices } from "./books/Notices"
import { Reconciliations } from "./books/Reconciliations"
import classes from "./main.module.css"
import { useWords } from "./messages"
import { Overview } from "./overview/Overview"
import { Palette } from "./Palette"
import { ROOMS } from "./rooms"
import { Reviews } from "./tasks/Reviews"
import { Task } from "./tasks/Task"
import { Tasks } from "./tasks/Tasks"
import { Webhooks } from "./webhooks/Webhooks"

function ConsoleSignIn({ fault }: { fault: unknown }) {
  const words = useWords()
  return <SignIn words={words.signIn} room={words.room} fault={fault} />
}

function Console() {
  const words = useWords()
  const [room = "overview", ...rest] = useRoute()
  useTitle(room)
  return (
    <Frame room={words.room} links={<Links room={room} />} aside={<Palette />}>
      <div className={classes.room}>
        <Room room={room} rest={rest} />
      </div>
    </Frame>
  )
}

/** What stands at `#/room/first/second`. */
function Room({ room, rest: [first, second] }: { room: string; rest: string[] }) {
  const words = useWords()
  switch (room) {
    case "overview":
      return <Overview />
    case "reviews":
      return <Reviews />
    case "tasks": {
      const isFiltered = first === undefined || ["state", "which", "account"].includes(first)
      if (isFiltered) return <Tasks by={first} value={second} />
      return <Task key={first} id={first} isDeciding={second === "decide"} />
    }
    case "reconciliations":
      return <Reconciliations />
    case "findings":
      return <Findings />
    case "notices":
      return <Notices />
    case "accounts":
      return first === undefined ? <Accounts /> : <Account key={first} id={first} />
    case "webhooks":
      return <Webhooks by={first} value={second} />
    case "audit":
      return <Audit object={first} />
    default:
      return <h1>{words.rooms.nowhere}</h1>
  }
}

function Links({ room }: { room: string }) {
  const words = useWords()
  return (
    <div className={classes.links}>
      {ROOMS.map((one) => (
        <a key={one} href={hrefTo(one)} aria-current={one === room ? "page" : undefined}>
          {words.rooms[one]}
        </a>
      ))}
    </div>
  )
}

/** The document's title names the room; whoever comes to another room begins at its top. */
function useTitle(room: string): void {
  const words = useWords()
  const before = useRef(room)
  useEffect(() => {
    const name = ROOMS.find((one) => one === room)
    document.title = name ? `${words.rooms[name]} · safelight` : "safelight"
    if (before.current !== room) window.scrollTo(0, 0)
    before.current = room
  }, [room, words])
}

showPage({
  door: "/admin/session",
  signIn: (fault) => <ConsoleSignIn fault={fault} />,
  children: () => <Console />,
})
