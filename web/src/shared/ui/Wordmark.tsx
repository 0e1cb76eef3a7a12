import classes from "./Wordmark.module.css"

/** The name beside the lamp that it means. */
export function Wordmark({ room }: { room?: string }) {
  return (
    <span className={classes.mark}>
      <span className={classes.lamp} aria-hidden="true" />
      safelight
      {room && <span className={classes.room}>{room}</span>}
    </span>
  )
}
