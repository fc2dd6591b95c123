// The timeline: what every action does.

import { build, fillMenu } from "./chrome.js";
import { count, duration, spentOn } from "./format.js";
import { onKey } from "./keys.js";
import { rectangleOf } from "./paint.js";
import { boxDetails, cellLines, helpContent, showTooltip, spanDetails, spanLines } from "./panel.js";
import { picture } from "./picture.js";
import { listen } from "./pointer.js";
import { Rows, emptyLayout } from "./rows.js";
import { Stage } from "./stage.js";
import { watchSurroundings } from "./theme.js";

export class Timeline extends Stage {
  /**
   * `store` keeps what outlives the page or is shared with Python: get(key), set(key, value), on(key, callback).
   * Keys: view_range, selected, arrangement, search, marks, color_by, theme, height.
   */
  constructor(root, source, store, { inPython = false } = {}) {
    super(source, store);
    this.inPython = inPython;
    this.rows = new Rows(source.info, store.get("arrangement"));
    this.layoutVersion = 0;
    if (!store.get("arrangement")?.order) this.rows.startCollapsed(3 * (store.get("height") ?? 420));
    this.parts = build(this, root);
    this.parts.color.value = this.colorBy;
    this.trail = [];
    this.cursor = this.rows.laneRows[0] ?? null;
    listen(this);
    root.addEventListener("keydown", (event) => onKey(this, event));
    for (const kind of ["keyup", "keypress"]) root.addEventListener(kind, (event) => event.stopPropagation());
    for (const kind of ["focusin", "focusout"]) {
      root.addEventListener(kind, () => {
        this.focused = kind === "focusin";
        this.draw();
      });
    }
    this.parts.scroll.addEventListener("scroll", () => this.draw());
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.parts.scroll);
    const unwatch = watchSurroundings(() => this.draw());
    this.closers = [unwatch, () => this.observer.disconnect()];
    this.followStore();
    const range = store.get("view_range");
    if (range?.length === 2 && range[1] > range[0]) this.setRange(range[0], range[1], { tell: false });
    this.applyMarks();
    this.draw();
  }

  followStore() {
    const { store } = this;
    store.on("view_range", () => {
      const range = store.get("view_range");
      if (range?.length === 2 && (range[0] !== this.t0 || range[1] !== this.t1)) this.setRange(range[0], range[1], { tell: false });
    });
    store.on("selected", () => this.takeSelection(store.get("selected") ?? {}));
    store.on("arrangement", () => {
      if (JSON.stringify(store.get("arrangement")) !== JSON.stringify(this.rows.layout)) this.useLayout(store.get("arrangement"), false);
    });
    store.on("marks", () => this.applyMarks());
    for (const key of ["theme", "height"]) store.on(key, () => this.draw());
    store.on("color_by", () => this.setColorBy(store.get("color_by"), false));
  }

  close() {
    this.closed = true;
    clearTimeout(this.later);
    clearTimeout(this.pausing);
    for (const close of this.closers) close();
    this.source.close?.();
  }

  // -- moving -----------------------------------------------------------------------------------------

  stride(event) {
    return event.shiftKey ? 3 : 1.4;
  }

  zoomBy(factor, at = 0.5) {
    const span = this.t1 - this.t0;
    const anchor = this.t0 + span * at;
    const next = Math.min(Math.max(span * factor, 20), 1.2 * this.length);
    this.setRange(anchor - next * at, anchor + next * (1 - at));
  }

  panBy(share) {
    const shift = share * (this.t1 - this.t0);
    this.setRange(this.t0 + shift, this.t1 + shift);
  }

  panTo(end) {
    const span = this.t1 - this.t0;
    const at = end * this.length;
    this.glide(at - span * (end ? 0.95 : 0.05), at + span * (end ? 0.05 : 0.95));
  }

  fitAll() {
    this.glide(-0.01 * this.length, 1.01 * this.length);
  }

  fit() {
    const target = this.box ?? (this.selected && { t0: this.selected.start, t1: this.selected.start + this.selected.dur });
    if (!target) return this.fitAll();
    const span = Math.max(target.t1 - target.t0, 100);
    const t0 = target.t0 - span * 0.15;
    const t1 = target.t1 + span * 0.15;
    if (Math.abs(t0 - this.t0) < span * 0.01 && Math.abs(t1 - this.t1) < span * 0.01) return this.fitAll();
    this.glide(t0, t1);
  }

  scrollBy(share) {
    this.parts.scroll.scrollTop += share * this.height;
    this.draw();
  }

  jumpTo(section) {
    const row = this.rows.rows.find((one) => one.type === "section" && one.section === section);
    if (!row) return;
    this.parts.scroll.scrollTop = row.y;
    const first = this.rows.laneRows.find((one) => one.section === section);
    if (first) this.cursor = first;
    this.draw();
  }

  /** Brings a place into sight; zooms only when it would be too small, or larger than the window. */
  show(place) {
    if (this.rows.reveal(place.lane)) this.layoutChanged();
    const row = this.rows.rowOfLane(place.lane);
    if (row) {
      this.cursor = row;
      this.scrollTo(row);
    }
    const span = this.t1 - this.t0;
    const middle = place.start + place.dur / 2;
    let next = span;
    if (place.dur > span * 0.8) next = place.dur * 1.6;
    else if (place.dur < (span / Math.max(1, this.width)) * 4) next = Math.max(place.dur * 40, 2_000);
    const inside = place.start > this.t0 + span * 0.05 && place.start + place.dur < this.t1 - span * 0.05;
    if (next !== span || !inside) this.glide(middle - next / 2, middle + next / 2);
  }

  scrollTo(row) {
    const { scroll } = this.parts;
    if (row.y < scroll.scrollTop + 24) scroll.scrollTop = Math.max(0, row.y - 40);
    else if (row.y + row.height > scroll.scrollTop + this.height - 8) scroll.scrollTop = row.y + row.height - this.height + 40;
  }

  moveCursor(step, extend) {
    const rows = this.rows.laneRows;
    const at = Math.max(0, Math.min(rows.length - 1, rows.indexOf(this.cursor) + step));
    this.cursor = rows[at] ?? null;
    if (!this.cursor) return;
    if (extend && this.box) {
      this.box.lanes.add(this.cursor.lane);
      this.boxChanged();
    }
    this.scrollTo(this.cursor);
    this.announce(`${this.cursor.track.label}, ${this.cursor.section === "gpu" ? "GPU" : "host"}, lane ${this.cursor.at + 1} of ${this.cursor.lanes}`);
    this.draw();
  }

  setCursorTrack(track) {
    this.cursor = this.rows.laneRows.find((row) => row.track === track) ?? this.cursor;
    this.draw();
  }

  // -- hovering and choosing --------------------------------------------------------------------------

  rowAt(y) {
    return this.rows.at(y + this.scroll);
  }

  setPointer(x) {
    this.pointer = x;
    this.draw();
  }

  hoverAt(at) {
    this.pointer = at ? at.x : null;
    this.hover = null;
    const { tooltip } = this.parts;
    tooltip.hidden = true;
    const row = at && this.rowAt(at.y);
    if (row?.type === "lane" && this.view) {
      const t = this.timeAt(at.x);
      const found = this.view.at(row.lane, t, (3 / this.width) * (this.t1 - this.t0));
      const section = row.section;
      const track = row.track.label;
      let text = null;
      if (found?.span !== undefined) {
        const i = found.span;
        const name = this.nameText(this.view.name[i]) ?? "…";
        const kind = this.info.kinds[this.source.nameKind[this.view.name[i]]] ?? "";
        this.hover = { lane: row.lane, start: this.view.base + this.view.start[i], dur: this.view.dur[i] };
        text = spanLines({ name, kind, start: this.hover.start, dur: this.hover.dur, section, role: row.role, track });
      } else if (found) {
        text = cellLines({ name: this.nameText(this.view.nameOfCell(found.cell)), busy: this.view.busy[found.cell], section, track });
      }
      if (text) showTooltip(tooltip, text, at.x + this.labelWidth, row.y + row.height - this.scroll - 8, this.width + this.labelWidth);
    }
    this.draw();
  }

  async clickAt(at, zoom = false) {
    const row = this.rowAt(at.y);
    if (row?.type === "lane") {
      this.cursor = row;
      const slack = (3 / this.width) * (this.t1 - this.t0);
      const place = await this.source.hit(row.lane, this.timeAt(at.x), slack);
      await this.select(place);
      if (place && zoom) this.fit();
    } else if (!zoom) this.select(null);
    this.draw();
  }

  /** Selects one place (null: nothing): outlines it, shows its details and its links. */
  async select(place, { tell = true } = {}) {
    this.selected = place;
    this.box = null;
    this.links = [];
    if (tell) this.store.set("selected", place ? { kind: "span", row: place.row } : {});
    this.draw();
    if (!place) {
      this.parts.panel.hidden = true;
      return;
    }
    this.announce(`${place.name ?? ""}, ${spentOn(this.sectionOf(place.lane))} ${duration(place.dur)}`);
    const { detail, links } = place.about ?? (await this.about(place));
    if (this.selected?.row !== place.row) return;
    this.links = links?.links ?? [];
    this.parts.panel.replaceChildren(...spanDetails(this, detail, links));
    this.parts.panel.hidden = false;
    this.draw();
  }

  async about(place) {
    const [detail, links] = await Promise.all([this.source.detail(place.row, place), this.source.links(place.row, place)]);
    return { detail, links };
  }

  async takeSelection(selected) {
    if (selected.kind === "span" && selected.row !== this.selected?.row) {
      const place = await this.source.locate(selected.row);
      if (!place) return;
      await this.select(place, { tell: false });
      this.show(place);
    } else if (selected.kind === "box" && JSON.stringify(selected) !== JSON.stringify(this.boxState())) {
      this.box = { t0: selected.t0, t1: selected.t1, lanes: new Set(selected.lanes) };
      this.boxChanged(true, false);
    } else if (!selected.kind && (this.selected || this.box)) await this.select(null, { tell: false });
  }

  async stepSpan(step) {
    const from = this.selected;
    if (!from) return this.selectAtCursor();
    const place = await this.source.neighbour(from, step);
    if (!place) return this.announce("no more spans in this lane");
    await this.select(place);
    this.show(place);
  }

  async selectAtCursor() {
    if (!this.cursor) return;
    const place = await this.source.hit(this.cursor.lane, (this.t0 + this.t1) / 2, (this.t1 - this.t0) / 2);
    if (!place) return this.announce("no span of this lane is in sight");
    await this.select(place);
  }

  async goTo(link) {
    if (this.selected) this.trail.push(this.selected);
    const place = { ...link, name: link.text };
    await this.select(place);
    this.show(place);
  }

  followLink() {
    const next = this.links.find((link) => link.out) ?? this.links[0];
    if (next) this.goTo(next);
    else this.announce("nothing is linked to the selection");
  }

  async goBack() {
    const place = this.trail.pop();
    if (!place) return;
    await this.select(place);
    this.show(place);
  }

  // -- box and ruler ----------------------------------------------------------------------------------

  dragBox(from, to, done) {
    const top = Math.min(from.y, to.y) + this.scroll;
    const bottom = Math.max(from.y, to.y) + this.scroll;
    const rows = this.rows.between(top, bottom).filter((row) => row.type === "lane");
    const [t0, t1] = [this.timeAt(from.x), this.timeAt(to.x)].sort((a, b) => a - b);
    this.box = { t0, t1, lanes: new Set(rows.flatMap((row) => (row.collapsed ? row.track.lanes : [row.lane]))) };
    this.selected = this.hover = null;
    this.parts.tooltip.hidden = true;
    this.boxChanged(done);
  }

  boxInSight(all) {
    const rows = all ? this.rows.laneRows : [this.cursor].filter(Boolean);
    this.box = { t0: Math.max(0, this.t0), t1: Math.min(this.length, this.t1), lanes: new Set(rows.flatMap((row) => (row.collapsed ? row.track.lanes : [row.lane]))) };
    this.selected = null;
    this.boxChanged();
  }

  async extendBox(step) {
    const edge = this.edge ?? this.selected;
    if (!edge) return this.selectAtCursor();
    const place = await this.source.neighbour(edge, step);
    if (!place) return;
    const box = this.box ?? { t0: edge.start, t1: edge.start + edge.dur, lanes: new Set([edge.lane]) };
    this.box = { t0: Math.min(box.t0, place.start), t1: Math.max(box.t1, place.start + place.dur), lanes: box.lanes };
    this.selected = null;
    this.boxChanged();
    this.edge = place;
  }

  boxState() {
    return this.box && { kind: "box", t0: Math.round(this.box.t0), t1: Math.round(this.box.t1), lanes: [...this.box.lanes] };
  }

  async boxChanged(done = true, tell = true) {
    this.edge = null;
    this.links = [];
    this.draw();
    const { box } = this;
    if (!done || !box) return;
    if (tell) this.store.set("selected", this.boxState());
    const sides = [...this.sidesOf(box.lanes)].sort().reverse(); // host, then gpu
    const totals = await Promise.all(
      sides.map(async (side) => {
        const lanes = [...box.lanes].filter((lane) => this.sectionOf(lane) === side);
        return { side, ...(await this.source.totals(Math.round(box.t0), Math.round(box.t1), lanes)) };
      }),
    );
    if (this.box !== box) return;
    const events = totals.reduce((sum, side) => sum + side.events, 0);
    this.parts.panel.replaceChildren(...boxDetails(this, box, events, totals));
    this.parts.panel.hidden = false;
    this.announce(`${count(events)} events in ${duration(box.t1 - box.t0)}`);
    this.draw();
  }

  sidesOf(lanes) {
    return new Set([...lanes].map((lane) => this.sectionOf(lane)));
  }

  setMeasure(a, b) {
    this.measure = a === null ? null : { t0: Math.min(a, b), t1: Math.max(a, b) };
    this.draw();
  }

  rulerAtSelection(begin) {
    const chosen = this.box ?? (this.selected && { t0: this.selected.start, t1: this.selected.start + this.selected.dur });
    const middle = (this.t0 + this.t1) / 2;
    const at = chosen ? (begin ? chosen.t0 : chosen.t1) : middle;
    const other = this.measure ? (begin ? this.measure.t1 : this.measure.t0) : at;
    this.setMeasure(at, other);
    this.announce(`ruler ${duration(this.measure.t1 - this.measure.t0)}`);
  }

  // -- searching --------------------------------------------------------------------------------------

  focusSearch() {
    this.parts.search.focus();
    this.parts.search.select();
  }

  searchSoon(text) {
    clearTimeout(this.searching);
    this.searching = setTimeout(() => this.search(text), 160);
  }

  async search(text) {
    clearTimeout(this.searching);
    if (this.parts.search.value !== text) this.parts.search.value = text;
    this.searched = text;
    const answer = this.source.search(text);
    this.marksChanged(); // the picture with these marks is asked for along with their number
    await null; // Python is told after the question has gone out, which then need not wait behind it
    this.store.set("search", text);
    const found = await answer;
    if (this.searched !== text) return;
    this.matches = found;
    this.parts.matches.textContent = text ? `${count(found)} ${found === 1 ? "match" : "matches"}` : "";
  }

  async stepMatch(forward, first = false) {
    const { value } = this.parts.search;
    if (first && value !== (this.searched ?? "")) this.search(value); // answered before the step
    const from = this.selected ?? { start: forward ? this.t0 : this.t1, lane: -1 };
    const place = await this.source.step(this.rows.searchLanes(), from.start, from.lane, forward);
    if (!place) return this.announce("no matches");
    await this.select(place);
    this.show(place);
  }

  /** Python searched or highlighted. */
  async applyMarks() {
    const marks = this.store.get("marks") ?? {};
    if (!marks.version || marks.version === this.marksVersion) return;
    this.marksVersion = marks.version;
    this.searched = marks.text ?? "";
    this.parts.search.value = this.searched;
    this.parts.matches.textContent = marks.label ?? "";
    await this.source.refreshMarks?.();
    this.marksChanged();
    await this.revealMarks();
  }

  /** Scrolls to the first lane with something marked when none is in sight; time stays as it is. */
  async revealMarks() {
    const version = this.marks;
    const step = (lanes) => this.source.step(lanes, this.t0, -1, true);
    if (!this.width || (await step(this.lanesInSight(0)))) return;
    const place = await step(this.rows.searchLanes());
    const row = place && version === this.marks && this.rows.rowOfLane(place.lane);
    if (!row) return;
    this.scrollTo(row);
    this.draw();
  }

  // -- arranging --------------------------------------------------------------------------------------

  layoutChanged(tell = true) {
    this.layoutVersion++;
    const { track, at } = this.cursor ?? {};
    this.cursor = this.rows.laneRows.find((row) => row.track === track && row.at === at) ?? this.rows.laneRows.find((row) => row.track === track) ?? this.rows.laneRows[0] ?? null;
    if (tell) this.store.set("arrangement", JSON.parse(JSON.stringify(this.rows.layout)));
    if (!this.parts.menu.hidden) fillMenu(this);
    this.draw();
  }

  useLayout(layout, tell = true) {
    this.rows.setLayout(layout);
    this.layoutChanged(tell);
  }

  resetLayout() {
    this.useLayout(emptyLayout());
  }

  toggleCollapsed(track) {
    this.rows.toggle("collapsed", track.id);
    this.layoutChanged();
  }

  togglePinned(track) {
    this.rows.toggle("pinned", track.id);
    this.layoutChanged();
  }

  hideTrack(track) {
    this.rows.toggle("hidden", track.id);
    this.layoutChanged();
  }

  collapseAll(on) {
    this.rows.layout.collapsed = on ? this.rows.tracks.filter((track) => track.lanes.length > 1).map((track) => track.id) : [];
    this.useLayout(this.rows.layout);
  }

  showAll() {
    this.useLayout({ ...this.rows.layout, hidden: [], folded: [] });
  }

  fold(group) {
    this.rows.toggle("folded", group);
    this.layoutChanged();
  }

  collapse(all) {
    if (all) this.collapseAll(this.rows.layout.collapsed.length === 0);
    else if (this.cursor) this.toggleCollapsed(this.cursor.track);
  }

  pin() {
    if (this.cursor) this.togglePinned(this.cursor.track);
  }

  hide(showAll) {
    if (showAll) this.showAll();
    else if (this.cursor) this.hideTrack(this.cursor.track);
  }

  moveTrack(step) {
    if (!this.cursor) return;
    this.rows.move(this.cursor.track.id, step);
    this.layoutChanged();
  }

  moveTrackBefore(track, target) {
    this.rows.moveBefore(track.id, target.id);
    this.layoutChanged();
  }

  foldGroup() {
    if (this.cursor) return this.fold(`${this.cursor.section}/${this.cursor.track.group}`);
    const folded = this.rows.layout.folded.at(-1);
    if (folded) this.fold(folded);
  }

  setLabelWidth(width) {
    this.labelWidth = Math.round(Math.max(90, Math.min(500, width)));
    this.draw();
  }

  // -- the rest ---------------------------------------------------------------------------------------

  setColorBy(mode, tell = true) {
    this.colorBy = mode === "kind" ? "kind" : "name";
    this.parts.color.value = this.colorBy;
    if (tell) this.store.set("color_by", this.colorBy);
    this.draw();
  }

  cycleColor() {
    this.setColorBy(this.colorBy === "name" ? "kind" : "name");
  }

  toggleHelp(on = this.parts.help.hidden) {
    this.parts.help.hidden = !on;
    if (on) this.parts.help.replaceChildren(...helpContent(this));
    else this.parts.root.focus({ preventScroll: true });
  }

  escape() {
    const { help, menu } = this.parts;
    if (!help.hidden) return this.toggleHelp(false);
    if (!menu.hidden) return void (menu.hidden = true);
    if (this.measure) return this.setMeasure(null);
    if (this.selected || this.box) return this.select(null);
    if (this.searched || this.marksVersion) this.search("");
  }

  announce(text) {
    this.parts.announce.textContent = text;
  }

  /** The picture of what is in sight, as a PNG blob. */
  picture() {
    return picture(this);
  }

  async savePicture() {
    const url = URL.createObjectURL(await this.picture());
    const anchor = document.createElement("a");
    anchor.href = url;
    anchor.download = "timeline.png";
    anchor.click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  }

  rectangleOf(place) {
    return rectangleOf(this, place);
  }
}
