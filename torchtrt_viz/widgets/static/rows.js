// Which rows the timeline shows, and where: sections, groups, tracks and their lanes, counters, aggregates.

const HEIGHT = { section: 22, group: 20, lane: 19, dense: 13, instants: 11, annotations: 17, counter: 40, aggregate: 18, gap: 3 };
const DENSE_FROM = 10; // a track of more lanes than this gets lower ones

const TITLES = {
  pinned: ["PINNED", ""],
  host: ["HOST", "durations are time on CPU threads"],
  gpu: ["GPU", "durations are time on the device"],
  counter: ["COUNTERS", "lowest and highest value per pixel"],
  aggregate: ["SUMS", "totals over many calls: no place on the time axis, bars have a scale of their own"],
};

/** The user's arrangement; a plain object that can be stored. */
export function emptyLayout() {
  return { collapsed: [], hidden: [], pinned: [], folded: [], order: [] };
}

export class Rows {
  constructor(info, layout) {
    this.info = info;
    this.tracks = info.tracks;
    this.byId = new Map(info.tracks.map((track) => [track.id, track]));
    this.trackOfLane = new Map();
    for (const track of info.tracks) {
      this.trackOfLane.set(track.collapsed, track);
      for (const lane of track.lanes) this.trackOfLane.set(lane, track);
    }
    this.setLayout(layout);
  }

  setLayout(layout) {
    this.layout = { ...emptyLayout(), ...layout };
    for (const key of Object.keys(this.layout)) this.layout[key] = [...(this.layout[key] ?? [])];
    this.build();
  }

  /** With more rows than a few screens, shows every track as one row, except the first of each section. */
  startCollapsed(height) {
    if (this.height <= height || this.tracks.length < 8) return;
    const firsts = new Set(["host", "gpu"].map((section) => this.tracks.find((track) => track.section === section)));
    this.layout.collapsed = this.tracks.filter((track) => track.lanes.length > 1 && !firsts.has(track)).map((track) => track.id);
    this.build();
  }

  /** Adds or removes an id in one of the layout's lists; returns the new layout. */
  toggle(list, id, on = !this.layout[list].includes(id)) {
    const without = this.layout[list].filter((other) => other !== id);
    this.layout[list] = on ? [...without, id] : without;
    this.build();
    return this.layout;
  }

  /** Moves a track before or after its neighbour in its section. */
  move(id, step) {
    const track = this.byId.get(id);
    const siblings = this.ordered(track.section).map((other) => other.id);
    const at = siblings.indexOf(id);
    const to = Math.max(0, Math.min(siblings.length - 1, at + step));
    siblings.splice(at, 1);
    siblings.splice(to, 0, id);
    const others = this.layout.order.filter((other) => this.byId.get(other)?.section !== track.section);
    this.layout.order = [...others, ...siblings];
    this.build();
    return this.layout;
  }

  /** Puts a track before another one of its section. */
  moveBefore(id, target) {
    const siblings = this.ordered(this.byId.get(id).section).map((other) => other.id);
    const from = siblings.indexOf(id);
    const to = siblings.indexOf(target);
    return to < 0 || from === to ? this.layout : this.move(id, to - from);
  }

  ordered(section) {
    const order = new Map(this.layout.order.map((id, i) => [id, i]));
    const tracks = this.tracks.filter((track) => track.section === section);
    if (!tracks.some((track) => order.has(track.id))) return tracks;
    const place = (track) => order.get(track.id) ?? order.size + this.tracks.indexOf(track);
    return [...tracks].sort((a, b) => place(a) - place(b));
  }

  isCollapsed(track) {
    return this.layout.collapsed.includes(track.id);
  }

  build() {
    this.rows = [];
    this.height = 0;
    const pinned = this.layout.pinned.map((id) => this.byId.get(id)).filter(Boolean);
    if (pinned.length) {
      this.add("section", { section: "pinned", title: TITLES.pinned });
      for (const track of pinned) this.addTrack(track, true);
    }
    for (const section of ["host", "gpu"]) {
      const tracks = this.ordered(section).filter((track) => !this.layout.pinned.includes(track.id));
      const shown = tracks.filter((track) => !this.layout.hidden.includes(track.id));
      if (!tracks.length) continue;
      this.add("section", { section, title: TITLES[section], hidden: tracks.length - shown.length });
      const groups = new Map();
      for (const track of shown) groups.set(track.group, [...(groups.get(track.group) ?? []), track]);
      for (const [group, members] of groups) {
        const id = `${section}/${group}`;
        const folded = this.layout.folded.includes(id);
        if (groups.size > 1 || folded) this.add("group", { section, group, id, folded, size: members.length });
        if (!folded) for (const track of members) this.addTrack(track, false);
      }
    }
    if (this.info.counters.length) {
      this.add("section", { section: "counter", title: TITLES.counter });
      this.info.counters.forEach((counter, id) => this.add("counter", { section: "counter", counter, id }));
    }
    const sums = this.info.aggregates;
    if (sums.total) {
      this.add("section", { section: "aggregate", title: TITLES.aggregate });
      const most = Math.max(1, ...sums.rows.map((record) => record.dur));
      sums.rows.forEach((record, at) => this.add("aggregate", { section: "aggregate", record, most, at }));
      if (sums.total > sums.rows.length) this.add("note", { section: "aggregate", text: `${sums.total - sums.rows.length} shorter sums are not listed` }, 18);
    }
    this.laneRows = this.rows.filter((row) => row.type === "lane");
  }

  add(type, row, height = HEIGHT[type]) {
    this.rows.push({ ...row, type, y: this.height, height });
    this.height += height;
  }

  addTrack(track, pinned) {
    const collapsed = this.isCollapsed(track);
    const lanes = collapsed ? [track.collapsed] : track.lanes;
    const dense = lanes.length > DENSE_FROM;
    lanes.forEach((lane, at) => {
      const role = collapsed ? "spans" : track.roles[at];
      const height = role === "instants" && lanes.length > 1 ? HEIGHT.instants : role === "annotations" ? HEIGHT.annotations : dense ? HEIGHT.dense : HEIGHT.lane;
      this.add("lane", { section: track.section, track, lane, role, at, lanes: lanes.length, pinned, collapsed }, height);
    });
    this.height += HEIGHT.gap;
  }

  /** The rows that touch [top, bottom] of the content. */
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

  at(y) {
    const row = this.between(y, y + 0.01)[0];
    return row && y >= row.y ? row : null;
  }

  /** The row that shows a lane: its own, or that of its collapsed track; null when it is hidden. */
  rowOfLane(lane) {
    const own = this.laneRows.find((row) => row.lane === lane);
    if (own) return own;
    const track = this.trackOfLane.get(lane);
    return this.laneRows.find((row) => row.track === track && row.collapsed) ?? null;
  }

  /** Makes the track of a lane visible: unhides it and unfolds its group. */
  reveal(lane) {
    const track = this.trackOfLane.get(lane);
    if (!track) return false;
    const group = `${track.section}/${track.group}`;
    const changed = this.layout.hidden.includes(track.id) || this.layout.folded.includes(group);
    if (changed) {
      this.layout.hidden = this.layout.hidden.filter((id) => id !== track.id);
      this.layout.folded = this.layout.folded.filter((id) => id !== group);
      this.build();
    }
    return changed;
  }

  /** The lanes that a search steps through, in the order of the screen, hidden ones last. */
  searchLanes() {
    const shown = new Set(this.laneRows.map((row) => row.track));
    const order = [...shown, ...this.tracks.filter((track) => !shown.has(track))];
    return order.flatMap((track) => track.lanes);
  }
}
