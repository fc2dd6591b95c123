// @ts-check
// An expression handed to the user: into a new cell where the notebook lets us, else onto the clipboard, and always in sight.

import { element } from "./dom.js";

/** @param {string} text */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // not a secure page, or not allowed: the old way works in a click
    const field = element("textarea", { style: { position: "fixed", opacity: "0" } });
    field.value = text;
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
  }
}

/**
 * Puts the text into a new cell below the active one; says whether it could.
 * @param {string} text
 */
async function insertCell(text) {
  const app = /** @type {any} */ (window).jupyterapp;
  if (!app?.commands?.hasCommand?.("notebook:insert-cell-below")) return false;
  await app.commands.execute("notebook:insert-cell-below");
  const model = app.shell?.currentWidget?.content?.activeCell?.model?.sharedModel;
  if (!model || model.getSource?.()) return false; // what came up is not an empty cell
  model.setSource(text);
  return true;
}

/**
 * @param {HTMLElement} place that the text is shown at the end of
 * @param {HTMLElement} pressed
 * @param {string} text
 * @param {boolean} [cells] whether there may be a notebook
 */
export async function hand(place, pressed, text, cells = false) {
  const shown = place.querySelector("code");
  if (shown) shown.textContent = text;
  else place.append(element("code", {}, text));
  const done = cells && (await insertCell(text)) ? "inserted" : (await copy(text)) ? "copied" : "see below";
  const label = pressed.dataset.label ?? pressed.textContent ?? "";
  pressed.dataset.label = label;
  pressed.textContent = done;
  setTimeout(() => (pressed.textContent = label), 1_600);
}
