import { ActionIcon, Tooltip } from "@mantine/core"
import type { ReactNode } from "react"
import { signOut } from "../api/session"
import { useShared } from "../i18n/messages"
import classes from "./Frame.module.css"
import { Icon } from "./Icon"
import { LanguageSwitch, SchemeSwitch } from "./Switches"
import { Wordmark } from "./Wordmark"

interface FrameProps {
  room?: string
  /** Links in the header. */
  links?: ReactNode
  /** What stands beside the switches: a balance, a name. */
  aside?: ReactNode
  children: ReactNode
}

/** The header that every page has, and the way past it for those who use the keyboard. */
export function Frame({ room, links, aside, children }: FrameProps) {
  const words = useShared()
  return (
    <>
      <button type="button" className={classes.skip} onClick={skip}>
        {words.skipToContent}
      </button>
      <header className={classes.header}>
        <Wordmark {...(room ? { room } : {})} />
        <nav className={classes.links}>{links}</nav>
        {aside}
        <div className={classes.switches}>
          <LanguageSwitch />
          <SchemeSwitch />
          <Tooltip label={words.signOut}>
            <ActionIcon
              variant="subtle"
              color="gray"
              size="lg"
              aria-label={words.signOut}
              onClick={() => void signOut().catch(() => undefined)}
            >
              <Icon name="exit" />
            </ActionIcon>
          </Tooltip>
        </div>
      </header>
      <main id="content" tabIndex={-1} className={classes.content}>
        {children}
      </main>
    </>
  )
}

/** Focus without touching the address, which says where in the page somebody is. */
function skip(): void {
  document.getElementById("content")?.focus()
}
