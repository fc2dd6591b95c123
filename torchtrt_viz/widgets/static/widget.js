// The notebook widget: the timeline on an anywidget model.

import { element } from "./dom.js";
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

async function render({ model, el }) {
  const root = element("div", {}, "opening the timeline…");
  el.append(root);
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
  openSource(model).then(
    (source) => {
      if (gone) return source.close();
      timeline = new Timeline(root, source, store, { inPython: true });
      root.timeline = timeline; // for those who script the page
    },
    (error) => {
      root.textContent = `The timeline could not be opened: ${error.message}`;
    },
  );
  return () => {
    gone = true;
    model.off("msg:custom", onMessage);
    for (const [key, callback] of callbacks) model.off(`change:${key}`, callback);
    timeline?.close();
  };
}

export default { render };
