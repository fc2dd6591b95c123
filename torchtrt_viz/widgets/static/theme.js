// @ts-check
// Colours. Host work is cool (blues, teals), GPU work is warm (oranges, ambers): the two stay apart for every
// common form of colour blindness, and by lightness in print. Within a family, neighbours differ in lightness.

/** @import { Theme } from "./types.js" */

/** @type {Theme} */
const LIGHT = {
  dark: false,
  back: "#ffffff",
  panel: "#f6f7f9",
  text: "#1c2128",
  muted: "#5b6570",
  line: "#d5dae0",
  grid: "rgba(90, 100, 115, 0.16)",
  ink: "#10151b",
  strong: "#b3005e",
  dim: "#c9ced4",
  select: "rgba(179, 0, 94, 0.14)",
  window: "rgba(20, 60, 110, 0.10)",
  host: {
    name: "#1f5f9e",
    back: "#f4f8fc",
    band: "#dceaf7",
    edge: "rgba(20, 55, 95, 0.55)",
    text: "#0e2238",
    fill: ["#a9cbea", "#7fb0dc", "#93cfc9", "#b9bdea", "#9ad4ec", "#c0ccd8", "#8fa6da", "#a7dcc6"],
  },
  gpu: {
    name: "#a4480a",
    back: "#fdf7f0",
    band: "#fae3cc",
    edge: "rgba(120, 45, 0, 0.75)",
    text: "#331500",
    fill: ["#f5b56b", "#e98f5c", "#f6d272", "#d7a263", "#f2a48e", "#e9bf9f", "#efc04a", "#dc9478"],
  },
};

/** @type {Theme} */
const DARK = {
  dark: true,
  back: "#14171b",
  panel: "#1c2026",
  text: "#e4e8ec",
  muted: "#9aa5b1",
  line: "#343b44",
  grid: "rgba(170, 185, 205, 0.13)",
  ink: "#ffffff",
  strong: "#ff7ab8",
  dim: "#4a515a",
  select: "rgba(255, 122, 184, 0.20)",
  window: "rgba(150, 190, 240, 0.16)",
  host: {
    name: "#82b9ec",
    back: "#151c24",
    band: "#1c2f42",
    edge: "rgba(190, 220, 250, 0.40)",
    text: "#f2f8ff",
    fill: ["#3d6f9f", "#2c5886", "#2b7a78", "#5a61a6", "#29789a", "#55677a", "#4459a0", "#327a62"],
  },
  gpu: {
    name: "#f3a661",
    back: "#211a13",
    band: "#46301b",
    edge: "rgba(255, 205, 150, 0.55)",
    text: "#fff6ec",
    fill: ["#a45e18", "#9c4a22", "#7c6c22", "#86602f", "#aa5b47", "#8d6a4b", "#935f08", "#934c38"],
  },
};

/** Colour numbers of kinds, for "colour by kind". @type {Record<string, number>} */
const KIND_FILL = {
  operator: 0, method: 1, annotation: 5, step: 3, runtime: 6, python: 2, delegate: 4, phase: 7, layer: 0,
  kernel: 0, memcpy: 2, memset: 6, communication: 4, memory: 5, other: 5, event: 5,
};

/** @param {boolean} dark */
export function colors(dark) {
  return dark ? DARK : LIGHT;
}

/**
 * Index of the fill of a name (`byte` is its colour number) or of its kind.
 * @param {"name" | "kind"} mode
 * @param {number} byte
 * @param {string} kind
 */
export function fillIndex(mode, byte, kind) {
  return mode === "kind" ? (KIND_FILL[kind] ?? 5) : byte % 8;
}

/** "#rrggbb" -> [r, g, b] @param {string} hex */
export function rgb(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

/** Whether the surroundings are dark: JupyterLab and Notebook, VS Code, Colab, else the system's setting. */
export function surroundingsDark() {
  const body = document.body;
  if (body.dataset.jpThemeLight) return body.dataset.jpThemeLight === "false";
  const code = body.dataset.vscodeThemeKind || [...body.classList].find((name) => /^vscode-(dark|light|high-contrast)/.test(name));
  if (code) return !code.includes("light"); // vscode-high-contrast is dark, vscode-high-contrast-light is not
  const root = document.documentElement;
  if (root.getAttribute("theme")) return root.getAttribute("theme") === "dark";
  if (root.dataset.theme) return root.dataset.theme === "dark";
  return window.matchMedia("(prefers-color-scheme: dark)").matches;
}

/** Calls back whenever the surroundings may have changed; returns a function that stops it. @param {() => void} callback */
export function watchSurroundings(callback) {
  const observer = new MutationObserver(callback);
  const filter = { attributes: true, attributeFilter: ["data-jp-theme-light", "data-vscode-theme-kind", "class"] };
  observer.observe(document.body, filter);
  observer.observe(document.documentElement, { attributes: true, attributeFilter: ["theme", "data-theme", "class"] });
  const media = window.matchMedia("(prefers-color-scheme: dark)");
  media.addEventListener("change", callback);
  return () => {
    observer.disconnect();
    media.removeEventListener("change", callback);
  };
}
