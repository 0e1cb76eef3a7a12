import { Button, Radio, Stack, Text } from "@mantine/core"
import { useFormats } from "@shared/i18n/language"
import { goTo } from "@shared/route"
import { useStore } from "@shared/store"
import { useState } from "react"
import { balance } from "../account"
import classes from "./batches.module.css"
import { type Chosen, change, putAside, settings } from "./draft"
import { handIn } from "./outbox"
import { affordable, type Plan } from "./plan"
import { useCredits } from "./SettingsForm"
import { useBatchWords } from "./words"

interface HandInProps {
  file: Chosen
  plan: Plan
  /** Whether the plan is of what is said now. */
  isCurrent: boolean
}

/** The cost beside the balance, what to do when that is not enough, and the button that sends. */
export function HandIn({ file, plan, isCurrent }: HandInProps) {
  const words = useBatchWords()
  const { number } = useFormats()
  const credits = useCredits()
  const said = useStore(settings)
  const available = useStore(balance)?.available
  const [isBusy, setBusy] = useState(false)

  const isSound = plan.items.length > 0 && plan.faults.length === 0
  if (!isSound || available === undefined) return null
  const isTooDear = plan.cost > available
  const part = affordable(plan.items, available)
  const isPartly = isTooDear && said.isPartly && part.items > 0
  const isReady = isCurrent && !isBusy && (!isTooDear || isPartly)
  const count = isPartly ? part.items : plan.items.length

  const send = async () => {
    if (!isReady) return
    setBusy(true)
    await handIn(file, { ...said, isPartly }, plan)
    putAside()
    goTo()
  }

  return (
    <>
      {isTooDear && part.items > 0 && (
        <Radio.Group
          label={words.cost.choice}
          value={said.isPartly ? "partly" : "all"}
          onChange={(choice) => change({ isPartly: choice === "partly" })}
        >
          <Stack gap="xs" mt="xs">
            <Radio value="all" label={words.cost.all} description={words.cost.allHint} />
            <Radio
              value="partly"
              label={words.cost.partly(number(part.items), number(plan.items.length))}
              description={words.cost.partlyHint(credits(part.cost))}
            />
          </Stack>
        </Radio.Group>
      )}
      <div className={classes.foot}>
        <Button
          fullWidth
          size="md"
          loading={isBusy}
          onClick={() => void send()}
          aria-disabled={!isReady}
          {...(!isReady && { "data-disabled": true })}
        >
          {words.submit(number(count), count === 1)}
        </Button>
        <Text size="sm" mt={8} ta="center" className="quiet" aria-live="polite">
          {isTooDear
            ? words.cost.tooDear(credits(plan.cost), credits(available))
            : words.cost.fits(credits(plan.cost), number(available - plan.cost))}
          {isTooDear && part.items === 0 && ` ${words.cost.none}`}
        </Text>
      </div>
    </>
  )
}
