import type { ReactNode } from "react"
import { useId } from "react"
import classes from "./parts.module.css"

interface SectionProps {
  /** Left out where the page's own title says it. */
  title?: string
  hint?: string
  /** What stands to the right of the title. */
  aside?: ReactNode
  children: ReactNode
}

/** A part of a page under its title. */
export function Section({ title, hint, aside, children }: SectionProps) {
  const id = useId()
  if (!title) return <div className={`surface ${classes.section}`}>{children}</div>
  return (
    <section className={`surface ${classes.section}`} aria-labelledby={id}>
      <header className={classes.head}>
        <div>
          <h2 id={id}>{title}</h2>
          {hint && <p className={classes.hint}>{hint}</p>}
        </div>
        {aside}
      </header>
      {children}
    </section>
  )
}

/** The title of a page, and what may be done there. */
export function Heading({ title, hint, aside }: { title: string; hint?: string; aside?: ReactNode }) {
  return (
    <header className={classes.heading}>
      <div>
        <h1>{title}</h1>
        {hint && <p className={classes.hint}>{hint}</p>}
      </div>
      {aside && <div className={classes.aside}>{aside}</div>}
    </header>
  )
}
