// @ts-check
// What colour things have: the theme, and whether names or kinds are told apart.

import { Signal } from "./signal.js";
import { colors, fillIndex, surroundingsDark, watchSurroundings } from "./theme.js";

/** @import { Source, Store } from "./types.js" */

export class Coloring {
  /** Other colours by name or kind, or perhaps another theme. */
  changed = new Signal();
  #source;
  #store;
  /** @type {"name" | "kind"} */
  #by;
  #theme = colors(false);
  #unwatch;

  /**
   * @param {Source} source
   * @param {Store} store keys: color_by, theme
   */
  constructor(source, store) {
    this.#source = source;
    this.#store = store;
    this.#by = store.get("color_by") === "kind" ? "kind" : "name";
    store.on("color_by", () => this.set(store.get("color_by"), false));
    store.on("theme", () => this.changed.tell());
    this.#unwatch = watchSurroundings(() => this.changed.tell());
  }

  close() {
    this.#unwatch();
  }

  get by() {
    return this.#by;
  }

  get theme() {
    return this.#theme;
  }

  /** Chooses the theme anew, by the surroundings where the user wants that. */
  useTheme() {
    const chosen = this.#store.get("theme") ?? "auto";
    this.#theme = colors(chosen === "auto" ? surroundingsDark() : chosen === "dark");
    return this.#theme;
  }

  /** @param {string | undefined} mode name or kind */
  set(mode, tell = true) {
    this.#by = mode === "kind" ? "kind" : "name";
    if (tell) this.#store.set("color_by", this.#by);
    this.changed.tell();
  }

  cycle() {
    this.set(this.#by === "name" ? "kind" : "name");
  }

  /** Position of a name's colour in the fills of its side. @param {number} name */
  fillOf(name) {
    const { nameColor, nameKind, info } = this.#source;
    return name < 0 ? 5 : fillIndex(this.#by, nameColor[name], info.kinds[nameKind[name]]);
  }
}
