// @ts-check
// The tooltip, the details of the selection, and the help.

import { element, button } from "./dom.js";
import { FIELDS } from "./fields.js";
import { count, duration, percent, short, spentOn } from "./format.js";
import { KEYS, MOUSE } from "./keys.js";
import { clean } from "./paint.js";
import { waitedFor } from "./selection.js";

/** @import { Selection } from "./selection.js" */
/** @import { Box, Chosen, Detail, Links, Role, Section, Totals } from "./types.js" */
/** @typedef {[title: string, lines: string[]]} Tip */

const MAX_LINKS_LISTED = 40;

/**
 * Text of a tooltip for a span.
 * @param {{name: string, kind: string, start: number, dur: number, section: Section, role: Role, track: string}} span
 * @returns {Tip}
 */
export function spanLines({ name, kind, start, dur, section, role, track }) {
  const lines = [];
  if (role === "instants") lines.push(`event at ${duration(start)}`);
  else {
    const notes = { modeled: "modeled (not observed)", implausible: "implausible (in no sum)" };
    const note = role === "modeled" || role === "implausible" ? `, ${notes[role]}` : "";
    const what = role === "annotations" ? "range on the GPU's clock" : `${spentOn(section)}${note}`;
    lines.push(`${duration(dur)} ${what}`, `starts at ${duration(start)}`);
  }
  lines.push(`${kind} · ${track}`);
  return [clean(name || "(no name)"), lines];
}

/**
 * Text of a tooltip for a pixel column that stands for many spans.
 * @param {{name: string | null, busy: number, section: Section, track: string}} cell
 * @returns {Tip}
 */
export function cellLines({ name, busy, section, track }) {
  return [
    clean(name || "…"),
    [`fills most of this pixel, which is ${percent(busy / 255)} ${section === "gpu" ? "GPU" : "host"} busy`, "several spans: zoom in to tell them apart", track],
  ];
}

/**
 * @param {HTMLElement} tooltip
 * @param {Tip} tip
 * @param {number} x
 * @param {number} y
 * @param {number} width of what it lies on
 */
export function showTooltip(tooltip, [title, lines], x, y, width) {
  tooltip.replaceChildren(element("b", {}, title), ...lines.map((line) => element("div", {}, line)));
  tooltip.hidden = false;
  const right = x > width * 0.6;
  tooltip.style.left = right ? "" : `${x + 14}px`;
  tooltip.style.right = right ? `${width - x + 10}px` : "";
  tooltip.style.top = `${y + 16}px`;
}

/** The details of the selection, pinned below the lanes. */
export class Details {
  #selection;
  #inPython;

  /**
   * @param {HTMLElement} panel
   * @param {Selection} selection
   * @param {boolean} inPython whether Python knows of the selection
   */
  constructor(panel, selection, inPython) {
    this.#selection = selection;
    this.#inPython = inPython;
    selection.described.listen((about) => {
      if (about && "chosen" in about) panel.replaceChildren(...this.#chosen(about.chosen));
      else if (about && "box" in about) panel.replaceChildren(...this.#box(about.box, about.events, about.totals));
      else if (about) panel.replaceChildren(...this.#span(about.detail, about.links));
      panel.hidden = !about;
    });
  }

  /**
   * @param {Detail} detail
   * @param {Links} links
   */
  #span(detail, links) {
    const { times, span, domain } = detail;
    const head = element(
      "div",
      { class: "tv-head" },
      element("span", { class: `tv-badge tv-${domain}` }, domain === "gpu" ? "GPU" : "HOST"),
      wholeName(clean(detail.name || "(no name)")),
      button("×", "close (Esc)", () => this.#selection.select(null), { class: "tv-close" }),
    );
    /** @type {[string, string][]} */
    const facts = [];
    if (span && times.dur !== undefined) {
      facts.push([spentOn(domain), `${duration(times.dur)}  (${count(times.dur)} ns)`]);
      if (times.self !== undefined && times.self !== times.dur) facts.push([`of it own ${domain === "gpu" ? "GPU" : "host"} time`, duration(times.self)]);
    }
    facts.push(["start in the timeline", duration(times.start)]);
    facts.push(...detail.fields);
    /** @type {HTMLElement[]} */
    const columns = [table(facts)];
    if (detail.args?.length) columns.push(element("div", {}, element("h4", {}, "arguments"), table(detail.args.map(([key, value]) => [clean(key), clean(value)]))));
    if (links?.links.length) columns.push(this.#linkList(links));
    return [head, ...this.#story(detail, links), element("div", { class: "tv-columns" }, ...columns)];
  }

  /**
   * How a piece of device work came about, in one line.
   * @param {Detail} detail
   * @param {Links | undefined} links
   */
  #story({ story, times, domain }, links) {
    if (!story) return [];
    const steps = story.path.flatMap(({ text, row }, at) => {
      const last = at === story.path.length - 1;
      const name = clean(text);
      const step = last || row < 0 ? element(last ? "b" : "span", {}, name) : button(name, `go to this span`, () => this.#selection.goToRow(row), { class: "tv-link" });
      return at ? [" › ", step] : [step];
    });
    const waited = waitedFor(story);
    const launch = links?.links.find((link) => !link.out);
    return [
      element(
        "div",
        { class: "tv-story" },
        `${spentOn(domain)} ${duration(times.dur ?? 0)}${waited ? `, ${waited}` : ""} · `,
        element("span", { class: "tv-path" }, ...steps),
        " ",
        waited ? button("fit both", "fit launch and work (J)", () => this.#selection.fitBoth(launch), { class: "tv-small" }) : null,
        story.shapes ? element("span", { class: "tv-muted" }, ` inputs ${clean(story.shapes)}`) : null,
      ),
    ];
  }

  /**
   * The contents of a box: host and GPU apart, each by name.
   * @param {Box} box
   * @param {number} events
   * @param {(Totals & {side: Section})[]} totals
   */
  #box(box, events, totals) {
    const lanes = `${box.lanes.size} ${box.lanes.size === 1 ? "lane" : "lanes"}`;
    return this.#summary(`${count(events)} events in ${duration(box.t1 - box.t0)} on ${lanes}`, totals);
  }

  /**
   * @param {string} title
   * @param {(Totals & {side: Section})[]} totals
   */
  #summary(title, totals) {
    const head = element(
      "div",
      { class: "tv-head" },
      element("b", { class: "tv-name" }, title),
      element("span", { class: "tv-muted" }, this.#inPython ? "w.selection gives them as a DataFrame" : ""),
      button("×", "close (Esc)", () => this.#selection.select(null), { class: "tv-close" }),
    );
    return [head, element("div", { class: "tv-columns" }, ...totals.map(sideTotals))];
  }

  /** Events that were chosen one by one. @param {Chosen} chosen */
  #chosen({ events, t0, t1, totals }) {
    return this.#summary(`${count(events)} events selected, within ${duration(t1 - t0)}`, totals);
  }

  /** @param {Links} links */
  #linkList({ links, total }) {
    const list = links.slice(0, MAX_LINKS_LISTED).map((link) =>
      element(
        "li",
        {},
        button(
          `${link.out ? "→" : "←"} ${clean(link.text ?? "")}`,
          `go to this span (${link.name})`,
          () => this.#selection.goTo(link),
          { class: "tv-link" },
        ),
        ` ${duration(link.dur)} `,
        button("fit both", "fit both ends of this arrow (J: of the first one)", () => this.#selection.fitBoth(link), { class: "tv-small" }),
      ),
    );
    const more = total > list.length ? [element("li", {}, `${count(total - list.length)} more`)] : [];
    return element("div", {}, element("h4", {}, `linked (${count(total)})`), element("ul", {}, ...list, ...more));
  }
}

/** A name, cut to two lines until it is clicked. @param {string} text */
function wholeName(text) {
  const name = element("b", { class: "tv-name", title: text, onclick: () => name.classList.toggle("tv-whole") }, text);
  return name;
}

/** @param {[string, unknown][]} rows */
function table(rows) {
  return element("table", {}, ...rows.map(([label, value]) => element("tr", {}, element("th", {}, label), element("td", {}, String(value)))));
}

/** @param {Totals & {side: Section}} totals */
function sideTotals({ side, events, names, rows }) {
  /** @param {Totals["rows"][number]} row */
  const row = ([name, some, inside]) =>
    element(
      "tr",
      {},
      element("td", { class: "tv-wide" }, clean(name || "(no name)")),
      element("td", { class: "tv-number" }, count(some)),
      element("td", { class: "tv-number" }, duration(inside)),
      element("td", { class: "tv-number" }, duration(inside / Math.max(1, some))),
    );
  const titles = ["name", "events", `${spentOn(side)} inside`, "mean"];
  const header = element("tr", {}, ...titles.map((text, at) => element("th", { class: at ? "tv-number" : null }, text)));
  return element(
    "div",
    {},
    element("h4", {}, element("span", { class: `tv-badge tv-${side}` }, side === "gpu" ? "GPU" : "HOST"), ` ${count(events)} events`,
      element("span", { class: "tv-plain" }, side === "gpu" ? "" : "  nested spans count again")),
    element("table", { class: "tv-totals" }, header, ...rows.map(row)),
    names > rows.length ? element("p", { class: "tv-muted" }, `${short(names - rows.length)} more names`) : null,
  );
}

/** What a search may be, by examples. @type {[string, string][]} */
const SEARCHES = [
  ["flash attention", "words that stand together in a name, whatever the case"],
  ["kind:kernel stream:7", "terms that must all hold; a list is either of them: kind:memcpy,memset"],
  ["dur>50us start:1ms..2ms", "times in ns, us, ms, s; also = != < <= >="],
  ["name~gemm|conv", "regular expression (!~ for: not so)"],
  ["a or not (b c)", "and, or, not, brackets"],
  ['args."Input Dims":4096', 'an argument; double quotes hold anything: "and", name="aten::add"'],
];

/** @param {() => void} close */
export function helpContent(close) {
  /** @type {Map<string, [string, string][]>} */
  const groups = new Map();
  for (const [group, keys, text] of KEYS) groups.set(group, [...(groups.get(group) ?? []), [keys, text]]);
  /**
   * @param {string} title
   * @param {[string, string][]} rows
   */
  const section = (title, rows) =>
    element("section", {}, element("h4", {}, title), element("table", {}, ...rows.map(([keys, text]) => element("tr", {}, element("th", {}, keys), element("td", {}, text)))));
  return [
    button("×", "close (Esc)", close, { class: "tv-close" }),
    ...[...groups].map(([title, rows]) => section(title, rows)),
    section("Mouse", MOUSE),
    section("Search", SEARCHES),
    section(
      "Fields of a search",
      Object.entries(FIELDS).map(([name, { meaning, choices }]) => [name, choices.length ? `${meaning}: ${choices.join(", ")}` : meaning]),
    ),
    element(
      "p",
      { class: "tv-muted" },
      "Cool colours are host time, warm colours with a heavy base line are GPU time. Where spans are narrower than a pixel, ",
      "a column's strength is the exact share of it that is busy, and its colour is that of the span that fills most of it.",
    ),
  ];
}
