import { createTheme, type MantineColorsTuple } from "@mantine/core"

/** The lamp: the one accent of every page. */
const lamp: MantineColorsTuple = [
  "#fff1ec",
  "#ffdfd4",
  "#ffbfa9",
  "#ff9d7c",
  "#ff8159",
  "#ff6b3d",
  "#f2552a",
  "#d3431b",
  "#b53412",
  "#92270a",
]

/** Warm blacks, as in a room where only the lamp is lit. */
const dark: MantineColorsTuple = [
  "#ede5df",
  "#d6cbc3",
  "#b3a59b",
  "#85786f",
  "#4d423c",
  "#39302b",
  "#2a2320",
  "#171210",
  "#110d0b",
  "#0b0807",
]

/** Warm greys, as of the paper that pictures are printed on. */
const gray: MantineColorsTuple = [
  "#faf7f4",
  "#f4efea",
  "#e9e2db",
  "#dcd3ca",
  "#c9beb3",
  "#a99c90",
  "#7d7067",
  "#5f544c",
  "#453c36",
  "#2b2420",
]

export const theme = createTheme({
  colors: { lamp, dark, gray },
  primaryColor: "lamp",
  // White text on either has 4.5 to 1.
  primaryShade: { light: 8, dark: 7 },
  black: "#221b17",
  fontFamily:
    '"Figtree Variable", system-ui, "Segoe UI", "PingFang SC", "Noto Sans CJK SC", "Microsoft YaHei", sans-serif',
  headings: { fontWeight: "600" },
  defaultRadius: "md",
  cursorType: "pointer",
  focusRing: "auto",
})
