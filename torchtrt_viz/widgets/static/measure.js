// @ts-check
// The stretch of time that the user measures on the ruler.

import { Signal } from "./signal.js";

export class Measure {
  changed = new Signal();
  /** @type {{t0: number, t1: number} | null} */
  #span = null;

  get span() {
    return this.#span;
  }

  /**
   * @param {number} a
   * @param {number} b
   */
  set(a, b) {
    this.#span = { t0: Math.min(a, b), t1: Math.max(a, b) };
    this.changed.tell();
  }

  clear() {
    this.#span = null;
    this.changed.tell();
  }

  /** Puts one end at a time and leaves the other where it is; returns the length. @param {number} at */
  setEnd(at, begin = true) {
    const other = this.#span ? (begin ? this.#span.t1 : this.#span.t0) : at;
    this.set(at, other);
    return Math.abs(other - at);
  }
}
