import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

const server = process.env.SIDETONE_URL ?? "http://127.0.0.1:9191";

export default defineConfig({
  plugins: [react()],
  build: {
    outDir: "../internal/webui/dist",
    emptyOutDir: true, // public/.gitkeep puts back the file that keeps the folder in git
    target: "es2022",
    assetsInlineLimit: 0, // the CSP has no data: for fonts and scripts
    chunkSizeWarningLimit: 700,
  },
  server: {
    proxy: { "/api": server, "/openapi.json": server, "/docs": server },
  },
});
