// @ts-check
// The frame around the lanes: toolbar, search, tracks menu, labels, help, status line.

import { button, element } from "./dom.js";
import { count, duration } from "./format.js";
import { trackNote } from "./frame.js";
import { SECTION_KEYS } from "./keys.js";
import { clean } from "./paint.js";
import { helpContent } from "./panel.js";
import { dragLabel } from "./pointer.js";

/** @import { Coloring } from "./coloring.js" */
/** @import { Cursor } from "./cursor.js" */
/** @import { History } from "./history.js" */
/** @import { Navigation } from "./navigation.js" */
/** @import { Pane } from "./pane.js" */
/** @import { Rows } from "./rows.js" */
/** @import { Search } from "./search.js" */
/** @import { Selection } from "./selection.js" */
/** @import { Info, LaneRow, Row, Track } from "./types.js" */
/** @import { Viewport } from "./viewport.js" */
/** @typedef {ReturnType<typeof build>} Parts */

const MOST_TRACKS = 400; // of the menu: more are found by the filter

/** Builds the elements inside `root` and returns them by name. @param {HTMLElement} root */
export function build(root) {
  root.classList.add("tv-root");
  root.tabIndex = 0;
  root.setAttribute("role", "application");
  root.setAttribute("aria-label", "Timeline. Press question mark for the list of keys.");
  root.dataset.lmSuppressShortcuts = "true";
  const labels = element("div", { class: "tv-labels" });
  const lanes = element("canvas", { class: "tv-lanes", "aria-hidden": "true" });
  const stage = element("div", { class: "tv-stage" }, labels, lanes);
  const tall = element("div", { class: "tv-tall" }, stage);
  const parts = {
    root,
    search: element("input", {
      type: "search",
      class: "tv-search",
      placeholder: "gemm kind:kernel dur>50us  ( / )",
      title: "words of a name, or fields: kind:kernel dur>50us name~gemm stream:7 (all of them: ?)",
      "aria-label": "search",
      "aria-keyshortcuts": "/",
      spellcheck: "false",
      autocapitalize: "off",
    }),
    matches: element("span", { class: "tv-matches", "aria-live": "polite" }),
    color: element(
      "select",
      { class: "tv-select", "aria-label": "colour by", title: "colour by (K)", tabindex: "-1" },
      element("option", { value: "name" }, "colour: name"),
      element("option", { value: "kind" }, "colour: kind"),
    ),
    toolbar: element("div", { class: "tv-toolbar" }),
    menu: element("div", { class: "tv-menu", hidden: true }),
    minimap: element("canvas", { class: "tv-minimap", "aria-hidden": "true" }),
    ruler: element("canvas", { class: "tv-ruler", "aria-hidden": "true" }),
    lanes,
    labels,
    splitter: element("div", { class: "tv-splitter", title: "drag to resize the labels" }),
    stage,
    tall,
    scroll: element("div", { class: "tv-scroll" }, tall),
    corner: element("div", { class: "tv-corner" }),
    tooltip: element("div", { class: "tv-tooltip", role: "tooltip", hidden: true }),
    help: element("div", { class: "tv-help", role: "dialog", "aria-label": "keys and mouse", hidden: true }),
    panel: element("div", { class: "tv-panel", hidden: true }),
    banner: element("div", { class: "tv-banner", role: "status", hidden: true }),
    legend: element("div", { class: "tv-colours", "aria-label": "legend" }),
    status: element("div", { class: "tv-status" }),
    announce: element("div", { class: "tv-announce", "aria-live": "polite" }),
  };
  root.replaceChildren(
    parts.toolbar,
    parts.banner,
    parts.menu,
    element("div", { class: "tv-top" }, parts.corner, element("div", { class: "tv-axis" }, parts.minimap, parts.ruler)),
    element("div", { class: "tv-body" }, parts.scroll, parts.splitter, parts.tooltip, parts.help),
    parts.panel,
    parts.legend,
    parts.status,
    parts.announce,
  );
  return parts;
}

/**
 * Fills the toolbar and makes its search and colour fields work.
 * @param {Parts} parts
 * @param {{viewport: Viewport, selection: Selection, history: History, search: Search, coloring: Coloring, menu: TracksMenu, help: Help,
 *   savePicture: () => void}} modules
 */
export function fillToolbar({ root, toolbar, search: input, matches, color }, { viewport, selection, history, search, coloring, menu, help, savePicture }) {
  const back = button("↶", "back to what was in sight and selected (Backspace)", () => history.go(-1));
  const forth = button("↷", "forth again (Shift+Backspace)", () => history.go(1));
  const showHistory = () => {
    back.toggleAttribute("disabled", !history.canGoBack);
    forth.toggleAttribute("disabled", !history.canGoForth);
  };
  history.changed.listen(showHistory);
  showHistory();
  input.addEventListener("input", () => search.typed());
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") search.step(!event.shiftKey, true);
    if (event.key === "Escape") {
      search.find("");
      root.focus({ preventScroll: true });
    }
  });
  color.addEventListener("change", () => coloring.set(color.value));
  const showColor = () => (color.value = coloring.by);
  coloring.changed.listen(showColor);
  showColor();
  toolbar.replaceChildren(
    element("span", { class: "tv-group" },
      button("−", "zoom out (S)", () => viewport.zoomBy(1.6)),
      button("+", "zoom in (W)", () => viewport.zoomBy(1 / 1.6)),
      button("fit", "fit the selection, then everything (F)", () => viewport.fit(selection.extent)),
      back,
      forth),
    element("span", { class: "tv-group" },
      input,
      button("‹", "previous match (Shift+N)", () => search.step(false)),
      button("›", "next match (N)", () => search.step(true)),
      matches),
    element("span", { class: "tv-spring" }),
    color,
    button("tracks", "choose, collapse and order tracks", () => menu.toggle()),
    button("png", "save the picture (E)", () => savePicture()),
    button("?", "keys and mouse (?)", () => help.toggle()),
  );
}

/**
 * Lets the labels be resized.
 * @param {HTMLElement} splitter
 * @param {Pane} pane
 */
export function dragSplitter(splitter, pane) {
  splitter.addEventListener("pointerdown", (event) => {
    const from = pane.labelWidth - event.clientX;
    /** @param {PointerEvent} e */
    const move = (e) => pane.setLabelWidth(from + e.clientX);
    const end = () => {
      window.removeEventListener("pointermove", move);
      window.removeEventListener("pointerup", end);
    };
    window.addEventListener("pointermove", move);
    window.addEventListener("pointerup", end);
    event.preventDefault();
  });
}

/**
 * Buttons that lead to the sections, however far down they are.
 * @param {HTMLElement} corner
 * @param {{rows: Rows, navigation: Navigation}} modules
 */
export function fillJumps(corner, { rows, navigation }) {
  const sections = rows.rows.filter((row) => row.type === "section").filter((row) => row.section !== "pinned");
  if (sections.length < 2) return;
  corner.replaceChildren(
    ...sections.map((row) =>
      button(row.title[0], `go to this section (${SECTION_KEYS.indexOf(row.section) + 1})`, () => navigation.jumpTo(row.section), { class: `tv-jump tv-${row.section}` }),
    ),
  );
}

/** The labels of the rows in sight. They are built anew only when they change; scrolling moves them. */
export class Labels {
  #parts;
  #modules;
  #key = "";

  /**
   * @param {Pick<Parts, "root" | "labels" | "lanes">} parts
   * @param {{rows: Rows, pane: Pane, cursor: Cursor, length: number}} modules `length` of the trace
   */
  constructor(parts, modules) {
    this.#parts = parts;
    this.#modules = modules;
  }

  update() {
    const { rows, pane, cursor } = this.#modules;
    const { labels } = this.#parts;
    const visible = pane.visible(60);
    const key = [visible[0]?.y, visible.length, rows.version, cursor.row?.track.id, pane.labelWidth].join("|");
    if (key !== this.#key) {
      this.#key = key;
      labels.replaceChildren(element("div", { class: "tv-shift" }, ...this.#build(visible)));
    }
    /** @type {HTMLElement} */ (labels.firstChild).style.transform = `translateY(${-pane.scroll}px)`;
  }

  /** @param {Row[]} visible */
  #build(visible) {
    const { rows } = this.#modules;
    const out = [];
    const seen = new Set();
    for (const row of visible) {
      const style = { top: `${row.y}px`, height: `${row.height}px` };
      if (row.type === "section") {
        const title = row.hidden ? `${row.title[0]} · ${row.hidden} hidden` : row.title[0];
        out.push(element("div", { class: `tv-label tv-section tv-${row.section}`, style }, title));
      } else if (row.type === "group") {
        out.push(
          element(
            "div",
            { class: `tv-label tv-grouplabel tv-in-${row.section}`, style, title: clean(row.group) },
            button(row.folded ? "▸" : "▾", row.folded ? "unfold the group (O)" : "fold the group (O)", () => rows.toggle("folded", row.id), { class: "tv-caret" }),
            element("span", { class: "tv-text" }, clean(row.group || "other")),
            row.folded ? element("span", { class: "tv-note" }, row.size === 1 ? "1 track" : `${row.size} tracks`) : null,
          ),
        );
      } else if (row.type === "lane") {
        const key = `${row.track.id}/${row.pinned}`;
        if (row.role !== "spans" && row.lanes > 1 && !row.track.recording) {
          out.push(element("div", { class: "tv-label tv-role", style }, { instants: "events", annotations: "ranges", modeled: "modeled", implausible: "implausible" }[row.role]));
        }
        if (seen.has(key)) continue;
        seen.add(key);
        out.push(this.#trackLabel(row));
      } else if (row.type === "counter") {
        out.push(
          element("div", { class: "tv-label tv-track tv-in-counter", style, title: clean(`${row.counter.name} (${row.counter.label})`) },
            element("div", { class: "tv-line" }, element("span", { class: "tv-text" }, clean(row.counter.name))),
            element("div", { class: "tv-note" }, clean(row.counter.label))),
        );
      } else if (row.type === "aggregate") {
        out.push(
          element("div", { class: "tv-label tv-track tv-in-aggregate", style, title: clean(`${row.record.name} · ${row.record.track}`) },
            element("div", { class: "tv-line" }, element("span", { class: `tv-dot tv-${row.record.domain}` }), element("span", { class: "tv-text" }, clean(row.record.name || "(no name)")))),
        );
      }
    }
    return out;
  }

  /** @param {LaneRow} row */
  #trackLabel(row) {
    const { rows, pane, cursor, length } = this.#modules;
    const { root, lanes } = this.#parts;
    const { track } = row;
    const own = rows.laneRows.filter((other) => other.track === track && other.pinned === row.pinned);
    const [first, last] = [own[0], own[own.length - 1]];
    const height = last.y + last.height - first.y;
    const pinned = rows.layout.pinned.includes(track.id);
    const note = trackNote(track, length);
    const many = track.lanes.length > 1 && !track.recording;
    // Badges of roles stand to the right of the first and second line.
    const badges = own.slice(0, 2).map((one, at) => (one.role !== "spans" && one.lanes > 1 ? ` tv-badged-${at}` : "")).join("");
    const label = element(
      "div",
      {
        class: `tv-label tv-track tv-in-${track.section}${track.recording ? " tv-thin" : badges}${cursor.row?.track === track ? " tv-cursor" : ""}`,
        style: { top: `${first.y}px`, height: `${height}px` },
        title: `${clean(track.label)}\n${note}`,
        "data-track": track.id,
      },
      element(
        "div",
        { class: "tv-line" },
        many
          ? button(row.collapsed ? "▸" : "▾", row.collapsed ? "expand (C)" : "collapse (C)", () => rows.toggle("collapsed", track.id), { class: "tv-caret" })
          : element("span", { class: "tv-caret" }),
        element("span", { class: "tv-text" }, clean(track.label)),
        element(
          "span",
          { class: "tv-tools" },
          button(pinned ? "●" : "○", pinned ? "unpin (P)" : "pin to the top (P)", () => rows.toggle("pinned", track.id)),
          button("×", "hide (H)", () => rows.toggle("hidden", track.id)),
        ),
      ),
      height >= 32 ? element("div", { class: "tv-note" }, row.collapsed && many ? `${track.lanes.length} lanes collapsed` : note) : null,
    );
    dragLabel({ label, root, lanes }, track, { rows, pane, cursor });
    return label;
  }
}

/** The menu that chooses which tracks are shown. */
export class TracksMenu {
  #menu;
  #rows;

  /**
   * @param {HTMLElement} menu
   * @param {Rows} rows
   */
  constructor(menu, rows) {
    this.#menu = menu;
    this.#rows = rows;
    rows.changed.listen(() => this.open && this.#fill());
  }

  get open() {
    return !this.#menu.hidden;
  }

  toggle() {
    this.#menu.hidden = this.open;
    if (this.open) this.#fill();
  }

  close() {
    this.#menu.hidden = true;
  }

  #fill() {
    const rows = this.#rows;
    const list = element("div", { class: "tv-list" });
    /** @param {Track} track */
    const choice = (track) =>
      element(
        "label",
        {},
        element("input", { type: "checkbox", checked: !rows.layout.hidden.includes(track.id), onchange: () => rows.toggle("hidden", track.id) }),
        element("span", { class: `tv-dot tv-${track.section}` }),
        ` ${clean(track.label)}`,
        element("span", { class: "tv-note" }, ` ${clean(track.group)}`),
      );
    /** @param {string} text */
    const fill = (text) => {
      const wanted = text.toLowerCase();
      const some = rows.tracks.filter((track) => `${track.label} ${track.group}`.toLowerCase().includes(wanted)).slice(0, MOST_TRACKS);
      list.replaceChildren(...some.map(choice));
    };
    fill("");
    const filter = element("input", { type: "search", placeholder: "filter tracks", "aria-label": "filter tracks", oninput: () => fill(filter.value) });
    this.#menu.replaceChildren(
      element("div", { class: "tv-group" },
        filter,
        button("show all", "show all tracks (Shift+H)", () => rows.showAll()),
        button("collapse all", "collapse all tracks (Shift+C)", () => rows.collapseAll(true)),
        button("expand all", "expand all tracks", () => rows.collapseAll(false)),
        button("reset", "forget the arrangement", () => rows.reset()),
        button("×", "close", () => this.close())),
      list,
    );
  }
}

/** The list of keys. */
export class Help {
  #help;
  #root;

  /** @param {Pick<Parts, "help" | "root">} parts */
  constructor({ help, root }) {
    this.#help = help;
    this.#root = root;
  }

  get open() {
    return !this.#help.hidden;
  }

  toggle(on = !this.open) {
    this.#help.hidden = !on;
    if (on) this.#help.replaceChildren(...helpContent(() => this.toggle(false)));
    else this.#root.focus({ preventScroll: true });
  }
}

/**
 * The line below everything.
 * @param {HTMLElement} line
 * @param {Info} info
 * @param {Viewport} viewport
 * @param {string} trouble
 */
export function status(line, info, { t0, t1, length }, trouble) {
  const sight = Math.max(0, Math.min(t1, length) - Math.max(t0, 0));
  const words = [`${duration(sight)} in sight of ${duration(length)}`, `${count(info.events)} events`, `${count(info.tracks.length)} tracks`];
  for (const note of [info.note, info.left_out]) if (note) words.push(note);
  const children = [element("span", {}, words.join(" · "))];
  if (info.synthetic) children.unshift(element("span", { class: "tv-badge tv-synthetic" }, "SYNTHETIC DATA"));
  if (trouble) children.push(element("span", { class: "tv-trouble" }, trouble));
  line.replaceChildren(...children);
}
