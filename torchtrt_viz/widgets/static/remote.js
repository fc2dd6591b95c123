// The source of a large trace: the kernel answers, the browser holds only what is in sight.

import { View, typed } from "./view.js";

/**
 * Requests over a widget's custom messages.
 *
 * With `batches`, what is asked at one moment travels as one message and is answered by one: the notebook's way
 * to the kernel and back takes many times longer than the kernel takes to answer.
 */
export class Wire {
  constructor(model, { batches = false } = {}) {
    this.model = model;
    this.batches = batches;
    this.queue = [];
    this.waiting = new Map(); // id -> what was asked, in order
    this.next = 1;
    this.prefix = Math.random().toString(36).slice(2, 10); // several views of one widget hear every answer
    this.listen = (message, buffers) => this.hear(message, buffers ?? []);
    model.on("msg:custom", this.listen);
  }

  ask(op, content = {}) {
    return new Promise((resolve, reject) => {
      this.queue.push({ request: { ...content, op }, resolve, reject });
      if (!this.batches) this.send();
      else if (this.queue.length === 1) queueMicrotask(() => this.send());
    });
  }

  send() {
    const asked = this.queue.splice(0);
    if (!asked.length) return;
    const id = `${this.prefix}-${this.next++}`;
    this.waiting.set(id, asked);
    const requests = asked.map((one) => one.request);
    try {
      this.model.send(requests.length === 1 ? { ...requests[0], id } : { op: "batch", requests, id });
    } catch (error) {
      this.waiting.delete(id);
      for (const { reject } of asked) reject(error);
    }
  }

  hear(message, buffers) {
    const asked = this.waiting.get(message?.reply);
    if (!asked) return;
    this.waiting.delete(message.reply);
    this.traffic = buffers.reduce((sum, buffer) => sum + buffer.byteLength, 0);
    let at = 0;
    asked.forEach(({ resolve, reject }, i) => {
      const answer = message.answers ? message.answers[i] : message;
      const own = message.answers ? buffers.slice(at, (at += answer.buffers)) : buffers;
      if (answer.error) reject(new Error(answer.error));
      else resolve({ ...answer, buffers: own });
    });
  }

  close() {
    this.model.off("msg:custom", this.listen);
    const left = [...this.queue.splice(0), ...[...this.waiting.values()].flat()];
    this.waiting.clear();
    for (const { reject } of left) reject(new Error("closed"));
  }
}

/** A place with what came along to be shown of it, or null. */
function placeOf({ place, detail, links }) {
  return place && detail ? { ...place, about: { detail, links } } : place;
}

/** What sources over a wire share: names by number, details, links. */
export class KernelSource {
  constructor(wire, answer) {
    this.wire = wire;
    this.info = answer;
    const [host, gpu, color, kind] = answer.buffers;
    this.minimap = { host: typed(host, Float32Array), gpu: typed(gpu, Float32Array) };
    this.nameColor = typed(color, Uint8Array);
    this.nameKind = typed(kind, Uint8Array);
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
    const arrays = answer.buffers.map((buffer) => typed(buffer, Float32Array));
    return { ...answer, series: answer.ids.map((id, i) => ({ id, low: arrays[2 * i], high: arrays[2 * i + 1] })) };
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
    const b = answer.buffers;
    const view = new View(answer.t0, answer.t1, answer.width);
    const mode = typed(b[0], Uint8Array);
    const begin = typed(b[1], Uint32Array);
    view.base = answer.t0;
    view.start = typed(b[2], Float32Array);
    view.dur = typed(b[3], Float32Array);
    view.row = typed(b[4], Uint32Array);
    view.names = typed(b[10], Int32Array);
    view.name = Int32Array.from(typed(b[5], Uint16Array), (name) => view.names[name] ?? -1);
    view.mark = typed(b[6], Uint8Array);
    view.busy = typed(b[7], Uint8Array);
    view.cellName = typed(b[8], Uint16Array);
    view.cellMark = typed(b[9], Uint8Array);
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
