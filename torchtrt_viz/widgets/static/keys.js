// Every action by keyboard. The table is also the help.

/** Sections in the order of the keys 1, 2, ... */
export const SECTION_KEYS = ["host", "gpu", "counter", "aggregate"];

/** [group, keys as shown, what they do, test of the event, action(timeline, event)] */
export const KEYS = [
  ["Move", "W / S", "zoom in, out (Shift: more)", "w s W S", (t, e) => t.zoomBy(/w/i.test(e.key) ? 1 / t.stride(e) : t.stride(e))],
  ["Move", "A / D or ← / →", "pan (Shift: more)", "a d A D ArrowLeft ArrowRight", (t, e) => t.panBy(/^(a|arrowleft)$/i.test(e.key) ? -0.12 * t.stride(e) : 0.12 * t.stride(e))],
  ["Move", "↑ / ↓", "lane cursor up, down", "ArrowUp ArrowDown", (t, e) => t.moveCursor(e.key === "ArrowUp" ? -1 : 1, e.shiftKey)],
  ["Move", "PgUp / PgDn", "scroll the lanes", "PageUp PageDown", (t, e) => t.scrollBy(e.key === "PageUp" ? -0.8 : 0.8)],
  ["Move", "1 2 3 4", "go to the section HOST, GPU, COUNTERS, SUMS", "1 2 3 4", (t, e) => t.jumpTo(SECTION_KEYS[Number(e.key) - 1])],
  ["Move", "Home / End", "begin, end of the trace", "Home End", (t, e) => t.panTo(e.key === "Home" ? 0 : 1)],
  ["Move", "F", "fit the selection; again: everything", "f", (t) => t.fit()],
  ["Move", "0", "everything", "0", (t) => t.fitAll()],
  ["Select", ". / ,", "next, previous span of the lane", ". ,", (t, e) => t.stepSpan(e.key === "." ? 1 : -1)],
  ["Select", "Enter", "the span nearest to the middle of the cursor's lane", "Enter", (t) => t.selectAtCursor()],
  ["Select", "X", "box: what is in sight in the cursor's lane (Shift: in all lanes)", "x X", (t, e) => t.boxInSight(e.shiftKey)],
  ["Select", "> / <", "box: extend to the next, previous span", "> <", (t, e) => t.extendBox(e.key === ">" ? 1 : -1)],
  ["Select", "G / B", "follow the arrow to the linked span, back", "g b", (t, e) => (e.key === "g" ? t.followLink() : t.goBack())],
  ["Select", "[ / ]", "ruler: from the begin, to the end of the selection (or the middle of the view)", "[ ]", (t, e) => t.rulerAtSelection(e.key === "[")],
  ["Select", "Esc", "clear: help, ruler, selection, search", "Escape", (t) => t.escape()],
  ["Search", "/", "search for a name", "/", (t) => t.focusSearch()],
  ["Search", "N / Shift+N", "next, previous match", "n N", (t, e) => t.stepMatch(e.key === "n")],
  ["Lanes", "C", "collapse or expand the track (Shift: all)", "c C", (t, e) => t.collapse(e.shiftKey)],
  ["Lanes", "P", "pin the track to the top", "p", (t) => t.pin()],
  ["Lanes", "H", "hide the track (Shift: show all)", "h H", (t, e) => t.hide(e.shiftKey)],
  ["Lanes", "{ / }", "move the track up, down", "{ }", (t, e) => t.moveTrack(e.key === "{" ? -1 : 1)],
  ["Lanes", "O", "fold or unfold the group", "o", (t) => t.foldGroup()],
  ["View", "K", "colour by name or by kind", "k", (t) => t.cycleColor()],
  ["View", "E", "save the picture as PNG", "e", (t) => t.savePicture()],
  ["View", "?", "this list", "?", (t) => t.toggleHelp()],
];

const BY_KEY = new Map(KEYS.flatMap(([, , , keys, action]) => keys.split(" ").map((key) => [key, action])));

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

/** Handles a key pressed while the timeline has the focus. Nothing of it reaches the notebook. */
export function onKey(timeline, event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return; // the browser's and the lab's own
  if (event.key === "Tab") return;
  event.stopPropagation();
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
  if (event.target.tagName === "BUTTON" && (event.key === "Enter" || event.key === " ")) return;
  const action = BY_KEY.get(event.key) ?? BY_KEY.get(event.key.toLowerCase());
  event.preventDefault();
  if (action) action(timeline, event);
}
