// @ts-check
// Flame graphs: a box that is chosen fills the width, arrow keys go from box to box, names are cut where they end.

import { button } from "./dom.js";
import { finder } from "./finder.js";

const CHARACTER = 6.7; // width of one, px

/** @param {Element} box */
function words(box) {
  return box.querySelector("title")?.textContent ?? "";
}

/** @param {HTMLElement} figure */
export function openFlame(figure) {
  const picture = /** @type {SVGSVGElement} */ (figure.querySelector("svg"));
  const boxes = /** @type {SVGSVGElement[]} */ ([...picture.querySelectorAll("svg.b")]);
  const numbers = boxes.map((box) => ({
    above: Number(box.dataset.p),
    left: parseFloat(box.getAttribute("x") ?? "0"),
    width: parseFloat(box.getAttribute("width") ?? "0"),
    name: box.dataset.l ?? "",
  }));
  let whole = -1; // the box that fills the width, -1 all
  let current = -1;

  /** @param {number} number */
  const callers = (number) => {
    const found = new Set();
    for (let at = number; at >= 0; at = numbers[at].above) found.add(at);
    return found;
  };

  const draw = () => {
    const kept = callers(whole);
    const [from, size] = whole < 0 ? [0, 100] : [numbers[whole].left, numbers[whole].width];
    const pixels = picture.clientWidth;
    boxes.forEach((box, at) => {
      const { left, width, name } = numbers[at];
      let [x, share] = [((left - from) / size) * 100, (width / size) * 100];
      const inside = left >= from - 1e-6 && left + width <= from + size + 1e-3;
      const above = kept.has(at);
      if (above) [x, share] = [0, 100];
      box.style.display = above || inside ? "" : "none";
      box.setAttribute("x", `${x}%`);
      box.setAttribute("width", `${share}%`);
      const room = Math.floor(((share / 100) * pixels - 8) / CHARACTER);
      const text = box.querySelector("text");
      if (text) text.textContent = room < 3 ? "" : name.length <= room ? name : `${name.slice(0, room - 1)}…`;
      box.classList.toggle("tv-now", at === current);
    });
  };

  /** @param {number} number */
  const choose = (number) => {
    current = number;
    say(number < 0 ? "" : words(boxes[number]));
    draw();
  };
  /** @param {number} number */
  const fill = (number) => {
    whole = number;
    choose(number);
  };
  const { bar, say } = finder(
    "find a call",
    numbers.map((one) => one.name),
    (hits) => boxes.forEach((box, at) => box.classList.toggle("tv-dim", hits.size > 0 && !hits.has(at))),
    choose,
    [button("all", "show everything (Escape)", () => fill(-1), { tabindex: "0" })],
  );
  figure.insertBefore(bar, picture);
  picture.setAttribute("tabindex", "0");
  picture.addEventListener("click", (event) => {
    const box = event.target instanceof Element && event.target.closest("svg.b");
    if (box) fill(boxes.indexOf(/** @type {SVGSVGElement} */ (box)));
  });
  picture.addEventListener("keydown", (event) => {
    const children = numbers.flatMap((one, at) => (one.above === current ? [at] : []));
    const beside = current < 0 ? children : numbers.flatMap((one, at) => (one.above === numbers[current].above ? [at] : []));
    beside.sort((a, b) => numbers[a].left - numbers[b].left);
    const place = beside.indexOf(current);
    /** @type {Record<string, () => void>} */
    const keys = {
      ArrowDown: () => children.length && choose(children.reduce((a, b) => (numbers[b].width > numbers[a].width ? b : a))),
      ArrowUp: () => current >= 0 && choose(numbers[current].above),
      ArrowLeft: () => place > 0 && choose(beside[place - 1]),
      ArrowRight: () => place >= 0 && place + 1 < beside.length && choose(beside[place + 1]),
      Enter: () => fill(current),
      Escape: () => fill(-1),
    };
    if (!keys[event.key]) return;
    keys[event.key]();
    event.preventDefault();
    event.stopPropagation();
  });
  new ResizeObserver(draw).observe(picture);
}
