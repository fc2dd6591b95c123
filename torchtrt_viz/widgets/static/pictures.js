// @ts-check
// Charts that were drawn in Python: what can be touched in them is set going here.

import { openFlame } from "./flame.js";
import { openGraph } from "./plan.js";

const TAGS = new Set(["figure", "svg", "g", "rect", "circle", "line", "path", "text", "title", "ul", "li", "i", "div", "p", "button", "details", "summary", "table", "thead", "tbody", "tr", "th", "td"]);
const ATTRIBUTES = /^(class|x|y|x1|x2|y1|y2|cx|cy|r|rx|d|width|height|viewbox|preserveaspectratio|vector-effect|transform|style|role|type|tabindex|aria-label|data-[a-z]+)$/i;

/**
 * Marks, text and legend of a chart's markup; whatever else it holds stays behind.
 * @param {string} markup
 */
export function pictureNodes(markup) {
  const body = new DOMParser().parseFromString(markup, "text/html").body;
  for (const node of [...body.querySelectorAll("*")]) {
    if (!TAGS.has(node.nodeName.toLowerCase())) node.remove();
    for (const { name, value } of [...node.attributes]) {
      if (!ATTRIBUTES.test(name) || (name === "style" && /url|@|\\/i.test(value))) node.removeAttribute(name);
    }
  }
  return [...body.childNodes].map((node) => document.importNode(node, true));
}

/** @param {ParentNode} root */
export function openPictures(root) {
  for (const figure of /** @type {NodeListOf<HTMLElement>} */ (root.querySelectorAll("figure[data-chart]"))) {
    if (figure.querySelector("svg.b")) openFlame(figure);
    else if (figure.querySelector("g.n")) openGraph(figure);
  }
}
