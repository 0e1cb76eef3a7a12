import { createContext, type ReactNode, useContext, useEffect, useMemo, useState } from "react"
import { recall, remember } from "../storage"

/** The languages of every page. A page has one object of messages for each; TypeScript sees what is missing. */
export const LANGUAGES = { en: "English", zh: "简体中文" } as const
export type Language = keyof typeof LANGUAGES
export type InBoth<T> = Record<Language, T>

const TAGS: InBoth<string> = { en: "en", zh: "zh-CN" }

interface Choice {
  language: Language
  choose: (language: Language) => void
}

const Chosen = createContext<Choice>({ language: "en", choose: () => undefined })

function firstLanguage(): Language {
  const kept = recall("language")
  if (kept === "en" || kept === "zh") return kept
  return navigator.languages.some((tag) => tag.toLowerCase().startsWith("zh")) ? "zh" : "en"
}

export function LanguageProvider({ children }: { children: ReactNode }) {
  const [language, setLanguage] = useState(firstLanguage)
  useEffect(() => {
    document.documentElement.lang = TAGS[language]
  }, [language])
  const choice = useMemo(
    () => ({
      language,
      choose: (chosen: Language) => {
        remember("language", chosen)
        setLanguage(chosen)
      },
    }),
    [language],
  )
  return <Chosen value={choice}>{children}</Chosen>
}

export const useLanguage = () => useContext(Chosen)

/** The messages of a page in the chosen language. */
export function useMessages<T>(both: InBoth<T>): T {
  return both[useLanguage().language]
}

/** Numbers and times as the chosen language writes them. */
export function useFormats() {
  const tag = TAGS[useLanguage().language]
  return useMemo(() => {
    const number = new Intl.NumberFormat(tag)
    const time = new Intl.DateTimeFormat(tag, { dateStyle: "medium", timeStyle: "short" })
    return {
      number: (value: number) => number.format(value),
      time: (text: string) => time.format(new Date(text)),
    }
  }, [tag])
}
