// The timeline of an exported page: the data are in the page, nothing is asked of anybody.

import { Timeline } from "./timeline.js";
import { holdingAll } from "./whole.js";
import { columnsOf } from "./wire.js";

/** Bytes of a base64 text. Several megabytes of it: a callback for each of them would take half a second. */
function bytesOf(text) {
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = characters.charCodeAt(i);
  return bytes;
}

/** Decodes the page's data, gzip in base64: the size of a JSON head, the head, and the columns that it describes. */
async function decode(text) {
  const packed = bytesOf(text.trim());
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const raw = new Uint8Array(await new Response(stream).arrayBuffer());
  const headSize = Number(new DataView(raw.buffer).getBigUint64(0, true));
  const head = JSON.parse(new TextDecoder().decode(raw.subarray(8, 8 + headSize)));
  return { head, columns: columnsOf("page", head.frame, raw.subarray(8 + headSize)) };
}

class PageBase {
  constructor(head, columns) {
    this.info = head;
    this.texts = head.names;
    this.nameColor = columns.name_color.slice(); // copies let go of the megabytes that were decoded
    this.nameKind = columns.name_kind.slice();
    const shares = (bytes) => Float32Array.from(bytes, (share) => share / 255);
    this.minimap = { host: shares(columns.host_busy), gpu: shares(columns.gpu_busy) };
    this.covered = columns.covered;
    this.iteration = columns.iteration;
    this.stands = columns.stands;
    this.flowSource = columns.flow_source;
    this.flowTarget = columns.flow_target;
    this.flowName = columns.flow_name;
    const { counter_end: ends, counter_time: times, counter_value: values } = columns;
    this.counterData = head.counters.map((_, i) => {
      const own = [i ? ends[i - 1] : 0, ends[i]];
      return { ts: times.subarray(...own), value: values.slice(...own) };
    });
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
  constructor(head, columns) {
    super(head, columns);
    const { start, dur, name, row, share, lane_begin: laneBegin, lane_end: laneEnd } = columns;
    this.hold(
      { start, dur, name, row, share, laneBegin, laneEnd },
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
  const { head, columns } = await decode(text);
  const source = new PageSource(head, columns);
  root.textContent = "";
  return new Timeline(root, source, store);
}
