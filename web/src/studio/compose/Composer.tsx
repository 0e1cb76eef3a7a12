import { Button, NumberInput, Select, Stack, Text, Textarea, Title } from "@mantine/core"
import { useFormats } from "@shared/i18n/language"
import { hrefTo } from "@shared/route"
import { useStore } from "@shared/store"
import { Icon } from "@shared/ui/Icon"
import { type FormEvent, type KeyboardEvent, useEffect } from "react"
import { balance, canStartFrom, models, shapesOf } from "../account"
import { useBatchWords } from "../batches/words"
import { useWords } from "../messages"
import { submit } from "../tasks/outbox"
import { bodyOf, type Model, type Wish } from "../tasks/wish"
import classes from "./Composer.module.css"
import { change, draft } from "./draft"
import { Pictures } from "./Pictures"

/** Says what is wanted, what it costs, and sends it. */
export function Composer() {
  const words = useWords()
  const many = useBatchWords()
  const { number } = useFormats()
  const credits = (n: number) => words.credits(number(n))
  const wish = useStore(draft)
  const offered = useStore(models)
  const available = useStore(balance)?.available
  const model = modelOf(wish, offered ?? [])
  useFittingWish(wish, model)

  const cost = model ? model.price * wish.n : 0
  const most = Math.max(
    0,
    ...(offered ?? []).map((one) => (one.operations.includes("edit") ? one.max_images : 0)),
  )
  const length = [...wish.prompt].length
  const isTooLong = model !== undefined && length > model.max_prompt_chars
  const isTooDear = available !== undefined && cost > available
  const needsPicture = model !== undefined && !canStartFrom(model, wish.references.length)
  const isReady =
    model !== undefined && wish.prompt.trim() !== "" && !isTooLong && !isTooDear && !needsPicture

  const send = (event: FormEvent | KeyboardEvent) => {
    event.preventDefault()
    if (!isReady) return
    submit(bodyOf({ ...wish, model: model.name }))
    change({ prompt: "", mask: null, references: [] })
  }

  if (offered?.length === 0)
    return (
      <Text className="surface quiet" p="lg">
        {words.compose.noModels}
      </Text>
    )
  return (
    <form className={`surface ${classes.composer}`} onSubmit={send} aria-labelledby="composer-title">
      <Stack gap="md">
        <Title order={2} size="h4" id="composer-title">
          {words.compose.title}
        </Title>
        <Textarea
          id="prompt"
          label={words.compose.prompt}
          placeholder={words.compose.placeholder}
          value={wish.prompt}
          onChange={(event) => change({ prompt: event.currentTarget.value })}
          onKeyDown={(event) => {
            if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send(event)
          }}
          error={isTooLong && words.compose.tooLong(number(model.max_prompt_chars))}
          autosize
          minRows={4}
          maxRows={12}
        />
        {most > 0 && (
          <Pictures model={model} most={model?.operations.includes("edit") ? model.max_images : most} />
        )}
        <Select
          label={words.compose.model}
          data={(offered ?? []).map((one) => ({
            value: one.name,
            label: words.compose.modelLine(one.name, credits(one.price)),
            disabled: wish.references.length > 0 && !canStartFrom(one, wish.references.length),
          }))}
          value={model?.name ?? null}
          onChange={(name) => name && change({ model: name })}
          error={needsPicture && wish.references.length === 0 && words.compose.needsPicture}
          allowDeselect={false}
          checkIconPosition="right"
        />
        <div className={classes.row}>
          {model && shapesOf(model).length > 0 && (
            <Select
              label={words.compose.shape}
              data={[{ value: "", label: words.compose.shapeDefault }, ...shapesOf(model).map(labelled)]}
              value={wish.shape}
              onChange={(shape) => change({ shape: shape ?? "" })}
              allowDeselect={false}
              checkIconPosition="right"
            />
          )}
          {model && model.max_n > 1 && (
            <NumberInput
              label={words.compose.count}
              min={1}
              max={model.max_n}
              clampBehavior="strict"
              allowDecimal={false}
              value={wish.n}
              onChange={(n) => typeof n === "number" && change({ n })}
            />
          )}
        </div>
        <div>
          <Button
            type="submit"
            fullWidth
            size="md"
            title={words.compose.submitHint}
            aria-keyshortcuts="Control+Enter"
            aria-disabled={!isReady}
            {...(!isReady && { "data-disabled": true })}
          >
            {words.compose.submit}
          </Button>
          {available !== undefined && model && (
            <Text size="sm" mt={8} ta="center" className="quiet" aria-live="polite">
              {isTooDear
                ? words.compose.tooDear(credits(cost), credits(available))
                : words.compose.cost(credits(cost), number(available - cost))}
            </Text>
          )}
        </div>
        <Button
          component="a"
          href={hrefTo("batch")}
          variant="default"
          size="xs"
          leftSection={<Icon name="stack" size={15} />}
        >
          {many.open}
        </Button>
      </Stack>
    </form>
  )
}

/** The chosen model if it can do what is wanted, else the default one, else any that can. */
function modelOf(wish: Wish, offered: readonly Model[]): Model | undefined {
  const able = offered.filter((model) => canStartFrom(model, wish.references.length))
  return (
    able.find((model) => model.name === wish.model) ??
    able.find((model) => model.is_default) ??
    able[0] ??
    offered.find((model) => model.name === wish.model) ??
    offered[0]
  )
}

/** What the model does not offer is taken back, in sight. */
function useFittingWish(wish: Wish, model: Model | undefined): void {
  useEffect(() => {
    if (!model) return
    if (wish.shape && !shapesOf(model).includes(wish.shape)) change({ shape: "" })
    if (wish.n > model.max_n) change({ n: model.max_n })
    if (wish.mask && !model.takes_mask) change({ mask: null })
  }, [wish, model])
}

function labelled(shape: string): { value: string; label: string } {
  return { value: shape, label: shape.replace("x", " × ") }
}
