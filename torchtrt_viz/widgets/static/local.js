// @ts-check
// The index of a small trace: every span is in the browser, which needs nobody to zoom.

import { View } from "./view.js";

/** @import { HeldPlace, Section, Spot, ViewRequest } from "./types.js" */
/** @typedef {Record<number, number> & {readonly length: number}} Numbers a typed array, or an array */

/**
 * Whole columns, lane after lane (sorted by start, without overlap within a lane).
 * @typedef {object} Columns
 * @property {Numbers} start
 * @property {Numbers} dur
 * @property {Numbers} name
 * @property {Numbers} row
 * @property {Numbers} laneBegin
 * @property {Numbers} laneEnd
 * @property {Uint8Array | null} [share] how much of a block that stands for several spans is busy; 255 is all
 */

const BLOCK = 32;
const TOP_NAMES = 60;

export class LocalIndex {
  /** One byte per name. @type {Uint8Array | null} */
  markNames = null;
  /** One byte per row. @type {Uint8Array | null} */
  markRows = null;
  /** Position of the longest span of each block of 32, of each block of blocks, ... @type {Uint32Array[]} */
  #levels = [];
  /** Busy time before each span; exact up to 2^53 ns. */
  before;
  /** Position of each row. @type {Int32Array | undefined} */
  #position;
  /** Lanes that `#position` speaks of. @type {number[]} */
  #located = [];

  /** @param {Columns} columns */
  constructor({ start, dur, name, row, laneBegin, laneEnd, share = null }) {
    this.start = start;
    this.dur = dur;
    this.name = name;
    this.row = row;
    this.laneBegin = laneBegin;
    this.laneEnd = laneEnd;
    this.share = share;
    const n = start.length;
    this.before = new Float64Array(n + 1);
    for (let i = 0; i < n; i++) this.before[i + 1] = this.before[i] + this.#busy(i, dur[i]);
    let below = n;
    while (below > BLOCK) {
      const last = this.#levels[this.#levels.length - 1];
      const level = new Uint32Array(Math.ceil(below / BLOCK));
      for (let b = 0; b < level.length; b++) {
        let best = -1;
        for (let i = b * BLOCK; i < Math.min(below, (b + 1) * BLOCK); i++) {
          const at = last ? last[i] : i;
          if (best < 0 || dur[at] > dur[best]) best = at;
        }
        level[b] = best;
      }
      this.#levels.push(level);
      below = level.length;
    }
  }

  /** @param {number} i */
  #end(i) {
    return this.start[i] + this.dur[i];
  }

  /**
   * How much of a part of a span is busy.
   * @param {number} i
   * @param {number} time
   */
  #busy(i, time) {
    return this.share === null ? time : (time * this.share[i]) / 255;
  }

  /**
   * Position of the first span of [from, to) that starts at `t` or later.
   * @param {number} from
   * @param {number} to
   * @param {number} t
   */
  #lower(from, to, t) {
    while (from < to) {
      const mid = (from + to) >>> 1;
      if (this.start[mid] < t) from = mid + 1;
      else to = mid;
    }
    return from;
  }

  /**
   * Positions of the spans of a lane that touch [t0, t1).
   * @param {number} lane
   * @param {number} t0
   * @param {number} t1
   */
  #inSight(lane, t0, t1) {
    const begin = this.laneBegin[lane];
    let from = this.#lower(begin, this.laneEnd[lane], t0);
    const to = this.#lower(from, this.laneEnd[lane], t1);
    if (from > begin && this.#end(from - 1) > t0) from--;
    return [from, to];
  }

  /**
   * Position of the longest span of [from, to).
   * @param {number} from
   * @param {number} to
   */
  #longest(from, to) {
    let best = from;
    let level = 0;
    while (from < to) {
      const blocks = level === 0 ? null : this.#levels[level - 1];
      /** @type {(i: number) => number} */
      const at = (i) => (blocks ? blocks[i] : i);
      /** @type {(lo: number, hi: number) => void} */
      const consider = (lo, hi) => {
        for (let i = lo; i < hi; i++) if (this.dur[at(i)] > this.dur[best]) best = at(i);
      };
      const wholeFrom = Math.ceil(from / BLOCK);
      const wholeTo = Math.floor(to / BLOCK);
      if (level === this.#levels.length || wholeFrom >= wholeTo) {
        consider(from, to);
        break;
      }
      consider(from, wholeFrom * BLOCK);
      consider(wholeTo * BLOCK, to);
      from = wholeFrom;
      to = wholeTo;
      level++;
    }
    return best;
  }

  /** @param {number} i */
  #isMarked(i) {
    if (this.markNames !== null && this.name[i] >= 0 && this.markNames[this.name[i]]) return true;
    return this.markRows !== null && this.markRows[this.row[i]] === 1;
  }

  get marking() {
    return this.markNames !== null || this.markRows !== null;
  }

  /**
   * @param {ViewRequest} request
   * @param {number} exactLimit lanes with more spans in sight become cells
   * @param {number} widePx wider spans are sent in any case
   */
  view({ t0, t1, width, lanes }, exactLimit, widePx = 24) {
    const view = new View(t0, t1, width);
    const marking = this.marking;
    /** @type {number[]} */
    const spans = [];
    /** @type {Uint8Array<ArrayBuffer>[]} */
    const busy = [];
    /** @type {Int32Array<ArrayBuffer>[]} */
    const names = [];
    /** @type {Uint8Array<ArrayBuffer>[]} */
    const marks = [];
    const px = (t1 - t0) / width;
    let column = 0;
    for (const lane of lanes) {
      const [from, to] = this.#inSight(lane, t0, t1);
      const first = spans.length;
      if (to <= from) {
        view.lanes.set(lane, { mode: 0, from: first, to: first, column: -1 });
        continue;
      }
      const exact = to - from <= exactLimit;
      if (exact) {
        for (let i = from; i < to; i++) spans.push(i);
      } else {
        const cells = this.#columns(from, to, lane, t0, px, width);
        busy.push(cells.busy);
        names.push(cells.names);
        if (marking) marks.push(this.#markedColumns(from, to, t0, t1, px, width));
        this.#wide(from, to, px * widePx, spans);
      }
      view.lanes.set(lane, { mode: exact ? 1 : 2, from: first, to: spans.length, column: exact ? -1 : column++ });
    }
    view.start = Float64Array.from(spans, (i) => this.start[i]);
    view.dur = Float64Array.from(spans, (i) => this.dur[i]);
    view.row = Uint32Array.from(spans, (i) => this.row[i]);
    view.name = Int32Array.from(spans, (i) => this.name[i]);
    const { share } = this;
    view.share = share && Uint8Array.from(spans, (i) => share[i]);
    view.mark = marking ? Uint8Array.from(spans, (i) => (this.#isMarked(i) ? 1 : 0)) : new Uint8Array(0);
    view.busy = joined(Uint8Array, busy);
    view.cellName = joined(Int32Array, names);
    view.cellMark = joined(Uint8Array, marks);
    view.marked = marking;
    return view;
  }

  /**
   * Per pixel column how much of it is busy, and the name that fills most of it.
   * @param {number} from
   * @param {number} to
   * @param {number} lane
   * @param {number} t0
   * @param {number} px
   * @param {number} width
   */
  #columns(from, to, lane, t0, px, width) {
    const busy = new Uint8Array(width);
    const names = new Int32Array(width);
    const begin = this.laneBegin[lane];
    /** @type {(at: number, t: number) => number} */
    const until = (at, t) => {
      const over = at > begin ? this.#end(at - 1) - t : 0;
      return over > 0 ? this.before[at] - this.#busy(at - 1, over) : this.before[at];
    };
    let at = this.#lower(from, to, t0);
    let busyBefore = until(at, t0);
    for (let k = 0; k < width; k++) {
      const left = t0 + k * px;
      const right = t0 + (k + 1) * px;
      let step = 1;
      let low = at;
      while (low + step < to && this.start[low + step] < right) {
        low += step;
        step *= 2;
      }
      const next = this.#lower(low, Math.min(low + step, to), right);
      const busyAfter = until(next, right);
      let longest = -1;
      let best = -1;
      if (next > at) {
        longest = next - 1;
        best = Math.min(this.#end(longest), right) - this.start[longest];
        if (next - 1 > at) {
          const inner = this.#longest(at, next - 1);
          if (this.dur[inner] >= best) {
            best = this.dur[inner];
            longest = inner;
          }
        }
      }
      if (at > begin && this.#end(at - 1) > left && Math.min(this.#end(at - 1), right) - left >= best) longest = at - 1;
      if (longest >= 0) {
        busy[k] = Math.min(255, Math.max(1, Math.round(((busyAfter - busyBefore) / px) * 255)));
        names[k] = this.name[longest];
      }
      at = next;
      busyBefore = busyAfter;
    }
    return { busy, names };
  }

  /**
   * Per pixel column how much of it is marked.
   * @param {number} from
   * @param {number} to
   * @param {number} t0
   * @param {number} t1
   * @param {number} px
   * @param {number} width
   */
  #markedColumns(from, to, t0, t1, px, width) {
    const time = new Float64Array(width);
    const any = new Uint8Array(width);
    for (let i = from; i < to; i++) {
      if (!this.#isMarked(i)) continue;
      const start = Math.max(this.start[i], t0);
      const end = Math.min(this.#end(i), t1);
      const first = Math.min(width - 1, Math.floor((start - t0) / px));
      const last = Math.min(width - 1, Math.floor((end - t0) / px));
      for (let k = first; k <= last; k++) {
        any[k] = 1;
        time[k] += Math.max(0, Math.min(end, t0 + (k + 1) * px) - Math.max(start, t0 + k * px));
      }
    }
    return any.map((some, k) => (some ? Math.min(255, Math.max(1, Math.round((time[k] / px) * 255))) : 0));
  }

  /**
   * Appends the positions of all spans of [from, to) that are at least so long.
   * @param {number} from
   * @param {number} to
   * @param {number} atLeast
   * @param {number[]} out
   */
  #wide(from, to, atLeast, out) {
    let i = from;
    while (i < to) {
      let level = 0;
      let block = BLOCK;
      while (level < this.#levels.length && i % block === 0 && i + block <= to &&
             this.dur[this.#levels[level][i / block]] < atLeast) {
        level++;
        block *= BLOCK;
      }
      if (level > 0) {
        i += block / BLOCK;
        continue;
      }
      if (this.dur[i] >= atLeast) out.push(i);
      i++;
    }
  }

  /**
   * @param {number} lane
   * @param {number} i
   * @returns {HeldPlace}
   */
  #place(lane, i) {
    return { row: this.row[i], lane, start: this.start[i], dur: this.dur[i], nameId: this.name[i], at: i };
  }

  /**
   * @param {number} lane
   * @param {number} t
   * @param {number} tolerance
   */
  hit(lane, t, tolerance) {
    const after = this.#lower(this.laneBegin[lane], this.laneEnd[lane], t + 1e-6);
    let best = -1;
    let distance = tolerance;
    for (const i of [after - 1, after]) {
      if (i < this.laneBegin[lane] || i >= this.laneEnd[lane]) continue;
      const away = t < this.start[i] ? this.start[i] - t : Math.max(0, t - this.#end(i));
      if (away <= distance && (best < 0 || away < distance)) {
        best = i;
        distance = away;
      }
    }
    return best < 0 ? null : this.#place(lane, best);
  }

  /**
   * Position of a row.
   * @param {number} lane
   * @param {number} start
   * @param {number} row
   */
  #find(lane, start, row) {
    let i = this.#lower(this.laneBegin[lane], this.laneEnd[lane], start);
    while (i < this.laneEnd[lane] && this.start[i] === start && this.row[i] !== row) i++;
    return i;
  }

  /**
   * @param {{lane: number, start: number, row: number}} place
   * @param {number} step
   */
  neighbour(place, step) {
    const i = this.#find(place.lane, place.start, place.row) + step;
    return i < this.laneBegin[place.lane] || i >= this.laneEnd[place.lane] ? null : this.#place(place.lane, i);
  }

  /**
   * Where a row is drawn: the first lane of `lanes` that holds it.
   * @param {number} row
   * @param {number[]} lanes the same every time
   */
  locate(row, lanes) {
    if (!this.#position) {
      let most = -1;
      for (let i = 0; i < this.row.length; i++) most = Math.max(most, this.row[i]);
      this.#position = new Int32Array(most + 1).fill(-1);
      for (const lane of lanes) {
        for (let i = this.laneBegin[lane]; i < this.laneEnd[lane]; i++) this.#position[this.row[i]] = i;
      }
      this.#located = lanes;
    }
    const i = this.#position[row] ?? -1;
    if (i < 0) return null;
    const lane = this.#located.find((lane) => i >= this.laneBegin[lane] && i < this.laneEnd[lane]);
    return lane === undefined ? null : this.#place(lane, i);
  }

  /**
   * Positions of a lane around a spot: those before it, and the first one behind it.
   * @param {number} lane
   * @param {number} side the lane's place among those of the search less that of the spot's: lanes further down come later
   * @param {Spot} spot
   */
  #around(lane, side, { start, row = -1 }) {
    const first = this.#lower(this.laneBegin[lane], this.laneEnd[lane], start);
    if (side > 0) return { before: first, after: first };
    let last = first;
    let own = -1;
    for (; last < this.laneEnd[lane] && this.start[last] === start; last++) if (side === 0 && this.row[last] === row) own = last;
    if (side < 0) return { before: last, after: last };
    return own < 0 ? { before: first, after: last } : { before: own, after: own + 1 };
  }

  /**
   * The next marked span in the order of start, then of `lanes`, then in the lane.
   * @param {number[]} lanes
   * @param {Spot} from
   * @param {boolean} forward
   */
  step(lanes, from, forward) {
    const at = lanes.indexOf(from.lane);
    const here = at < 0 && !forward ? lanes.length : at;
    /** @type {HeldPlace | null} */
    let best = null;
    for (const [order, lane] of lanes.entries()) {
      const { before, after } = this.#around(lane, order - here, from);
      if (forward) {
        for (let i = after; i < this.laneEnd[lane] && (!best || this.start[i] < best.start); i++) {
          if (this.#isMarked(i)) {
            best = this.#place(lane, i);
            break;
          }
        }
      } else {
        for (let i = before - 1; i >= this.laneBegin[lane] && (!best || this.start[i] >= best.start); i--) {
          if (this.#isMarked(i)) {
            best = this.#place(lane, i);
            break;
          }
        }
      }
    }
    return best;
  }

  /**
   * How many marked spans come before one or are it, in the order of `step`.
   * @param {number[]} lanes
   * @param {Spot} until
   */
  markedUntil(lanes, until) {
    const here = lanes.indexOf(until.lane);
    let sum = 0;
    lanes.forEach((lane, order) => {
      const { after } = this.#around(lane, order - here, until);
      for (let i = this.laneBegin[lane]; i < after; i++) sum += this.#isMarked(i) ? 1 : 0;
    });
    return sum;
  }

  /** @param {number[]} lanes */
  countMarked(lanes) {
    let sum = 0;
    for (const lane of lanes) {
      for (let i = this.laneBegin[lane]; i < this.laneEnd[lane]; i++) sum += this.#isMarked(i) ? 1 : 0;
    }
    return sum;
  }

  /** One byte per row: 1 for these. @param {number[]} rows */
  maskOf(rows) {
    let most = -1;
    for (const row of rows) most = Math.max(most, row);
    const mask = new Uint8Array(most + 1);
    for (const row of rows) mask[row] = 1;
    return mask;
  }

  /** The rows that are marked. @param {number[]} lanes */
  marked(lanes) {
    /** @type {number[]} */
    const rows = [];
    for (const lane of lanes) {
      for (let i = this.laneBegin[lane]; i < this.laneEnd[lane]; i++) if (this.#isMarked(i)) rows.push(this.row[i]);
    }
    return rows;
  }

  /**
   * Chosen rows by name, most time first, per side of their lanes, and when they are.
   * @param {number[]} rows
   * @param {number[]} lanes the same every time
   * @param {Map<number, Section>} sides
   */
  totalsOf(rows, lanes, sides) {
    /** @type {Map<Section, Map<number, [name: number, events: number, inside: number]>>} */
    const found = new Map();
    let [t0, t1] = [Infinity, -Infinity];
    for (const row of rows) {
      const place = this.locate(row, lanes);
      if (!place) continue;
      const side = sides.get(place.lane) ?? "host";
      const names = found.get(side) ?? new Map();
      found.set(side, names);
      const entry = names.get(place.nameId) ?? [place.nameId, 0, 0];
      entry[1]++;
      entry[2] += place.dur;
      names.set(place.nameId, entry);
      t0 = Math.min(t0, place.start);
      t1 = Math.max(t1, place.start + place.dur);
    }
    const order = /** @type {const} */ (["host", "gpu"]).filter((side) => found.has(side));
    return { t0: Math.min(t0, t1), t1: Math.max(t0, t1), found: order.map((side) => /** @type {const} */ ([side, topOf(found.get(side) ?? new Map())])) };
  }

  /**
   * Events of a range by name, most time first.
   * @param {number} t0
   * @param {number} t1
   * @param {number[]} lanes
   */
  totals(t0, t1, lanes) {
    /** @type {Map<number, [name: number, events: number, inside: number]>} */
    const found = new Map();
    for (const lane of lanes) {
      const [from, to] = this.#inSight(lane, t0, t1 + 1); // whole nanoseconds: what starts at t1 counts
      for (let i = from; i < to; i++) {
        /** @type {[number, number, number]} */
        const entry = found.get(this.name[i]) ?? [this.name[i], 0, 0];
        entry[1]++;
        entry[2] += Math.max(0, Math.min(this.#end(i), t1) - Math.max(this.start[i], t0));
        found.set(this.name[i], entry);
      }
    }
    return topOf(found);
  }
}

/**
 * What was counted by name, most time first.
 * @param {Map<number, [name: number, events: number, inside: number]>} found
 */
function topOf(found) {
  const rows = [...found.values()].sort((a, b) => b[2] - a[2]);
  return { events: rows.reduce((sum, [, events]) => sum + events, 0), names: rows.length, rows: rows.slice(0, TOP_NAMES) };
}

/**
 * @template {Uint8Array<ArrayBuffer> | Int32Array<ArrayBuffer>} T
 * @param {new (length: number) => T} Type
 * @param {T[]} arrays
 */
function joined(Type, arrays) {
  const out = new Type(arrays.reduce((sum, array) => sum + array.length, 0));
  let at = 0;
  for (const array of arrays) {
    out.set(array, at);
    at += array.length;
  }
  return out;
}
