// The state of a timeline, what it fetches, and when it draws.

import { labels, status } from "./chrome.js";
import { fitCanvas } from "./dom.js";
import { paintMinimap, paintRuler } from "./frame.js";
import { paint } from "./paint.js";
import { colors, fillIndex, surroundingsDark } from "./theme.js";

export const RULER = 22;
export const MINIMAP = 34;
const LEAST_SPAN = 20; // ns: finer than any clock that we meet
const OVERSCAN = 0.25; // of the width, fetched beyond each edge
const OVERSCAN_Y = 150; // px
const OVERVIEW_AFTER = 250; // ms without a new view

export class Stage {
  constructor(source, store) {
    this.source = source;
    this.store = store;
    this.info = source.info;
    this.length = source.info.length;
    this.minimap = source.minimap;
    this.t0 = -0.01 * this.length;
    this.t1 = 1.01 * this.length;
    this.labelWidth = 210;
    this.width = this.height = 0;
    this.view = null;
    this.overview = this.before = null; // all of the time, and the view before: drawn where `view` does not reach
    this.counters = null;
    this.selected = this.hover = this.box = this.measure = this.pointer = this.cursor = null;
    this.links = [];
    this.colorBy = store.get("color_by") ?? "name";
    this.theme = colors(false);
    this.marks = 0; // counts changes of what is marked
    this.trouble = "";
    this.labelKey = "";
    this.animation = this.goal = null;
    source.onNames = () => this.draw();
  }

  // -- what painting asks -----------------------------------------------------------------------------

  get ratio() {
    return window.devicePixelRatio || 1;
  }

  get scroll() {
    return this.parts.scroll.scrollTop;
  }

  sectionOf(lane) {
    return this.rows.trackOfLane.get(lane)?.section ?? "host";
  }

  fillOf(name) {
    return name < 0 ? 5 : fillIndex(this.colorBy, this.source.nameColor[name], this.info.kinds[this.source.nameKind[name]]);
  }

  nameText(name) {
    return this.source.nameText(name);
  }

  // -- time -------------------------------------------------------------------------------------------

  range() {
    return { t0: this.t0, t1: this.t1 };
  }

  timeAt(x) {
    return this.t0 + (x / this.width) * (this.t1 - this.t0);
  }

  /** [t0, t1], kept within reach of the trace. */
  within(t0, t1) {
    const span = Math.min(Math.max(t1 - t0, LEAST_SPAN), 1.2 * this.length);
    const middle = Math.min(Math.max((t0 + t1) / 2, -0.02 * this.length), 1.02 * this.length);
    return [middle - span / 2, middle + span / 2];
  }

  /** Shows [t0, t1], as far as it is within reach. */
  setRange(t0, t1, { tell = true } = {}) {
    if (!(t1 > t0)) return;
    this.animation = this.goal = null;
    this.move(...this.within(t0, t1), tell);
  }

  move(t0, t1, tell) {
    this.t0 = t0;
    this.t1 = t1;
    if (tell) this.tellRange();
    this.refresh();
  }

  /** The same, gliding there. */
  glide(t0, t1) {
    if (!(t1 > t0)) return;
    if (window.matchMedia("(prefers-reduced-motion: reduce)").matches || !this.width) return this.setRange(t0, t1);
    const from = this.range();
    const to = this.within(t0, t1);
    const began = performance.now();
    const step = (now) => {
      if (this.animation !== step) return;
      const share = Math.min(1, Math.max(0, (now - began) / 140));
      const eased = 1 - (1 - share) ** 3;
      if (share === 1) this.animation = this.goal = null;
      this.move(from.t0 + (to[0] - from.t0) * eased, from.t1 + (to[1] - from.t1) * eased, share === 1);
      if (this.animation) requestAnimationFrame(step);
    };
    this.animation = step;
    this.goal = to; // what the kernel is asked for while the picture moves
    this.refresh();
    requestAnimationFrame(step);
  }

  tellRange() {
    clearTimeout(this.telling);
    this.telling = setTimeout(() => this.store.set("view_range", [this.t0, this.t1]), 120);
  }

  // -- data -------------------------------------------------------------------------------------------

  lanesInSight(margin) {
    const rows = this.rows.between(this.scroll - margin, this.scroll + this.height + margin);
    return [...new Set(rows.filter((row) => row.type === "lane").map((row) => row.lane))];
  }

  /** Draws in the next frame; what the kernel has to be asked for is asked now. */
  refresh() {
    if (!this.source.whole && this.width > 0 && !this.closed) this.fetchView();
    this.draw();
  }

  /** Asks for a view if what is known does not serve; the last one stays, scaled, until the answer comes. */
  fetchView() {
    const [t0, t1] = (!this.source.whole && this.goal) || [this.t0, this.t1];
    const px = (t1 - t0) / this.width;
    const { view } = this;
    const sharp = view && Math.abs((view.t1 - view.t0) / view.width / px - 1) < 0.01;
    if (sharp && view.marks === this.marks && view.covers(Math.max(t0, -this.length), t1, this.lanesInSight(0))) return;
    if (this.fetching) return; // its answer draws, and drawing asks again
    const margin = Math.round(this.width * OVERSCAN);
    const request = {
      t0: Math.round(t0 - margin * px),
      t1: Math.max(Math.round(t1 + margin * px), Math.round(t0 - margin * px) + 1),
      width: Math.min(4000, this.width + 2 * margin),
      lanes: this.lanesInSight(OVERSCAN_Y),
    };
    const { marks } = this;
    const take = (answer) => {
      answer.marks = marks;
      this.before = this.view;
      this.view = answer;
      if (answer.t0 <= 0 && answer.t1 >= this.length) this.overview = answer;
      this.trouble = "";
    };
    const answer = this.source.view(request);
    if (!(answer instanceof Promise)) {
      take(answer);
      return;
    }
    const asked = performance.now();
    this.fetching = true;
    this.patience = setTimeout(() => this.say("waiting for the kernel…"), 700);
    answer
      .then((view) => {
        take(view);
        this.lastLatency = performance.now() - asked;
      })
      .catch((error) => {
        this.trouble = `no answer: ${error.message}`;
        this.failed = (this.failed ?? 0) + 1;
      })
      .finally(() => {
        clearTimeout(this.patience);
        this.fetching = false;
        if (!this.trouble) this.failed = 0;
        if ((this.failed ?? 0) >= 3) status(this);
        else this.drawArrived();
        this.fetchOverviewLater();
      });
  }

  /** After a pause, gets the coarse view of the lanes in sight, which is what a wide step shows at once. */
  fetchOverviewLater() {
    clearTimeout(this.pausing);
    if (this.closed || this.failed) return;
    this.pausing = setTimeout(() => {
      const lanes = this.lanesInSight(OVERSCAN_Y);
      const { marks, overview } = this;
      if (this.closed || this.fetching || (overview?.marks === marks && overview.covers(0, this.length, lanes))) return;
      Promise.resolve(this.source.view({ t0: 0, t1: this.length, width: Math.min(4000, this.width), lanes })).then(
        (view) => {
          if (marks === this.marks) this.overview = Object.assign(view, { marks });
        },
        () => {}, // the next view says what is wrong
      );
    }, OVERVIEW_AFTER);
  }

  fetchCounters() {
    const ids = this.rows.between(this.scroll, this.scroll + this.height).filter((row) => row.type === "counter").map((row) => row.id);
    if (!ids.length) return;
    const request = { t0: Math.floor(this.t0), t1: Math.ceil(this.t1), width: this.width, ids };
    const key = JSON.stringify(request);
    if (this.countersKey === key || this.fetchingCounters) return;
    this.fetchingCounters = true;
    Promise.resolve(this.source.counters(request))
      .then((answer) => {
        this.counters = answer;
        this.countersKey = key;
      })
      .catch((error) => {
        this.countersKey = key;
        this.trouble = `no counters: ${error.message}`;
      })
      .finally(() => {
        this.fetchingCounters = false;
        this.draw();
      });
  }

  say(trouble) {
    this.trouble = trouble;
    status(this);
  }

  /** Something was marked or unmarked. */
  marksChanged() {
    this.marks++;
    this.refresh();
  }

  // -- drawing ----------------------------------------------------------------------------------------

  draw() {
    if (this.scheduled || this.closed) return;
    this.scheduled = requestAnimationFrame(() => {
      this.scheduled = null;
      if (!this.closed) this.drawNow();
    });
  }

  /** Draws what has just come, without waiting for the next frame. */
  drawArrived() {
    if (this.closed || document.hidden) return this.draw();
    cancelAnimationFrame(this.scheduled);
    this.scheduled = null;
    this.drawNow();
  }

  drawNow() {
    const began = performance.now();
    const { parts } = this;
    this.useTheme();
    if (!this.measureSpace()) return this.drawLater();
    this.fetchView();
    this.fetchCounters();
    paint(fitCanvas(parts.lanes, this.width, this.height), this);
    paintRuler(fitCanvas(parts.ruler, this.width, RULER), this, RULER);
    paintMinimap(fitCanvas(parts.minimap, this.width, MINIMAP), this, this.width, MINIMAP);
    this.drawLabels();
    status(this);
    this.lastDraw = performance.now() - began;
    this.draws = (this.draws ?? 0) + 1;
  }

  /** Hidden, or for a moment without a size (a lab that changes its theme): no observer may tell when it is back. */
  drawLater() {
    clearTimeout(this.later);
    this.delay = Math.min(2_000, (this.delay ?? 30) * 2);
    this.later = setTimeout(() => this.draw(), this.delay);
  }

  /** Takes the room that there is; false when there is none. */
  measureSpace() {
    const { parts } = this;
    const { clientWidth } = parts.scroll;
    if (clientWidth < this.labelWidth + 20) return false;
    this.delay = undefined;
    const most = this.store.get("height") ?? 420;
    if (!parts.root.classList.contains("tv-fill")) {
      parts.scroll.style.height = `${Math.max(90, Math.min(this.rows.height + 2, most))}px`;
    }
    parts.tall.style.height = `${this.rows.height}px`;
    this.height = parts.scroll.clientHeight;
    parts.stage.style.height = `${this.height}px`;
    this.width = Math.floor(clientWidth - this.labelWidth);
    parts.root.style.setProperty("--tv-labels", `${this.labelWidth}px`);
    return this.height > 0;
  }

  drawLabels() {
    const visible = this.rows.between(this.scroll - 60, this.scroll + this.height + 60);
    const key = [visible[0]?.y, visible.length, this.layoutVersion, this.cursor?.track.id, this.labelWidth].join("|");
    if (key !== this.labelKey) {
      this.labelKey = key;
      labels(this, visible);
    }
    this.parts.labels.firstChild.style.transform = `translateY(${-this.scroll}px)`;
  }

  useTheme() {
    const chosen = this.store.get("theme") ?? "auto";
    const dark = chosen === "auto" ? surroundingsDark() : chosen === "dark";
    this.theme = colors(dark);
    this.parts.root.classList.toggle("tv-dark", dark);
  }
}
