// The source of a large trace: the kernel answers, the browser holds only what is in sight.

import { View } from "./view.js";
import { columnsOf } from "./wire.js";

/** A place with what came along to be shown of it, or null. */
function placeOf({ place, detail, links }) {
  return place && detail ? { ...place, about: { detail, links } } : place;
}

/** What sources over a wire share: names by number, details, links. */
export class KernelSource {
  constructor(wire, answer, columns) {
    this.wire = wire;
    this.info = answer;
    this.minimap = { host: columns.host_busy, gpu: columns.gpu_busy };
    this.nameColor = columns.name_color;
    this.nameKind = columns.name_kind;
    this.texts = answer.names ?? new Array(answer.name_count);
    this.wanted = new Set();
    this.onNames = () => {};
  }

  /** The text of a name, or null while it is being fetched. */
  nameText(name) {
    if (name < 0) return "";
    const text = this.texts[name];
    if (text !== undefined) return text;
    if (this.wanted.size === 0) setTimeout(() => this.fetchNames(), 15);
    this.wanted.add(name);
    return null;
  }

  async fetchNames() {
    const ids = [...this.wanted].slice(0, 5000);
    this.wanted.clear();
    const { names, ids: got } = await this.wire.ask("names", { ids });
    got.forEach((id, i) => (this.texts[id] = names[i]));
    this.onNames();
  }

  async detail(row) {
    return this.wire.ask("detail", { row });
  }

  async links(row) {
    return this.wire.ask("links", { row });
  }

  async counters(request) {
    const answer = await this.wire.ask("counters", request);
    const { low, high } = columnsOf("counters", answer.frame, answer.buffer);
    const { t0, t1, width } = answer;
    const own = (values, i) => values.subarray(i * width, (i + 1) * width);
    return { t0, t1, width, series: answer.ids.map((id, i) => ({ id, low: own(low, i), high: own(high, i) })) };
  }

  async totals(t0, t1, lanes) {
    return this.wire.ask("totals", { t0, t1, lanes });
  }

  async locate(row) {
    return (await this.wire.ask("locate", { row })).place;
  }

  close() {
    this.wire.close();
  }
}

export class RemoteSource extends KernelSource {
  get whole() {
    return false;
  }

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

  async hit(lane, t, tolerance) {
    return placeOf(await this.wire.ask("hit", { lane, t: Math.round(t), tolerance: Math.round(tolerance) }));
  }

  async neighbour(place, step) {
    return placeOf(await this.wire.ask("neighbour", { lane: place.lane, start: place.start, row: place.row, step }));
  }

  async search(text) {
    return (await this.wire.ask("search", { text })).count;
  }

  async step(lanes, t, lane, forward) {
    return placeOf(await this.wire.ask("step", { lanes, t: Math.round(t), lane, forward }));
  }

  async refreshMarks() {}
}
