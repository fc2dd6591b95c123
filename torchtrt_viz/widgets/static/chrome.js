// The frame around the lanes: toolbar, search, tracks menu, labels, status line.

import { button, element } from "./dom.js";
import { count, duration } from "./format.js";
import { trackNote } from "./frame.js";
import { SECTION_KEYS } from "./keys.js";
import { clean } from "./paint.js";
import { dragLabel } from "./pointer.js";

/** Builds the elements inside `root` and returns them by name. */
export function build(timeline, root) {
  const parts = { root };
  root.classList.add("tv-root");
  root.tabIndex = 0;
  root.setAttribute("role", "application");
  root.setAttribute("aria-label", "Timeline. Press question mark for the list of keys.");
  root.dataset.lmSuppressShortcuts = "true";

  parts.search = element("input", {
    type: "search", class: "tv-search", placeholder: "search names  ( / )", "aria-label": "search names", spellcheck: "false",
    oninput: () => timeline.searchSoon(parts.search.value),
    onkeydown: (event) => {
      if (event.key === "Enter") timeline.stepMatch(!event.shiftKey, true);
      if (event.key === "Escape") {
        timeline.search("");
        root.focus({ preventScroll: true });
      }
    },
  });
  parts.matches = element("span", { class: "tv-matches", "aria-live": "polite" });
  parts.color = element(
    "select",
    { class: "tv-select", "aria-label": "colour by", title: "colour by (K)", tabindex: "-1", onchange: () => timeline.setColorBy(parts.color.value) },
    element("option", { value: "name" }, "colour: name"),
    element("option", { value: "kind" }, "colour: kind"),
  );
  parts.menu = element("div", { class: "tv-menu", hidden: true });
  parts.toolbar = element(
    "div",
    { class: "tv-toolbar" },
    element("span", { class: "tv-group" },
      button("−", "zoom out (S)", () => timeline.zoomBy(1.6)),
      button("+", "zoom in (W)", () => timeline.zoomBy(1 / 1.6)),
      button("fit", "fit the selection, then everything (F)", () => timeline.fit())),
    element("span", { class: "tv-group" },
      parts.search,
      button("‹", "previous match (Shift+N)", () => timeline.stepMatch(false)),
      button("›", "next match (N)", () => timeline.stepMatch(true)),
      parts.matches),
    element("span", { class: "tv-spring" }),
    parts.color,
    button("tracks", "choose, collapse and order tracks", () => toggleMenu(timeline)),
    button("png", "save the picture (E)", () => timeline.savePicture()),
    button("?", "keys and mouse (?)", () => timeline.toggleHelp()),
  );

  parts.minimap = element("canvas", { class: "tv-minimap", "aria-hidden": "true" });
  parts.ruler = element("canvas", { class: "tv-ruler", "aria-hidden": "true" });
  parts.lanes = element("canvas", { class: "tv-lanes", "aria-hidden": "true" });
  parts.labels = element("div", { class: "tv-labels" });
  parts.splitter = element("div", { class: "tv-splitter", title: "drag to resize the labels" });
  parts.stage = element("div", { class: "tv-stage" }, parts.labels, parts.lanes);
  parts.tall = element("div", { class: "tv-tall" }, parts.stage);
  parts.scroll = element("div", { class: "tv-scroll" }, parts.tall);
  parts.corner = element("div", { class: "tv-corner" }, ...jumps(timeline));
  parts.tooltip = element("div", { class: "tv-tooltip", role: "tooltip", hidden: true });
  parts.help = element("div", { class: "tv-help", role: "dialog", "aria-label": "keys and mouse", hidden: true });
  parts.panel = element("div", { class: "tv-panel", hidden: true });
  parts.status = element("div", { class: "tv-status" });
  parts.announce = element("div", { class: "tv-announce", "aria-live": "polite" });
  root.replaceChildren(
    parts.toolbar,
    parts.menu,
    element("div", { class: "tv-top" }, parts.corner, element("div", { class: "tv-axis" }, parts.minimap, parts.ruler)),
    element("div", { class: "tv-body" }, parts.scroll, parts.splitter, parts.tooltip, parts.help),
    parts.panel,
    parts.status,
    parts.announce,
  );
  parts.splitter.addEventListener("pointerdown", (event) => {
    const from = timeline.labelWidth - event.clientX;
    const move = (e) => timeline.setLabelWidth(from + e.clientX);
    const end = () => {
      window.removeEventListener("pointermove", move);
      window.removeEventListener("pointerup", end);
    };
    window.addEventListener("pointermove", move);
    window.addEventListener("pointerup", end);
    event.preventDefault();
  });
  return parts;
}

/** Buttons that lead to the sections, however far down they are. */
function jumps(timeline) {
  const sections = timeline.rows.rows.filter((row) => row.type === "section" && row.section !== "pinned");
  if (sections.length < 2) return [];
  return sections.map((row) =>
    button(row.title[0], `go to this section (${SECTION_KEYS.indexOf(row.section) + 1})`, () => timeline.jumpTo(row.section), { class: `tv-jump tv-${row.section}` }),
  );
}

/** The labels of the rows in sight. */
export function labels(timeline, visible) {
  const { parts } = timeline;
  const out = [];
  const seen = new Set();
  for (const row of visible) {
    const style = { top: `${row.y}px`, height: `${row.height}px` };
    if (row.type === "section") {
      const title = row.hidden ? `${row.title[0]} · ${row.hidden} hidden` : row.title[0];
      out.push(element("div", { class: `tv-label tv-section tv-${row.section}`, style }, title));
    } else if (row.type === "group") {
      out.push(
        element(
          "div",
          { class: `tv-label tv-grouplabel tv-in-${row.section}`, style, title: clean(row.group) },
          button(row.folded ? "▸" : "▾", row.folded ? "unfold the group (O)" : "fold the group (O)", () => timeline.fold(row.id), { class: "tv-caret" }),
          element("span", { class: "tv-text" }, clean(row.group || "other")),
          row.folded ? element("span", { class: "tv-note" }, `${row.size} tracks`) : null,
        ),
      );
    } else if (row.type === "lane") {
      const key = `${row.track.id}/${row.pinned}`;
      if (row.role !== "spans" && row.lanes > 1) {
        out.push(element("div", { class: "tv-label tv-role", style }, { instants: "events", annotations: "ranges", modeled: "modeled" }[row.role]));
      }
      if (seen.has(key)) continue;
      seen.add(key);
      out.push(trackLabel(timeline, row));
    } else if (row.type === "counter") {
      out.push(
        element("div", { class: "tv-label tv-track tv-in-counter", style, title: clean(`${row.counter.name} (${row.counter.label})`) },
          element("div", { class: "tv-line" }, element("span", { class: "tv-text" }, clean(row.counter.name))),
          element("div", { class: "tv-note" }, clean(row.counter.label))),
      );
    } else if (row.type === "aggregate") {
      out.push(
        element("div", { class: "tv-label tv-track tv-in-aggregate", style, title: clean(`${row.record.name} · ${row.record.track}`) },
          element("div", { class: "tv-line" }, element("span", { class: `tv-dot tv-${row.record.domain}` }), element("span", { class: "tv-text" }, clean(row.record.name || "(no name)")))),
      );
    }
  }
  parts.labels.firstChild?.remove();
  parts.labels.append(element("div", { class: "tv-shift" }, ...out));
}

function trackLabel(timeline, row) {
  const { track } = row;
  const first = timeline.rows.laneRows.find((other) => other.track === track && other.pinned === row.pinned);
  const last = timeline.rows.laneRows.findLast((other) => other.track === track && other.pinned === row.pinned);
  const height = last.y + last.height - first.y;
  const pinned = timeline.rows.layout.pinned.includes(track.id);
  const note = trackNote(track, timeline.length);
  const many = track.lanes.length > 1;
  const label = element(
    "div",
    {
      class: `tv-label tv-track tv-in-${track.section}${timeline.cursor?.track === track ? " tv-cursor" : ""}`,
      style: { top: `${first.y}px`, height: `${height}px` },
      title: `${clean(track.label)}\n${note}`,
      "data-track": track.id,
    },
    element(
      "div",
      { class: "tv-line" },
      many
        ? button(row.collapsed ? "▸" : "▾", row.collapsed ? "expand (C)" : "collapse (C)", () => timeline.toggleCollapsed(track), { class: "tv-caret" })
        : element("span", { class: "tv-caret" }),
      element("span", { class: "tv-text" }, clean(track.label)),
      element(
        "span",
        { class: "tv-tools" },
        button(pinned ? "●" : "○", pinned ? "unpin (P)" : "pin to the top (P)", () => timeline.togglePinned(track)),
        button("×", "hide (H)", () => timeline.hideTrack(track)),
      ),
    ),
    height >= 32 ? element("div", { class: "tv-note" }, row.collapsed && many ? `${track.lanes.length} lanes collapsed` : note) : null,
  );
  dragLabel(timeline, label, track);
  return label;
}

function toggleMenu(timeline) {
  const { menu } = timeline.parts;
  menu.hidden = !menu.hidden;
  if (!menu.hidden) fillMenu(timeline);
}

export function fillMenu(timeline, filter = "") {
  const { menu } = timeline.parts;
  const { layout, tracks } = timeline.rows;
  const list = element("div", { class: "tv-list" });
  const fill = (text) => {
    const wanted = text.toLowerCase();
    const some = tracks.filter((track) => `${track.label} ${track.group}`.toLowerCase().includes(wanted)).slice(0, 400);
    list.replaceChildren(
      ...some.map((track) =>
        element(
          "label",
          {},
          element("input", { type: "checkbox", checked: !layout.hidden.includes(track.id), onchange: () => timeline.hideTrack(track) }),
          element("span", { class: `tv-dot tv-${track.section}` }),
          ` ${clean(track.label)}`,
          element("span", { class: "tv-note" }, ` ${clean(track.group)}`),
        ),
      ),
    );
  };
  fill(filter);
  menu.replaceChildren(
    element("div", { class: "tv-group" },
      element("input", { type: "search", placeholder: "filter tracks", "aria-label": "filter tracks", oninput: (event) => fill(event.target.value) }),
      button("show all", "show all tracks (Shift+H)", () => timeline.showAll()),
      button("collapse all", "collapse all tracks (Shift+C)", () => timeline.collapseAll(true)),
      button("expand all", "expand all tracks", () => timeline.collapseAll(false)),
      button("reset", "forget the arrangement", () => timeline.resetLayout()),
      button("×", "close", () => (menu.hidden = true))),
    list,
  );
}

export function status(timeline) {
  const { info, rows } = timeline;
  const sight = Math.max(0, Math.min(timeline.t1, timeline.length) - Math.max(timeline.t0, 0));
  const words = [`${duration(sight)} in sight of ${duration(timeline.length)}`, `${count(info.events)} events`, `${count(rows.tracks.length)} tracks`];
  for (const note of [info.note, info.left_out]) if (note) words.push(note);
  const children = [element("span", {}, words.join(" · "))];
  if (info.synthetic) children.unshift(element("span", { class: "tv-badge tv-synthetic" }, "SYNTHETIC DATA"));
  if (timeline.trouble) children.push(element("span", { class: "tv-trouble" }, timeline.trouble));
  timeline.parts.status.replaceChildren(...children);
}
