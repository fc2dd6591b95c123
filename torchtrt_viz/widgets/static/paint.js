// @ts-check
// Everything that is drawn on the canvas.

import { duration, quantity, roundStep } from "./format.js";
import { rgb } from "./theme.js";

/** @import { Rows } from "./rows.js" */
/** @import { Aggregate, AggregateRow, Box, Counters, CounterRow, Extent, LaneRow, Link, Row, Section, Theme } from "./types.js" */
/** @import { Known, View } from "./view.js" */

/**
 * What is to be seen at one moment.
 * @typedef {object} Scene
 * @property {Theme} theme
 * @property {string} colorBy
 * @property {number} ratio device pixels per CSS pixel
 * @property {number} width
 * @property {number} height
 * @property {number} scroll
 * @property {number} t0
 * @property {number} t1
 * @property {number} length of the trace
 * @property {number} begin of anything drawn, 0 or before
 * @property {Rows} rows
 * @property {View | null} view
 * @property {View | null} overview
 * @property {View | null} before
 * @property {number} marks that the views have to show
 * @property {Counters | null} counters
 * @property {Record<Section, Float32Array>} minimap
 * @property {Extent | null} selected
 * @property {Box | null} box
 * @property {Link[]} links
 * @property {Extent | null} hover
 * @property {number | null} pointer
 * @property {{t0: number, t1: number} | null} measure
 * @property {LaneRow | null} cursor
 * @property {boolean} focused
 * @property {(lane: number) => Section} sectionOf
 * @property {(name: number) => number} fillOf position in the fills of a side
 * @property {(name: number) => string | null} nameText
 */
/** @typedef {CanvasRenderingContext2D} Context */

export const FONT = "11px system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif";
const FAINTEST = 0.32; // what is nearly empty must still be seen
const LABEL_FROM = 30; // spans narrower than this carry no text

/** Width of text, by character, so that no layout is needed for thousands of labels. */
class Ruler {
  /** @type {Map<string, number>} */
  #widths = new Map();
  #context = contextOf(document.createElement("canvas"));

  constructor() {
    this.#context.font = FONT;
  }

  /** @param {string} c */
  #char(c) {
    let width = this.#widths.get(c);
    if (width === undefined) this.#widths.set(c, (width = this.#context.measureText(c).width));
    return width;
  }

  /**
   * @param {string} text
   * @param {number} room
   */
  fit(text, room) {
    let width = 0;
    for (let i = 0; i < text.length; i++) {
      width += this.#char(text[i]);
      if (width > room) {
        const dots = this.#char("…");
        while (i > 0 && width > room - dots) width -= this.#char(text[i--]);
        return i < 2 ? "" : text.slice(0, i + 1).trimEnd() + "…";
      }
    }
    return text;
  }
}

const ruler = new Ruler();

/** @param {HTMLCanvasElement} canvas */
function contextOf(canvas) {
  return /** @type {Context} */ (canvas.getContext("2d"));
}

/**
 * The cells of a view as an image of one pixel per cell, one row per lane.
 * @param {View} view
 * @param {Scene} scene
 */
function atlasOf(view, scene) {
  const key = `${scene.theme.dark}|${scene.colorBy}`;
  if (view.atlas?.key === key) return view.atlas.canvas;
  const rows = view.width > 0 ? view.busy.length / view.width : 0;
  const canvas = document.createElement("canvas");
  canvas.width = view.width;
  canvas.height = Math.max(1, rows);
  const context = contextOf(canvas);
  if (rows) {
    const image = context.createImageData(view.width, rows);
    const out = new Uint32Array(image.data.buffer);
    const tables = { host: packedFills(scene.theme.host.fill), gpu: packedFills(scene.theme.gpu.fill) };
    const dim = packed(rgb(scene.theme.dim));
    for (const [lane, known] of view.lanes) {
      if (known.mode !== 2) continue;
      const table = tables[scene.sectionOf(lane)];
      const from = known.column * view.width;
      for (let cell = from; cell < from + view.width; cell++) {
        const busy = view.busy[cell];
        if (busy === 0) continue;
        let color = table[scene.fillOf(view.nameOfCell(cell))];
        let alpha = FAINTEST + ((1 - FAINTEST) * busy) / 255;
        if (view.marked) {
          const marked = view.cellMark[cell];
          if (marked) alpha = Math.max(0.75, alpha);
          else {
            color = dim;
            alpha *= 0.45;
          }
        }
        out[cell] = color | (Math.round(alpha * 255) << 24);
      }
    }
    context.putImageData(image, 0, 0);
  }
  view.atlas = { key, canvas };
  return canvas;
}

/** @param {string[]} fill */
function packedFills(fill) {
  return fill.map((hex) => packed(rgb(hex)));
}

/** @param {number[]} color */
function packed([r, g, b]) {
  return r | (g << 8) | (b << 16);
}

/**
 * Paints the lanes.
 * @param {Context} context
 * @param {Scene} scene
 */
export function paint(context, scene) {
  const { theme, width, height } = scene;
  context.fillStyle = theme.back;
  context.fillRect(0, 0, width, height);
  context.font = FONT;
  context.textBaseline = "middle";
  const visible = scene.rows.between(scene.scroll, scene.scroll + height);
  // Sums have no place in time: no grid, no hairline, no ruler over them.
  const sums = visible.find((row) => row.section === "aggregate");
  const bottom = sums ? sums.y - scene.scroll : height;
  for (const row of visible) background(context, scene, row);
  grid(context, scene, bottom);
  beyond(context, scene, visible);
  for (const row of visible) {
    const y = row.y - scene.scroll;
    if (row.type === "lane") lane(context, scene, row, y, scene.view?.lanes.has(row.lane) ? scene.view : under(scene, row.lane));
    else if (row.type === "counter") counter(context, scene, row, y);
    else if (row.type === "aggregate") aggregate(context, scene, row, y);
  }
  box(context, scene);
  measure(context, scene, bottom);
  links(context, scene);
  chosen(context, scene);
  if (scene.pointer !== null) hairline(context, scene, scene.pointer, bottom);
}

/**
 * @param {Pick<Scene, "t0" | "t1" | "width">} scene
 * @param {number} t
 */
export function xOf(scene, t) {
  return ((t - scene.t0) / (scene.t1 - scene.t0)) * scene.width;
}

/**
 * @param {Context} context
 * @param {Scene} scene
 * @param {Row} row
 */
function background(context, scene, row) {
  const { theme, width } = scene;
  const y = row.y - scene.scroll;
  const side = row.section === "host" || row.section === "gpu" ? theme[row.section] : null;
  if (row.type === "section") {
    context.fillStyle = side ? side.band : theme.panel;
    context.fillRect(0, y, width, row.height);
    context.fillStyle = side ? side.name : theme.muted;
    context.fillText(row.title[1], 8, y + row.height / 2 + 0.5);
    return;
  }
  context.fillStyle = side ? side.back : theme.back;
  context.fillRect(0, y, width, row.height + (row.type === "lane" && row.at === row.lanes - 1 ? 3 : 0));
  if (row === scene.cursor && scene.focused) {
    context.fillStyle = theme.window;
    context.fillRect(0, y, width, row.height);
  }
  if (row.type === "lane" && row.at === 0) {
    context.fillStyle = theme.line;
    context.fillRect(0, Math.round(y) - 2, width, 1);
  }
  if (row.type === "note") {
    context.fillStyle = theme.muted;
    context.fillText(row.text, 8, y + row.height / 2);
  }
}

/**
 * @param {Context} context
 * @param {Scene} scene
 * @param {number} bottom
 */
function grid(context, scene, bottom) {
  const step = roundStep(((scene.t1 - scene.t0) / scene.width) * 110);
  context.fillStyle = scene.theme.grid;
  for (let t = Math.ceil(scene.t0 / step) * step; t < scene.t1; t += step) {
    context.fillRect(Math.round(xOf(scene, t)), 0, 1, bottom);
  }
}

/**
 * What is known of a lane beside the last view: coarsely all of it, or what was in sight before; else null.
 * @param {Scene} scene
 * @param {number} lane
 */
function under(scene, lane) {
  /** @param {View | null} other */
  const serves = (other) => other && other !== scene.view && other.marks === scene.marks && other.lanes.has(lane);
  return [scene.overview, scene.before].find(serves) ?? null;
}

/**
 * Draws what lies beyond the last view as far as it is known, until the next view comes.
 * @param {Context} context
 * @param {Scene} scene
 * @param {Row[]} visible
 */
function beyond(context, scene, visible) {
  const { view, width, height } = scene;
  if (!view || (view.t0 <= Math.max(0, scene.t0) && view.t1 >= Math.min(scene.length, scene.t1))) return;
  const x0 = Math.max(0, Math.min(width, xOf(scene, view.t0)));
  const x1 = Math.max(0, Math.min(width, xOf(scene, view.t1)));
  context.save();
  context.beginPath();
  context.rect(0, 0, x0, height);
  context.rect(x1, 0, width - x1, height);
  context.clip();
  for (const row of visible) {
    if (row.type === "lane" && view.lanes.has(row.lane)) lane(context, scene, row, row.y - scene.scroll, under(scene, row.lane));
  }
  context.restore();
}

/**
 * @param {Context} context
 * @param {Scene} scene
 * @param {LaneRow} row
 * @param {number} y
 * @param {View | null} view
 */
function lane(context, scene, row, y, view) {
  const { theme } = scene;
  const known = view?.lanes.get(row.lane);
  if (!view || !known) {
    context.fillStyle = theme.grid; // not known yet
    context.fillRect(0, y + row.height / 2, scene.width, 1);
    return;
  }
  if (known.mode === 0) return;
  const top = y + 1;
  const height = row.height - 2;
  if (known.mode === 2) columns(context, scene, view, known, top, height);
  if (row.role === "instants") points(context, scene, view, known, top, height);
  else spans(context, scene, view, row, known, top, height);
}

/**
 * @param {Context} context
 * @param {Scene} scene
 * @param {View} view
 * @param {Known} known
 * @param {number} top
 * @param {number} height
 */
function columns(context, scene, view, known, top, height) {
  const from = Math.max(scene.t0, view.t0);
  const to = Math.min(scene.t1, view.t1);
  if (to <= from) return;
  const scale = view.width / (view.t1 - view.t0);
  const x = xOf(scene, from);
  const width = xOf(scene, to) - x;
  context.imageSmoothingEnabled = false;
  context.drawImage(
    atlasOf(view, scene), (from - view.t0) * scale, known.column, (to - from) * scale, 1, x, top, width, height,
  );
}

/**
 * @param {Context} context
 * @param {Scene} scene
 * @param {View} view
 * @param {LaneRow} row
 * @param {Known} known
 * @param {number} top
 * @param {number} height
 */
function spans(context, scene, view, row, known, top, height) {
  const { theme, width } = scene;
  const side = theme[row.section];
  const scale = width / (scene.t1 - scene.t0);
  const gpu = row.section === "gpu";
  const wideOnly = known.mode === 2;
  const tall = height >= 10;
  let last = null;
  for (let i = known.from; i < known.to; i++) {
    const x0 = (view.base + view.start[i] - scene.t0) * scale;
    const length = view.dur[i] * scale;
    let x = Math.max(-4, x0);
    const x1 = Math.min(width + 4, x0 + length);
    if (x1 < 0 || x0 > width) continue;
    const marked = !view.marked || view.mark[i] === 1;
    const fill = marked ? side.fill[scene.fillOf(view.name[i])] : theme.dim;
    const share = view.share === null ? 255 : view.share[i];
    const block = share < 255;
    let alpha = marked ? 1 : 0.45;
    if (block) alpha *= FAINTEST + ((1 - FAINTEST) * share) / 255;
    let w = x1 - x;
    if (wideOnly && w < 6) continue; // zoomed out since: its cells are drawn
    if (w < 1) {
      alpha *= view.marked && marked ? 1 : FAINTEST + (1 - FAINTEST) * Math.min(1, length);
      x = Math.floor(x0 * scene.ratio) / scene.ratio;
      w = 1;
    } else if (w > 3) {
      w -= 0.7; // a hair of background keeps neighbours apart
    }
    if (fill !== last) context.fillStyle = last = fill;
    if (alpha !== 1) context.globalAlpha = alpha;
    context.fillRect(x, top, w, height);
    if (alpha !== 1) context.globalAlpha = 1;
    if (w > 3 && marked) {
      context.fillStyle = last = side.edge;
      // GPU work stands on a heavy base line, host work has a thin left edge.
      if (gpu && row.role === "spans") context.fillRect(x, top + height - 2, w, 2);
      else if (x0 >= 0) context.fillRect(x, top, 1, height);
    }
    if (block || row.role === "annotations" || row.role === "modeled" || row.role === "implausible") hatch(context, x, top, w, height, side.edge);
    if (tall && w >= LABEL_FROM) {
      const text = scene.nameText(view.name[i]);
      if (text) {
        context.fillStyle = last = marked ? side.text : theme.muted;
        const from = Math.max(x, 0) + 4;
        context.fillText(ruler.fit(clean(text), x + w - from - 3), from, top + height / 2 + (gpu ? -0.5 : 0.5));
      }
    }
  }
}

/** Control and direction characters would change how a name looks without being seen. @param {string} text */
export function clean(text) {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069]/g, "·");
}

/**
 * @param {Context} context
 * @param {number} x
 * @param {number} top
 * @param {number} width
 * @param {number} height
 * @param {string} color
 */
function hatch(context, x, top, width, height, color) {
  if (width < 4) return;
  context.save();
  context.beginPath();
  context.rect(x, top, width, height);
  context.clip();
  context.strokeStyle = color;
  context.globalAlpha = 0.35;
  context.beginPath();
  const from = Math.max(x, -20) - (Math.max(x, -20) % 7);
  for (let at = from - height; at < Math.min(x + width, 6000); at += 7) {
    context.moveTo(at, top + height);
    context.lineTo(at + height, top);
  }
  context.stroke();
  context.restore();
}

/**
 * @param {Context} context
 * @param {Scene} scene
 * @param {View} view
 * @param {Known} known
 * @param {number} top
 * @param {number} height
 */
function points(context, scene, view, known, top, height) {
  const { theme } = scene;
  const scale = scene.width / (scene.t1 - scene.t0);
  for (let i = known.from; i < known.to; i++) {
    const x = (view.base + view.start[i] - scene.t0) * scale;
    if (x < -4 || x > scene.width + 4) continue;
    context.fillStyle = view.marked && view.mark[i] !== 1 ? theme.dim : theme.muted;
    context.beginPath();
    context.moveTo(x, top);
    context.lineTo(x + 3.5, top + height);
    context.lineTo(x - 3.5, top + height);
    context.fill();
  }
}

/**
 * @param {Context} context
 * @param {Scene} scene
 * @param {CounterRow} row
 * @param {number} y
 */
function counter(context, scene, row, y) {
  const { theme } = scene;
  const known = scene.counters;
  const series = known?.series.find((one) => one.id === row.id);
  const { low, high, unit } = row.counter;
  const floor = Math.min(0, low);
  const span = high - floor || 1;
  const bottom = y + row.height - 3;
  const room = row.height - 8;
  context.fillStyle = theme.line;
  context.fillRect(0, bottom, scene.width, 1);
  if (!known || !series) return;
  const step = (known.t1 - known.t0) / known.width;
  const cell = (step / (scene.t1 - scene.t0)) * scene.width;
  /** @param {number} value */
  const yOf = (value) => bottom - ((value - floor) / span) * room;
  for (let k = 0; k < known.width; k++) {
    const x = xOf(scene, known.t0 + k * step);
    if (x + cell < 0 || x > scene.width || Number.isNaN(series.high[k])) continue;
    context.fillStyle = theme.host.fill[4];
    context.globalAlpha = 0.55;
    context.fillRect(x, yOf(series.low[k]), cell + 0.3, bottom - yOf(series.low[k]));
    context.globalAlpha = 1;
    context.fillStyle = theme.host.name;
    const top = yOf(series.high[k]);
    context.fillRect(x, top, cell + 0.3, Math.max(1.2, yOf(series.low[k]) - top));
  }
  const most = `up to ${quantity(high, unit)}`;
  context.fillStyle = theme.back; // the curve often runs where its own label stands
  context.globalAlpha = 0.82;
  context.fillRect(3, y + 2, context.measureText(most).width + 6, 14);
  context.globalAlpha = 1;
  context.fillStyle = theme.muted;
  context.fillText(most, 6, y + 9);
}

/**
 * @param {Context} context
 * @param {Scene} scene
 * @param {AggregateRow} row
 * @param {number} y
 */
function aggregate(context, scene, row, y) {
  const { theme } = scene;
  const { record, most } = row;
  const side = theme[record.domain || "host"] ?? theme.host;
  const width = record.timing === "ticks" ? 2 : Math.max(2, (record.dur / most) * scene.width * 0.45);
  context.fillStyle = side.fill[0];
  context.fillRect(8, y + 3, width, row.height - 6);
  hatch(context, 8, y + 3, width, row.height - 6, side.edge);
  context.fillStyle = theme.text;
  const what = `${recorded(record)} · ${record.kind}`;
  context.fillText(ruler.fit(what, scene.width - width - 30), 8 + width + 8, y + row.height / 2 + 0.5);
}

/**
 * What was recorded of something that has no place on the time axis.
 * @param {Aggregate} record
 * @returns {string}
 */
function recorded(record) {
  if (record.timing === "ticks") return `${record.dur} in a unit that the file does not name`;
  const time = `${duration(record.dur)} ${record.domain === "gpu" ? "GPU" : "host"} time`;
  return record.timing === "implausible" ? `${time}, implausible: in no sum` : `${time} in all`;
}

/**
 * Pixel rectangle of a place on the canvas, or null when its row is not shown.
 * @param {Pick<Scene, "rows" | "scroll" | "t0" | "t1" | "width">} scene
 * @param {Extent} place
 */
export function rectangleOf(scene, place) {
  const row = scene.rows.rowOfLane(place.lane);
  if (!row) return null;
  const x = xOf(scene, place.start);
  const width = Math.max(2, xOf(scene, place.start + place.dur) - x);
  return { x, y: row.y - scene.scroll + 1, width, height: row.height - 2, row };
}

/**
 * @param {Context} context
 * @param {Scene} scene
 */
function chosen(context, scene) {
  const { theme } = scene;
  for (const place of [scene.hover, scene.selected]) {
    const strong = place === scene.selected;
    if (!place) continue;
    const at = rectangleOf(scene, place);
    if (!at) continue;
    const x = Math.max(-6, at.x);
    const width = Math.min(scene.width + 6, at.x + at.width) - x;
    if (width <= 0) continue;
    context.lineWidth = strong ? 2 : 1;
    context.strokeStyle = strong ? theme.strong : theme.ink;
    context.strokeRect(x - 0.5, at.y - 0.5, width + 1, at.height + 1);
  }
  context.lineWidth = 1;
}

/**
 * @param {Context} context
 * @param {Scene} scene
 */
function box(context, scene) {
  const { theme, box: area } = scene;
  if (!area) return;
  const x0 = xOf(scene, area.t0);
  const x1 = xOf(scene, area.t1);
  context.fillStyle = theme.select;
  context.strokeStyle = theme.strong;
  /** @type {{y: number, height: number} | null} */
  let run = null;
  const flush = () => {
    if (!run) return;
    context.fillRect(x0, run.y, Math.max(1, x1 - x0), run.height);
    context.strokeRect(x0 + 0.5, run.y + 0.5, Math.max(1, x1 - x0), run.height - 1);
    run = null;
  };
  for (const row of scene.rows.laneRows) {
    const inside = area.lanes.has(row.lane) || (row.collapsed && row.track.lanes.some((lane) => area.lanes.has(lane)));
    if (!inside) flush();
    else if (run) run.height = row.y + row.height - scene.scroll - run.y;
    else run = { y: row.y - scene.scroll, height: row.height };
  }
  flush();
}

/**
 * @param {Context} context
 * @param {Scene} scene
 * @param {number} bottom
 */
function measure(context, scene, bottom) {
  const { theme, measure: span } = scene;
  if (!span) return;
  const x0 = xOf(scene, span.t0);
  const x1 = xOf(scene, span.t1);
  context.fillStyle = theme.window;
  context.fillRect(x0, 0, x1 - x0, bottom);
  context.fillStyle = theme.strong;
  context.fillRect(Math.round(x0), 0, 1, bottom);
  context.fillRect(Math.round(x1), 0, 1, bottom);
}

/**
 * @param {Context} context
 * @param {Scene} scene
 * @param {number} x
 * @param {number} bottom
 */
function hairline(context, scene, x, bottom) {
  context.fillStyle = scene.theme.muted;
  context.globalAlpha = 0.5;
  context.fillRect(Math.round(x), 0, 1, bottom);
  context.globalAlpha = 1;
}

/**
 * @param {Context} context
 * @param {Scene} scene
 */
function links(context, scene) {
  if (!scene.selected || !scene.links.length) return;
  const own = rectangleOf(scene, scene.selected);
  if (!own) return;
  context.lineWidth = 1.5;
  for (const link of scene.links) {
    const other = rectangleOf(scene, link);
    if (!other) continue;
    const [from, to] = link.out ? [own, other] : [other, own];
    const x0 = Math.min(from.x + from.width, Math.max(from.x, to.x));
    const y0 = from.y + from.height / 2;
    const x1 = to.x;
    const y1 = to.y + to.height / 2;
    if (Math.max(x0, x1) < -50 || Math.min(x0, x1) > scene.width + 50) continue;
    const bend = Math.max(24, Math.min(160, Math.abs(x1 - x0) * 0.5 + Math.abs(y1 - y0) * 0.2));
    for (const { color, width } of [{ color: scene.theme.back, width: 4 }, { color: scene.theme.strong, width: 1.6 }]) {
      context.strokeStyle = context.fillStyle = color;
      context.lineWidth = width;
      context.beginPath();
      context.moveTo(x0, y0);
      context.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1 - 5, y1);
      context.stroke();
      context.beginPath();
      context.moveTo(x1, y1);
      context.lineTo(x1 - 7, y1 - 4);
      context.lineTo(x1 - 7, y1 + 4);
      context.fill();
    }
  }
  context.lineWidth = 1;
}
