// The timeline of an exported page: the data are in the page, nothing is asked of anybody.

import { Timeline } from "./timeline.js";
import { holdingAll } from "./whole.js";

/** Bytes of a base64 text. Several megabytes of it: a callback for each of them would take half a second. */
function bytesOf(text) {
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = characters.charCodeAt(i);
  return bytes;
}

/** Decodes the page's data: gzip in base64 of a JSON head and whole columns in byte planes. */
export async function decode(text) {
  const packed = bytesOf(text.trim());
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const raw = new Uint8Array(await new Response(stream).arrayBuffer());
  const headSize = Number(new DataView(raw.buffer).getBigUint64(0, true));
  const head = JSON.parse(new TextDecoder().decode(raw.subarray(8, 8 + headSize)));
  const arrays = {};
  let at = 8 + headSize;
  for (const [name, size] of head.arrays) {
    arrays[name] = raw.subarray(at, at + size);
    at += size;
  }
  return { head, arrays };
}

/** Whole numbers from byte planes, the sign in the lowest bit; `running` adds them up. */
export function fromPlanes(bytes, Type, running = false) {
  const planes = bytes[0];
  const n = (bytes.length - 1) / planes;
  const out = new Type(n);
  let sum = 0;
  for (let i = 0; i < n; i++) {
    let folded = 0;
    for (let p = planes - 1; p >= 0; p--) folded = folded * 256 + bytes[1 + p * n + i];
    const odd = folded % 2;
    const value = odd ? -(folded + 1) / 2 : folded / 2;
    sum = running ? sum + value : value;
    out[i] = sum;
  }
  return out;
}

class PageBase {
  constructor(head, arrays) {
    this.info = { ...head, events: head.events, name_count: head.names.length };
    this.texts = head.names;
    this.nameColor = Uint8Array.from(head.name_color);
    this.nameKind = Uint8Array.from(head.name_kind);
    const shares = (bytes) => Float32Array.from(bytes, (share) => share / 255);
    this.minimap = { host: shares(arrays.host), gpu: shares(arrays.gpu) };
    this.covered = fromPlanes(arrays.covered, Float64Array);
    this.iteration = fromPlanes(arrays.iteration, Int32Array);
    this.stands = arrays.stands ? fromPlanes(arrays.stands, Int32Array) : null;
    this.flowSource = fromPlanes(arrays.flow_source, Float64Array, true);
    this.flowTarget = fromPlanes(arrays.flow_target, Float64Array, true);
    this.flowName = fromPlanes(arrays.flow_name, Int32Array);
    this.counterData = head.counters.map((counter) => ({
      ts: Float64Array.from(counter.ts),
      value: Float64Array.from(counter.value, (value) => value ?? NaN),
    }));
    this.onNames = () => {};
  }

  nameText(name) {
    return name < 0 ? "" : (this.texts[name] ?? "");
  }

  async detail(row, known) {
    const place = known?.at !== undefined ? known : this.locate(row);
    const { at } = place;
    const track = this.info.tracks.find((one) => one.lanes.includes(place.lane) || one.collapsed === place.lane);
    const role = track.roles[track.lanes.indexOf(place.lane)] ?? "spans";
    const detail = {
      row,
      name: this.nameText(place.nameId),
      domain: track.section,
      span: role !== "instants",
      times: { start: place.start, dur: place.dur, self: place.dur - this.covered[at] },
      fields: [["kind", place.kind], ["track", track.label]],
      args: Object.entries(this.info.args[row] ?? {}),
    };
    if (track.group) detail.fields.push(["in", track.group]);
    if (role === "annotations") detail.fields.push(["what", "a range on the GPU's clock, not work"]);
    if (this.iteration[at] >= 0) detail.fields.push(["iteration", String(this.iteration[at])]);
    if (this.stands && this.stands[at] > 1) {
      detail.name = `${this.stands[at]} short spans, the longest: ${detail.name}`;
      detail.fields.push(["busy share of the block", `${((this.index.share[at] / 255) * 100).toFixed(1)} %`]);
      delete detail.times.self;
    }
    return detail;
  }

  async links(row) {
    const found = [];
    let total = 0;
    for (let i = 0; i < this.flowSource.length; i++) {
      const out = this.flowSource[i] === row;
      if (!out && this.flowTarget[i] !== row) continue;
      total++;
      const place = found.length < 300 ? this.locate(out ? this.flowTarget[i] : this.flowSource[i]) : null;
      if (place) found.push({ ...place, text: place.name, name: this.info.flow_names[this.flowName[i]] ?? "flow", out });
    }
    return { links: found, total };
  }

  counters({ t0, t1, width, ids }) {
    const series = ids.map((id) => {
      const { ts, value } = this.counterData[id];
      const low = new Float32Array(width).fill(NaN);
      const high = new Float32Array(width).fill(NaN);
      const step = (t1 - t0) / width;
      let at = 0;
      while (at < ts.length && ts[at] <= t0) at++;
      for (let k = 0; k < width; k++) {
        const end = t0 + (k + 1) * step;
        for (let i = Math.max(0, at - 1); i < ts.length && (i < at || ts[i] < end); i++) {
          if (!(low[k] <= value[i])) low[k] = value[i];
          if (!(high[k] >= value[i])) high[k] = value[i];
          if (i >= at) at = i + 1;
        }
      }
      return { id, low, high };
    });
    return { t0, t1, width, series };
  }
}

class PageSource extends holdingAll(PageBase) {
  constructor(head, arrays) {
    super(head, arrays);
    this.hold(
      {
        start: fromPlanes(arrays.start, Float64Array, true),
        dur: fromPlanes(arrays.dur, Float64Array),
        name: fromPlanes(arrays.name, Int32Array),
        row: fromPlanes(arrays.row, Uint32Array, true),
        share: arrays.share ?? null,
        laneBegin: Uint32Array.from(head.lane_begin),
        laneEnd: Uint32Array.from(head.lane_end),
      },
      head.tracks.flatMap((track) => track.lanes),
    );
  }
}

/** What a page remembers while it is open. */
export function memoryStore(values) {
  const callbacks = new Map();
  return {
    values,
    get: (key) => values[key],
    set: (key, value) => {
      values[key] = value;
    },
    on: (key, callback) => callbacks.set(key, [...(callbacks.get(key) ?? []), callback]),
    tell: (key, value) => {
      values[key] = value;
      for (const callback of callbacks.get(key) ?? []) callback();
    },
  };
}

export async function openPage(root, text, store) {
  const { head, arrays } = await decode(text);
  const source = new PageSource(head, arrays);
  root.textContent = "";
  return new Timeline(root, source, store);
}
