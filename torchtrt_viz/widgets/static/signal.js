// @ts-check
// Something that a module tells to whoever listens.

/** @template {unknown[]} [Args=[]] */
export class Signal {
  /** @type {Set<(...args: Args) => void>} */
  #listeners = new Set();

  /**
   * Listeners are called in the order in which they came.
   * @param {(...args: Args) => void} listener
   */
  listen(listener) {
    this.#listeners.add(listener);
  }

  /** @param {Args} args */
  tell(...args) {
    for (const listener of this.#listeners) listener(...args);
  }
}
