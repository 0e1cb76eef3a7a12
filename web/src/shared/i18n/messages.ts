import { type InBoth, useMessages } from "./language"

/** What both pages say: the frame around them, signing in, and errors that can happen anywhere. */
const en = {
  skipToContent: "Skip to content",
  language: "Language",
  scheme: { dark: "Dark", light: "Light", toggle: (to: string) => `Switch to ${to.toLowerCase()}` },
  signOut: "Sign out",
  close: "Close",
  retry: "Try again",
  offline: "No connection. What you have submitted goes on; this page catches up by itself.",
  problem: {
    unreachable: "The service does not answer. This page tries again by itself.",
    unauthorized: "This key is not valid.",
    "ticket-refused": "This link was used before, or is too old. Ask for a new one, or sign in with a key.",
    "rate-limited": "Too many tries. Wait a moment.",
    "insufficient-credits": "Not enough credits for this.",
    other: (detail: string) => detail,
  },
}

export type SharedMessages = typeof en

const zh: SharedMessages = {
  skipToContent: "跳到内容",
  language: "语言",
  scheme: { dark: "深色", light: "浅色", toggle: (to) => `切换为${to}` },
  signOut: "退出",
  close: "关闭",
  retry: "重试",
  offline: "网络已断开。已提交的任务会继续进行，恢复后页面会自动更新。",
  problem: {
    unreachable: "服务暂时没有响应，页面会自动重试。",
    unauthorized: "这个密钥无效。",
    "ticket-refused": "这个链接已被使用或已过期。请获取新链接，或用密钥登录。",
    "rate-limited": "尝试过于频繁，请稍候。",
    "insufficient-credits": "点数不足。",
    other: (detail) => detail,
  },
}

const both: InBoth<SharedMessages> = { en, zh }

export const useShared = () => useMessages(both)
