// @ts-check
// Mouse, pen and trackpad on the lanes, the ruler, the overview and the labels.

/** @import { Parts } from "./chrome.js" */
/** @import { Cursor } from "./cursor.js" */
/** @import { Hover } from "./hover.js" */
/** @import { Measure } from "./measure.js" */
/** @import { Pane } from "./pane.js" */
/** @import { Rows } from "./rows.js" */
/** @import { Selection } from "./selection.js" */
/** @import { Track } from "./types.js" */
/** @import { Viewport } from "./viewport.js" */
/** @typedef {{x: number, y: number}} Point */

const SLACK = 3; // px beside a span that still count as on it
const CLICK = 4; // a pointer that moved less than this many pixels has clicked

/**
 * Calls `move` while a button is held and `end` when it is let go.
 * @param {PointerEvent} event
 * @param {(dx: number, event: PointerEvent) => void} move
 * @param {(moved: boolean, event: PointerEvent) => void} end
 */
function drag(event, move, end) {
  const target = /** @type {HTMLElement} */ (event.currentTarget);
  const x = event.clientX;
  const y = event.clientY;
  let moved = false;
  target.setPointerCapture(event.pointerId);
  /** @param {PointerEvent} e */
  const onMove = (e) => {
    moved ||= Math.hypot(e.clientX - x, e.clientY - y) >= CLICK;
    if (moved) move(e.clientX - x, e);
  };
  /** @param {PointerEvent} e */
  const onEnd = (e) => {
    target.removeEventListener("pointermove", onMove);
    target.removeEventListener("pointerup", onEnd);
    target.removeEventListener("pointercancel", onEnd);
    end(moved, e);
  };
  target.addEventListener("pointermove", onMove);
  target.addEventListener("pointerup", onEnd);
  target.addEventListener("pointercancel", onEnd);
}

/**
 * @param {Element} element
 * @param {MouseEvent} event
 */
function within(element, event) {
  const rect = element.getBoundingClientRect();
  return { x: event.clientX - rect.left, y: event.clientY - rect.top, width: rect.width };
}

/**
 * @param {Pick<Parts, "lanes" | "ruler" | "minimap" | "root">} parts
 * @param {{viewport: Viewport, pane: Pane, cursor: Cursor, hover: Hover, selection: Selection, measure: Measure}} modules
 */
export function listen({ lanes, ruler, minimap, root }, { viewport, pane, cursor, hover, selection, measure }) {
  /** @param {Point} at */
  const clickAt = async (at, zoom = false) => {
    const row = pane.rowAt(at.y);
    if (row?.type === "lane") {
      cursor.set(row);
      const place = await selection.selectAt(row.lane, viewport.timeAt(at.x), viewport.timeOf(SLACK));
      if (place && zoom) viewport.fit(selection.extent);
    } else if (!zoom) selection.select(null);
  };

  /**
   * @param {Point} from
   * @param {Point} to
   * @param {boolean} done
   */
  const dragBox = (from, to, done) => {
    const [t0, t1] = [viewport.timeAt(from.x), viewport.timeAt(to.x)].sort((a, b) => a - b);
    hover.clear();
    selection.setBox(t0, t1, pane.lanesBetween(from.y, to.y), done);
  };

  root.addEventListener(
    "wheel",
    (event) => {
      const over = within(lanes, event);
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        viewport.zoomBy(Math.exp(Math.max(-1, Math.min(1, event.deltaY * (event.deltaMode ? 0.06 : 0.004)))), over.x / over.width);
      } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey) {
        event.preventDefault();
        viewport.panBy((event.shiftKey && !event.deltaX ? event.deltaY : event.deltaX) / over.width);
      }
    },
    { passive: false },
  );

  lanes.addEventListener("pointermove", (event) => hover.moveTo(within(lanes, event)));
  lanes.addEventListener("pointerleave", () => hover.moveTo(null));
  lanes.addEventListener("pointerdown", (event) => {
    root.focus({ preventScroll: true });
    const begin = within(lanes, event);
    if (event.button === 1 || (event.button === 0 && (event.shiftKey || event.pointerType === "touch"))) {
      event.preventDefault();
      const from = viewport.range();
      lanes.classList.add("tv-grabbing");
      drag(
        event,
        (dx) => viewport.setRange(from.t0 - (dx / begin.width) * (from.t1 - from.t0), from.t1 - (dx / begin.width) * (from.t1 - from.t0)),
        (moved, e) => {
          lanes.classList.remove("tv-grabbing");
          if (!moved && e.type === "pointerup") clickAt(begin);
        },
      );
    } else if (event.button === 0) {
      drag(
        event,
        (_, e) => dragBox(begin, within(lanes, e), false),
        (moved, e) => {
          if (moved) dragBox(begin, within(lanes, e), true);
          else if (e.type === "pointerup") clickAt(begin);
        },
      );
    }
  });
  lanes.addEventListener("dblclick", (event) => {
    event.preventDefault();
    clickAt(within(lanes, event), true);
  });

  ruler.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    root.focus({ preventScroll: true });
    const begin = within(ruler, event);
    drag(
      event,
      (dx) => measure.set(viewport.timeAt(begin.x), viewport.timeAt(begin.x + dx)),
      (moved) => moved || measure.clear(),
    );
  });
  ruler.addEventListener("pointermove", (event) => hover.setPointer(within(ruler, event).x));
  ruler.addEventListener("pointerleave", () => hover.setPointer(null));

  minimap.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    root.focus({ preventScroll: true });
    const begin = within(minimap, event);
    const { length } = viewport;
    const from = viewport.range();
    const t = (begin.x / begin.width) * length;
    const slack = (6 / begin.width) * length;
    /** @param {number} edge */
    const near = (edge) => Math.abs(t - edge) < slack;
    const inside = t > from.t0 && t < from.t1 && from.t1 - from.t0 < length * 0.98;
    const grip = near(from.t0) ? "t0" : near(from.t1) ? "t1" : inside ? "window" : "new";
    drag(
      event,
      (dx) => {
        const dt = (dx / begin.width) * length;
        if (grip === "window") viewport.setRange(from.t0 + dt, from.t1 + dt);
        else if (grip === "new") viewport.setRange(Math.min(t, t + dt), Math.max(t, t + dt));
        else viewport.setRange(grip === "t0" ? from.t0 + dt : from.t0, grip === "t1" ? from.t1 + dt : from.t1);
      },
      (moved) => {
        if (!moved) viewport.setRange(t - (from.t1 - from.t0) / 2, t + (from.t1 - from.t0) / 2);
      },
    );
  });
}

/**
 * Lets a track be dragged by its label.
 * @param {{label: HTMLElement, root: HTMLElement, lanes: HTMLElement}} parts
 * @param {Track} track
 * @param {{rows: Rows, pane: Pane, cursor: Cursor}} modules
 */
export function dragLabel({ label, root, lanes }, track, { rows, pane, cursor }) {
  label.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || /** @type {Element} */ (event.target).tagName === "BUTTON") return;
    root.focus({ preventScroll: true });
    drag(
      event,
      () => label.classList.add("tv-dragged"),
      (moved, e) => {
        label.classList.remove("tv-dragged");
        if (!moved) return cursor.setTrack(track);
        const over = pane.rowAt(within(lanes, e).y);
        if (over?.type === "lane" && over.track !== track && over.section === track.section) rows.moveBefore(track, over.track);
      },
    );
  });
}
