// @ts-check
// The bar over a picture: a search box with "17 of 504", buttons, and a line that says what is chosen.

import { button, element } from "./dom.js";

/**
 * @typedef {object} Finder
 * @property {HTMLElement} bar
 * @property {(words: string) => void} say
 */

/**
 * @param {string} label of the search box
 * @param {string[]} names what is searched, by number
 * @param {(hits: Set<number>) => void} mark
 * @param {(number: number) => void} go shows one of them
 * @param {Node[]} more
 * @returns {Finder}
 */
export function finder(label, names, mark, go, more) {
  const lower = names.map((name) => name.toLowerCase());
  /** @type {number[]} */
  let hits = [];
  let at = -1;
  const count = element("span", { class: "tv-count" });
  const said = element("p", { class: "tv-said", "aria-live": "polite" });
  const input = element("input", { type: "search", placeholder: label, "aria-label": label });
  const tell = () => {
    count.textContent = !input.value ? "" : hits.length ? `${at + 1} of ${hits.length}` : "nothing found";
  };
  /** @param {number} step */
  const move = (step) => {
    if (!hits.length) return;
    at = (at + step + hits.length) % hits.length;
    tell();
    go(hits[at]);
  };
  input.addEventListener("input", () => {
    const wanted = input.value.toLowerCase();
    hits = wanted ? lower.flatMap((name, number) => (name.includes(wanted) ? [number] : [])) : [];
    at = -1;
    mark(new Set(hits));
    if (hits.length) move(1);
    else tell();
  });
  input.addEventListener("keydown", (event) => {
    event.stopPropagation(); // a notebook has commands on plain keys
    if (event.key === "Enter") move(event.shiftKey ? -1 : 1);
  });
  const bar = element(
    "div",
    { class: "tv-bar" },
    input,
    button("‹", "previous match", () => move(-1), { tabindex: "0" }),
    button("›", "next match", () => move(1), { tabindex: "0" }),
    count,
    ...more,
    said,
  );
  return { bar, say: (words) => (said.textContent = words) };
}
