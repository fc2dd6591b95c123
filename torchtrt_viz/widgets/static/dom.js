// @ts-check
// Making elements. Text always goes in as text: names come from files and are never markup.

/** @typedef {Node | string | null | undefined} Child */
/** @typedef {Record<string, any>} Attributes those that are undefined, null or false are left out */

/**
 * element("div", {class: "x", title: "y", onclick: f}, "text", child, ...)
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Attributes} attributes
 * @param {Child[]} children
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "style") Object.assign(made.style, value);
    else made.setAttribute(key, value === true ? "" : String(value));
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/**
 * @param {string} label
 * @param {string} title
 * @param {() => void} onclick
 * @param {Attributes} attributes
 */
export function button(label, title, onclick, attributes = {}) {
  return element("button", { type: "button", title, "aria-label": title, onclick, tabindex: "-1", ...attributes }, label);
}

const PLAIN = new Set(["DIV", "SPAN", "B", "TABLE", "THEAD", "TBODY", "TR", "TH", "TD", "DETAILS", "SUMMARY", "UL", "LI", "P", "BR"]);

/**
 * The nodes of a static form: text and boxes with inline styles. Whatever else the markup holds stays behind: a saved
 * notebook may hold anything.
 * @param {string} markup
 */
export function inertNodes(markup) {
  /**
   * @param {Node} node
   * @returns {Node[]}
   */
  const copy = (node) => {
    if (node instanceof Text) return [document.createTextNode(node.data)];
    if (!(node instanceof HTMLElement) || !PLAIN.has(node.nodeName)) return [];
    const made = document.createElement(node.nodeName);
    const style = node.getAttribute("style") || "";
    if (!/url|image|@|\\/i.test(style)) made.style.cssText = style; // nothing is fetched
    made.append(...[...node.childNodes].flatMap(copy));
    return [made];
  };
  return [...new DOMParser().parseFromString(markup, "text/html").body.childNodes].flatMap(copy);
}

/**
 * The canvas's context, scaled for the screen, cleared to `width` by `height` CSS pixels.
 * @param {HTMLCanvasElement} canvas
 * @param {number} width
 * @param {number} height
 */
export function fitCanvas(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const w = Math.max(1, Math.round(width * ratio));
  const h = Math.max(1, Math.round(height * ratio));
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { alpha: false }));
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}
