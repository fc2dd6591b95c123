// @ts-check
// The graph of an engine: folds open and close, a layer can be searched and chosen. Measures and curves are those of
// plan_svg.py, which draws the graph as it stands when nothing was opened.

import { button } from "./dom.js";
import { finder } from "./finder.js";

/** @typedef {{first: number, last: number, x: number, open: boolean, node: SVGGElement}} Fold */

/** @param {HTMLElement} figure */
export function openGraph(figure) {
  const pane = /** @type {HTMLElement} */ (figure.querySelector(".tv-scroll"));
  const picture = /** @type {SVGSVGElement} */ (pane.querySelector("svg"));
  const [left, column, row, width, height, margin, stem] = (picture.dataset.m ?? "").split(" ").map(Number);
  const nodes = /** @type {SVGGElement[]} */ ([...picture.querySelectorAll("g.n")]);
  const places = nodes.map((node) => ({ rank: Number(node.dataset.r), x: Number(node.dataset.x), name: node.dataset.l ?? "" }));
  /** @type {Fold[]} */
  const folds = [.../** @type {NodeListOf<SVGGElement>} */ (picture.querySelectorAll("g.f"))].map((node) => ({
    first: Number(node.dataset.a),
    last: Number(node.dataset.z),
    x: Number(node.dataset.x),
    open: false,
    node,
  }));
  const edges = [.../** @type {NodeListOf<SVGPathElement>} */ (picture.querySelectorAll("path.k"))].map((path) => ({
    path,
    source: Number(path.dataset.s),
    target: Number(path.dataset.t),
    via: (path.dataset.v ?? "").split(" ").filter(Boolean).map(Number),
    back: path.dataset.b === "1",
  }));
  const rows = Math.max(...places.map((place) => place.rank)) + 1;
  const wide = picture.width.baseVal.value;
  let scale = 1;
  let chosen = -1;
  /** @type {number[]} */
  let top = [];
  /** @type {(Fold | undefined)[]} */
  let foldOf = [];

  /** @param {number} x */
  const center = (x) => (x - left) * column + width / 2 + margin;
  /** @type {(x0: number, y0: number, x1: number, y1: number) => string} */
  const curve = (x0, y0, x1, y1) => {
    const middle = (y0 + stem + y1) / 2;
    return `V${y0 + stem}C${x0} ${middle} ${x1} ${middle} ${x1} ${y1}`;
  };

  /** @param {typeof edges[number]} edge */
  function path({ source, target, via, back }) {
    const [from, to] = [places[source], places[target]];
    const [out, into] = [foldOf[from.rank], foldOf[to.rank]];
    if (out && out === into) return "";
    const [begin, end] = [center(out ? out.x : from.x), center(into ? into.x : to.x)];
    let y = top[from.rank] + height;
    if (back) {
      const side = Math.max(begin, end) + width / 2 + 10;
      return `M${begin} ${y}C${side} ${y + 30} ${side} ${top[to.rank] - 30} ${end} ${top[to.rank]}`;
    }
    let at = begin;
    let text = `M${begin} ${y}`;
    via.forEach((x, step) => {
      const rank = from.rank + 1 + step;
      const fold = foldOf[rank];
      if (fold && (fold === out || fold === into || rank > fold.first)) return;
      text += `${curve(at, y, center(x), top[rank])}V${top[rank] + height}`;
      [at, y] = [center(x), top[rank] + height];
    });
    return text + curve(at, y, end, top[to.rank]);
  }

  function draw() {
    foldOf = [];
    for (const fold of folds) if (!fold.open) for (let rank = fold.first; rank <= fold.last; rank++) foldOf[rank] = fold;
    top = [];
    let y = margin;
    for (let rank = 0; rank < rows; rank++) {
      const fold = foldOf[rank];
      if (fold && rank > fold.first) top.push(top[rank - 1]);
      else {
        top.push(y);
        y += row;
      }
    }
    nodes.forEach((node, at) => {
      node.classList.toggle("x", !!foldOf[places[at].rank]);
      node.setAttribute("transform", `translate(${center(places[at].x) - width / 2} ${top[places[at].rank]})`);
      node.classList.toggle("tv-now", at === chosen);
    });
    for (const fold of folds) {
      fold.node.classList.toggle("x", fold.open);
      fold.node.setAttribute("transform", `translate(${center(fold.x) - width / 2} ${top[fold.first]})`);
    }
    for (const edge of edges) {
      const d = path(edge);
      edge.path.classList.toggle("x", !d);
      edge.path.classList.toggle("tv-now", chosen >= 0 && (edge.source === chosen || edge.target === chosen));
      if (d) edge.path.setAttribute("d", d);
    }
    const tall = Math.max(y - row + height + stem, height) + margin;
    picture.setAttribute("viewBox", `0 0 ${wide} ${tall}`);
    picture.setAttribute("width", String(Math.round(wide * scale)));
    picture.setAttribute("height", String(Math.round(tall * scale)));
  }

  /** @param {number} number */
  function choose(number) {
    chosen = number;
    const fold = foldOf[places[number].rank];
    if (fold) fold.open = true;
    draw();
    const { rank, x } = places[number];
    pane.scrollTo(center(x) * scale - pane.clientWidth / 2, top[rank] * scale - pane.clientHeight / 3);
    say(nodes[number].querySelector("title")?.textContent ?? "");
  }
  /** @param {boolean} open */
  function all(open) {
    for (const fold of folds) fold.open = open;
    draw();
  }
  /** @param {number} to */
  function zoom(to) {
    const middle = (pane.scrollTop + pane.clientHeight / 2) / scale;
    scale = Math.min(2, Math.max(0.1, to));
    draw();
    pane.scrollTop = middle * scale - pane.clientHeight / 2;
  }
  const keys = { tabindex: "0" };
  const { bar, say } = finder(
    "find a layer",
    places.map((place) => place.name),
    (hits) => nodes.forEach((node, at) => node.classList.toggle("tv-dim", hits.size > 0 && !hits.has(at))),
    choose,
    [
      button("−", "smaller", () => zoom(scale / 1.25), keys),
      button("+", "larger", () => zoom(scale * 1.25), keys),
      button("width", "fit the width", () => zoom(pane.clientWidth / (wide + 2)), keys),
      ...(folds.length ? [button("unfold", "show every layer", () => all(true), keys), button("fold", "fold rows of small layers", () => all(false), keys)] : []),
    ],
  );
  figure.insertBefore(bar, pane);
  picture.addEventListener("click", (event) => {
    const group = event.target instanceof Element && event.target.closest("g.n, g.f");
    if (!group) return;
    const fold = folds.find((one) => one.node === group);
    if (fold) {
      fold.open = true;
      draw();
      say(`${fold.last - fold.first + 1} rows unfolded`);
    } else choose(nodes.indexOf(/** @type {SVGGElement} */ (group)));
  });
  draw();
  pane.scrollLeft = center(places[0]?.x ?? 0) - pane.clientWidth / 2;
}
