// @ts-check
// What the colours and patterns in the lanes mean.

import { button, element } from "./dom.js";
import { fillIndex } from "./theme.js";

/** @import { Coloring } from "./coloring.js" */
/** @import { Search } from "./search.js" */
/** @import { Info, Role, Section } from "./types.js" */

const SIDES = /** @type {const} */ (["gpu", "host"]);
/** @type {Record<Section, string>} */
const NAMES = { gpu: "GPU", host: "HOST" };
/** @type {[Role, string][]} */
const PATTERNS = [
  ["annotations", "hatched on the GPU: a named range, no work"],
  ["modeled", "hatched: modeled, not observed"],
  ["implausible", "hatched: implausible, in no sum"],
  ["instants", "▲ an event without a duration"],
];

/** The legend follows the colours; a kind in it searches for all events of the kind. */
export class Legend {
  #place;
  #info;
  #coloring;
  #search;
  #key = "";

  /**
   * @param {HTMLElement} place
   * @param {{info: Info, coloring: Coloring, search: Search}} modules
   */
  constructor(place, { info, coloring, search }) {
    this.#place = place;
    this.#info = info;
    this.#coloring = coloring;
    this.#search = search;
  }

  update() {
    const { by, theme } = this.#coloring;
    const key = `${by}|${theme.dark}`;
    if (key === this.#key) return;
    this.#key = key;
    const parts = by === "kind" ? SIDES.flatMap((side) => this.#kinds(side)) : SIDES.filter((side) => this.#info.kinds_of[side].length).map((side) => this.#family(side));
    const roles = new Set(this.#info.tracks.flatMap((track) => track.roles));
    const patterns = PATTERNS.filter(([role]) => roles.has(role)).map(([, words]) => element("span", {}, words));
    this.#place.replaceChildren(...parts, ...patterns);
  }

  /** Every name has a colour of its side's family. @param {Section} side */
  #family(side) {
    const fills = this.#coloring.theme[side].fill.slice(0, 4);
    const words = side === "gpu" ? "GPU: warm, on a heavy base line" : "HOST: cool";
    return element("span", {}, ...fills.map((color) => element("span", { class: "tv-swatch", style: { background: color } })), `${words}; a colour per name`);
  }

  /** One swatch per colour, with the kinds that have it. @param {Section} side */
  #kinds(side) {
    const { fill } = this.#coloring.theme[side];
    /** @type {Map<number, string[]>} */
    const byColor = new Map();
    for (const kind of this.#info.kinds_of[side]) {
      const at = fillIndex("kind", 0, kind);
      byColor.set(at, [...(byColor.get(at) ?? []), kind]);
    }
    const swatches = [...byColor].map(([at, kinds]) =>
      element(
        "span",
        {},
        element("span", { class: "tv-swatch", style: { background: fill[at] } }),
        ...kinds.map((kind) => button(kind, `search for kind:${kind} domain:${side}`, () => this.#search.find(`kind:${kind} domain:${side}`))),
      ),
    );
    return swatches.length ? [element("b", { class: `tv-side tv-${side}` }, NAMES[side]), ...swatches] : [];
  }
}
