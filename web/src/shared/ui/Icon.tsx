/** Strokes of 24 by 24, drawn for these pages; decoration only, so a screen reader passes them by. */
const STROKES = {
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8M12 2v2M12 20v2M4.9 4.9l1.4 1.4M17.7 17.7l1.4 1.4M2 12h2M20 12h2M4.9 19.1l1.4-1.4M17.7 6.3l1.4-1.4",
  moon: "M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5",
  globe: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18M3 12h18M12 3c5 5.4 5 12.600 0 18M12 3c-5 5.400-5 12.600 0 18",
  exit: "M14 4H6v16h8M10 12h11M17.500 8.500 21 12l-3.500 3.500",
  plus: "M12 5v14M5 12h14",
  minus: "M5 12h14",
  close: "M6 6l12 12M18 6 6 18",
  picture: "M4 5h16v14H4zM4 16l5-5 4.500 4.500M13 14l2.500-2.500L20 16M15.500 8.500h.01",
  stack: "M12 3 3 8l9 5 9-5-9-5M3 12.500l9 5 9-5M3 17l9 5 9-5",
  brush:
    "M14.500 9.500 20 4M9 13.500c-2.500 0-3 2-3 3.500S5 19.500 3.500 20c4.500 1 8.500 0 8.500-3.500 0-1.700-1.300-3-3-3M9 13.500c1-2.500 3-5.500 5.500-8M12 16.500c2.500-1 5.500-3 8-5.500",
  undo: "M8 5 4 9l4 4M4 9h10a6 6 0 0 1 0 12h-3",
  trash: "M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13",
  download: "M12 4v11M7.500 11 12 15.500 16.500 11M4 20h16",
  repeat: "M17 3l4 4-4 4M3 11V9a2 2 0 0 1 2-2h16M7 21l-4-4 4-4M21 13v2a2 2 0 0 1-2 2H3",
  left: "M15 5l-7 7 7 7",
  right: "M9 5l7 7-7 7",
  alert: "M12 4 2.500 20h19L12 4M12 10v4M12 17h.01",
  coin: "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16M12 8.500v7M9.500 10.500h4a1.500 1.500 0 0 1 0 3h-3",
  key: "M15 4a5 5 0 1 0 0 10 5 5 0 0 0 0-10M11.300 12.700 4 20M6.500 17.500 9 20",
  check: "M5 12.500 10 17.500 19 7",
  clock: "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16M12 8v4.500l3 1.500",
  search: "M10.500 4a6.500 6.500 0 1 0 0 13 6.500 6.500 0 0 0 0-13M15.500 15.500 21 21",
} as const

export type IconName = keyof typeof STROKES

export function Icon({ name, size = 18 }: { name: IconName; size?: number }) {
  return (
    <svg
      aria-hidden="true"
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      strokeWidth={1.7}
      strokeLinecap="round"
      strokeLinejoin="round"
    >
      <path d={STROKES[name]} />
    </svg>
  )
}
