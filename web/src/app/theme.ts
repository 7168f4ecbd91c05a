import { createTheme, type MantineColorsTuple } from "@mantine/core";

/** The one accent: petrol. Everything else is grey, except the three states (bad, warn, good) of tokens.css. */
const petrol: MantineColorsTuple = [
  "#e9f7f8",
  "#d6ecee",
  "#abd9dd",
  "#7cc5cb",
  "#55b4bc",
  "#3ba9b2",
  "#259aa4",
  "#0f7f89",
  "#0c6b74",
  "#04545c",
];

/** Cool greys for dark mode, a little warmer than Mantine's, so that the canvas and the cards stay apart. */
const dark: MantineColorsTuple = [
  "#d5dade",
  "#b6bdc4",
  "#929ba4",
  "#6f7982",
  "#47515a",
  "#353e46",
  "#262e35",
  "#1a2127",
  "#12181d",
  "#0c1115",
];

export const theme = createTheme({
  colors: { petrol, dark },
  primaryColor: "petrol",
  primaryShade: { light: 8, dark: 7 },
  fontFamily: '"IBM Plex Sans Variable", system-ui, -apple-system, "Segoe UI", sans-serif',
  fontFamilyMonospace: '"IBM Plex Mono", ui-monospace, Menlo, monospace',
  headings: { fontWeight: "600" },
  defaultRadius: "sm",
  cursorType: "pointer",
  focusRing: "auto",
  components: {
    Tooltip: { defaultProps: { openDelay: 250, withArrow: true, multiline: true, maw: 420 } },
    Table: { defaultProps: { verticalSpacing: 6, horizontalSpacing: "sm" } },
  },
});
