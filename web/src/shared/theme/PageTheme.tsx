import "@fontsource-variable/figtree/wght.css"
import "@mantine/core/styles.css"
import "./page.css"

import { localStorageColorSchemeManager, MantineProvider } from "@mantine/core"
import type { ReactNode } from "react"
import { theme } from "./theme"

const schemes = localStorageColorSchemeManager({ key: "safelight.scheme" })

/** The server allows only those style elements that carry the nonce of this very answer. */
function nonce(): string {
  return document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? ""
}

// What keeps the page from scrolling behind a dialog makes a style element too, and reads its nonce here.
Object.assign(globalThis, { __webpack_nonce__: nonce() })

export function PageTheme({ children }: { children: ReactNode }) {
  return (
    <MantineProvider
      theme={theme}
      defaultColorScheme="auto"
      colorSchemeManager={schemes}
      getStyleNonce={nonce}
    >
      {children}
    </MantineProvider>
  )
}
