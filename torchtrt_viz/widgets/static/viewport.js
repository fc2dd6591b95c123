// @ts-check
// Which time is in sight.

import { Signal } from "./signal.js";

/** @import { Extent, Info, Store } from "./types.js" */

const LEAST_SPAN = 20; // ns: finer than any clock that we meet
const GLIDE = 140; // ms
const BESIDE = 0.03; // of what is in sight, that may lie beyond either end of the trace

export class Viewport {
  /** The time in sight changed, or will: `goal` is where it glides to. */
  moved = new Signal();
  #store;
  #t0;
  #t1;
  #width = 0;
  #held = false;
  /** @type {[number, number] | null} */
  #goal = null;
  /** @type {((now: number) => void) | null} */
  #animation = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #telling;

  /**
   * @param {Pick<Info, "length" | "begin" | "end">} info
   * @param {Store} store key: view_range
   */
  constructor({ length, begin, end }, store) {
    this.length = length;
    /** First start and last end of anything drawn. */
    this.begin = Math.min(0, begin);
    this.end = Math.max(length, end);
    this.#store = store;
    this.#t0 = -0.01 * length;
    this.#t1 = 1.01 * length;
    store.on("view_range", () => this.#follow());
    this.#follow();
  }

  get t0() {
    return this.#t0;
  }

  get t1() {
    return this.#t1;
  }

  /** Pixels that show the time; 0 before there is room. */
  get width() {
    return this.#width;
  }

  get goal() {
    return this.#goal;
  }

  get middle() {
    return (this.#t0 + this.#t1) / 2;
  }

  get span() {
    return this.#t1 - this.#t0;
  }

  range() {
    return { t0: this.#t0, t1: this.#t1 };
  }

  /** @param {number} x */
  timeAt(x) {
    return this.#t0 + (x / this.#width) * this.span;
  }

  /** The time that so many pixels stand for. @param {number} pixels */
  timeOf(pixels) {
    return (pixels / this.#width) * this.span;
  }

  /** @param {number} width */
  resize(width) {
    this.#width = width;
  }

  /**
   * Shows [t0, t1], as far as it is within reach.
   * @param {number} t0
   * @param {number} t1
   */
  setRange(t0, t1, { tell = true } = {}) {
    if (!(t1 > t0) || this.#held) return;
    this.#animation = this.#goal = null;
    this.#move(...this.#within(t0, t1), tell);
  }

  /** Shows [t0, t1] from now on, whatever is asked for. @param {number} t0 @param {number} t1 */
  hold(t0, t1) {
    this.#held = false;
    this.setRange(t0, t1, { tell: false });
    this.#held = true;
  }

  /**
   * The same, gliding there.
   * @param {number} t0
   * @param {number} t1
   */
  glide(t0, t1) {
    if (!(t1 > t0) || this.#held) return;
    if (window.matchMedia("(prefers-reduced-motion: reduce)").matches || !this.#width) return this.setRange(t0, t1);
    const from = this.range();
    const to = this.#within(t0, t1);
    const began = performance.now();
    /** @param {number} now */
    const step = (now) => {
      if (this.#animation !== step) return;
      const share = Math.min(1, Math.max(0, (now - began) / GLIDE));
      const eased = 1 - (1 - share) ** 3;
      if (share === 1) this.#animation = this.#goal = null;
      this.#move(from.t0 + (to[0] - from.t0) * eased, from.t1 + (to[1] - from.t1) * eased, share === 1);
      if (this.#animation) requestAnimationFrame(step);
    };
    this.#animation = step;
    this.#goal = to; // what the kernel is asked for while the picture moves
    this.moved.tell();
    requestAnimationFrame(step);
  }

  /** @param {number} factor */
  zoomBy(factor, at = 0.5) {
    const anchor = this.#t0 + this.span * at;
    const next = Math.min(Math.max(this.span * factor, LEAST_SPAN), this.#most);
    this.setRange(anchor - next * at, anchor + next * (1 - at));
  }

  /** @param {number} share of what is in sight */
  panBy(share) {
    const shift = share * this.span;
    this.setRange(this.#t0 + shift, this.#t1 + shift);
  }

  /** @param {0 | 1} end of the trace */
  panTo(end) {
    const { span } = this;
    const at = end * this.length;
    this.glide(at - span * (end ? 0.95 : 0.05), at + span * (end ? 0.05 : 0.95));
  }

  fitAll() {
    this.glide(-0.01 * this.length, 1.01 * this.length);
  }

  /** Fits a stretch of time; when it fits already, or there is none, everything. @param {{t0: number, t1: number} | null} target */
  fit(target) {
    if (!target) return this.fitAll();
    const span = Math.max(target.t1 - target.t0, 100);
    const t0 = target.t0 - span * 0.15;
    const t1 = target.t1 + span * 0.15;
    if (Math.abs(t0 - this.#t0) < span * 0.01 && Math.abs(t1 - this.#t1) < span * 0.01) return this.fitAll();
    this.glide(t0, t1);
  }

  /** Shows a stretch of time with a little beside it. @param {{t0: number, t1: number}} target */
  show({ t0, t1 }) {
    const margin = Math.max((t1 - t0) * 0.08, 500);
    this.glide(t0 - margin, t1 + margin);
  }

  /** Brings a place into sight; zooms only when it would be too small, or larger than the window. @param {Extent} place */
  bring(place) {
    const { span } = this;
    const middle = place.start + place.dur / 2;
    let next = span;
    if (place.dur > span * 0.8) next = place.dur * 1.6;
    else if (place.dur < (span / Math.max(1, this.#width)) * 4) next = Math.max(place.dur * 40, 2_000);
    const inside = place.start > this.#t0 + span * 0.05 && place.start + place.dur < this.#t1 - span * 0.05;
    if (next !== span || !inside) this.glide(middle - next / 2, middle + next / 2);
  }

  #follow() {
    const range = this.#store.get("view_range");
    if (range?.length !== 2 || (range[0] === this.#t0 && range[1] === this.#t1)) return;
    this.setRange(range[0], range[1], { tell: false });
  }

  /**
   * [t0, t1], kept within reach of the trace.
   * @param {number} t0
   * @param {number} t1
   * @returns {[number, number]}
   */
  #within(t0, t1) {
    const { begin, end } = this;
    const span = Math.min(Math.max(t1 - t0, LEAST_SPAN), this.#most);
    const margin = BESIDE * span;
    if (span >= end - begin) {
      const middle = Math.min(Math.max((t0 + t1) / 2, end - span / 2), begin + span / 2);
      return [middle - span / 2, middle + span / 2];
    }
    const first = Math.min(Math.max((t0 + t1 - span) / 2, begin - margin), end + margin - span);
    return [first, first + span];
  }

  get #most() {
    return 1.2 * (this.end - this.begin);
  }

  /**
   * @param {number} t0
   * @param {number} t1
   * @param {boolean} tell
   */
  #move(t0, t1, tell) {
    this.#t0 = t0;
    this.#t1 = t1;
    if (tell) {
      clearTimeout(this.#telling);
      this.#telling = setTimeout(() => this.#store.set("view_range", [this.#t0, this.#t1]), 120);
    }
    this.moved.tell();
  }
}
