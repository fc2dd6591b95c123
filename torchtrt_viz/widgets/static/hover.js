// @ts-check
// What is under the pointer, and the tooltip that says so.

import { cellLines, showTooltip, spanLines } from "./panel.js";
import { Signal } from "./signal.js";

/** @import { Pane } from "./pane.js" */
/** @import { Extent, LaneRow, Source } from "./types.js" */
/** @import { Views } from "./views.js" */
/** @import { Viewport } from "./viewport.js" */

const SLACK = 3; // px beside a span that still count as on it

export class Hover {
  changed = new Signal();
  #tooltip;
  #source;
  #viewport;
  #pane;
  #views;
  /** @type {Extent | null} */
  #place = null;
  /** @type {number | null} */
  #pointer = null;

  /**
   * @param {HTMLElement} tooltip
   * @param {{source: Source, viewport: Viewport, pane: Pane, views: Views}} modules
   */
  constructor(tooltip, { source, viewport, pane, views }) {
    this.#tooltip = tooltip;
    this.#source = source;
    this.#viewport = viewport;
    this.#pane = pane;
    this.#views = views;
  }

  /** The span under the pointer. */
  get place() {
    return this.#place;
  }

  /** Where the pointer is in time, in pixels; null when it is elsewhere. */
  get pointer() {
    return this.#pointer;
  }

  /** The pointer is over the ruler. @param {number | null} x */
  setPointer(x) {
    this.#pointer = x;
    this.changed.tell();
  }

  /** The pointer is over the lanes, or has left them. @param {{x: number, y: number} | null} at */
  moveTo(at) {
    this.#pointer = at ? at.x : null;
    this.clear();
    const row = at && this.#pane.rowAt(at.y);
    if (at && row?.type === "lane") {
      const text = this.#textAt(row, at.x);
      const { labelWidth, scroll } = this.#pane;
      if (text) showTooltip(this.#tooltip, text, at.x + labelWidth, row.y + row.height - scroll - 8, this.#viewport.width + labelWidth);
    }
    this.changed.tell();
  }

  /** Forgets the span under the pointer, which the next move finds again. */
  clear() {
    this.#place = null;
    this.#tooltip.hidden = true;
  }

  /**
   * @param {LaneRow} row
   * @param {number} x
   */
  #textAt(row, x) {
    const { view } = this.#views;
    if (!view) return null;
    const found = view.at(row.lane, this.#viewport.timeAt(x), this.#viewport.timeOf(SLACK));
    if (!found) return null;
    const { section, role } = row;
    const track = row.track.label;
    if (found.span === undefined) {
      return cellLines({ name: this.#source.nameText(view.nameOfCell(found.cell)), busy: view.busy[found.cell], section, track });
    }
    const i = found.span;
    const number = view.name[i];
    const name = this.#source.nameText(number) ?? "…";
    const kind = this.#source.info.kinds[this.#source.nameKind[number]] ?? "";
    this.#place = { lane: row.lane, start: view.base + view.start[i], dur: view.dur[i] };
    return spanLines({ name, kind, start: this.#place.start, dur: this.#place.dur, section, role, track });
  }
}
