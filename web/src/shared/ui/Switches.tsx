import { ActionIcon, Menu, Tooltip, useComputedColorScheme, useMantineColorScheme } from "@mantine/core"
import { LANGUAGES, type Language, useLanguage } from "../i18n/language"
import { useShared } from "../i18n/messages"
import { Icon } from "./Icon"

const CHOICES = Object.entries(LANGUAGES) as [Language, string][]

export function LanguageSwitch() {
  const { language, choose } = useLanguage()
  const words = useShared()
  return (
    <Menu position="bottom-end" withinPortal>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size="lg" aria-label={words.language}>
          <Icon name="globe" />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {CHOICES.map(([code, name]) => (
          <Menu.Item
            key={code}
            lang={code}
            onClick={() => choose(code)}
            leftSection={code === language ? <Icon name="check" size={14} /> : <span style={{ width: 14 }} />}
          >
            {name}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  )
}

export function SchemeSwitch() {
  const { setColorScheme } = useMantineColorScheme()
  const words = useShared().scheme
  const other = useComputedColorScheme("dark") === "dark" ? "light" : "dark"
  const label = words.toggle(words[other])
  return (
    <Tooltip label={label}>
      <ActionIcon
        variant="subtle"
        color="gray"
        size="lg"
        aria-label={label}
        onClick={() => setColorScheme(other)}
      >
        <Icon name={other === "dark" ? "moon" : "sun"} />
      </ActionIcon>
    </Tooltip>
  )
}
