// @ts-check
// The verdict in a notebook: bars, findings, and buttons that lead to the timeline and to tables.

import { button, element } from "./dom.js";
import { hand } from "./handing.js";
import { clean } from "./paint.js";
import { modelStore } from "./store.js";
import { surroundingsDark, watchSurroundings } from "./theme.js";

/** @import { Model } from "./types.js" */
/** @typedef {{label: string, domain: string, pct: number | null, words: string}} Bar */
/** @typedef {{head: string, evidence: string, saving: string, remedy: string, domain: string, frame: string, place: string, shown: boolean}} Finding */
/** @typedef {{window: string, bars: Bar[], findings: Finding[], nothing: string}} Words */
/** @typedef {{words: Words, theme: string, trouble: string}} VerdictState */

/** @param {string} domain */
const side = (domain) => (domain === "gpu" ? "gpu" : "host");

/** @param {Bar} bar */
function busy(bar) {
  const drawn = bar.pct === null ? null : element("span", { class: "bar" }, element("i", { style: { width: `${Math.min(100, bar.pct)}%` } }));
  return element("div", { class: `busy ${side(bar.domain)}` }, element("b", {}, clean(bar.label)), drawn, element("span", {}, clean(bar.words)));
}

/** @param {{model: Model, el: HTMLElement}} view */
function render({ model, el }) {
  const root = element("div", { class: "verdict", "data-lm-suppress-shortcuts": "true" });
  el.append(root);
  const { store, close } = /** @type {typeof modelStore<VerdictState>} */ (modelStore)(model);

  /**
   * @param {Finding} finding
   * @param {number} number
   */
  const line = (finding, number) => {
    const item = element("li", { class: `finding ${side(finding.domain)}` });
    const frame = button("frame", `the table behind it: ${clean(finding.frame)}`, () => model.send({ op: "frame", number }), { tabindex: "0" });
    const show = button("show", `mark it in the timeline${finding.place ? `, ${finding.place}` : ""}`, () => model.send({ op: "show", number }), { tabindex: "0" });
    item.append(
      element("div", { class: "act" }, finding.shown ? show : null, frame),
      element("b", {}, clean(finding.head)),
      element("p", {}, clean(finding.evidence)),
      element("p", { class: "saving", title: clean(finding.remedy) }, clean(finding.saving)),
    );
    return item;
  };

  const draw = () => {
    const { window: length, bars, findings, nothing } = store.get("words") ?? { window: "", bars: [], findings: [], nothing: "" };
    const found = findings.length ? element("ol", {}, ...findings.map(line)) : element("p", {}, nothing);
    root.replaceChildren(element("div", { class: "note" }, clean(length)), ...bars.map(busy), found);
  };
  const useTheme = () => {
    const chosen = store.get("theme") ?? "auto";
    root.classList.toggle("tv-dark", chosen === "auto" ? surroundingsDark() : chosen === "dark");
  };
  /** @param {{event?: string, number?: number, text?: string} | null} message */
  const onMessage = (message) => {
    if (message?.event !== "frame" || message.number === undefined || message.text === undefined) return;
    const item = /** @type {HTMLElement | undefined} */ (root.querySelectorAll("li.finding")[message.number]);
    const pressed = /** @type {HTMLElement | null | undefined} */ (item?.querySelector(".act button:last-child"));
    if (item && pressed) hand(item, pressed, message.text, true);
  };
  draw();
  useTheme();
  store.on("words", draw);
  store.on("theme", useTheme);
  model.on("msg:custom", onMessage);
  const unwatch = watchSurroundings(useTheme);
  return () => {
    unwatch();
    model.off("msg:custom", onMessage);
    close();
  };
}

export default { render };
