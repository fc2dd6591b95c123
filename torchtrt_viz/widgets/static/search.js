// @ts-check
// What is searched for by name, or was marked by Python.

import { count } from "./format.js";

/** @import { Navigation } from "./navigation.js" */
/** @import { Pane } from "./pane.js" */
/** @import { Rows } from "./rows.js" */
/** @import { Selection } from "./selection.js" */
/** @import { Found, Source, Store } from "./types.js" */
/** @import { Views } from "./views.js" */
/** @import { Viewport } from "./viewport.js" */

const TYPING = 160; // ms after a key until the search begins

export class Search {
  #input;
  #matches;
  #source;
  #store;
  #rows;
  #viewport;
  #pane;
  #views;
  #selection;
  #navigation;
  #announce;
  #text = "";
  #elsewhere = false;
  /** How many events are marked. */
  #found = 0;
  /** Of the marks that Python made. @type {number | undefined} */
  #version;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #soon;

  /**
   * @param {{input: HTMLInputElement, matches: HTMLElement}} parts
   * @param {{source: Source, store: Store, rows: Rows, viewport: Viewport, pane: Pane, views: Views, selection: Selection,
   *   navigation: Navigation, announce: (text: string) => void}} modules the store's keys: search, marks
   */
  constructor({ input, matches }, { source, store, rows, viewport, pane, views, selection, navigation, announce }) {
    this.#input = input;
    this.#matches = matches;
    this.#source = source;
    this.#store = store;
    this.#rows = rows;
    this.#viewport = viewport;
    this.#pane = pane;
    this.#views = views;
    this.#selection = selection;
    this.#navigation = navigation;
    this.#announce = announce;
    store.on("marks", () => this.#follow());
    this.#follow();
  }

  /** Whether something is searched for or marked. */
  get active() {
    return Boolean(this.#text || this.#version || this.#elsewhere);
  }

  focus() {
    this.#input.focus();
    this.#input.select();
  }

  /** Searches for what is typed, when typing pauses. */
  typed() {
    clearTimeout(this.#soon);
    this.#soon = setTimeout(() => this.find(this.#input.value), TYPING);
  }

  /** @param {string} text */
  async find(text) {
    clearTimeout(this.#soon);
    if (this.#input.value !== text) this.#input.value = text;
    this.#text = text;
    this.#elsewhere = false;
    const answer = this.#source.search(text);
    this.#views.markedAnew(); // the picture with these marks is asked for along with their number
    await null; // Python is told after the question has gone out, which then need not wait behind it
    this.#store.set("search", text);
    const found = await answer;
    if (this.#text !== text) return;
    if (this.#source.whole && answer instanceof Promise) this.#views.markedAnew(); // its marks came with the answer
    this.#show(found);
  }

  /** Says what was found, or what cannot be read. @param {Found} found */
  #show({ count: found, wrong }) {
    this.#found = found;
    this.#input.setAttribute("aria-invalid", String(Boolean(wrong)));
    this.#matches.classList.toggle("tv-wrong", Boolean(wrong));
    if (wrong) this.#matches.textContent = `character ${wrong.at + 1}: expected ${wrong.expected}`;
    else this.#matches.textContent = this.#text ? `${count(found)} ${found === 1 ? "match" : "matches"}` : "";
  }

  /** Something was marked without a search. @param {number} events */
  markedElsewhere(events) {
    clearTimeout(this.#soon);
    this.#text = this.#input.value = "";
    this.#elsewhere = events > 0;
    this.#found = events;
    this.#matches.textContent = events ? `${count(events)} highlighted` : "";
    this.#views.markedAnew();
    this.#reveal();
  }

  /** Selects the next or previous match; `first` searches for what is typed before. @param {boolean} forward */
  async step(forward, first = false) {
    const { value } = this.#input;
    if (first && value !== this.#text) {
      const found = this.find(value);
      if (this.#source.whole) await found; // a kernel answers before the step, which travels with the question
    }
    const from = this.#selection.place ?? { start: forward ? this.#viewport.t0 : this.#viewport.t1, lane: -1 };
    const place = await this.#source.step(this.#rows.searchLanes(), from, forward);
    if (!place) return this.#announce(this.#input.getAttribute("aria-invalid") === "true" ? (this.#matches.textContent ?? "") : "no matches");
    await this.#selection.select(place);
    this.#navigation.show(place);
    this.#matches.textContent = `${count(place.number)} of ${count(Math.max(this.#found, place.number))}`;
  }

  /** Python searched or highlighted. */
  async #follow() {
    const marks = this.#store.get("marks") ?? {};
    if (!marks.version || marks.version === this.#version) return;
    this.#found = marks.count ?? 0;
    this.#version = marks.version;
    this.#text = marks.text ?? "";
    this.#input.value = this.#text;
    this.#matches.textContent = marks.label ?? "";
    await this.#source.refreshMarks?.();
    this.#views.markedAnew();
    await this.#reveal();
  }

  /** Scrolls to the first lane with something marked when none is in sight; time stays as it is. */
  async #reveal() {
    const version = this.#views.marks;
    /** @param {number[]} lanes */
    const step = (lanes) => this.#source.step(lanes, { start: this.#viewport.t0, lane: -1 }, true);
    if (!this.#viewport.width || (await step(this.#pane.lanesInSight(0)))) return;
    const place = await step(this.#rows.searchLanes());
    const row = place && version === this.#views.marks && this.#rows.rowOfLane(place.lane);
    if (row) this.#pane.scrollTo(row); // scrolling draws
  }
}
