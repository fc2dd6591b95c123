// @ts-check
// The notebook's table: sort, filter, group, choose columns, bars in cells, rows that lead to the timeline.

import { button, element } from "./dom.js";
import { count } from "./format.js";
import { keptForm, whenNobodyAnswers } from "./kept.js";
import { clean } from "./paint.js";
import { modelStore } from "./store.js";
import { surroundingsDark, watchSurroundings } from "./theme.js";
import { Wire } from "./wire.js";

/** @import { Model, Store } from "./types.js" */

/**
 * One column of the frame: what is shown, and for numbers what it stands for.
 * @typedef {object} Column
 * @property {string} key
 * @property {string} title
 * @property {string} header with its unit, for files
 * @property {string} kind
 * @property {string[]} texts
 * @property {string[]} [keys] what the texts are readable names of; empty: the texts themselves
 * @property {(number | null)[]} values
 * @property {boolean} empty
 */
/**
 * The rows as Python sends them.
 * @typedef {object} Data
 * @property {string} name
 * @property {string} title
 * @property {number} rows
 * @property {Column[]} columns
 * @property {string[]} by
 * @property {string[]} by_choices
 * @property {string} left_out
 * @property {string} trouble
 */
/**
 * What is shared with Python.
 * @typedef {object} TableState
 * @property {string[]} by
 * @property {{column?: string, down?: boolean}} sort
 * @property {string} filter
 * @property {string[]} columns
 * @property {number[]} chosen
 * @property {number[]} marked
 * @property {string} theme
 * @property {number} height
 * @property {number} version
 */

const ROW = 21; // px; rows have one height so that only those in sight exist
const MARGIN = 12; // rows beyond the edges
/** @type {Record<string, number>} */
const WIDTHS = { name: 300, text: 150, duration: 104, percent: 92, count: 84, bytes: 92, number: 92 };

/**
 * What a cell's text stands for: the name as the files have it.
 * @param {Column} column
 * @param {number} row
 */
const keyOf = (column, row) => column.keys?.[row] ?? column.texts[row];

class Table {
  /** @type {Data | null} */
  data = null;
  /** Rows that pass the filter, in the order of the screen. @type {number[]} */
  order = [];
  /** Position in `order` that the keys speak of. */
  current = 0;
  /** Per column the largest value, of which bars are shares. @type {number[]} */
  most = [];
  closed = false;
  /** @type {number | null} */
  scheduled = null;

  /**
   * @param {HTMLElement} root
   * @param {Store<TableState>} store
   * @param {() => Promise<Data>} ask
   */
  constructor(root, store, ask) {
    this.root = root;
    this.store = store;
    this.ask = ask;
    this.parts = this.build();
    this.observer = new ResizeObserver(() => this.renderSoon());
    this.observer.observe(this.parts.scroll);
    this.closers = [watchSurroundings(() => this.useTheme())];
    for (const key of /** @type {const} */ (["sort", "filter", "columns", "chosen", "marked"])) {
      store.on(key, () => {
        const filter = store.get("filter") ?? "";
        if (key === "filter" && this.parts.filter.value !== filter) this.parts.filter.value = filter;
        this.arrange();
      });
    }
    store.on("theme", () => this.useTheme());
    store.on("height", () => this.render());
    store.on("version", () => this.load());
    this.useTheme();
    this.load();
  }

  build() {
    const { root, store } = this;
    root.classList.add("tv-root", "tt-root");
    root.dataset.lmSuppressShortcuts = "true";
    root.tabIndex = 0;
    root.setAttribute("role", "grid");
    root.setAttribute("aria-label", "table: arrows move, Enter selects, slash filters");
    const filter = element("input", {
      type: "search", class: "tv-search", placeholder: "filter rows  ( / )", "aria-label": "filter rows", spellcheck: "false",
      value: store.get("filter") ?? "",
      oninput: () => this.set("filter", filter.value),
    });
    const columns = element("colgroup", {});
    const head = element("tr", {});
    const body = element("tbody", {});
    const table = element("table", { class: "tt-table" }, columns, element("thead", {}, head), body);
    const parts = {
      title: element("b", { class: "tt-title" }),
      filter,
      group: element("span", { class: "tv-group" }),
      count: element("span", { class: "tv-muted" }),
      menu: element("div", { class: "tv-menu", hidden: true }),
      busy: element("span", { class: "tv-trouble" }),
      columns,
      head,
      body,
      table,
      scroll: element("div", { class: "tt-scroll", onscroll: () => this.renderSoon() }, table),
    };
    root.replaceChildren(
      element("div", { class: "tv-toolbar" }, parts.title, filter, parts.group, parts.busy, parts.count, element("span", { class: "tv-spring" }),
        button("columns", "choose columns", () => this.toggleColumns()),
        button("copy", "copy the rows that are shown, for a spreadsheet", () => this.copy()),
        button("csv", "save the rows that are shown as CSV", () => this.save())),
      parts.menu,
      parts.scroll,
    );
    root.addEventListener("keydown", (event) => this.onKey(event));
    for (const kind of ["keyup", "keypress"]) root.addEventListener(kind, (event) => event.stopPropagation());
    return parts;
  }

  close() {
    this.closed = true;
    this.observer.disconnect();
    for (const close of this.closers) close();
  }

  /**
   * @template {keyof TableState} K
   * @param {K} key
   * @param {TableState[K]} value
   */
  set(key, value) {
    this.store.set(key, value);
    this.arrange();
  }

  useTheme() {
    const chosen = this.store.get("theme") ?? "auto";
    this.root.classList.toggle("tv-dark", chosen === "auto" ? surroundingsDark() : chosen === "dark");
  }

  async load() {
    this.parts.busy.textContent = "…";
    let data;
    try {
      data = await this.ask();
    } catch (error) {
      this.parts.busy.textContent = `no data: ${error instanceof Error ? error.message : error}`;
      return;
    }
    this.data = data;
    this.parts.busy.textContent = data.trouble;
    this.parts.title.textContent = data.title;
    this.most = data.columns.map((column) =>
      column.kind === "duration" || column.kind === "percent" || column.kind === "bytes"
        ? column.values.reduce((/** @type {number} */ most, value) => Math.max(most, value ?? 0), 0)
        : 0);
    this.current = 0;
    this.fillGroup(data);
    this.arrange();
  }

  /** @param {Data} data */
  fillGroup({ by_choices: choices, by }) {
    const select = element(
      "select",
      { class: "tv-select", "aria-label": "group by", title: "group by", onchange: () => this.store.set("by", select.value ? [select.value] : []) },
      element("option", { value: "" }, "by name alone"),
      ...choices.map((choice) => element("option", { value: choice, selected: choice === by[0] }, `by name and ${choice}`)),
    );
    this.parts.group.replaceChildren(...(choices.length ? [select] : []));
  }

  /** The columns that are shown; `at` is their position in the data. */
  shownColumns() {
    const wanted = this.store.get("columns") ?? [];
    const all = (this.data?.columns ?? []).map((column, at) => ({ ...column, at }));
    if (!wanted.length) return all.filter((column) => !column.empty);
    return wanted.map((key) => all.find((column) => column.key === key)).filter((column) => column !== undefined);
  }

  /** Filters and sorts; the order holds positions of the frame's rows. */
  arrange() {
    if (!this.data) return;
    const { columns, rows } = this.data;
    const wanted = (this.store.get("filter") ?? "").toLowerCase();
    let order = Array.from({ length: rows }, (_, i) => i);
    if (wanted) {
      const texts = columns.filter((column) => column.kind === "name" || column.kind === "text");
      order = order.filter((row) => texts.some((column) => [column.texts[row], keyOf(column, row)].some((text) => text.toLowerCase().includes(wanted))));
    }
    const { column: key, down } = this.store.get("sort") ?? {};
    const by = columns.find((column) => column.key === key);
    if (by) {
      order.sort((a, b) => {
        let way;
        if (numeric(by)) {
          const [x, y] = [by.values[a], by.values[b]];
          if (x === null || y === null) return Number(x === null) - Number(y === null); // what is missing comes last
          way = x - y;
        } else way = by.texts[a].localeCompare(by.texts[b]);
        return (down ? -way : way) || a - b;
      });
    }
    this.order = order;
    this.parts.count.textContent =
      order.length === rows ? `${count(rows)} rows` : `${count(order.length)} of ${count(rows)} rows`;
    if (this.data.left_out) this.parts.count.textContent += ` (${this.data.left_out})`;
    this.renderHead();
    this.render();
  }

  renderHead() {
    const { column: key, down } = this.store.get("sort") ?? {};
    const shown = this.shownColumns();
    this.parts.columns.replaceChildren(...shown.map((column) => element("col", { style: { width: `${WIDTHS[column.kind] ?? 110}px` } })));
    this.parts.head.replaceChildren(
      ...shown.map((column) =>
        element(
          "th",
          {
            class: numeric(column) ? "tv-number" : null,
            title: `${column.title} (${column.key}): sort`,
            "aria-sort": column.key === key ? (down ? "descending" : "ascending") : null,
            onclick: () => this.sortBy(column),
          },
          column.title,
        ),
      ),
    );
    this.parts.table.style.minWidth = `${shown.reduce((sum, column) => sum + (WIDTHS[column.kind] ?? 110), 0)}px`;
  }

  /** @param {Column} column */
  sortBy(column) {
    const now = this.store.get("sort") ?? {};
    const down = now.column === column.key ? !now.down : numeric(column);
    this.set("sort", { column: column.key, down });
  }

  renderSoon() {
    if (this.scheduled) return;
    this.scheduled = requestAnimationFrame(() => {
      this.scheduled = null;
      if (!this.closed) this.render();
    });
  }

  render() {
    if (!this.data) return;
    const { scroll, body } = this.parts;
    scroll.style.maxHeight = `${this.store.get("height") ?? 320}px`;
    const shown = this.shownColumns();
    const from = Math.max(0, Math.floor(scroll.scrollTop / ROW) - MARGIN);
    const to = Math.min(this.order.length, Math.ceil((scroll.scrollTop + (scroll.clientHeight || 320)) / ROW) + MARGIN);
    const chosen = new Set(this.store.get("chosen") ?? []);
    const marked = new Set(this.store.get("marked") ?? []);
    const rows = [];
    for (let i = from; i < to; i++) {
      const row = this.order[i];
      rows.push(
        element(
          "tr",
          {
            class: [chosen.has(row) && "tt-chosen", marked.has(row) && "tt-marked", i === this.current && "tt-current"].filter(Boolean).join(" ") || null,
            "data-row": row,
            "aria-selected": chosen.has(row),
            onclick: (/** @type {MouseEvent} */ event) => this.choose(i, event),
          },
          ...shown.map((column) => this.cell(column, row)),
        ),
      );
    }
    /** @param {number} height */
    const spacer = (height) => element("tr", { style: { height: `${height}px` }, class: "tt-spacer" });
    body.replaceChildren(spacer(from * ROW), ...rows, spacer((this.order.length - to) * ROW));
  }

  /**
   * @param {Column & {at: number}} column
   * @param {number} row
   */
  cell(column, row) {
    const text = clean(column.texts[row]);
    if (!numeric(column)) return element("td", { title: clean(keyOf(column, row)) }, text);
    const value = column.values[row];
    const most = this.most[column.at];
    const made = element("td", { class: "tv-number", title: value === null ? "not collected" : `${value} (${column.key})` }, text);
    if (value !== null && most > 0) {
      const share = Math.max(0, Math.min(1, value / (column.kind === "percent" ? Math.max(100, most) : most)));
      made.style.backgroundImage = `linear-gradient(to right, var(--tt-bar) ${(share * 100).toFixed(1)}%, transparent 0)`;
    }
    return made;
  }

  /**
   * Chooses the i-th row in sight: alone, with Ctrl as well, with Shift the range to it.
   * @param {number} i
   * @param {{shiftKey?: boolean, ctrlKey?: boolean, metaKey?: boolean}} event
   */
  choose(i, event = {}) {
    this.root.focus({ preventScroll: true });
    const row = this.order[i];
    let chosen = this.store.get("chosen") ?? [];
    if (event.shiftKey) {
      const [a, b] = [this.current, i].sort((x, y) => x - y);
      chosen = this.order.slice(a, b + 1);
    } else if (event.ctrlKey || event.metaKey) {
      chosen = chosen.includes(row) ? chosen.filter((other) => other !== row) : [...chosen, row];
    } else chosen = chosen.length === 1 && chosen[0] === row ? [] : [row];
    this.current = i;
    this.set("chosen", chosen);
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.key === "Tab") return;
    event.stopPropagation();
    const { tagName } = /** @type {Element} */ (event.target);
    if (tagName === "INPUT" || tagName === "SELECT") {
      if (event.key === "Escape") {
        this.parts.filter.value = "";
        this.set("filter", "");
        this.root.focus({ preventScroll: true });
      }
      return;
    }
    if (tagName === "BUTTON" && (event.key === "Enter" || event.key === " ")) return;
    event.preventDefault();
    const page = Math.max(1, Math.floor(this.parts.scroll.clientHeight / ROW) - 2);
    /** @type {Record<string, number>} */
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    const step = steps[event.key];
    if (step !== undefined) {
      this.current = Math.max(0, Math.min(this.order.length - 1, this.current + step));
      const top = this.current * ROW;
      const { scroll } = this.parts;
      if (top < scroll.scrollTop) scroll.scrollTop = top;
      else if (top + 3 * ROW > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = top + 3 * ROW - scroll.clientHeight;
      this.render();
    } else if (event.key === "Enter" || event.key === " ") this.choose(this.current, event.key === " " ? { ctrlKey: true } : {});
    else if (event.key === "/") this.parts.filter.focus();
    else if (event.key === "Escape") {
      if (!this.parts.menu.hidden) this.parts.menu.hidden = true;
      else this.set("chosen", []);
    }
  }

  toggleColumns() {
    const { menu } = this.parts;
    menu.hidden = !menu.hidden;
    if (menu.hidden) return;
    const columns = this.data?.columns ?? [];
    const shown = new Set(this.shownColumns().map((column) => column.key));
    /** @type {(key: string, on: boolean) => void} */
    const toggle = (key, on) => {
      if (on) shown.add(key);
      else shown.delete(key);
      this.set("columns", columns.map((column) => column.key).filter((one) => shown.has(one)));
    };
    menu.replaceChildren(
      element("div", { class: "tv-group" },
        button("all", "show all columns", () => {
          this.set("columns", columns.map((column) => column.key));
          this.toggleColumns();
        }),
        button("reset", "those that have values", () => {
          this.set("columns", []);
          this.toggleColumns();
        }),
        button("×", "close", () => (menu.hidden = true))),
      element("div", { class: "tv-list" }, ...columns.map((column) => {
        const box = element("input", { type: "checkbox", checked: shown.has(column.key), onchange: () => toggle(column.key, box.checked) });
        return element("label", {}, box, ` ${column.title}`, element("span", { class: "tv-note" }, ` ${column.key}${column.empty ? ", not collected" : ""}`));
      })),
    );
  }

  /** The rows that are shown as text: numbers in the unit that the header names. @param {string} separator */
  text(separator) {
    const shown = this.shownColumns();
    /** @param {string | number | null} value */
    const quote = (value) => {
      let text = value === null ? "" : String(value);
      if (typeof value === "string" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`; // no formulas out of names
      return separator === "," || /[\t\n"]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    const lines = [shown.map((column) => quote(column.header)).join(separator)];
    for (const row of this.order) {
      lines.push(shown.map((column) => quote(numeric(column) ? column.values[row] : keyOf(column, row))).join(separator));
    }
    return lines.join("\n");
  }

  async copy() {
    const text = this.text("\t");
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // Pages without the permission still copy what is selected.
      const area = element("textarea", { class: "tv-announce" });
      area.value = text;
      this.root.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    this.parts.busy.textContent = `${count(this.order.length)} rows copied`;
    setTimeout(() => (this.parts.busy.textContent = ""), 2500);
  }

  save() {
    const url = URL.createObjectURL(new Blob([this.text(",")], { type: "text/csv" }));
    const anchor = element("a", { href: url, download: `${this.data?.name || "table"}.csv` });
    anchor.click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  }
}

/** @param {Column} column */
function numeric(column) {
  return column.kind !== "name" && column.kind !== "text";
}

/** @param {{model: Model, el: HTMLElement}} view */
function render({ model, el }) {
  const root = element("div", {});
  el.append(root);
  const wire = new Wire(model);
  const { store, close } = /** @type {typeof modelStore<TableState>} */ (modelStore)(model);
  const kept = keptForm(model, el);
  kept.hide();
  const answered = whenNobodyAnswers(() => {
    kept.show();
    table.parts.busy.textContent = "No kernel answers: no rows to show.";
  });
  const ask = async () => {
    try {
      const answer = await wire.ask("open");
      kept.hide();
      return answer;
    } catch (error) {
      kept.show();
      throw error;
    } finally {
      answered();
    }
  };
  const table = new Table(root, store, ask);
  Object.assign(root, { table }); // for those who script the page
  return () => {
    close();
    answered();
    table.close();
    wire.close();
  };
}

export default { render };
