// @ts-check
// The window onto the rows: how far they are scrolled, and how much room there is for them and their labels.

import { Signal } from "./signal.js";

/** @import { Parts } from "./chrome.js" */
/** @import { Rows } from "./rows.js" */
/** @import { LaneRow, Row, Store } from "./types.js" */
/** @import { Viewport } from "./viewport.js" */

const LABELS = 0.27; // of the width
const NARROWEST_LABELS = 92; // px
const WIDEST_LABELS = 210;
const ROOM_FOR_BADGES = 160;

export class Pane {
  /** Scrolled, or another size. */
  changed = new Signal();
  #parts;
  #rows;
  #viewport;
  #store;
  #height = 0;
  /** What the user made it; else it goes with the room that there is. @type {number | null} */
  #chosenWidth = null;
  #labelWidth = WIDEST_LABELS;
  #observer;

  /**
   * @param {Pick<Parts, "root" | "scroll" | "tall" | "stage">} parts
   * @param {{rows: Rows, viewport: Viewport, store: Store}} modules the store's key: height
   */
  constructor(parts, { rows, viewport, store }) {
    this.#parts = parts;
    this.#rows = rows;
    this.#viewport = viewport;
    this.#store = store;
    parts.scroll.addEventListener("scroll", () => this.changed.tell());
    this.#observer = new ResizeObserver(() => this.changed.tell());
    this.#observer.observe(parts.scroll);
    store.on("height", () => this.changed.tell());
  }

  close() {
    this.#observer.disconnect();
  }

  get scroll() {
    return this.#parts.scroll.scrollTop;
  }

  set scroll(y) {
    this.#parts.scroll.scrollTop = y;
  }

  get height() {
    return this.#height;
  }

  get labelWidth() {
    return this.#labelWidth;
  }

  /** @param {number} width */
  setLabelWidth(width) {
    this.#chosenWidth = Math.round(Math.max(90, Math.min(500, width)));
    this.changed.tell();
  }

  /** Takes the room that there is; false when there is none. */
  measure() {
    const { root, scroll, tall, stage } = this.#parts;
    const { clientWidth } = scroll;
    const fitting = Math.round(Math.max(NARROWEST_LABELS, Math.min(WIDEST_LABELS, LABELS * clientWidth)));
    this.#labelWidth = this.#chosenWidth ?? fitting;
    if (clientWidth < this.#labelWidth + 20) return false;
    const most = this.#store.get("height") ?? 420;
    if (!root.classList.contains("tv-fill")) {
      scroll.style.height = `${Math.max(90, Math.min(this.#rows.height + 2, most))}px`;
    }
    tall.style.height = `${this.#rows.height}px`;
    this.#height = scroll.clientHeight;
    stage.style.height = `${this.#height}px`;
    this.#viewport.resize(Math.floor(clientWidth - this.#labelWidth));
    root.style.setProperty("--tv-labels", `${this.#labelWidth}px`);
    root.classList.toggle("tv-narrow", this.#labelWidth < ROOM_FOR_BADGES);
    return this.#height > 0;
  }

  /** The rows in sight, and those up to `margin` pixels above and below. */
  visible(margin = 0) {
    return this.#rows.between(this.scroll - margin, this.scroll + this.#height + margin);
  }

  /** @param {number} margin */
  lanesInSight(margin) {
    const rows = this.visible(margin).filter((row) => row.type === "lane");
    return [...new Set(rows.map((row) => row.lane))];
  }

  /** The row at a height in the window. @param {number} y */
  rowAt(y) {
    return this.#rows.at(y + this.scroll);
  }

  /**
   * The lanes between two heights in the window.
   * @param {number} a
   * @param {number} b
   * @returns {LaneRow[]}
   */
  lanesBetween(a, b) {
    const rows = this.#rows.between(Math.min(a, b) + this.scroll, Math.max(a, b) + this.scroll);
    return rows.filter((row) => row.type === "lane");
  }

  /** Stays where it is from now on. @param {number} scroll */
  hold(scroll) {
    this.scroll = scroll;
    this.#parts.scroll.classList.add("tv-held");
    this.changed.tell();
  }

  /** Scrolls no further than needed. @param {Row} row */
  scrollTo(row) {
    if (row.y < this.scroll + 24) this.scroll = Math.max(0, row.y - 40);
    else if (row.y + row.height > this.scroll + this.#height - 8) this.scroll = row.y + row.height - this.#height + 40;
  }

  /** @param {number} share of the height */
  scrollBy(share) {
    this.scroll += share * this.#height;
    this.changed.tell();
  }
}
