import { useMessages } from "@shared/i18n/language"
import { en } from "./en"
import { zh } from "./zh"

export type { Messages } from "./en"

/** What the Console says in the chosen language. */
export const useWords = () => useMessages({ en, zh })
