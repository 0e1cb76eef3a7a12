import { Alert, Button, Paper, PasswordInput, Stack, Text, Title } from "@mantine/core"
import { type FormEvent, useState } from "react"
import { Problem } from "../api/problem"
import { signIn } from "../api/session"
import { type SharedMessages, useShared } from "../i18n/messages"
import { Icon } from "./Icon"
import classes from "./SignIn.module.css"
import { LanguageSwitch, SchemeSwitch } from "./Switches"
import { Wordmark } from "./Wordmark"

interface SignInWords {
  title: string
  intro: string
  key: string
  keyHint: string
  submit: string
}

/** The first page of somebody who is not signed in; `fault` is why a one-time link did not open. */
export function SignIn({ words, room, fault }: { words: SignInWords; room?: string; fault?: unknown }) {
  const shared = useShared()
  const [key, setKey] = useState("")
  const [isBusy, setBusy] = useState(false)
  const [hasTried, setTried] = useState(false)
  const [failed, setFailed] = useState<unknown>()
  // Why the link did not open is known a moment after this page is shown.
  const shown = hasTried ? failed : fault

  const submit = async (event: FormEvent) => {
    event.preventDefault()
    setBusy(true)
    setTried(true)
    setFailed(undefined)
    try {
      await signIn({ key: key.trim() })
    } catch (error) {
      setFailed(error)
      setBusy(false)
    }
  }

  return (
    <div className={classes.page}>
      <header className={classes.top}>
        <LanguageSwitch />
        <SchemeSwitch />
      </header>
      <main className={classes.middle}>
        <Paper className="surface" p="xl" component="form" onSubmit={submit}>
          <Stack gap="lg">
            <Wordmark {...(room ? { room } : {})} />
            <div>
              <Title order={1} size="h3">
                {words.title}
              </Title>
              <Text className="quiet" mt={6} size="sm">
                {words.intro}
              </Text>
            </div>
            {shown !== undefined && (
              <Alert color="lamp" variant="light" role="alert" icon={<Icon name="alert" />}>
                {faultText(shown, shared)}
              </Alert>
            )}
            <PasswordInput
              label={words.key}
              description={words.keyHint}
              value={key}
              onChange={(event) => setKey(event.currentTarget.value)}
              autoComplete="off"
              spellCheck={false}
              required
              withAsterisk={false}
              data-autofocus
            />
            <Button type="submit" loading={isBusy} disabled={!key.trim()} fullWidth>
              {words.submit}
            </Button>
          </Stack>
        </Paper>
      </main>
    </div>
  )
}

function faultText(fault: unknown, shared: SharedMessages): string {
  const words = shared.problem
  if (!(fault instanceof Problem)) return words.unreachable
  if (fault.code === "unauthorized" || fault.code === "ticket-refused" || fault.code === "rate-limited") {
    return words[fault.code]
  }
  return words.other(fault.detail)
}
