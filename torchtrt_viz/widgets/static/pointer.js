// Mouse, pen and trackpad on the lanes, the ruler, the overview and the labels.

const CLICK = 4; // a pointer that moved less than this many pixels has clicked

/** Calls `move(dx, event)` while a button is held and `end(moved, event)` when it is let go. */
function drag(event, move, end) {
  const target = event.currentTarget;
  const x = event.clientX;
  const y = event.clientY;
  let moved = false;
  target.setPointerCapture(event.pointerId);
  const onMove = (e) => {
    moved ||= Math.hypot(e.clientX - x, e.clientY - y) >= CLICK;
    if (moved) move(e.clientX - x, e);
  };
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

function within(element, event) {
  const rect = element.getBoundingClientRect();
  return { x: event.clientX - rect.left, y: event.clientY - rect.top, width: rect.width };
}

export function listen(timeline) {
  const { lanes, ruler, minimap, root } = timeline.parts;

  root.addEventListener(
    "wheel",
    (event) => {
      const over = within(lanes, event);
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        timeline.zoomBy(Math.exp(Math.max(-1, Math.min(1, event.deltaY * (event.deltaMode ? 0.06 : 0.004)))), over.x / over.width);
      } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey) {
        event.preventDefault();
        timeline.panBy((event.shiftKey && !event.deltaX ? event.deltaY : event.deltaX) / over.width);
      }
    },
    { passive: false },
  );

  lanes.addEventListener("pointermove", (event) => timeline.hoverAt(within(lanes, event), event));
  lanes.addEventListener("pointerleave", () => timeline.hoverAt(null));
  lanes.addEventListener("pointerdown", (event) => {
    root.focus({ preventScroll: true });
    const begin = within(lanes, event);
    if (event.button === 1 || (event.button === 0 && (event.shiftKey || event.pointerType === "touch"))) {
      event.preventDefault();
      const from = timeline.range();
      lanes.classList.add("tv-grabbing");
      drag(
        event,
        (dx) => timeline.setRange(from.t0 - (dx / begin.width) * (from.t1 - from.t0), from.t1 - (dx / begin.width) * (from.t1 - from.t0)),
        (moved, e) => {
          lanes.classList.remove("tv-grabbing");
          if (!moved && e.type === "pointerup") timeline.clickAt(begin);
        },
      );
    } else if (event.button === 0) {
      drag(
        event,
        (dx, e) => timeline.dragBox(begin, within(lanes, e), false),
        (moved, e) => {
          if (moved) timeline.dragBox(begin, within(lanes, e), true);
          else if (e.type === "pointerup") timeline.clickAt(begin);
        },
      );
    }
  });
  lanes.addEventListener("dblclick", (event) => {
    event.preventDefault();
    timeline.clickAt(within(lanes, event), true);
  });

  ruler.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    root.focus({ preventScroll: true });
    const begin = within(ruler, event);
    drag(
      event,
      (dx) => timeline.setMeasure(timeline.timeAt(begin.x), timeline.timeAt(begin.x + dx)),
      (moved) => moved || timeline.setMeasure(null),
    );
  });
  ruler.addEventListener("pointermove", (event) => timeline.setPointer(within(ruler, event).x));
  ruler.addEventListener("pointerleave", () => timeline.setPointer(null));

  minimap.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    root.focus({ preventScroll: true });
    const begin = within(minimap, event);
    const length = timeline.length;
    const from = timeline.range();
    const t = (begin.x / begin.width) * length;
    const slack = (6 / begin.width) * length;
    const near = (edge) => Math.abs(t - edge) < slack;
    const inside = t > from.t0 && t < from.t1 && from.t1 - from.t0 < length * 0.98;
    const grip = near(from.t0) ? "t0" : near(from.t1) ? "t1" : inside ? "window" : "new";
    drag(
      event,
      (dx) => {
        const dt = (dx / begin.width) * length;
        if (grip === "window") timeline.setRange(from.t0 + dt, from.t1 + dt);
        else if (grip === "new") timeline.setRange(Math.min(t, t + dt), Math.max(t, t + dt));
        else timeline.setRange(grip === "t0" ? from.t0 + dt : from.t0, grip === "t1" ? from.t1 + dt : from.t1);
      },
      (moved) => {
        if (!moved) timeline.setRange(t - (from.t1 - from.t0) / 2, t + (from.t1 - from.t0) / 2);
      },
    );
  });
}

/** Lets a track be dragged by its label. */
export function dragLabel(timeline, label, track) {
  label.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || event.target.tagName === "BUTTON") return;
    timeline.parts.root.focus({ preventScroll: true });
    drag(
      event,
      () => label.classList.add("tv-dragged"),
      (moved, e) => {
        label.classList.remove("tv-dragged");
        if (!moved) return timeline.setCursorTrack(track);
        const over = timeline.rowAt(within(timeline.parts.lanes, e).y);
        if (over?.track && over.track !== track && over.section === track.section) timeline.moveTrackBefore(track, over.track);
      },
    );
  });
}
