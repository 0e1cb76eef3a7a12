import { Modal, Stack, Text } from "@mantine/core"
import { useMediaQuery } from "@mantine/hooks"
import { useShared } from "@shared/i18n/messages"
import { goTo } from "@shared/route"
import { useStore } from "@shared/store"
import { useDeferredValue, useMemo } from "react"
import { models } from "../account"
import type { Model } from "../tasks/wish"
import { chosen, settings } from "./draft"
import { Faults } from "./Faults"
import { FileDrop } from "./FileDrop"
import { HandIn } from "./HandIn"
import { Preview } from "./Preview"
import { planOf } from "./plan"
import { SettingsForm } from "./SettingsForm"
import { useBatchWords } from "./words"

/** From a file to a batch: what its rows become and what that costs is seen before anything is sent. */
export function BatchComposer({ isOpen }: { isOpen: boolean }) {
  const words = useBatchWords()
  const shared = useShared()
  const isNarrow = useMediaQuery("(max-width: 40rem)") ?? false
  return (
    <Modal
      opened={isOpen}
      onClose={() => goTo()}
      title={words.title}
      size="lg"
      fullScreen={isNarrow}
      closeButtonProps={{ "aria-label": shared.close }}
      transitionProps={{ transition: "fade", duration: 120 }}
    >
      <Stack gap="md">
        <Text size="sm" className="quiet">
          {words.intro}
        </Text>
        <FileDrop />
        <Prepared />
      </Stack>
    </Modal>
  )
}

function Prepared() {
  const file = useStore(chosen)
  const said = useStore(settings)
  const offered = useStore(models)
  const model = modelOf(said.model, offered ?? [])
  // Thousands of prompts are not made again between two key strokes.
  const typed = useDeferredValue(said)
  const plan = useMemo(
    () => (file && model && offered ? planOf(file.table, typed, model, offered) : null),
    [file, typed, model, offered],
  )
  if (!file || !model || !plan) return null
  const isTyped = file.table.isWhole || typed.template.trim() !== ""
  return (
    <>
      <SettingsForm table={file.table} model={model} offered={offered ?? []} strangers={plan.strangers} />
      {isTyped && <Faults faults={plan.faults} />}
      {isTyped && <Preview items={plan.items} />}
      <HandIn file={file} plan={plan} isCurrent={typed === said} />
    </>
  )
}

/** The chosen model if it makes pictures out of nothing, else the default one, else any that does. */
function modelOf(name: string, offered: readonly Model[]): Model | undefined {
  const able = offered.filter((model) => model.operations.includes("generate"))
  return able.find((model) => model.name === name) ?? able.find((model) => model.is_default) ?? able[0]
}
