import { type InBoth, useMessages } from "@shared/i18n/language"

const en = {
  signIn: {
    title: "Sign in to the studio",
    intro: "Type a prompt, watch the picture develop, keep it.",
    key: "API key",
    keyHint: "It begins with sl_live_. This page exchanges it for a session and does not keep it.",
    submit: "Sign in",
  },
}

type Messages = typeof en

const zh: Messages = {
  signIn: {
    title: "登录工作室",
    intro: "输入提示词，看图片显影，然后保存。",
    key: "API 密钥",
    keyHint: "以 sl_live_ 开头。本页只用它换取会话，不会保存密钥。",
    submit: "登录",
  },
}

const both: InBoth<Messages> = { en, zh }

export const useWords = () => useMessages(both)
