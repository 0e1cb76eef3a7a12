import { type InBoth, useMessages } from "@shared/i18n/language"

const en = {
  room: "console",
  signIn: {
    title: "Sign in as an operator",
    intro: "The console shows every account's tasks and settles what waits for a person.",
    key: "Admin key",
    keyHint: "It begins with sl_admin_. The first one lies in the file admin_key of the data directory.",
    submit: "Sign in",
  },
}

type Messages = typeof en

const zh: Messages = {
  room: "控制台",
  signIn: {
    title: "运维登录",
    intro: "控制台可查看所有账户的任务，并处理等待人工决定的事项。",
    key: "管理密钥",
    keyHint: "以 sl_admin_ 开头。首个密钥在数据目录的 admin_key 文件中。",
    submit: "登录",
  },
}

const both: InBoth<Messages> = { en, zh }

export const useWords = () => useMessages(both)
