// What is in sight as one PNG: overview, ruler, labels and lanes.

import { MINIMAP, RULER } from "./stage.js";
import { FONT, clean } from "./paint.js";

export function picture(timeline) {
  const { parts, theme, labelWidth, width, height, ratio } = timeline;
  timeline.drawNow();
  const canvas = document.createElement("canvas");
  canvas.width = Math.round((labelWidth + width) * ratio);
  canvas.height = Math.round((MINIMAP + RULER + height) * ratio);
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  context.fillStyle = theme.panel;
  context.fillRect(0, 0, labelWidth + width, MINIMAP + RULER + height);
  context.drawImage(parts.minimap, labelWidth, 0, width, MINIMAP);
  context.drawImage(parts.ruler, labelWidth, MINIMAP, width, RULER);
  context.drawImage(parts.lanes, labelWidth, MINIMAP + RULER, width, height);
  context.beginPath();
  context.rect(0, MINIMAP + RULER, labelWidth, height);
  context.clip();
  context.textBaseline = "middle";
  for (const row of timeline.rows.between(timeline.scroll, timeline.scroll + height)) {
    const y = MINIMAP + RULER + row.y - timeline.scroll;
    const side = theme[row.section];
    context.fillStyle = row.type === "section" ? (side?.band ?? theme.panel) : (side?.back ?? theme.back);
    context.fillRect(0, y, labelWidth, row.height);
    if (side) {
      context.fillStyle = side.name;
      context.fillRect(0, y, 4, row.height);
    }
    const [text, bold] = textOf(row);
    if (!text) continue;
    context.fillStyle = bold && side ? side.name : theme.text;
    context.font = bold ? `bold ${FONT}` : FONT;
    context.fillText(clean(text), bold ? 10 : 22, y + Math.min(row.height, 19) / 2, labelWidth - 26);
  }
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

function textOf(row) {
  if (row.type === "section") return [row.title[0], true];
  if (row.type === "group") return [row.group, false];
  if (row.type === "lane") return [row.at === 0 ? row.track.label : "", false];
  if (row.type === "counter") return [row.counter.name, false];
  if (row.type === "aggregate") return [row.record.name, false];
  return ["", false];
}
