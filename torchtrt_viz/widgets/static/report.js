// @ts-check
// The exported page: its timeline, its theme, and tables that sort and filter.

import { hand } from "./handing.js";
import { openPage } from "./page.js";
import { openPictures } from "./pictures.js";
import { searchFor } from "./query.js";
import { memoryStore } from "./store.js";

/** @import { State } from "./types.js" */

const page = document.documentElement;
const root = document.getElementById("tv-timeline");
const data = document.getElementById("tv-data");
const store = /** @type {typeof memoryStore<State>} */ (memoryStore)({});

/** @param {"light" | "dark"} name */
function setTheme(name) {
  page.dataset.theme = name;
  store.tell("theme", name);
}

function startTheme() {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  setTheme(dark.matches ? "dark" : "light");
  dark.addEventListener("change", () => setTheme(dark.matches ? "dark" : "light"));
  document.getElementById("theme")?.addEventListener("click", () => setTheme(page.dataset.theme === "dark" ? "light" : "dark"));
}

/**
 * Sorts a table by a column: numbers by their value, which the cell keeps beside its text.
 * @param {HTMLTableElement} table
 * @param {number} column
 * @param {boolean} down
 */
function sortBy(table, column, down) {
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => {
    const cell = row.cells[column];
    return { row, key: cell.dataset.v !== undefined ? Number(cell.dataset.v) : (cell.textContent ?? "") };
  });
  /** @typedef {string | number} Key */
  /** @type {(a: Key, b: Key) => number} */
  const order = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
  rows.sort(({ key: a }, { key: b }) => {
    const missing = Number(a === "") - Number(b === "");
    return missing || (down ? order(b, a) : order(a, b));
  });
  body.append(...rows.map(({ row }) => row));
}

function prepareTables() {
  /** @type {NodeListOf<HTMLTableElement>} */
  const tables = document.querySelectorAll("table.sortable");
  for (const table of tables) {
    const titles = [...(table.tHead?.rows[0].cells ?? [])];
    titles.forEach((cell, column) => {
      cell.tabIndex = 0;
      const sort = () => {
        const down = cell.getAttribute("aria-sort") !== "descending";
        for (const other of titles) other.removeAttribute("aria-sort");
        cell.setAttribute("aria-sort", down ? "descending" : "ascending");
        sortBy(table, column, down);
      };
      cell.addEventListener("click", sort);
      cell.addEventListener("keydown", (event) => event.key === "Enter" && sort());
    });
    /** @type {HTMLInputElement | null | undefined} */
    const filter = table.closest("section")?.querySelector("input.filter");
    filter?.addEventListener("input", () => {
      const wanted = filter.value.toLowerCase();
      for (const row of table.tBodies[0].rows) row.hidden = !row.textContent?.toLowerCase().includes(wanted);
    });
  }
}

/** A button that carries an expression hands it over, in sight at the end of what it belongs to. */
function prepareExpressions() {
  document.addEventListener("click", (event) => {
    const pressed = event.target instanceof Element ? event.target.closest("[data-copy]") : null;
    const place = pressed?.closest("li");
    if (pressed instanceof HTMLElement && place) hand(place, pressed, pressed.dataset.copy ?? "");
  });
}

startTheme();
prepareTables();
openPictures(document);
prepareExpressions();
if (root && data) {
  store.set("height", Number(root.dataset.height) || Math.max(420, Math.round(window.innerHeight * 0.62)));
  openPage(root, data.textContent ?? "", store).then(
    (timeline) => {
      Object.assign(window, { tvTimeline: timeline }); // for those who script the page
      data.remove(); // it is decoded: the text need not be held twice
      // A name in a table leads to its spans in the timeline; so does whatever says what to show.
      document.addEventListener("click", (event) => {
        const request = event.target instanceof Element && event.target.closest("[data-show]")?.getAttribute("data-show");
        if (request) {
          timeline.show(JSON.parse(request));
          return root.scrollIntoView({ block: "nearest" });
        }
        const name = event.target instanceof Element && event.target.closest("[data-name]")?.getAttribute("data-name");
        if (!name) return;
        timeline.search(searchFor(name)).then(() => timeline.stepMatch(true));
        root.scrollIntoView({ block: "nearest" });
      });
    },
    (error) => {
      root.textContent = `The timeline could not be drawn: ${error.message}`;
    },
  );
}
