// @ts-check
// The notebook widget: the timeline on an anywidget model.

import { element, inertNodes } from "./dom.js";
import { openSource } from "./kernel.js";
import { keptForm, whenNobodyAnswers } from "./kept.js";
import { modelStore } from "./store.js";
import { Timeline } from "./timeline.js";

/** @import { Model, State } from "./types.js" */

/**
 * What is shown where no kernel answers: a saved page, a viewer, a kernel that is busy or gone.
 * @param {HTMLElement} root
 * @param {Model} model
 * @param {ReturnType<typeof keptForm>} kept
 * @param {string} words
 */
function standIn(root, model, kept, words) {
  if (kept.show()) return root.replaceChildren(element("div", {}, words));
  root.replaceChildren(element("div", {}, words), element("div", { class: "tv-still" }, ...inertNodes(model.get("still") || "")));
}

/** @param {{model: Model, el: HTMLElement}} view */
async function render({ model, el }) {
  const root = element("div", {}, "opening the timeline…");
  el.append(root);
  const kept = keptForm(model, el);
  kept.hide();
  /** @type {Timeline | null} */
  let timeline = null;
  let gone = false;
  const { store, close } = /** @type {typeof modelStore<State>} */ (modelStore)(model);
  /** @param {{event?: string, id?: string} | null} message */
  const onMessage = async (message) => {
    if (message?.event !== "picture" || !timeline) return;
    const blob = await timeline.picture();
    model.send({ op: "picture", id: message.id }, undefined, [await blob.arrayBuffer()]);
  };
  /** Whether a view is there to draw pictures. @param {"shown" | "hidden"} op */
  const tell = (op) => {
    try {
      model.send({ op });
    } catch {} // nobody is left to know
  };
  model.on("msg:custom", onMessage);
  const answered = whenNobodyAnswers(() => standIn(root, model, kept, "No kernel answers: a static picture stands for the timeline."));
  openSource(model).then(
    (source) => {
      answered();
      if (gone) return source.close();
      kept.hide();
      timeline = new Timeline(root, source, store, { inPython: true });
      tell("shown");
      Object.assign(root, { timeline }); // for those who script the page
    },
    (error) => {
      answered();
      if (!gone) standIn(root, model, kept, `The timeline could not be opened: ${error.message}`);
    },
  );
  return () => {
    gone = true;
    answered();
    model.off("msg:custom", onMessage);
    close();
    if (timeline) tell("hidden");
    timeline?.close();
  };
}

export default { render };
