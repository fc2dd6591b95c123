// The exported page: its timeline, its theme, and tables that sort and filter.

import { memoryStore, openPage } from "./page.js";

const page = document.documentElement;

function setTheme(name) {
  page.dataset.theme = name;
  window.tvTimeline?.store.tell("theme", name);
}

function startTheme() {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  setTheme(dark.matches ? "dark" : "light");
  dark.addEventListener("change", () => setTheme(dark.matches ? "dark" : "light"));
  document.getElementById("theme")?.addEventListener("click", () => setTheme(page.dataset.theme === "dark" ? "light" : "dark"));
}

/** Sorts a table by a column: numbers by their value, which the cell keeps beside its text. */
function sortBy(table, column, down) {
  const body = table.tBodies[0];
  const key = (row) => {
    const cell = row.cells[column];
    return cell.dataset.v !== undefined ? Number(cell.dataset.v) : cell.textContent;
  };
  const rows = [...body.rows].map((row) => [key(row), row]);
  const order = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
  rows.sort(([a], [b]) => {
    const missing = Number(a === "") - Number(b === "");
    return missing || (down ? order(b, a) : order(a, b));
  });
  body.append(...rows.map(([, row]) => row));
}

function prepareTables() {
  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((cell, column) => {
      cell.tabIndex = 0;
      const sort = () => {
        const down = cell.getAttribute("aria-sort") !== "descending";
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        cell.setAttribute("aria-sort", down ? "descending" : "ascending");
        sortBy(table, column, down);
      };
      cell.addEventListener("click", sort);
      cell.addEventListener("keydown", (event) => event.key === "Enter" && sort());
    });
    const filter = table.closest("section")?.querySelector("input.filter");
    filter?.addEventListener("input", () => {
      const wanted = filter.value.toLowerCase();
      for (const row of table.tBodies[0].rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
    });
  }
  // A name in a table leads to its spans in the timeline.
  document.addEventListener("click", (event) => {
    const name = event.target.closest?.("[data-name]");
    if (!name || !window.tvTimeline) return;
    window.tvTimeline.search(name.dataset.name).then(() => window.tvTimeline.stepMatch(true));
    document.getElementById("tv-timeline").scrollIntoView({ block: "nearest" });
  });
}

startTheme();
prepareTables();
const root = document.getElementById("tv-timeline");
const data = document.getElementById("tv-data");
if (root && data) {
  openPage(root, data.textContent, memoryStore({ theme: page.dataset.theme, height: Number(root.dataset.height) || Math.max(420, Math.round(window.innerHeight * 0.62)) })).then(
    (timeline) => {
      window.tvTimeline = timeline;
      data.remove(); // it is decoded: the text need not be held twice
    },
    (error) => {
      root.textContent = `The timeline could not be drawn: ${error.message}`;
    },
  );
}
