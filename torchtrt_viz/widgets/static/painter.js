// @ts-check
// When the timeline is drawn, and what the drawing gets to see.

import { fitCanvas } from "./dom.js";
import { paintMinimap, paintRuler } from "./frame.js";
import { paint } from "./paint.js";
import { Signal } from "./signal.js";

/** @import { Parts } from "./chrome.js" */
/** @import { Coloring } from "./coloring.js" */
/** @import { Cursor } from "./cursor.js" */
/** @import { Hover } from "./hover.js" */
/** @import { Measure } from "./measure.js" */
/** @import { Scene } from "./paint.js" */
/** @import { Pane } from "./pane.js" */
/** @import { Rows } from "./rows.js" */
/** @import { Selection } from "./selection.js" */
/** @import { Source } from "./types.js" */
/** @import { Views } from "./views.js" */
/** @import { Viewport } from "./viewport.js" */

/**
 * What is drawn.
 * @typedef {object} Subjects
 * @property {Source} source
 * @property {Viewport} viewport
 * @property {Rows} rows
 * @property {Pane} pane
 * @property {Cursor} cursor
 * @property {Views} views
 * @property {Selection} selection
 * @property {Hover} hover
 * @property {Measure} measure
 * @property {Coloring} coloring
 */

export const RULER = 36;
export const MINIMAP = 30;
const LONGEST_WAIT = 2_000; // ms between two looks whether there is room again

export class Painter {
  /** The canvases were drawn: whatever stands around them follows. */
  drawn = new Signal();
  /** ms that the last drawing took */
  lastDraw = 0;
  /** Counts drawings. */
  draws = 0;
  #parts;
  #subjects;
  #focused = false;
  #closed = false;
  /** @type {number | null} */
  #scheduled = null;
  #delay = 30;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #later;

  /**
   * @param {Pick<Parts, "root" | "lanes" | "ruler" | "minimap">} parts
   * @param {Subjects} subjects
   */
  constructor(parts, subjects) {
    this.#parts = parts;
    this.#subjects = subjects;
    const { rows, pane, cursor, views, selection, hover, measure, coloring } = subjects;
    for (const { changed } of [rows, pane, cursor, views, selection, hover, measure, coloring]) changed.listen(() => this.draw());
    views.arrived.listen(() => this.#drawArrived());
    for (const kind of ["focusin", "focusout"]) {
      parts.root.addEventListener(kind, () => {
        this.#focused = kind === "focusin";
        this.draw();
      });
    }
  }

  close() {
    this.#closed = true;
    clearTimeout(this.#later);
  }

  /** Whether it will draw in the next frame. */
  get scheduled() {
    return this.#scheduled !== null;
  }

  get ratio() {
    return window.devicePixelRatio || 1;
  }

  /** Draws in the next frame. */
  draw() {
    if (this.scheduled || this.#closed) return;
    this.#scheduled = requestAnimationFrame(() => {
      this.#scheduled = null;
      if (!this.#closed) this.drawNow();
    });
  }

  /** Draws what has just come, without waiting for the next frame. */
  #drawArrived() {
    if (this.#closed || document.hidden) return this.draw();
    if (this.#scheduled !== null) cancelAnimationFrame(this.#scheduled);
    this.#scheduled = null;
    this.drawNow();
  }

  drawNow() {
    const began = performance.now();
    const { viewport, pane, views, coloring } = this.#subjects;
    const { root, lanes, ruler, minimap } = this.#parts;
    root.classList.toggle("tv-dark", coloring.useTheme().dark);
    if (!pane.measure()) return this.#drawLater();
    this.#delay = 30;
    views.fetchView();
    views.fetchCounters();
    const scene = this.scene();
    const { width } = viewport;
    paint(fitCanvas(lanes, width, pane.height), scene);
    paintRuler(fitCanvas(ruler, width, RULER), scene, RULER);
    paintMinimap(fitCanvas(minimap, width, MINIMAP), scene, width, MINIMAP);
    this.drawn.tell();
    this.lastDraw = performance.now() - began;
    this.draws++;
  }

  /** Hidden, or for a moment without a size (a lab that changes its theme): no observer may tell when it is back. */
  #drawLater() {
    clearTimeout(this.#later);
    this.#delay = Math.min(LONGEST_WAIT, this.#delay * 2);
    this.#later = setTimeout(() => this.draw(), this.#delay);
  }

  /** Everything that is to be seen now. @returns {Scene} */
  scene() {
    const { source, viewport, rows, pane, cursor, views, selection, hover, measure, coloring } = this.#subjects;
    return {
      theme: coloring.theme,
      colorBy: coloring.by,
      ratio: this.ratio,
      width: viewport.width,
      height: pane.height,
      scroll: pane.scroll,
      t0: viewport.t0,
      t1: viewport.t1,
      length: viewport.length,
      begin: viewport.begin,
      rows,
      view: views.view,
      overview: views.overview,
      before: views.before,
      marks: views.marks,
      counters: views.counters,
      minimap: source.minimap,
      selected: selection.place,
      box: selection.box,
      links: selection.links,
      hover: hover.place,
      pointer: hover.pointer,
      measure: measure.span,
      cursor: cursor.row,
      focused: this.#focused,
      sectionOf: (lane) => rows.sectionOf(lane),
      fillOf: (name) => coloring.fillOf(name),
      nameText: (name) => source.nameText(name),
    };
  }
}
