// @ts-check
// The timeline: its modules, each with a state of its own, and how they hear of one another.

import { Help, Labels, TracksMenu, build, dragSplitter, fillJumps, fillToolbar, status } from "./chrome.js";
import { Coloring } from "./coloring.js";
import { Cursor } from "./cursor.js";
import { History } from "./history.js";
import { Hover } from "./hover.js";
import { onKey } from "./keys.js";
import { Legend } from "./legend.js";
import { Measure } from "./measure.js";
import { Navigation } from "./navigation.js";
import { rectangleOf } from "./paint.js";
import { Painter } from "./painter.js";
import { Pane } from "./pane.js";
import { Details } from "./panel.js";
import { picture } from "./picture.js";
import { listen } from "./pointer.js";
import { Rows } from "./rows.js";
import { Search } from "./search.js";
import { Selection } from "./selection.js";
import { Viewport } from "./viewport.js";
import { Views } from "./views.js";

/** @import { Extent, Place, ShowRequest, Source, Store } from "./types.js" */

/**
 * What a key may act on.
 * @typedef {object} Modules
 * @property {Viewport} viewport
 * @property {Rows} rows
 * @property {Pane} pane
 * @property {Cursor} cursor
 * @property {Navigation} navigation
 * @property {Selection} selection
 * @property {History} history
 * @property {Search} search
 * @property {Measure} measure
 * @property {Coloring} coloring
 * @property {TracksMenu} menu
 * @property {Help} help
 * @property {() => void} savePicture
 * @property {(text: string) => void} announce says it to a screen reader
 */

/** Puts the modules together. The getters and methods are for those who script the page: no module uses them. */
export class Timeline {
  #viewport;
  #pane;
  #cursor;
  #views;
  #hover;
  #selection;
  #history;
  #search;
  #measure;
  #coloring;
  #painter;

  /**
   * @param {HTMLElement} root
   * @param {Source} source
   * @param {Store} store
   */
  constructor(root, source, store, { inPython = false } = {}) {
    this.source = source;
    this.store = store;
    this.parts = build(root);
    const { parts } = this;
    /** @param {string} text */
    const announce = (text) => (parts.announce.textContent = text);
    const savePicture = () => this.savePicture();

    const viewport = (this.#viewport = new Viewport(source.info, store));
    const rows = (this.rows = new Rows(source.info, store));
    const pane = (this.#pane = new Pane(parts, { rows, viewport, store }));
    const cursor = (this.#cursor = new Cursor(rows));
    const navigation = new Navigation({ rows, cursor, pane, viewport });
    const views = (this.#views = new Views({ source, viewport, pane }));
    const hover = (this.#hover = new Hover(parts.tooltip, { source, viewport, pane, views }));
    const selection = (this.#selection = new Selection({ source, store, rows, cursor, viewport, navigation, announce }));
    const found = { source, store, rows, viewport, pane, views, selection, navigation, announce };
    const search = (this.#search = new Search({ input: parts.search, matches: parts.matches }, found));
    const measure = (this.#measure = new Measure());
    const coloring = (this.#coloring = new Coloring(source, store));
    const painter = (this.#painter = new Painter(parts, { source, viewport, rows, pane, cursor, views, selection, hover, measure, coloring }));

    const history = (this.#history = new History({ viewport, selection }));
    const menu = new TracksMenu(parts.menu, rows);
    const help = new Help(parts);
    const labels = new Labels(parts, { rows, pane, cursor, length: viewport.length });
    const showStatus = () => status(parts.status, source.info, viewport, views.trouble);
    views.troubled.listen(showStatus);
    const legend = new Legend(parts.legend, { info: source.info, coloring, search });
    painter.drawn.listen(() => {
      labels.update();
      legend.update();
      showStatus();
    });
    source.onLost = () => this.#lost();
    new Details(parts.panel, selection, inPython);
    fillToolbar(parts, { viewport, selection, history, search, coloring, menu, help, savePicture });
    fillJumps(parts.corner, { rows, navigation });
    dragSplitter(parts.splitter, pane);
    listen(parts, { viewport, pane, cursor, hover, selection, measure });
    const keys = { viewport, rows, pane, cursor, navigation, selection, history, search, measure, coloring, menu, help, savePicture, announce };
    root.addEventListener("keydown", (event) => onKey(keys, event));
    root.addEventListener("tv-show", (event) => this.show(/** @type {CustomEvent<ShowRequest>} */ (event).detail));
    for (const kind of ["keyup", "keypress"]) root.addEventListener(kind, (event) => event.stopPropagation());
    painter.draw();
  }

  close() {
    this.#painter.close();
    this.#views.close();
    this.#pane.close();
    this.#coloring.close();
    this.#history.close();
    this.source.close?.();
  }

  /** The kernel was restarted, or has gone: says so and keeps the last sharp picture. */
  #lost() {
    const { banner } = this.parts;
    if (!banner.hidden) return;
    const rest = "Run the cell again for the live timeline.";
    const { sharp } = this.#views;
    if (this.source.whole) banner.textContent = `The kernel was restarted, or has gone: what the browser holds can still be looked at. ${rest}`;
    else {
      banner.textContent = `The kernel was restarted, or has gone: this is the last picture that it sent. ${rest}`;
      if (sharp) {
        this.#viewport.hold(sharp.t0, sharp.t1);
        this.#pane.hold(sharp.scroll);
      }
      this.#views.close();
    }
    banner.hidden = false;
  }

  /** The picture of what is in sight, as a PNG blob. */
  picture() {
    this.#painter.drawNow();
    return picture(this.parts, this.#painter.scene(), this.#pane.labelWidth);
  }

  async savePicture() {
    const url = URL.createObjectURL(await this.picture());
    const anchor = document.createElement("a");
    anchor.href = url;
    anchor.download = "timeline.png";
    anchor.click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  }

  // -- what scripts may ask ---------------------------------------------------------------------------

  get info() {
    return this.source.info;
  }

  get length() {
    return this.#viewport.length;
  }

  get t0() {
    return this.#viewport.t0;
  }

  get t1() {
    return this.#viewport.t1;
  }

  get width() {
    return this.#viewport.width;
  }

  get height() {
    return this.#pane.height;
  }

  get scroll() {
    return this.#pane.scroll;
  }

  get view() {
    return this.#views.view;
  }

  get fetching() {
    return this.#views.fetching;
  }

  get lastLatency() {
    return this.#views.lastLatency;
  }

  get cursor() {
    return this.#cursor.row;
  }

  get selected() {
    return this.#selection.place;
  }

  get box() {
    return this.#selection.box;
  }

  get links() {
    return this.#selection.links;
  }

  get measure() {
    return this.#measure.span;
  }

  get colorBy() {
    return this.#coloring.by;
  }

  get theme() {
    return this.#coloring.theme;
  }

  get ratio() {
    return this.#painter.ratio;
  }

  get scheduled() {
    return this.#painter.scheduled;
  }

  get draws() {
    return this.#painter.draws;
  }

  get lastDraw() {
    return this.#painter.lastDraw;
  }

  range() {
    return this.#viewport.range();
  }

  /** @param {number} x */
  timeAt(x) {
    return this.#viewport.timeAt(x);
  }

  /** Where a place is on the canvas. @param {Extent} place */
  rectangleOf(place) {
    return rectangleOf(this.#painter.scene(), place);
  }

  // -- what scripts may do ----------------------------------------------------------------------------

  /**
   * @param {number} t0
   * @param {number} t1
   */
  setRange(t0, t1) {
    this.#viewport.setRange(t0, t1);
  }

  fitAll() {
    this.#viewport.fitAll();
  }

  /** Fits the selection; again, or without one: everything. */
  fit() {
    this.#viewport.fit(this.#selection.extent);
  }

  /** @param {Place | null} place */
  select(place) {
    return this.#selection.select(place);
  }

  /**
   * Brings something into sight: marks it, dims the rest, selects it and zooms to it. Of a page's own rows and names;
   * a widget's are chosen in Python (`w.show`). A "tv-show" event on the timeline's element with the request as its
   * `detail`, and a click on an element of the page whose attribute `data-show` holds it as JSON, do the same.
   * @param {ShowRequest} request
   */
  async show({ rows, names, query, t0, t1, zoom = true }) {
    const { source } = this;
    const timed = t0 !== undefined && t1 !== undefined;
    if (query !== undefined) {
      await this.#search.find(query);
      if (zoom && !timed) await this.#search.step(true);
    } else if (rows || names) {
      if (!source.mark) throw new Error("rows of a widget are shown from Python: w.show(rows)");
      const some = source.mark({ rows, names });
      this.#search.markedElsewhere(some.length);
      // One event is told about as if it had been clicked: how it came about stands with it.
      if (some.length === 1 && zoom) await this.#selection.goToRow(some[0]);
      else await this.#selection.selectRows(some);
    } else if (timed) this.#selection.setBox(t0, t1, this.rows.laneRows);
    if (!zoom) return;
    const extent = timed ? { t0, t1 } : query === undefined ? this.#selection.extent : null;
    if (extent) this.#viewport.show(extent);
  }

  /** Back (-1) or forth (1) to what was in sight and selected. @param {-1 | 1} step */
  goThrough(step) {
    return this.#history.go(step);
  }

  /** @param {boolean} all */
  boxInSight(all) {
    this.#selection.boxInSight(all);
  }

  /** @param {string} text */
  search(text) {
    return this.#search.find(text);
  }

  /** @param {boolean} forward */
  stepMatch(forward, first = false) {
    return this.#search.step(forward, first);
  }

  /** @param {{x: number, y: number} | null} at */
  hoverAt(at) {
    this.#hover.moveTo(at);
  }

  drawNow() {
    this.#painter.drawNow();
  }
}
