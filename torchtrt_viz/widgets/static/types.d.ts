// Shapes that several modules share. Only the type checker reads this file. Times are ns from the trace's origin.

import type { View } from "./view.js";

export type Section = "host" | "gpu";
export type Role = "spans" | "modeled" | "annotations" | "instants" | "implausible";

export interface Track {
  id: string;
  label: string;
  section: Section;
  group: string;
  type: string;
  /** the lane that stands for all of them */
  collapsed: number;
  busy: number;
  spans: number;
  instants: number;
  lanes: number[];
  roles: Role[];
  /** what a search calls it; `name` is the label in the file */
  name: string;
  process: string | null;
  thread: string | null;
  stream: string | null;
  /** -1 for none */
  device: number;
  rank: number;
  /** it holds what a recorder notes of itself */
  recording: boolean;
  /** next to nothing happens on it */
  idle: boolean;
}

export interface CounterInfo {
  name: string;
  unit: string;
  label: string;
  low: number;
  high: number;
}

export interface Aggregate {
  part: number;
  name: string;
  kind: string;
  /** "" where it is unknown. */
  domain: Section | "";
  timing: string;
  dur: number;
  track: string;
}

/** What a source says of the trace when it opens. */
export interface Info {
  length: number;
  /** first start and last end of anything drawn: a recorder's own notes may lie outside of [0, length] */
  begin: number;
  end: number;
  origin: string;
  synthetic: boolean;
  tracks: Track[];
  kinds: string[];
  /** those of each section's spans */
  kinds_of: Record<Section, string[]>;
  events: number;
  counters: CounterInfo[];
  aggregates: { rows: Aggregate[]; total: number };
  note: string;
  left_out?: string;
}

/** The user's arrangement; ids of tracks, of groups in `folded`. */
export interface Layout {
  collapsed: string[];
  hidden: string[];
  pinned: string[];
  folded: string[];
  order: string[];
}

interface RowBase {
  y: number;
  height: number;
}
export interface SectionRow extends RowBase {
  type: "section";
  section: string;
  title: string[];
  hidden?: number;
}
export interface GroupRow extends RowBase {
  type: "group";
  section: Section;
  group: string;
  id: string;
  folded: boolean;
  size: number;
}
export interface LaneRow extends RowBase {
  type: "lane";
  section: Section;
  track: Track;
  lane: number;
  role: Role;
  /** which of the track's `lanes` rows this is */
  at: number;
  lanes: number;
  pinned: boolean;
  collapsed: boolean;
}
export interface CounterRow extends RowBase {
  type: "counter";
  section: "counter";
  counter: CounterInfo;
  id: number;
}
export interface AggregateRow extends RowBase {
  type: "aggregate";
  section: "aggregate";
  record: Aggregate;
  most: number;
  at: number;
}
export interface NoteRow extends RowBase {
  type: "note";
  section: "aggregate";
  text: string;
}
export type Row = SectionRow | GroupRow | LaneRow | CounterRow | AggregateRow | NoteRow;

/** Where something is drawn. */
export interface Extent {
  lane: number;
  start: number;
  dur: number;
}

/** One event. */
export interface Place extends Extent {
  row: number;
  name?: string;
  kind?: string;
  /** what came along to be shown of it */
  about?: { detail: Detail; links: Links };
}

/** One event of a source that holds all of them: also its name's number and its position. */
export interface HeldPlace extends Place {
  nameId: number;
  at: number;
}

export interface Link extends Place {
  /** of the flow */
  name: string;
  /** name of the event at the other end */
  text: string;
  out: boolean;
}

export interface Links {
  links: Link[];
  total: number;
}

export interface Detail {
  row: number;
  name: string;
  domain: Section;
  span: boolean;
  times: { start: number; dur?: number; self?: number };
  fields: [string, string][];
  args: [string, string][];
  story?: Story;
}

/** How a piece of device work came about. */
export interface Story {
  /** from the begin of the launching call */
  queued?: number;
  /** pieces of the same stream that it waited for */
  ahead?: number;
  /** module, operator, launch, the work itself; rows of the scene, -1 for what is no event */
  path: { text: string; row: number }[];
  /** of the operator's inputs */
  shapes?: string;
}

export interface Totals {
  events: number;
  names: number;
  /** name, events, time inside */
  rows: [string, number, number][];
}

/** What a search has found, or where it cannot be read and what should stand there. */
export interface Found {
  count: number;
  wrong?: { at: number; expected: string };
}

/** A place in the order of a search. */
export interface Spot {
  start: number;
  lane: number;
  row?: number;
}

/** An event, and which of the marked ones it is, from 1 on. */
export type Numbered = Place & { number: number };

/** Events that were chosen one by one: when they are, and by name what they are. */
export interface Chosen {
  events: number;
  t0: number;
  t1: number;
  totals: (Totals & { side: Section })[];
}

/** What `Timeline.show` brings into sight. */
export interface ShowRequest {
  /** rows of the scene */
  rows?: number[];
  /** exact names */
  names?: string[];
  /** a search */
  query?: string;
  /** a stretch of time: of its own, all in it is selected; beside the others, it is what is zoomed to */
  t0?: number;
  t1?: number;
  /** false leaves the time in sight as it is */
  zoom?: boolean;
}

export interface Counters {
  t0: number;
  t1: number;
  width: number;
  series: { id: number; low: Float32Array; high: Float32Array }[];
}

export interface ViewRequest {
  t0: number;
  t1: number;
  width: number;
  lanes: number[];
}

export interface CounterRequest {
  t0: number;
  t1: number;
  width: number;
  ids: number[];
}

type Eventually<T> = T | Promise<T>;

/** Where a timeline's data come from: the kernel, or columns that the browser holds. */
export interface Source {
  info: Info;
  /** busy shares over the whole length */
  minimap: Record<Section, Float32Array>;
  nameColor: Uint8Array;
  nameKind: Uint8Array;
  /** whether nobody needs to be asked for a view */
  readonly whole: boolean;
  /** called when texts of names have come */
  onNames: () => void;
  /** called when nobody can be asked any more */
  onLost: () => void;
  /** null while it is being fetched */
  nameText(name: number): string | null;
  view(request: ViewRequest): Eventually<View>;
  counters(request: CounterRequest): Eventually<Counters>;
  hit(lane: number, t: number, tolerance: number): Eventually<Place | null>;
  neighbour(place: Place, step: number): Eventually<Place | null>;
  locate(row: number): Eventually<Place | null>;
  detail(row: number, known?: Place): Eventually<Detail>;
  links(row: number, known?: Place): Eventually<Links>;
  search(text: string): Eventually<Found>;
  /** the next or previous marked event from one, or from a time; `number` says the how manieth it is */
  step(lanes: number[], from: Spot, forward: boolean): Eventually<Numbered | null>;
  totals(t0: number, t1: number, lanes: number[]): Eventually<Totals>;
  /** what was chosen one by one: `rows`, or in the kernel */
  chosen(rows?: number[]): Eventually<Chosen>;
  /** marks rows and names without a search; only where the browser holds everything */
  mark?(wanted: { rows?: number[]; names?: string[] }): number[];
  refreshMarks?(): Promise<void>;
  close?(): void;
}

export interface Box {
  t0: number;
  t1: number;
  lanes: Set<number>;
}

/** The selection as Python reads it. */
export type Selected =
  | { kind?: undefined }
  | { kind: "span"; row: number }
  | { kind: "rows"; version: number; count: number }
  | { kind: "box"; t0: number; t1: number; lanes: number[] };

/** What outlives the page or is shared with Python. */
export interface State {
  view_range: number[];
  selected: Selected;
  arrangement: Partial<Layout>;
  search: string;
  marks: { version?: number; text?: string; label?: string; count?: number };
  color_by: string;
  theme: string;
  height: number;
}

export interface Store<S = State> {
  get<K extends keyof S>(key: K): S[K] | undefined;
  set<K extends keyof S>(key: K, value: S[K]): void;
  on(key: keyof S, callback: () => void): void;
}

/** What the anywidget specification promises of a model. */
export interface Model {
  get(key: string): any;
  set(key: string, value: unknown): void;
  save_changes(): void;
  send(content: object, callbacks?: unknown, buffers?: ArrayBuffer[]): void;
  on(event: string, callback: (...args: any[]) => void): void;
  off(event: string, callback?: (...args: any[]) => void): void;
}

export interface Colors {
  name: string;
  back: string;
  band: string;
  edge: string;
  text: string;
  fill: string[];
}

export interface Theme {
  dark: boolean;
  back: string;
  panel: string;
  text: string;
  muted: string;
  line: string;
  grid: string;
  ink: string;
  strong: string;
  dim: string;
  select: string;
  window: string;
  host: Colors;
  gpu: Colors;
}
