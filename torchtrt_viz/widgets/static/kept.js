// @ts-check
// The static form that a notebook keeps above a widget: out of sight while the widget is live.

/** @import { Model } from "./types.js" */

/**
 * The static form of a model's widget in `el`, the nearest one, since copies of a notebook may be open.
 * @param {Model} model
 * @param {HTMLElement} el
 */
export function keptForm(model, el) {
  const id = model.get("kept");
  let hidden = false;
  /** @type {HTMLElement | null} */
  let form = null;
  const find = () => {
    for (let at = /** @type {HTMLElement | null} */ (el); id && at && !form?.isConnected; at = at.parentElement) form = at.querySelector(`.tv-kept-${CSS.escape(id)}`);
  };
  const apply = () => {
    find();
    if (form) form.style.display = hidden ? "none" : "";
  };
  return {
    hide() {
      hidden = true;
      apply();
      if (!form) requestAnimationFrame(apply); // hosts put the widget into the page after they have made it
    },
    /** Brings it back; says whether there is one. */
    show() {
      hidden = false;
      apply();
      return form !== null;
    },
  };
}

/** Calls back when nothing has come for so long that no kernel seems to listen; returns how to call it off. @param {() => void} callback */
export function whenNobodyAnswers(callback) {
  const waiting = setTimeout(callback, 4_000);
  return () => clearTimeout(waiting);
}
