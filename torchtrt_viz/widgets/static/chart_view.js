// @ts-check
// The notebook's charts: pictures that Python drew, one at a time.

import { button, element } from "./dom.js";
import { keptForm } from "./kept.js";
import { openPictures, pictureNodes } from "./pictures.js";
import { surroundingsDark, watchSurroundings } from "./theme.js";

/** @import { Model } from "./types.js" */

/** @param {{model: Model, el: HTMLElement}} view */
function render({ model, el }) {
  const kept = keptForm(model, el);
  kept.hide();
  const bar = element("div", { class: "tv-bar", role: "tablist", "aria-label": "charts" });
  const heading = element("h3", { class: "tv-title" });
  const says = element("p", { class: "tv-says" });
  const place = element("div", { role: "tabpanel" });
  const root = element("div", { class: "tv-pic tv-charts" }, bar, heading, says, place);
  el.append(root);

  const dark = () => (model.get("theme") === "auto" ? surroundingsDark() : model.get("theme") === "dark");
  const useTheme = () => {
    for (const one of [root, ...root.querySelectorAll("figure")]) {
      one.classList.toggle("tv-dark", dark());
      one.classList.toggle("tv-light", !dark());
    }
  };
  const list = () => {
    const chosen = model.get("chosen");
    /** @type {[string, string][]} */
    const names = model.get("names");
    bar.replaceChildren(
      ...names.map(([name, title]) =>
        button(name.replaceAll("_", " "), title, () => {
          model.set("chosen", name);
          model.save_changes();
        }, { role: "tab", tabindex: "0", "aria-selected": String(name === chosen) }),
      ),
    );
    heading.textContent = names.find(([name]) => name === chosen)?.[1] ?? "";
  };
  const draw = () => {
    says.textContent = model.get("says");
    place.replaceChildren(...pictureNodes(model.get("markup")));
    openPictures(place);
    useTheme();
  };
  place.addEventListener("click", (event) => {
    const shown = event.target instanceof Element && event.target.closest("[data-show]")?.getAttribute("data-show");
    if (shown && model.get("linked")) model.send({ op: "show", request: JSON.parse(shown) });
  });
  /** @type {[string, () => void][]} */
  const listeners = [["change:names", list], ["change:chosen", list], ["change:says", draw], ["change:markup", draw], ["change:theme", useTheme]];
  for (const [event, callback] of listeners) model.on(event, callback);
  // Charts are made when they are first in sight: a tab that nobody opens costs nothing.
  const sight = new ResizeObserver(() => {
    if (!root.clientWidth) return;
    sight.disconnect();
    if (!model.get("names").length) model.send({ op: "open", dark: dark() });
  });
  sight.observe(root);
  const stop = watchSurroundings(useTheme);
  list();
  draw();
  return () => {
    sight.disconnect();
    stop();
    for (const [event, callback] of listeners) model.off(event, callback);
  };
}

export default { render };
