// @ts-check
// What is in sight as one PNG: overview, ruler, labels and lanes.

import { FONT, clean } from "./paint.js";
import { MINIMAP, RULER } from "./painter.js";

/** @import { Parts } from "./chrome.js" */
/** @import { Scene } from "./paint.js" */
/** @import { Row } from "./types.js" */

/**
 * @param {Pick<Parts, "minimap" | "ruler" | "lanes">} canvases
 * @param {Scene} scene as it was drawn there
 * @param {number} labelWidth
 * @returns {Promise<Blob>}
 */
export function picture(canvases, scene, labelWidth) {
  const { theme, width, height, ratio, scroll } = scene;
  const canvas = document.createElement("canvas");
  canvas.width = Math.round((labelWidth + width) * ratio);
  canvas.height = Math.round((MINIMAP + RULER + height) * ratio);
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.scale(ratio, ratio);
  context.fillStyle = theme.panel;
  context.fillRect(0, 0, labelWidth + width, MINIMAP + RULER + height);
  context.drawImage(canvases.minimap, labelWidth, 0, width, MINIMAP);
  context.drawImage(canvases.ruler, labelWidth, MINIMAP, width, RULER);
  context.drawImage(canvases.lanes, labelWidth, MINIMAP + RULER, width, height);
  context.beginPath();
  context.rect(0, MINIMAP + RULER, labelWidth, height);
  context.clip();
  context.textBaseline = "middle";
  for (const row of scene.rows.between(scroll, scroll + height)) {
    const y = MINIMAP + RULER + row.y - scroll;
    const side = row.section === "host" || row.section === "gpu" ? theme[row.section] : null;
    context.fillStyle = row.type === "section" ? (side?.band ?? theme.panel) : (side?.back ?? theme.back);
    context.fillRect(0, y, labelWidth, row.height);
    if (side) {
      context.fillStyle = side.name;
      context.fillRect(0, y, 4, row.height);
    }
    const text = textOf(row);
    if (!text) continue;
    const bold = row.type === "section";
    context.fillStyle = bold && side ? side.name : theme.text;
    context.font = bold ? `bold ${FONT}` : FONT;
    context.fillText(clean(text), bold ? 10 : 22, y + Math.min(row.height, 19) / 2, labelWidth - 26);
  }
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the browser made no picture"))), "image/png");
  });
}

/** @param {Row} row */
function textOf(row) {
  if (row.type === "section") return row.title[0];
  if (row.type === "group") return row.group;
  if (row.type === "lane") return row.at === 0 ? row.track.label : "";
  if (row.type === "counter") return row.counter.name;
  if (row.type === "aggregate") return row.record.name;
  return "";
}
