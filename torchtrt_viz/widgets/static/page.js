// @ts-check
// The timeline of an exported page: the data are in the page, nothing is asked of anybody.

import { HeldSource } from "./held.js";
import { matchingRows } from "./matching.js";
import { Timeline } from "./timeline.js";
import { columnsOf } from "./wire.js";

/** @import { Tree } from "./query.js" */
/** @import { CounterRequest, Counters, Detail, HeldPlace, Info, Link, Links, Place, Store, Story } from "./types.js" */
/** @typedef {Info & {names: string[], flow_names: string[], runs: string[], stories: string[], args: Record<string, Record<string, string>>}} Head */
/** @typedef {import("./wire.js").Columns<"page">} PageColumns */

const MOST_LINKS = 300; // that are located

/** Bytes of a base64 text. Several megabytes of it: a callback for each of them would take half a second. @param {string} text */
function bytesOf(text) {
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = characters.charCodeAt(i);
  return bytes;
}

/** Decodes the page's data, gzip in base64: the size of a JSON head, the head, and the columns that it describes. @param {string} text */
export async function decode(text) {
  const packed = bytesOf(text.trim());
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const raw = new Uint8Array(await new Response(stream).arrayBuffer());
  const headSize = Number(new DataView(raw.buffer).getBigUint64(0, true));
  const head = JSON.parse(new TextDecoder().decode(raw.subarray(8, 8 + headSize)));
  return { head, columns: columnsOf("page", head.frame, raw.subarray(8 + headSize)) };
}

/** @param {Uint8Array} bytes of which 255 is all */
function shares(bytes) {
  return Float32Array.from(bytes, (share) => share / 255);
}

export class PageSource extends HeldSource {
  #flowNames;
  #args;
  #columns;
  #runs;
  #stories;
  #story;
  #flows;
  #counters;

  /**
   * @param {Head} head
   * @param {PageColumns} columns
   */
  constructor(head, columns) {
    const { start, dur, name, row, share, lane_begin: laneBegin, lane_end: laneEnd } = columns;
    // Copies of what is small let go of the megabytes that were decoded.
    const names = { texts: head.names, color: columns.name_color.slice(), kind: columns.name_kind.slice() };
    const minimap = { host: shares(columns.host_busy), gpu: shares(columns.gpu_busy) };
    super(head, minimap, names, { start, dur, name, row, share, laneBegin, laneEnd });
    this.#flowNames = head.flow_names;
    this.#args = head.args;
    const { covered, iteration, depth, kind, run, correlation } = columns;
    this.#columns = { covered, iteration, depth, kind, run, correlation };
    this.#runs = head.runs;
    this.#stories = head.stories;
    const { story_row: work, story_host: host, story_operator: operator, story_queued: queued } = columns;
    const { story_ahead: ahead, story_module: module, story_shapes: shapes } = columns;
    this.#story = { work, host, operator, queued, ahead, module, shapes };
    const { flow_source: flowSource, flow_target: flowTarget, flow_name: flowName } = columns;
    this.#flows = { flowSource, flowTarget, flowName };
    /** Per event: spans that it stands for; null where nothing is merged. */
    this.stands = columns.stands;
    const { counter_end: ends, counter_time: times, counter_value: values } = columns;
    this.#counters = head.counters.map((_, i) => {
      const [from, to] = [i ? ends[i - 1] : 0, ends[i]];
      return { ts: times.subarray(from, to), value: values.slice(from, to) };
    });
  }

  /**
   * @param {number} row
   * @param {Place} [known]
   * @returns {Detail}
   */
  detail(row, known) {
    const place = known && "at" in known ? /** @type {HeldPlace} */ (known) : this.locate(row);
    const track = place && this.info.tracks.find((one) => one.lanes.includes(place.lane) || one.collapsed === place.lane);
    if (!place || !track) throw new Error(`no row ${row} is drawn`);
    const { at } = place;
    const { covered, iteration } = this.#columns;
    const role = track.roles[track.lanes.indexOf(place.lane)] ?? "spans";
    /** @type {Detail} */
    const detail = {
      row,
      name: this.nameText(place.nameId),
      domain: track.section,
      span: role !== "instants",
      times: { start: place.start, dur: place.dur, self: place.dur - covered[at] },
      fields: [["kind", place.kind ?? ""], ["track", track.label]],
      args: Object.entries(this.#args[row] ?? {}),
    };
    const story = this.#storyOf(row, place.kind ?? "work");
    if (story) detail.story = story;
    if (track.group) detail.fields.push(["in", track.group]);
    if (role === "annotations") detail.fields.push(["what", "a range on the GPU's clock, not work"]);
    if (iteration[at] >= 0) detail.fields.push(["iteration", String(iteration[at])]);
    if (this.stands && this.stands[at] > 1) {
      detail.name = `${this.stands[at]} short spans, the longest: ${detail.name}`;
      const share = this.index.share ? this.index.share[at] : 255;
      detail.fields.push(["busy share of the block", `${((share / 255) * 100).toFixed(1)} %`]);
      delete detail.times.self;
    }
    return detail;
  }

  /**
   * How a piece of device work came about.
   * @param {number} row
   * @param {string} kind
   * @returns {Story | null}
   */
  #storyOf(row, kind) {
    const { work, host, operator, queued, ahead, module, shapes } = this.#story;
    let [from, to] = [0, work.length];
    while (from < to) {
      const middle = (from + to) >>> 1;
      if (work[middle] < row) from = middle + 1;
      else to = middle;
    }
    if (work[from] !== row) return null;
    const texts = this.#stories;
    /** @type {Story} */
    const story = { path: [] };
    if (module[from] >= 0) story.path.push({ text: texts[module[from]], row: -1 });
    for (const other of [operator[from], host[from]]) {
      const text = other < 0 ? null : this.locate(other)?.name;
      if (text) story.path.push({ text, row: other });
    }
    story.path.push({ text: kind, row });
    if (host[from] >= 0) Object.assign(story, { queued: queued[from], ahead: ahead[from] });
    if (shapes[from] >= 0) story.shapes = texts[shapes[from]];
    return story;
  }

  /**
   * @param {number} row
   * @returns {Links}
   */
  links(row) {
    const { flowSource, flowTarget, flowName } = this.#flows;
    /** @type {Link[]} */
    const found = [];
    let total = 0;
    for (let i = 0; i < flowSource.length; i++) {
      const out = flowSource[i] === row;
      if (!out && flowTarget[i] !== row) continue;
      total++;
      const place = found.length < MOST_LINKS ? this.locate(out ? flowTarget[i] : flowSource[i]) : null;
      if (place) found.push({ ...place, text: place.name, name: this.#flowNames[flowName[i]] ?? "flow", out });
    }
    return { links: found, total };
  }

  /** @param {Tree} tree */
  searchRows(tree) {
    const { index, info, texts, nameKind, drawnLanes } = this;
    const { start, dur, name, row, laneBegin, laneEnd } = index;
    const held = { ...this.#columns, texts, nameKind, kinds: info.kinds, runs: this.#runs, args: this.#args, start, dur, name, row, laneBegin, laneEnd };
    index.markRows = matchingRows(tree, held, info.tracks);
    return { count: index.countMarked(drawnLanes) };
  }

  /** @param {number[]} [rows] */
  chosen(rows = []) {
    return this.chosenOf(rows);
  }

  /**
   * @param {CounterRequest} request
   * @returns {Counters}
   */
  counters({ t0, t1, width, ids }) {
    const series = ids.map((id) => {
      const { ts, value } = this.#counters[id];
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

/**
 * @param {HTMLElement} root
 * @param {string} text
 * @param {Store} store
 */
export async function openPage(root, text, store) {
  const { head, columns } = await decode(text);
  const source = new PageSource(head, columns);
  root.textContent = "";
  return new Timeline(root, source, store);
}
