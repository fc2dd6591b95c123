// @ts-check
// Every action by keyboard. The table is also the help.

import { duration } from "./format.js";
import { groupId } from "./rows.js";

/** @import { Modules } from "./timeline.js" */
/** @typedef {(modules: Modules, event: KeyboardEvent) => unknown} Action */

/** Sections in the order of the keys 1, 2, ... */
export const SECTION_KEYS = ["gpu", "host", "recording", "counter", "aggregate"];

/**
 * Group, keys as shown, what they do, keys as events name them, action.
 * @type {[string, string, string, string, Action][]}
 */
export const KEYS = [
  ["Move", "W / S", "zoom in, out (Shift: more)", "w s W S", ({ viewport }, e) => viewport.zoomBy(/w/i.test(e.key) ? 1 / stride(e) : stride(e))],
  ["Move", "A / D or ← / →", "pan (Shift: more)", "a d A D ArrowLeft ArrowRight", ({ viewport }, e) => viewport.panBy((/^(a|arrowleft)$/i.test(e.key) ? -0.12 : 0.12) * stride(e))],
  ["Move", "↑ / ↓", "lane cursor up, down", "ArrowUp ArrowDown", moveCursor],
  ["Move", "PgUp / PgDn", "scroll the lanes", "PageUp PageDown", ({ pane }, e) => pane.scrollBy(e.key === "PageUp" ? -0.8 : 0.8)],
  ["Move", "1 2 3 4 5", "go to the section GPU, HOST, RECORDING, COUNTERS, SUMS", "1 2 3 4 5", ({ navigation }, e) => navigation.jumpTo(SECTION_KEYS[Number(e.key) - 1])],
  ["Move", "Home / End", "begin, end of the trace", "Home End", ({ viewport }, e) => viewport.panTo(e.key === "Home" ? 0 : 1)],
  ["Move", "F", "fit the selection; again: everything", "f", ({ viewport, selection }) => viewport.fit(selection.extent)],
  ["Move", "0", "everything", "0", ({ viewport }) => viewport.fitAll()],
  ["Move", "Backspace", "back to what was in sight and selected before (Shift: forth)", "Backspace", goThrough],
  ["Select", ". / ,", "next, previous span of the lane", ". ,", ({ selection }, e) => selection.step(e.key === "." ? 1 : -1)],
  ["Select", "Enter", "the span nearest to the middle of the cursor's lane", "Enter", ({ selection }) => selection.selectAtCursor()],
  ["Select", "X", "box: what is in sight in the cursor's lane (Shift: in all lanes)", "x X", ({ selection }, e) => selection.boxInSight(e.shiftKey)],
  ["Select", "> / <", "box: extend to the next, previous span", "> <", ({ selection }, e) => selection.extendBox(e.key === ">" ? 1 : -1)],
  ["Select", "G / B", "follow the arrow to the linked span, back", "g b", ({ selection }, e) => (e.key === "g" ? selection.followLink() : selection.goBack())],
  ["Select", "J", "fit both ends of the arrow", "j", ({ selection }) => selection.fitBoth()],
  ["Select", "[ / ]", "ruler: from the begin, to the end of the selection (or the middle of the view)", "[ ]", rulerAtSelection],
  ["Select", "Esc", "clear: help, ruler, selection, search", "Escape", clear],
  ["Search", "/", "search for a name, or more: see below", "/", ({ search }) => search.focus()],
  ["Search", "N / Shift+N", "next, previous match", "n N", ({ search }, e) => search.step(e.key === "n")],
  ["Lanes", "C", "collapse or expand the track (Shift: all)", "c C", ({ rows, cursor }, e) => (e.shiftKey ? rows.collapseAll(rows.layout.collapsed.length === 0) : cursor.row && rows.toggle("collapsed", cursor.row.track.id))],
  ["Lanes", "P", "pin the track to the top", "p", ({ rows, cursor }) => cursor.row && rows.toggle("pinned", cursor.row.track.id)],
  ["Lanes", "H", "hide the track (Shift: show all)", "h H", ({ rows, cursor }, e) => (e.shiftKey ? rows.showAll() : cursor.row && rows.toggle("hidden", cursor.row.track.id))],
  ["Lanes", "{ / }", "move the track up, down", "{ }", ({ rows, cursor }, e) => cursor.row && rows.move(cursor.row.track, e.key === "{" ? -1 : 1)],
  ["Lanes", "O", "fold or unfold the group", "o", foldGroup],
  ["View", "K", "colour by name or by kind", "k", ({ coloring }) => coloring.cycle()],
  ["View", "E", "save the picture as PNG", "e", ({ savePicture }) => savePicture()],
  ["View", "?", "this list", "?", ({ help }) => help.toggle()],
];

const BY_KEY = new Map(KEYS.flatMap(([, , , keys, action]) => keys.split(" ").map((key) => [key, action])));

/** @type {[string, string][]} */
export const MOUSE = [
  ["drag", "select a box of time and lanes"],
  ["Shift + drag, or middle button", "pan"],
  ["Ctrl + wheel, or pinch", "zoom at the pointer"],
  ["wheel sideways, or Shift + wheel", "pan"],
  ["wheel", "scroll the lanes, then the page"],
  ["click / double click", "select and pin details / zoom to the span"],
  ["drag on the ruler", "measure between two points"],
  ["drag on the overview", "move the window, or draw a new one"],
  ["drag a label", "reorder tracks"],
];

/**
 * Handles a key pressed while the timeline has the focus. Nothing of it reaches the notebook.
 * @param {Modules} modules
 * @param {KeyboardEvent} event
 */
export function onKey(modules, event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return; // the browser's and the lab's own
  if (event.key === "Tab") return;
  event.stopPropagation();
  const { tagName } = /** @type {Element} */ (event.target);
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(tagName)) return;
  if (tagName === "BUTTON" && (event.key === "Enter" || event.key === " ")) return;
  const action = BY_KEY.get(event.key) ?? BY_KEY.get(event.key.toLowerCase());
  event.preventDefault();
  if (action) action(modules, event);
}

/** @param {KeyboardEvent} event */
function stride(event) {
  return event.shiftKey ? 3 : 1.4;
}

/** @param {Modules} modules @param {KeyboardEvent} event */
function moveCursor({ cursor, selection, pane, announce }, event) {
  const row = cursor.move(event.key === "ArrowUp" ? -1 : 1);
  if (!row) return;
  if (event.shiftKey) selection.addLane(row.lane);
  pane.scrollTo(row);
  announce(`${row.track.label}, ${row.section === "gpu" ? "GPU" : "host"}, lane ${row.at + 1} of ${row.lanes}`);
}

/** @param {Modules} modules @param {KeyboardEvent} event */
function rulerAtSelection({ measure, selection, viewport, announce }, event) {
  const begin = event.key === "[";
  const chosen = selection.extent;
  const length = measure.setEnd(chosen ? (begin ? chosen.t0 : chosen.t1) : viewport.middle, begin);
  announce(`ruler ${duration(length)}`);
}

/** @param {Modules} modules @param {KeyboardEvent} event */
function goThrough({ history, announce }, event) {
  if (!history.go(event.shiftKey ? 1 : -1)) announce(event.shiftKey ? "nothing to go forth to" : "nothing to go back to");
}

/** Clears one thing, the topmost. @param {Modules} modules */
function clear({ help, menu, measure, selection, search }) {
  if (help.open) help.toggle(false);
  else if (menu.open) menu.close();
  else if (measure.span) measure.clear();
  else if (selection.any) selection.select(null);
  else if (search.active) search.find("");
}

/** @param {Modules} modules */
function foldGroup({ rows, cursor }) {
  const group = cursor.row ? groupId(cursor.row.track) : rows.layout.folded.at(-1);
  if (group) rows.toggle("folded", group);
}
