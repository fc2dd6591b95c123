// @ts-check
// A source that holds every event in the browser: only words about single events have to come from elsewhere.

import { LocalIndex } from "./local.js";
import { byNameAlone, matchingNames } from "./matching.js";
import { QueryError, parse } from "./query.js";

/** @import { Columns } from "./local.js" */
/** @import { Tree } from "./query.js" */
/** @import { Chosen, Eventually, Found, HeldPlace, Info, Section, Spot, Totals, ViewRequest } from "./types.js" */

/**
 * What is known of the names, per name.
 * @typedef {{texts: string[], color: Uint8Array, kind: Uint8Array}} Names
 */

const FINEST = 256; // pixel columns: fewer spans than this are never merged

/** Detail, links and counters are those of the classes below it. */
export class HeldSource {
  onNames = () => {};
  onLost = () => {};

  /**
   * @param {Info} info
   * @param {Record<Section, Float32Array>} minimap
   * @param {Names} names
   * @param {Columns} columns
   */
  constructor(info, minimap, names, columns) {
    this.info = info;
    this.minimap = minimap;
    this.texts = names.texts;
    this.nameColor = names.color;
    this.nameKind = names.kind;
    this.index = new LocalIndex(columns);
    this.drawnLanes = info.tracks.flatMap((track) => track.lanes); // without covers: each event is on one of them
  }

  get whole() {
    return true;
  }

  /** @param {number} name */
  nameText(name) {
    return name < 0 ? "" : (this.texts[name] ?? "");
  }

  /** @param {ViewRequest} request */
  view(request) {
    return this.index.view(request, Math.max(FINEST, request.width));
  }

  /**
   * @param {HeldPlace | null} place
   * @returns {HeldPlace & {name: string, kind: string} | null}
   */
  #named(place) {
    const { kinds } = this.info;
    return place && { ...place, name: this.nameText(place.nameId), kind: kinds[this.nameKind[place.nameId] ?? kinds.length - 1] };
  }

  /**
   * @param {number} lane
   * @param {number} t
   * @param {number} tolerance
   */
  hit(lane, t, tolerance) {
    return this.#named(this.index.hit(lane, t, tolerance));
  }

  /**
   * @param {{lane: number, start: number, row: number}} place
   * @param {number} step
   */
  neighbour(place, step) {
    return this.#named(this.index.neighbour(place, step));
  }

  /** @param {number} row */
  locate(row) {
    return this.#named(this.index.locate(row, this.drawnLanes));
  }

  /**
   * @param {string} text
   * @returns {Eventually<Found>}
   */
  search(text) {
    const { index } = this;
    index.markRows = null;
    index.markNames = null;
    try {
      const tree = parse(text);
      if (!tree) return { count: 0 };
      if (!byNameAlone(tree)) return this.searchRows(tree, text);
      index.markNames = matchingNames(tree, this.texts);
      return { count: index.countMarked(this.drawnLanes) };
    } catch (error) {
      if (!(error instanceof QueryError)) throw error;
      return { count: 0, wrong: { at: error.at, expected: error.expected } };
    }
  }

  /**
   * Marks what a search is for that asks for more than names.
   * @param {Tree} tree
   * @param {string} text
   * @returns {Eventually<Found>}
   */
  searchRows(tree, text) {
    throw new Error(`nobody answers ${text} (${tree.op})`);
  }

  /**
   * The next marked event, around the end when there is none before it.
   * @param {number[]} lanes
   * @param {Spot} from
   * @param {boolean} forward
   */
  step(lanes, from, forward) {
    const { index } = this;
    if (!index.marking) return null;
    const place = this.#named(index.step(lanes, from, forward) ?? index.step(lanes, { start: forward ? -Infinity : Infinity, lane: -1 }, forward));
    return place && { ...place, number: index.markedUntil(lanes, place) };
  }

  /**
   * Marks rows, or what has one of some names, and returns the rows.
   * @param {{rows?: number[], names?: string[]}} wanted
   * @returns {number[]}
   */
  mark({ rows, names }) {
    const { index } = this;
    index.markNames = null;
    index.markRows = null;
    if (rows) {
      index.markRows = index.maskOf(rows);
      return rows;
    }
    const some = new Set(names);
    index.markNames = Uint8Array.from(this.texts, (name) => (some.has(name) ? 1 : 0));
    return index.marked(this.drawnLanes);
  }

  /**
   * @param {number[]} rows
   * @returns {Chosen}
   */
  chosenOf(rows) {
    const { t0, t1, found } = this.index.totalsOf(rows, this.drawnLanes, this.laneSides());
    const totals = found.map(([side, { events, names, rows }]) => ({ side, events, names, rows: this.#withNames(rows) }));
    return { events: totals.reduce((sum, side) => sum + side.events, 0), t0, t1, totals };
  }

  /** @returns {Map<number, Section>} */
  laneSides() {
    return new Map(this.info.tracks.flatMap((track) => track.lanes.map((lane) => [lane, track.section])));
  }

  /** @param {[number, number, number][]} rows @returns {[string, number, number][]} */
  #withNames(rows) {
    return rows.map(([name, some, inside]) => [this.nameText(name), some, inside]);
  }

  /**
   * @param {number} t0
   * @param {number} t1
   * @param {number[]} lanes
   * @returns {Totals}
   */
  totals(t0, t1, lanes) {
    const { events, names, rows } = this.index.totals(t0, t1, lanes);
    return { events, names, rows: this.#withNames(rows) };
  }
}
