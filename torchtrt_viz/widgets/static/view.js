// What is known about a stretch of time: per lane its spans, or one cell per pixel column.

/** One answer of a source. Times are ns from the origin of the trace. */
export class View {
  constructor(t0, t1, width) {
    this.t0 = t0;
    this.t1 = t1;
    this.width = width; // pixel columns
    this.lanes = new Map(); // lane -> {mode: 0|1|2, from, to, column}
    // Spans, lane after lane; their start is `base + start[i]`.
    this.base = 0;
    this.start = this.dur = this.row = this.name = this.mark = null;
    this.share = null; // of a block that stands for several spans: 0..255 of it is busy
    // Cells of the lanes in mode 2, `width` per lane.
    this.busy = this.cellName = this.cellMark = null;
    this.names = null; // cellName points into it; null: cellName holds the names' own numbers
    this.marked = false;
    this.atlas = null; // the cells as an image, made when first drawn
  }

  nameOfCell(cell) {
    const name = this.cellName[cell];
    return this.names === null ? name : (this.names[name] ?? -1);
  }

  covers(t0, t1, lanes) {
    return this.t0 <= t0 && this.t1 >= t1 && lanes.every((lane) => this.lanes.has(lane));
  }

  /** The span at a point, or the cell there; null when nothing is. `slack` is a time. */
  at(lane, t, slack) {
    const known = this.lanes.get(lane);
    if (!known || known.mode === 0) return null;
    let best = null;
    let bestDistance = slack;
    for (let i = known.from; i < known.to; i++) {
      const start = this.base + this.start[i];
      const end = start + this.dur[i];
      const distance = t < start ? start - t : t > end ? t - end : 0;
      if (distance <= bestDistance) {
        bestDistance = distance;
        best = i;
        if (distance === 0) break;
      }
    }
    if (best !== null && (known.mode === 1 || bestDistance === 0)) return { span: best };
    if (known.mode !== 2) return null;
    const x = Math.floor(((t - this.t0) / (this.t1 - this.t0)) * this.width);
    if (x < 0 || x >= this.width) return null;
    const cell = known.column * this.width + x;
    return this.busy[cell] > 0 ? { cell } : null;
  }
}
