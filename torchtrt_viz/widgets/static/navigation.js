// @ts-check
// Ways to a place: its row scrolled into sight, its time as well.

/** @import { Cursor } from "./cursor.js" */
/** @import { Pane } from "./pane.js" */
/** @import { Rows } from "./rows.js" */
/** @import { Extent } from "./types.js" */
/** @import { Viewport } from "./viewport.js" */

export class Navigation {
  #rows;
  #cursor;
  #pane;
  #viewport;

  /** @param {{rows: Rows, cursor: Cursor, pane: Pane, viewport: Viewport}} modules */
  constructor({ rows, cursor, pane, viewport }) {
    this.#rows = rows;
    this.#cursor = cursor;
    this.#pane = pane;
    this.#viewport = viewport;
  }

  /** Brings a place into sight. @param {Extent} place @param {boolean} [inTime] false leaves the time in sight */
  show(place, inTime = true) {
    this.#rows.reveal(place.lane);
    const row = this.#rows.rowOfLane(place.lane);
    if (row) {
      this.#cursor.set(row);
      this.#pane.scrollTo(row);
    }
    if (inTime) this.#viewport.bring(place);
  }

  /** Fits two places, whole; scrolls to both where they have room, else to the first. @param {Extent} first @param {Extent} second */
  showBoth(first, second) {
    for (const { lane } of [second, first]) this.#rows.reveal(lane);
    for (const { lane } of [second, first]) {
      const row = this.#rows.rowOfLane(lane);
      if (row) this.#pane.scrollTo(row);
    }
    this.#viewport.show({
      t0: Math.min(first.start, second.start),
      t1: Math.max(first.start + first.dur, second.start + second.dur),
    });
  }

  /** Scrolls to the begin of a section. @param {string} section */
  jumpTo(section) {
    const row = this.#rows.rows.find((one) => one.type === "section" && one.section === section);
    if (!row) return;
    this.#pane.scroll = row.y;
    const first = this.#rows.laneRows.find((one) => one.section === section);
    if (first) this.#cursor.set(first);
    else this.#pane.changed.tell();
  }
}
