// A source that holds every event in the browser and asks its backing only for words about single events.

import { LocalIndex } from "./local.js";
import { KernelSource, RemoteSource } from "./remote.js";
import { Wire, columnsOf } from "./wire.js";

/** Answers everything that needs only the index; `base` is the class that knows details and names. */
export const holdingAll = (Base) =>
  class extends Base {
    hold(columns, drawnLanes) {
      this.index = new LocalIndex(columns);
      this.drawnLanes = drawnLanes; // without covers: each event is on exactly one of them
    }

    get whole() {
      return true;
    }

    view(request) {
      return this.index.view(request, Math.max(256, request.width));
    }

    named(place) {
      if (place) {
        place.name = this.nameText(place.nameId) ?? "";
        place.kind = this.kindOf(place);
      }
      return place;
    }

    kindOf(place) {
      return this.info.kinds[this.nameKind[place.nameId] ?? this.info.kinds.length - 1];
    }

    hit(lane, t, tolerance) {
      return this.named(this.index.hit(lane, t, tolerance));
    }

    neighbour(place, step) {
      return this.named(this.index.neighbour(place, step));
    }

    locate(row) {
      return this.named(this.index.locate(row, this.drawnLanes));
    }

    search(text) {
      this.index.markRows = null;
      this.index.markNames = null;
      if (!text) return 0;
      this.folded ??= Array.from(this.texts, (name) => name.toLowerCase());
      const wanted = text.toLowerCase();
      const marks = new Uint8Array(this.folded.length);
      for (let name = 0; name < marks.length; name++) marks[name] = this.folded[name].includes(wanted) ? 1 : 0;
      this.index.markNames = marks;
      return this.index.countMarked(this.drawnLanes);
    }

    /** The next marked event, around the end when there is none before it. */
    step(lanes, t, lane, forward) {
      if (!this.index.marking) return null;
      const found = this.index.step(lanes, t, lane, forward) ?? this.index.step(lanes, forward ? -1 : Infinity, -1, forward);
      return this.named(found);
    }

    async totals(t0, t1, lanes) {
      const answer = this.index.totals(t0, t1, lanes);
      answer.rows = answer.rows.map(([name, events, inside]) => [this.nameText(name) ?? "", events, inside]);
      return answer;
    }
  };

class WholeSource extends holdingAll(KernelSource) {
  constructor(wire, answer, columns) {
    super(wire, answer, columns);
    const { start, dur, name, row, lane_begin: laneBegin, lane_end: laneEnd } = columns;
    this.hold(
      { start, dur, name, row, laneBegin, laneEnd },
      answer.tracks.flatMap((track) => track.lanes),
    );
  }

  /** Python marked something (find, highlight): take its marks over. */
  async refreshMarks() {
    const answer = await this.wire.ask("marks");
    const { names, rows } = columnsOf("marks", answer.frame, answer.buffer);
    this.index.markNames = names;
    this.index.markRows = rows;
  }
}

/** Opens the source of a widget's model. */
export async function openSource(model) {
  const wire = new Wire(model, { batches: true });
  const answer = await wire.ask("open");
  const columns = columnsOf("open", answer.frame, answer.buffer);
  return answer.whole ? new WholeSource(wire, answer, columns) : new RemoteSource(wire, answer, columns);
}
