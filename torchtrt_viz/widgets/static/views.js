// @ts-check
// What the source was asked for and has answered: the view in sight, coarser ones beside it, counters.

import { Signal } from "./signal.js";

/** @import { Pane } from "./pane.js" */
/** @import { Counters, Source } from "./types.js" */
/** @import { View } from "./view.js" */
/** @import { Viewport } from "./viewport.js" */

const OVERSCAN = 0.25; // of the width, fetched beyond each edge
const OVERSCAN_Y = 150; // px
const OVERVIEW_AFTER = 250; // ms without a new view
const PATIENCE = 700; // ms until the user is told that the kernel is slow
const GIVE_UP = 3; // failures in a row

export class Views {
  /** A view has come: it can be drawn at once. */
  arrived = new Signal();
  /** Something else has come, or has to be asked for. */
  changed = new Signal();
  /** `trouble` has changed, and nothing else. */
  troubled = new Signal();
  /** What is wrong, in words. */
  trouble = "";
  /** Counts changes of what is marked. */
  marks = 0;
  /** @type {View | null} */
  view = null;
  /** All of the time, and the view before: drawn where `view` does not reach. @type {View | null} */
  overview = null;
  /** @type {View | null} */
  before = null;
  /** @type {Counters | null} */
  counters = null;
  /** A view is under way. */
  fetching = false;
  /** ms that the last answer took */
  lastLatency = 0;
  /** Where the last sharp picture was: nothing newer is known when the kernel goes. @type {{t0: number, t1: number, scroll: number} | null} */
  sharp = null;
  #source;
  #viewport;
  #pane;
  #closed = false;
  #failed = 0;
  #countersKey = "";
  #fetchingCounters = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #patience;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #pausing;

  /** @param {{source: Source, viewport: Viewport, pane: Pane}} modules */
  constructor({ source, viewport, pane }) {
    this.#source = source;
    this.#viewport = viewport;
    this.#pane = pane;
    source.onNames = () => this.changed.tell();
    viewport.moved.listen(() => this.#refresh());
  }

  close() {
    this.#closed = true;
    clearTimeout(this.#patience);
    clearTimeout(this.#pausing);
  }

  /** Something was marked or unmarked: what is known shows it no longer. */
  markedAnew() {
    this.marks++;
    this.#refresh();
  }

  /** What the kernel has to be asked for is asked now, not only when the next frame is drawn. */
  #refresh() {
    if (!this.#source.whole && this.#viewport.width > 0 && !this.#closed) this.fetchView();
    this.changed.tell();
  }

  /** Asks for a view if what is known does not serve; the last one stays, scaled, until the answer comes. */
  fetchView() {
    const { width, length, begin, goal } = this.#viewport;
    const [t0, t1] = (!this.#source.whole && goal) || [this.#viewport.t0, this.#viewport.t1];
    const px = (t1 - t0) / width;
    const { view, marks } = this;
    const sharp = view && Math.abs((view.t1 - view.t0) / view.width / px - 1) < 0.01;
    if (sharp && view.marks === marks && view.covers(Math.max(t0, begin - length), t1, this.#pane.lanesInSight(0))) return;
    if (this.fetching) return; // its answer draws, and drawing asks again
    const margin = Math.round(width * OVERSCAN);
    const request = {
      t0: Math.round(t0 - margin * px),
      t1: Math.max(Math.round(t1 + margin * px), Math.round(t0 - margin * px) + 1),
      width: Math.min(4000, width + 2 * margin),
      lanes: this.#pane.lanesInSight(OVERSCAN_Y),
    };
    const here = { t0, t1, scroll: this.#pane.scroll };
    const answer = this.#source.view(request);
    if (!(answer instanceof Promise)) return this.#take(answer, marks);
    const asked = performance.now();
    this.fetching = true;
    this.#patience = setTimeout(() => {
      this.trouble = "waiting for the kernel…";
      this.troubled.tell();
    }, PATIENCE);
    answer
      .then((view) => {
        this.#take(view, marks);
        this.sharp = here;
        this.lastLatency = performance.now() - asked;
      })
      .catch((error) => {
        this.trouble = `no answer: ${error.message}`;
        this.#failed++;
      })
      .finally(() => {
        clearTimeout(this.#patience);
        this.fetching = false;
        if (!this.trouble) this.#failed = 0;
        if (this.#failed >= GIVE_UP) this.troubled.tell();
        else this.arrived.tell();
        this.#fetchOverviewLater();
      });
  }

  /**
   * @param {View} view
   * @param {number} marks
   */
  #take(view, marks) {
    view.marks = marks;
    this.before = this.view;
    this.view = view;
    if (view.t0 <= 0 && view.t1 >= this.#viewport.length) this.overview = view;
    this.trouble = "";
  }

  /** After a pause, gets the coarse view of the lanes in sight, which is what a wide step shows at once. */
  #fetchOverviewLater() {
    clearTimeout(this.#pausing);
    if (this.#closed || this.#failed) return;
    this.#pausing = setTimeout(() => {
      const lanes = this.#pane.lanesInSight(OVERSCAN_Y);
      const { length, width } = this.#viewport;
      const { marks, overview } = this;
      if (this.#closed || this.fetching || (overview?.marks === marks && overview.covers(0, length, lanes))) return;
      Promise.resolve(this.#source.view({ t0: 0, t1: length, width: Math.min(4000, width), lanes })).then(
        (view) => {
          if (marks === this.marks) this.overview = Object.assign(view, { marks });
        },
        () => {}, // the next view says what is wrong
      );
    }, OVERVIEW_AFTER);
  }

  /** Asks for the counters in sight if it has others. */
  fetchCounters() {
    const ids = this.#pane.visible().filter((row) => row.type === "counter").map((row) => row.id);
    if (!ids.length) return;
    const { t0, t1, width } = this.#viewport;
    const request = { t0: Math.floor(t0), t1: Math.ceil(t1), width, ids };
    const key = JSON.stringify(request);
    if (this.#countersKey === key || this.#fetchingCounters) return;
    this.#fetchingCounters = true;
    Promise.resolve(this.#source.counters(request))
      .then((answer) => {
        this.counters = answer;
        this.#countersKey = key;
      })
      .catch((error) => {
        this.#countersKey = key;
        this.trouble = `no counters: ${error.message}`;
      })
      .finally(() => {
        this.#fetchingCounters = false;
        this.changed.tell();
      });
  }
}
