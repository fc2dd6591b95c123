// @ts-check
// What is selected: one event with its links, or a box of time and lanes.

import { count, duration, spentOn } from "./format.js";
import { Signal } from "./signal.js";

/** @import { Cursor } from "./cursor.js" */
/** @import { Navigation } from "./navigation.js" */
/** @import { Rows } from "./rows.js" */
/** @import { Box, Chosen, Detail, LaneRow, Link, Links, Place, Section, Selected, Source, Store, Story, Totals } from "./types.js" */
/** @import { Viewport } from "./viewport.js" */

/**
 * What is to be said of the selection; null: nothing.
 * @typedef {{detail: Detail, links: Links} | {box: Box, events: number, totals: (Totals & {side: Section})[]} | {chosen: Chosen} | null} Description
 */

export class Selection {
  /** Other outlines are to be drawn. */
  changed = new Signal();
  /** @type {Signal<[Description]>} */
  described = new Signal();
  #source;
  #store;
  #rows;
  #cursor;
  #viewport;
  #navigation;
  #announce;
  /** @type {Place | null} */
  #place = null;
  /** @type {Box | null} */
  #box = null;
  /** Events that were chosen one by one. @type {Chosen | null} */
  #chosen = null;
  /** Which choice of Python's they are. */
  #choice = 0;
  /** Row of the call that launched the selected work. */
  #launch = -1;
  /** Which rows they are, where the browser said so. @type {number[] | undefined} */
  #rowsChosen;
  /** @type {Link[]} */
  #links = [];
  /** The event that the box was extended to last. @type {Place | null} */
  #edge = null;
  /** Where links were followed from. @type {Place[]} */
  #trail = [];

  /**
   * @param {{source: Source, store: Store, rows: Rows, cursor: Cursor, viewport: Viewport, navigation: Navigation,
   *   announce: (text: string) => void}} modules the store's key: selected
   */
  constructor({ source, store, rows, cursor, viewport, navigation, announce }) {
    this.#source = source;
    this.#store = store;
    this.#rows = rows;
    this.#cursor = cursor;
    this.#viewport = viewport;
    this.#navigation = navigation;
    this.#announce = announce;
    store.on("selected", () => this.#follow(store.get("selected") ?? {}));
  }

  get place() {
    return this.#place;
  }

  get box() {
    return this.#box;
  }

  get links() {
    return this.#links;
  }

  get chosen() {
    return this.#chosen;
  }

  /** What is selected, as Python reads it. @returns {Selected} */
  get state() {
    if (this.#place) return { kind: "span", row: this.#place.row };
    if (this.#box) return stateOf(this.#box);
    if (this.#chosen) return { kind: "rows", version: this.#choice, count: this.#chosen.events };
    return {};
  }

  /** Selects again what was selected before; single rows only while they are the ones that the source knows. @param {Selected} selected */
  async restore(selected) {
    if (selected.kind === "span") {
      const place = await this.#source.locate(selected.row);
      if (place) await this.#go(place, false);
    } else if (selected.kind === "box") {
      this.#place = this.#chosen = null;
      this.#box = { t0: selected.t0, t1: selected.t1, lanes: new Set(selected.lanes) };
      await this.#boxChanged();
    } else if (selected.kind === "rows" && selected.version === this.#choice) {
      this.#store.set("selected", selected);
      await this.selectRows(this.#rowsChosen);
    } else await this.select(null);
  }

  /** Whether anything is. */
  get any() {
    return Boolean(this.#place || this.#box || this.#chosen);
  }

  /** The time that is selected. */
  get extent() {
    const place = this.#place;
    return this.#box ?? this.#chosen ?? (place && { t0: place.start, t1: place.start + place.dur });
  }

  /** Selects one place (null: nothing): outlines it, shows its details and its links. @param {Place | null} place */
  async select(place, { tell = true } = {}) {
    this.#place = place;
    this.#box = this.#chosen = null;
    this.#links = [];
    this.#launch = -1;
    if (tell) this.#store.set("selected", place ? { kind: "span", row: place.row } : {});
    this.changed.tell();
    if (!place) return this.described.tell(null);
    this.#announce(`${place.name ?? ""}, ${spentOn(this.#rows.sectionOf(place.lane))} ${duration(place.dur)}`);
    const { detail, links } = place.about ?? (await this.#about(place));
    if (this.#place?.row !== place.row) return;
    this.#links = links?.links ?? [];
    this.#launch = detail.story?.queued === undefined ? -1 : (detail.story.path.at(-2)?.row ?? -1);
    const waited = waitedFor(detail.story);
    if (waited) this.#announce(`${detail.name}, ${spentOn(detail.domain)} ${duration(place.dur)}, ${waited}`);
    this.described.tell({ detail, links });
    this.changed.tell();
  }

  /** @param {Place} place */
  async #about(place) {
    try {
      const [detail, links] = await Promise.all([this.#source.detail(place.row, place), this.#source.links(place.row, place)]);
      return { detail, links };
    } catch (error) {
      const { row, name = "", start, dur } = place;
      const domain = this.#rows.sectionOf(place.lane);
      /** @type {[string, string][]} */
      const fields = [["more", `is not known: ${error instanceof Error ? error.message : error}`]];
      return { detail: { row, name, domain, span: true, times: { start, dur }, fields, args: [] }, links: { links: [], total: 0 } };
    }
  }

  /**
   * Selects the event at a time in a lane; returns it.
   * @param {number} lane
   * @param {number} t
   * @param {number} slack
   */
  async selectAt(lane, t, slack) {
    const place = await this.#source.hit(lane, t, slack);
    await this.select(place);
    return place;
  }

  async selectAtCursor() {
    const row = this.#cursor.row;
    if (!row) return;
    const place = await this.#source.hit(row.lane, this.#viewport.middle, this.#viewport.span / 2);
    if (!place) return this.#announce("no span of this lane is in sight");
    await this.select(place);
  }

  /** Selects the next or previous event of the lane. @param {number} step */
  async step(step) {
    const from = this.#place;
    if (!from) return this.selectAtCursor();
    const place = await this.#source.neighbour(from, step);
    if (!place) return this.#announce("no more spans in this lane");
    await this.#go(place);
  }

  /** @param {Place} place @param {boolean} [inTime] false leaves the time in sight */
  async #go(place, inTime = true) {
    await this.select(place);
    this.#navigation.show(place, inTime);
  }

  /** Shows the selected event and the one that an arrow joins it with, both whole. @param {Link} [link] the first one */
  async fitBoth(link = this.#links.find((one) => one.out) ?? this.#links[0]) {
    const place = this.#place;
    const other = link ?? (place && this.#launch >= 0 ? await this.#source.locate(this.#launch) : null);
    if (!place || !other) return this.#announce("nothing is linked to the selection");
    this.#navigation.showBoth(place, other);
    const gap = Math.max(place.start, other.start) - Math.min(place.start + place.dur, other.start + other.dur);
    this.#announce(`${place.name ?? ""} and ${link?.text ?? other.name ?? ""}, ${gap > 0 ? `${duration(gap)} apart` : "overlapping"}`);
  }

  /** Goes to the event of a row. @param {number} row */
  async goToRow(row) {
    const place = row < 0 ? null : await this.#source.locate(row);
    if (!place) return this.#announce("that is not in the timeline");
    if (this.#place) this.#trail.push(this.#place);
    await this.#go(place);
  }

  /** @param {Link} link */
  async goTo(link) {
    if (this.#place) this.#trail.push(this.#place);
    await this.#go({ ...link, name: link.text });
  }

  followLink() {
    const next = this.#links.find((link) => link.out) ?? this.#links[0];
    if (next) this.goTo(next);
    else this.#announce("nothing is linked to the selection");
  }

  async goBack() {
    const place = this.#trail.pop();
    if (place) await this.#go(place);
  }

  // -- boxes ------------------------------------------------------------------------------------------

  /**
   * @param {number} t0
   * @param {number} t1
   * @param {LaneRow[]} rows
   * @param {boolean} [done] false while it is still being drawn
   */
  setBox(t0, t1, rows, done = true) {
    this.#place = this.#chosen = null;
    this.#box = { t0, t1, lanes: new Set(rows.flatMap((row) => (row.collapsed ? row.track.lanes : [row.lane]))) };
    this.#boxChanged({ done });
  }

  /** Boxes what is in sight in the cursor's lane, or in all of them. @param {boolean} all */
  boxInSight(all) {
    const rows = all ? this.#rows.laneRows : this.#cursor.row ? [this.#cursor.row] : [];
    const { t0, t1, begin, end } = this.#viewport;
    this.setBox(Math.max(begin, t0), Math.min(end, t1), rows);
  }

  /** Extends the box to the next or previous event. @param {number} step */
  async extendBox(step) {
    const edge = this.#edge ?? this.#place;
    if (!edge) return this.selectAtCursor();
    const place = await this.#source.neighbour(edge, step);
    if (!place) return;
    const box = this.#box ?? { t0: edge.start, t1: edge.start + edge.dur, lanes: new Set([edge.lane]) };
    this.#box = { t0: Math.min(box.t0, place.start), t1: Math.max(box.t1, place.start + place.dur), lanes: box.lanes };
    this.#place = this.#chosen = null;
    this.#boxChanged();
    this.#edge = place;
  }

  /** Extends the box, if there is one, by a lane. @param {number} lane */
  addLane(lane) {
    if (!this.#box) return;
    this.#box.lanes.add(lane);
    this.#boxChanged();
  }

  async #boxChanged({ done = true, tell = true } = {}) {
    this.#edge = null;
    this.#links = [];
    this.changed.tell();
    const box = this.#box;
    if (!done || !box) return;
    if (tell) this.#store.set("selected", stateOf(box));
    const sides = [...new Set([...box.lanes].map((lane) => this.#rows.sectionOf(lane)))].sort().reverse(); // host, then gpu
    const totals = await Promise.all(
      sides.map(async (side) => {
        const lanes = [...box.lanes].filter((lane) => this.#rows.sectionOf(lane) === side);
        return { side, ...(await this.#source.totals(Math.round(box.t0), Math.round(box.t1), lanes)) };
      }),
    );
    if (this.#box !== box) return;
    const events = totals.reduce((sum, side) => sum + side.events, 0);
    this.described.tell({ box, events, totals });
    this.#announce(`${count(events)} events in ${duration(box.t1 - box.t0)}`);
    this.changed.tell();
  }

  /** Selects events one by one, which the source knows. @param {number[]} [rows] where the browser says which */
  async selectRows(rows) {
    this.#rowsChosen = rows;
    this.#place = this.#box = this.#edge = null;
    this.#links = [];
    const chosen = await this.#source.chosen(rows);
    if (this.#place || this.#box) return;
    this.#chosen = chosen;
    this.described.tell({ chosen });
    this.#announce(`${count(chosen.events)} events selected`);
    this.changed.tell();
  }

  /** Takes over what Python, or another view of the same widget, has selected. @param {Selected} selected */
  async #follow(selected) {
    if (selected.kind === "span") {
      if (selected.row === this.#place?.row) return;
      const place = await this.#source.locate(selected.row);
      if (!place) return;
      await this.select(place, { tell: false });
      this.#navigation.show(place);
    } else if (selected.kind === "box") {
      if (JSON.stringify(selected) === JSON.stringify(this.#box && stateOf(this.#box))) return;
      this.#place = this.#chosen = null;
      this.#box = { t0: selected.t0, t1: selected.t1, lanes: new Set(selected.lanes) };
      this.#boxChanged({ tell: false });
    } else if (selected.kind === "rows") {
      if (this.#chosen && selected.version === this.#choice) return;
      this.#choice = selected.version;
      await this.selectRows();
    } else if (this.any) await this.select(null, { tell: false });
  }
}

/** How long before, and behind how many others, device work was launched. @param {Story | undefined} story */
export function waitedFor(story) {
  if (story?.queued === undefined) return "";
  const behind = story.ahead ? ` (queued behind ${count(story.ahead)})` : "";
  return story.queued < 0 ? "starts before its launch: the two clocks differ" : `launched ${duration(story.queued)} earlier${behind}`;
}

/**
 * @param {Box} box
 * @returns {Selected & {kind: "box"}}
 */
function stateOf(box) {
  return { kind: "box", t0: Math.round(box.t0), t1: Math.round(box.t1), lanes: [...box.lanes] };
}
