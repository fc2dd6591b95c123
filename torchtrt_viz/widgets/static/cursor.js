// @ts-check
// The lane that the keys speak of.

import { Signal } from "./signal.js";

/** @import { Rows } from "./rows.js" */
/** @import { LaneRow, Track } from "./types.js" */

export class Cursor {
  changed = new Signal();
  #rows;
  /** @type {LaneRow | null} */
  #row;

  /** @param {Rows} rows */
  constructor(rows) {
    this.#rows = rows;
    this.#row = rows.laneRows[0] ?? null;
    rows.changed.listen(() => this.#stay());
  }

  /** The row it is on; null without any lane. */
  get row() {
    return this.#row;
  }

  /** @param {LaneRow} row */
  set(row) {
    this.#row = row;
    this.changed.tell();
  }

  /** Goes to the first lane of a track. @param {Track} track */
  setTrack(track) {
    this.#row = this.#rows.laneRows.find((row) => row.track === track) ?? this.#row;
    this.changed.tell();
  }

  /** Goes up or down; returns where it is then. @param {number} step */
  move(step) {
    const lanes = this.#rows.laneRows;
    const from = this.#row ? lanes.indexOf(this.#row) : -1;
    this.#row = lanes[Math.max(0, Math.min(lanes.length - 1, from + step))] ?? null;
    this.changed.tell();
    return this.#row;
  }

  /** The rows were laid out anew: stays on its lane, else on its track. */
  #stay() {
    const { track, at } = this.#row ?? {};
    const lanes = this.#rows.laneRows;
    this.#row = lanes.find((row) => row.track === track && row.at === at) ?? lanes.find((row) => row.track === track) ?? lanes[0] ?? null;
    this.changed.tell();
  }
}
