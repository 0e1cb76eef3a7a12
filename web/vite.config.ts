import { fileURLToPath } from "node:url"
import react from "@vitejs/plugin-react"
import { defineConfig } from "vite"

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))

// Where `make run` answers; `npm run dev` hands every call of the pages on to it.
const SERVICE = process.env.SAFELIGHT_URL ?? "http://127.0.0.1:8000"

export default defineConfig({
  plugins: [react()],
  resolve: { alias: { "@shared": here("./src/shared") } },
  build: {
    outDir: here("../src/safelight/api/web_files"),
    emptyOutDir: true,
    assetsDir: "web",
    assetsInlineLimit: 0, // the content security policy knows no data: scripts or fonts
    modulePreload: { polyfill: false },
    rolldownOptions: { input: [here("./index.html"), here("./console.html")] },
  },
  server: { host: "127.0.0.1", proxy: { "/v1": SERVICE, "/admin": SERVICE } },
})
