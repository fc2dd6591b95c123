// The notebook widget: the timeline on an anywidget model.

import { element, inertNodes } from "./dom.js";
import { keptForm, whenNobodyAnswers } from "./kept.js";
import { Timeline } from "./timeline.js";
import { openSource } from "./whole.js";

function storeOf(model) {
  return {
    get: (key) => model.get(key),
    set: (key, value) => {
      model.set(key, value);
      model.save_changes();
    },
    on: (key, callback) => model.on(`change:${key}`, callback),
  };
}

/** What is shown where no kernel answers: a saved page, a viewer, a kernel that is busy or gone. */
function standIn(root, model, kept, words) {
  if (kept.show()) return root.replaceChildren(element("div", {}, words));
  root.replaceChildren(element("div", {}, words), element("div", { class: "tv-still" }, ...inertNodes(model.get("still") || "")));
}

async function render({ model, el }) {
  const root = element("div", {}, "opening the timeline…");
  el.append(root);
  const kept = keptForm(model, el);
  kept.hide();
  let timeline = null;
  let gone = false;
  const callbacks = [];
  const store = storeOf(model);
  const { on } = store;
  store.on = (key, callback) => {
    callbacks.push([key, callback]);
    on(key, callback);
  };
  const onMessage = async (message) => {
    if (message?.event !== "picture" || !timeline) return;
    const blob = await timeline.picture();
    model.send({ op: "picture", id: message.id }, undefined, [await blob.arrayBuffer()]);
  };
  model.on("msg:custom", onMessage);
  const answered = whenNobodyAnswers(() => standIn(root, model, kept, "No kernel answers: a static picture stands for the timeline."));
  openSource(model).then(
    (source) => {
      answered();
      if (gone) return source.close();
      kept.hide();
      timeline = new Timeline(root, source, store, { inPython: true });
      root.timeline = timeline; // for those who script the page
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
    for (const [key, callback] of callbacks) model.off(`change:${key}`, callback);
    timeline?.close();
  };
}

export default { render };
