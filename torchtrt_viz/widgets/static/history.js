// @ts-check
// What was in sight and selected before: Backspace goes back, Shift+Backspace forth.

import { Signal } from "./signal.js";

/** @import { Selection } from "./selection.js" */
/** @import { Selected } from "./types.js" */
/** @import { Viewport } from "./viewport.js" */
/** @typedef {{t0: number, t1: number, selected: Selected}} Moment */

const REST = 350; // ms without a change that make a moment
const MOST = 200; // moments

export class History {
  /** There is more, or less, to go back to. */
  changed = new Signal();
  #viewport;
  #selection;
  /** @type {Moment[]} */
  #moments;
  #at = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #resting;

  /** @param {{viewport: Viewport, selection: Selection}} modules */
  constructor({ viewport, selection }) {
    this.#viewport = viewport;
    this.#selection = selection;
    this.#moments = [this.#now()];
    const later = () => {
      clearTimeout(this.#resting);
      this.#resting = setTimeout(() => this.#keep(), REST);
    };
    viewport.moved.listen(later);
    selection.changed.listen(later);
    selection.described.listen(() => this.#keep()); // before whatever moves because of it
  }

  close() {
    clearTimeout(this.#resting);
  }

  get canGoBack() {
    return this.#at > 0;
  }

  get canGoForth() {
    return this.#at < this.#moments.length - 1;
  }

  /** Goes to the moment before (-1) or after (1); says whether there is one. @param {-1 | 1} step */
  go(step) {
    this.#keep();
    const to = this.#moments[this.#at + step];
    if (!to) return false;
    this.#at += step;
    const now = this.#now();
    if (to.t0 !== now.t0 || to.t1 !== now.t1) this.#viewport.glide(to.t0, to.t1);
    if (!same(to.selected, now.selected)) this.#selection.restore(to.selected);
    this.changed.tell();
    return true;
  }

  /** @returns {Moment} */
  #now() {
    const [t0, t1] = this.#viewport.goal ?? [this.#viewport.t0, this.#viewport.t1];
    return { t0, t1, selected: this.#selection.state };
  }

  /** Remembers what is to be seen now, unless it is what was remembered last. */
  #keep() {
    clearTimeout(this.#resting);
    const now = this.#now();
    const last = this.#moments[this.#at];
    const near = (now.t1 - now.t0) * 1e-6;
    if (Math.abs(now.t0 - last.t0) <= near && Math.abs(now.t1 - last.t1) <= near && same(now.selected, last.selected)) return;
    this.#moments = [...this.#moments.slice(0, this.#at + 1), now].slice(-MOST);
    this.#at = this.#moments.length - 1;
    this.changed.tell();
  }
}

/** @param {Selected} a @param {Selected} b */
function same(a, b) {
  return JSON.stringify(a) === JSON.stringify(b);
}
