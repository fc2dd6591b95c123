// @ts-check
// Which rows the timeline shows, and where: sections, groups, tracks and their lanes, counters, aggregates.

import { Signal } from "./signal.js";

/** @import { Info, LaneRow, Layout, Row, Section, Store, Track } from "./types.js" */
/** @typedef {"collapsed" | "hidden" | "pinned" | "folded"} List */

const SECTIONS = /** @type {const} */ (["gpu", "host"]);
const HEIGHT = { section: 22, group: 20, lane: 19, dense: 13, instants: 11, annotations: 17, counter: 40, aggregate: 18, note: 18, gap: 3, recording: 12 };
const DENSE_FROM = 10; // a track of more lanes than this gets lower ones

const TITLES = {
  pinned: ["PINNED", ""],
  host: ["HOST", "durations are time on CPU threads"],
  gpu: ["GPU", "durations are time on the device"],
  recording: ["RECORDING", "what the recorder notes of itself: no work, in no sum"],
  counter: ["COUNTERS", "lowest and highest value per pixel"],
  aggregate: ["SUMS", "no place on the time axis (totals over calls, times that cannot be true): bars have a scale of their own"],
};

/** @returns {Layout} */
function emptyLayout() {
  return { collapsed: [], hidden: [], pinned: [], folded: [], order: [] };
}

export class Rows {
  /** The rows were laid out anew. */
  changed = new Signal();
  /** Counts how often. */
  version = 0;
  /** @type {Row[]} */
  rows = [];
  /** @type {LaneRow[]} */
  laneRows = [];
  height = 0;
  layout = emptyLayout();
  #store;
  #screen;
  /** @type {Map<string, Track>} */
  #byId;
  /** @type {Map<number, Track>} */
  #trackOfLane = new Map();

  /**
   * @param {Info} info
   * @param {Store} store keys: arrangement; height, for what is shown at first
   */
  constructor(info, store) {
    this.info = info;
    this.tracks = info.tracks;
    this.#store = store;
    this.#byId = new Map(info.tracks.map((track) => [track.id, track]));
    for (const track of info.tracks) {
      this.#trackOfLane.set(track.collapsed, track);
      for (const lane of track.lanes) this.#trackOfLane.set(lane, track);
    }
    this.#screen = store.get("height") ?? 420;
    const stored = store.get("arrangement");
    if (stored?.order) this.#take(stored);
    else this.#start();
    store.on("arrangement", () => {
      const stored = store.get("arrangement");
      if (JSON.stringify(stored) === JSON.stringify(this.layout)) return;
      this.#take(stored);
      this.#tell(false);
    });
  }

  // -- arranging --------------------------------------------------------------------------------------

  /** @param {Partial<Layout>} layout */
  arrange(layout) {
    this.#take(layout);
    this.#tell();
  }

  reset() {
    this.#start();
    this.#tell();
  }

  showAll() {
    this.arrange({ ...this.layout, hidden: [], folded: [] });
  }

  /** @param {boolean} on */
  collapseAll(on) {
    const several = this.tracks.filter((track) => track.lanes.length > 1);
    this.arrange({ ...this.layout, collapsed: on ? several.map((track) => track.id) : [] });
  }

  /**
   * Adds or removes a track's or a group's id in one of the layout's lists.
   * @param {List} list
   * @param {string} id
   */
  toggle(list, id) {
    const without = this.layout[list].filter((other) => other !== id);
    this.layout[list] = this.layout[list].includes(id) ? without : [...without, id];
    this.#build();
    this.#tell();
  }

  /**
   * Moves a track up or down in its section.
   * @param {Track} track
   * @param {number} step
   */
  move(track, step) {
    const siblings = this.#ordered(track.section).map((other) => other.id);
    const at = siblings.indexOf(track.id);
    const to = Math.max(0, Math.min(siblings.length - 1, at + step));
    siblings.splice(at, 1);
    siblings.splice(to, 0, track.id);
    const others = this.layout.order.filter((other) => this.#byId.get(other)?.section !== track.section);
    this.layout.order = [...others, ...siblings];
    this.#build();
    this.#tell();
  }

  /**
   * Puts a track at the place of another one of its section.
   * @param {Track} track
   * @param {Track} target
   */
  moveBefore(track, target) {
    const siblings = this.#ordered(track.section);
    const from = siblings.indexOf(track);
    const to = siblings.indexOf(target);
    if (to >= 0 && from !== to) this.move(track, to - from);
  }

  /** Makes the track of a lane visible: unhides it and unfolds its group. @param {number} lane */
  reveal(lane) {
    const track = this.#trackOfLane.get(lane);
    if (!track) return;
    const groups = [groupId(track), `${track.section}/${track.group}`];
    if (!this.layout.hidden.includes(track.id) && !groups.some((group) => this.layout.folded.includes(group))) return;
    this.layout.hidden = this.layout.hidden.filter((id) => id !== track.id);
    this.layout.folded = this.layout.folded.filter((id) => !groups.includes(id));
    this.#build();
    this.#tell();
  }

  /**
   * Idle tracks are folded. With more rows than a few screens, every track is one row, except the first of each
   * section; GPU tracks of many lanes are one row each where nothing else would be to be seen at first.
   */
  #start() {
    this.#take({ folded: [...new Set(this.tracks.filter((track) => track.idle && !track.recording).map(groupId))] });
    const gpu = this.tracks.filter((track) => track.section === "gpu" && track.lanes.length > 1);
    const first = this.rows.find((row) => row.type === "lane" && row.section === "host");
    if (first && first.y > 0.7 * this.#screen) {
      this.layout.collapsed = gpu.map((track) => track.id);
      this.#build();
    }
    if (this.height <= 3 * this.#screen || this.tracks.length < 8) return;
    const firsts = new Set(SECTIONS.map((section) => this.tracks.find((track) => track.section === section)));
    const most = this.tracks.filter((track) => track.lanes.length > 1 && !firsts.has(track)).map((track) => track.id);
    this.layout.collapsed = [...new Set([...this.layout.collapsed, ...most])];
    this.#build();
  }

  /** @param {Partial<Layout> | undefined} layout */
  #take(layout) {
    const given = { ...emptyLayout(), ...layout };
    for (const [list, ids] of Object.entries(given)) given[/** @type {keyof Layout} */ (list)] = [...(ids ?? [])];
    this.layout = given;
    this.#build();
  }

  #tell(store = true) {
    this.version++;
    if (store) this.#store.set("arrangement", structuredClone(this.layout));
    this.changed.tell();
  }

  // -- laying out -------------------------------------------------------------------------------------

  /** @param {Section} section */
  #ordered(section) {
    const order = new Map(this.layout.order.map((id, i) => [id, i]));
    const tracks = this.tracks.filter((track) => track.section === section);
    if (!tracks.some((track) => order.has(track.id))) return tracks;
    /** @param {Track} track */
    const place = (track) => order.get(track.id) ?? order.size + this.tracks.indexOf(track);
    return [...tracks].sort((a, b) => place(a) - place(b));
  }

  #build() {
    this.rows = [];
    this.height = 0;
    const pinned = this.layout.pinned.map((id) => this.#byId.get(id)).filter((track) => track !== undefined);
    if (pinned.length) {
      this.#add("section", { section: "pinned", title: TITLES.pinned });
      for (const track of pinned) this.#addTrack(track, true);
    }
    for (const section of SECTIONS) {
      const tracks = this.#ordered(section).filter((track) => !track.recording && !this.layout.pinned.includes(track.id));
      const shown = tracks.filter((track) => !this.layout.hidden.includes(track.id));
      if (!tracks.length) continue;
      this.#add("section", { section, title: TITLES[section], hidden: tracks.length - shown.length });
      /** @type {Map<string, Track[]>} */
      const groups = new Map();
      for (const track of shown) groups.set(track.group, [...(groups.get(track.group) ?? []), track]);
      for (const [group, all] of groups) {
        const id = `${section}/${group}`;
        const folded = this.layout.folded.includes(id);
        if (groups.size > 1 || folded) this.#add("group", { section, group, id, folded, size: all.length });
        if (folded) continue;
        for (const track of all) if (!track.idle) this.#addTrack(track, false);
        this.#addIdle(section, all.filter((track) => track.idle));
      }
    }
    const recording = this.tracks.filter((track) => track.recording && !this.layout.pinned.includes(track.id));
    const notes = recording.filter((track) => !this.layout.hidden.includes(track.id));
    if (recording.length) {
      this.#add("section", { section: "recording", title: TITLES.recording, hidden: recording.length - notes.length }, HEIGHT.group - 2);
      for (const track of notes) this.#addTrack(track, false);
    }
    if (this.info.counters.length) {
      this.#add("section", { section: "counter", title: TITLES.counter });
      this.info.counters.forEach((counter, id) => this.#add("counter", { section: "counter", counter, id }));
    }
    const sums = this.info.aggregates;
    if (sums.total) {
      this.#add("section", { section: "aggregate", title: TITLES.aggregate });
      const most = Math.max(1, ...sums.rows.map((record) => (record.timing === "ticks" ? 0 : record.dur)));
      sums.rows.forEach((record, at) => this.#add("aggregate", { section: "aggregate", record, most, at }));
      if (sums.total > sums.rows.length) this.#add("note", { section: "aggregate", text: `${sums.total - sums.rows.length} shorter ones are not listed` });
    }
    this.laneRows = this.rows.filter((row) => row.type === "lane");
  }

  /**
   * @template {Row["type"]} T
   * @param {T} type
   * @param {Omit<Extract<Row, {type: T}>, "type" | "y" | "height">} row
   */
  #add(type, row, height = HEIGHT[type]) {
    const placed = /** @type {unknown} */ ({ ...row, type, y: this.height, height });
    this.rows.push(/** @type {Row} */ (placed));
    this.height += height;
  }

  /** @param {Section} section @param {Track[]} tracks */
  #addIdle(section, tracks) {
    if (!tracks.length) return;
    const id = groupId(tracks[0]);
    const folded = this.layout.folded.includes(id);
    const words = section === "gpu" ? "idle streams" : "idle threads";
    this.#add("group", { section, group: words, id, folded, size: tracks.length });
    if (!folded) for (const track of tracks) this.#addTrack(track, false);
  }

  /**
   * @param {Track} track
   * @param {boolean} pinned
   */
  #addTrack(track, pinned) {
    const collapsed = this.layout.collapsed.includes(track.id);
    const lanes = collapsed ? [track.collapsed] : track.lanes;
    const dense = lanes.length > DENSE_FROM;
    lanes.forEach((lane, at) => {
      const role = collapsed ? "spans" : track.roles[at];
      const height = track.recording ? HEIGHT.recording : role === "instants" && lanes.length > 1 ? HEIGHT.instants : role === "annotations" ? HEIGHT.annotations : dense ? HEIGHT.dense : HEIGHT.lane;
      this.#add("lane", { section: track.section, track, lane, role, at, lanes: lanes.length, pinned, collapsed }, height);
    });
    this.height += HEIGHT.gap;
  }

  // -- asking -----------------------------------------------------------------------------------------

  /** Where a lane's work was spent. @param {number} lane */
  sectionOf(lane) {
    return this.#trackOfLane.get(lane)?.section ?? "host";
  }

  /**
   * The rows that touch [top, bottom] of the content.
   * @param {number} top
   * @param {number} bottom
   */
  between(top, bottom) {
    let from = 0;
    let to = this.rows.length;
    while (from < to) {
      const mid = (from + to) >>> 1;
      if (this.rows[mid].y + this.rows[mid].height <= top) from = mid + 1;
      else to = mid;
    }
    const out = [];
    for (let i = from; i < this.rows.length && this.rows[i].y < bottom; i++) out.push(this.rows[i]);
    return out;
  }

  /** @param {number} y */
  at(y) {
    const row = this.between(y, y + 0.01)[0];
    return row && y >= row.y ? row : null;
  }

  /** The row that shows a lane: its own, or that of its collapsed track; null when it is hidden. @param {number} lane */
  rowOfLane(lane) {
    const own = this.laneRows.find((row) => row.lane === lane);
    if (own) return own;
    const track = this.#trackOfLane.get(lane);
    return this.laneRows.find((row) => row.track === track && row.collapsed) ?? null;
  }

  /** The lanes that a search steps through, in the order of the screen, hidden ones last. */
  searchLanes() {
    const shown = new Set(this.laneRows.map((row) => row.track));
    const order = [...shown, ...this.tracks.filter((track) => !shown.has(track))];
    return order.flatMap((track) => track.lanes);
  }
}

/** The id of a track's group; idle tracks have one of their own. @param {Track} track */
export function groupId(track) {
  return `${track.section}/${track.group}${track.idle ? "/idle" : ""}`;
}
