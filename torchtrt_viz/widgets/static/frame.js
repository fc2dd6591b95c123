// @ts-check
// The ruler and the overview that frame the lanes.

import { duration, percent, roundStep, short, tick } from "./format.js";
import { FONT, xOf } from "./paint.js";

/** @import { Scene } from "./paint.js" */
/** @import { Track } from "./types.js" */

const CHIP = 14; // px high: what stands above the ticks

/**
 * The ruler above the lanes.
 * @param {CanvasRenderingContext2D} context
 * @param {Scene} scene
 * @param {number} height
 */
export function paintRuler(context, scene, height) {
  const { theme, width } = scene;
  context.fillStyle = theme.panel;
  context.fillRect(0, 0, width, height);
  context.font = FONT;
  context.textBaseline = "middle";
  const line = height - 12; // of the ticks' labels; above it is room for what the pointer says
  const span = scene.t1 - scene.t0;
  const step = roundStep((span / width) * 110);
  for (let t = Math.ceil(scene.t0 / step - 1) * step; t < scene.t1; t += step) {
    const x = Math.round(xOf(scene, t));
    context.fillStyle = theme.line;
    context.fillRect(x, height - 8, 1, 8);
    for (let minor = 1; minor < 5; minor++) {
      context.fillRect(Math.round(xOf(scene, t + (step * minor) / 5)), height - 4, 1, 4);
    }
    context.fillStyle = theme.muted;
    // Half a label would be read as another time.
    if (t < -step / 1e6 && scene.begin === 0) continue; // the margin before the trace is no time of it
    const label = tick(t, step, Math.max(Math.abs(scene.t0), Math.abs(scene.t1)));
    if (x >= 0 && x + 4 + context.measureText(label).width <= width) context.fillText(label, x + 4, line);
  }
  if (scene.measure) {
    const { t0, t1 } = scene.measure;
    const x0 = xOf(scene, t0);
    const x1 = xOf(scene, t1);
    context.fillStyle = theme.strong;
    context.fillRect(x0, height - 3, Math.max(1, x1 - x0), 3);
    chip(context, scene, `Δ ${duration(t1 - t0)}`, (x0 + x1) / 2, theme.strong);
  } else if (scene.pointer !== null) {
    const t = Math.max(scene.begin, scene.t0 + (scene.pointer / width) * span);
    chip(context, scene, tick(t, step / 100, Math.max(Math.abs(scene.t0), Math.abs(scene.t1))), scene.pointer, theme.muted);
  }
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Scene} scene
 * @param {string} text
 * @param {number} x
 * @param {string} color
 */
function chip(context, scene, text, x, color) {
  const half = context.measureText(text).width / 2 + 6;
  const middle = Math.max(half, Math.min(scene.width - half, x));
  context.fillStyle = color;
  context.fillRect(middle - half, 0, 2 * half, CHIP);
  context.fillStyle = scene.theme.back;
  context.fillText(text, middle - half + 6, CHIP / 2 + 0.5);
}

/**
 * The overview of the whole length, with the window that is in sight.
 * @param {CanvasRenderingContext2D} context
 * @param {Scene} scene
 * @param {number} width
 * @param {number} height
 */
export function paintMinimap(context, scene, width, height) {
  const { theme } = scene;
  context.fillStyle = theme.panel;
  context.fillRect(0, 0, width, height);
  const both = /** @type {const} */ (["gpu", "host"]).filter((section) => scene.minimap[section].some((share) => share > 0));
  both.forEach((section, at) => {
    const shares = scene.minimap[section];
    const room = height / both.length;
    context.fillStyle = theme[section].name;
    const bottom = (at + 1) * room - 1;
    for (let x = 0; x < width; x++) {
      const from = Math.floor((x / width) * shares.length);
      const to = Math.max(from + 1, Math.floor(((x + 1) / width) * shares.length));
      let most = 0;
      for (let k = from; k < to && k < shares.length; k++) most = Math.max(most, shares[k]);
      if (most > 0) {
        const bar = Math.max(1, Math.sqrt(most) * (room - 3));
        context.globalAlpha = 0.75;
        context.fillRect(x, bottom - bar, 1, bar);
      }
    }
    context.globalAlpha = 1;
  });
  const x0 = (scene.t0 / scene.length) * width;
  const x1 = (scene.t1 / scene.length) * width;
  context.fillStyle = theme.dark ? "rgba(0, 0, 0, 0.5)" : "rgba(255, 255, 255, 0.62)";
  context.fillRect(0, 0, Math.max(0, x0), height);
  context.fillRect(x1, 0, Math.max(0, width - x1), height);
  context.strokeStyle = theme.muted;
  context.strokeRect(Math.max(0.5, x0), 0.5, Math.max(3, Math.min(width, x1) - Math.max(0, x0)) - 1, height - 1);
  context.fillStyle = theme.muted;
  for (const x of [Math.max(0, x0), Math.min(width, x1)]) context.fillRect(x - 2, height / 2 - 6, 4, 12);
}

/**
 * What a row's label says below its name.
 * @param {Track} track
 * @param {number} length of the trace
 */
export function trackNote(track, length) {
  const parts = [];
  if (track.spans) parts.push(`${short(track.spans)} spans`);
  if (track.instants && !track.spans) parts.push(`${short(track.instants)} events`);
  if (track.busy) parts.push(`${track.section === "gpu" ? "GPU" : "host"} busy ${percent(track.busy / length)}`);
  return parts.join(" · ");
}

