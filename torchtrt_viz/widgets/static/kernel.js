// @ts-check
// Sources with a kernel behind them: it answers everything, or only what is to be said of single events.

import { HeldSource } from "./held.js";
import { View } from "./view.js";
import { Wire, columnsOf } from "./wire.js";

/** @import { Tree } from "./query.js" */
/** @import { Chosen, CounterRequest, Counters, Detail, Found, Info, Links, Model, Place, Spot, Totals, ViewRequest } from "./types.js" */
/** @typedef {import("./wire.js").Columns<"open">} Opened */
/** @typedef {Info & {names: string[] | null, name_count: number}} KernelInfo */

const NAMES_AFTER = 15; // ms: names that are missed in one picture are asked for together
const NAMES_AT_ONCE = 5000;

/** @param {Opened} columns */
function minimapOf(columns) {
  return { host: columns.host_busy, gpu: columns.gpu_busy };
}

/** A place with what came along to be shown of it, or null. @returns {Place | null} */
function placeOf(/** @type {{place: Place | null, detail?: Detail, links?: Links}} */ { place, detail, links }) {
  return place && detail && links ? { ...place, about: { detail, links } } : place;
}

/**
 * @param {Wire} wire
 * @param {CounterRequest} request
 * @returns {Promise<Counters>}
 */
async function countersOf(wire, request) {
  const answer = await wire.ask("counters", request);
  const { low, high } = columnsOf("counters", answer.frame, answer.buffer);
  const { t0, t1, width } = answer;
  /** @type {number[]} */
  const ids = answer.ids;
  const series = ids.map((id, i) => {
    const [from, to] = [i * width, (i + 1) * width];
    return { id, low: low.subarray(from, to), high: high.subarray(from, to) };
  });
  return { t0, t1, width, series };
}

/** A small trace: the browser holds every event. */
class WholeSource extends HeldSource {
  /**
   * @param {Wire} wire
   * @param {KernelInfo} info
   * @param {Opened} columns
   */
  constructor(wire, info, columns) {
    const { start, dur, name, row, lane_begin: laneBegin, lane_end: laneEnd } = columns;
    if (!start || !dur || !name || !row || !laneBegin || !laneEnd) throw new Error("a whole trace came without its events");
    const names = { texts: info.names ?? [], color: columns.name_color, kind: columns.name_kind };
    super(info, minimapOf(columns), names, { start, dur, name, row, laneBegin, laneEnd });
    this.wire = wire;
    wire.lost.listen(() => this.onLost());
  }

  /** @param {number} row @returns {Promise<Detail>} */
  detail(row) {
    return this.wire.ask("detail", { row });
  }

  /** @param {number} row @returns {Promise<Links>} */
  links(row) {
    return this.wire.ask("links", { row });
  }

  /** @param {CounterRequest} request */
  counters(request) {
    return countersOf(this.wire, request);
  }

  /** @returns {Promise<Chosen>} */
  chosen() {
    return this.wire.ask("chosen");
  }

  /**
   * @param {Tree} _
   * @param {string} text
   * @returns {Promise<Found>}
   */
  async searchRows(_, text) {
    const [found] = await Promise.all([this.wire.ask("search", { text }), this.refreshMarks()]); // one message
    return found;
  }

  /** Python marked something (find, highlight): take its marks over. */
  async refreshMarks() {
    const answer = await this.wire.ask("marks");
    const { names, rows } = columnsOf("marks", answer.frame, answer.buffer);
    this.index.markNames = names;
    this.index.markRows = rows;
  }

  close() {
    this.wire.close();
  }
}

/** A large trace: the browser holds only what is in sight. */
class RemoteSource {
  onNames = () => {};
  onLost = () => {};
  /** Names that were missed since the last question. @type {Set<number>} */
  #wanted = new Set();
  /** @type {(string | undefined)[]} */
  #texts;

  /**
   * @param {Wire} wire
   * @param {KernelInfo} info
   * @param {Opened} columns
   */
  constructor(wire, info, columns) {
    this.wire = wire;
    wire.lost.listen(() => this.onLost());
    this.info = info;
    this.minimap = minimapOf(columns);
    this.nameColor = columns.name_color;
    this.nameKind = columns.name_kind;
    this.#texts = info.names ?? new Array(info.name_count);
  }

  get whole() {
    return false;
  }

  /** The text of a name, or null while it is being fetched. @param {number} name */
  nameText(name) {
    if (name < 0) return "";
    const text = this.#texts[name];
    if (text !== undefined) return text;
    if (this.#wanted.size === 0) setTimeout(() => this.#fetchNames(), NAMES_AFTER);
    this.#wanted.add(name);
    return null;
  }

  async #fetchNames() {
    const ids = [...this.#wanted].slice(0, NAMES_AT_ONCE);
    this.#wanted.clear();
    const answer = await this.wire.ask("names", { ids });
    answer.ids.forEach((/** @type {number} */ id, /** @type {number} */ i) => (this.#texts[id] = answer.names[i]));
    this.onNames();
  }

  /** @param {ViewRequest} request */
  async view(request) {
    const answer = await this.wire.ask("view", request);
    const columns = columnsOf("view", answer.frame, answer.buffer);
    const { mode, span_begin: begin, names } = columns;
    const view = new View(answer.t0, answer.t1, answer.width);
    view.base = answer.t0;
    view.start = columns.start;
    view.dur = columns.dur;
    view.row = columns.row;
    view.names = names;
    view.name = Int32Array.from(columns.name, (name) => names[name] ?? -1);
    view.mark = columns.marked;
    view.busy = columns.cell_busy;
    view.cellName = columns.cell_name;
    view.cellMark = columns.cell_marked;
    view.marked = view.mark.length > 0 || view.cellMark.length > 0 || answer.marked === true;
    let column = 0;
    request.lanes.forEach((lane, i) => {
      view.lanes.set(lane, { mode: mode[i], from: begin[i], to: begin[i + 1], column: mode[i] === 2 ? column++ : -1 });
    });
    return view;
  }

  /** @param {CounterRequest} request */
  counters(request) {
    return countersOf(this.wire, request);
  }

  /** @returns {Promise<Chosen>} */
  chosen() {
    return this.wire.ask("chosen");
  }

  /** @param {number} row @returns {Promise<Detail>} */
  detail(row) {
    return this.wire.ask("detail", { row });
  }

  /** @param {number} row @returns {Promise<Links>} */
  links(row) {
    return this.wire.ask("links", { row });
  }

  /**
   * @param {number} lane
   * @param {number} t
   * @param {number} tolerance
   */
  async hit(lane, t, tolerance) {
    return placeOf(await this.wire.ask("hit", { lane, t: Math.round(t), tolerance: Math.round(tolerance) }));
  }

  /**
   * @param {Place} place
   * @param {number} step
   */
  async neighbour(place, step) {
    return placeOf(await this.wire.ask("neighbour", { lane: place.lane, start: place.start, row: place.row, step }));
  }

  /** @param {number} row @returns {Promise<Place | null>} */
  async locate(row) {
    return (await this.wire.ask("locate", { row })).place;
  }

  /** @param {string} text @returns {Promise<Found>} */
  search(text) {
    return this.wire.ask("search", { text });
  }

  /**
   * @param {number[]} lanes
   * @param {Spot} from
   * @param {boolean} forward
   */
  async step(lanes, { start, lane, row = -1 }, forward) {
    const answer = await this.wire.ask("step", { lanes, t: Math.round(start), lane, row, forward });
    const place = placeOf(answer);
    return place && { ...place, number: Number(answer.number) };
  }

  /**
   * @param {number} t0
   * @param {number} t1
   * @param {number[]} lanes
   * @returns {Promise<Totals>}
   */
  totals(t0, t1, lanes) {
    return this.wire.ask("totals", { t0, t1, lanes });
  }

  close() {
    this.wire.close();
  }
}

/** Opens the source of a widget's model. @param {Model} model */
export async function openSource(model) {
  const wire = new Wire(model, { batches: true });
  const answer = await wire.ask("open");
  const columns = columnsOf("open", answer.frame, answer.buffer);
  return answer.whole ? new WholeSource(wire, answer, columns) : new RemoteSource(wire, answer, columns);
}
