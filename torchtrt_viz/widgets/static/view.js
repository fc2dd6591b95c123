// @ts-check
// What is known about a stretch of time: per lane its spans, or one cell per pixel column.

/**
 * What is known of a lane: nothing is there (0), its spans (1), or cells and the wide spans (2). Spans are those from
 * `from` to `to`, cells those of the row `column`.
 * @typedef {{mode: number, from: number, to: number, column: number}} Known
 */

/** One answer of a source. Times are ns from the origin of the trace. */
export class View {
  /** @type {Map<number, Known>} */
  lanes = new Map();
  // Spans, lane after lane; their start is `base + start[i]`.
  base = 0;
  /** @type {Float32Array | Float64Array} */
  start = new Float64Array();
  /** @type {Float32Array | Float64Array} */
  dur = new Float64Array();
  row = new Uint32Array();
  name = new Int32Array();
  mark = new Uint8Array();
  /** Of a block that stands for several spans: 0..255 of it is busy. @type {Uint8Array | null} */
  share = null;
  // Cells of the lanes in mode 2, `width` per lane.
  busy = new Uint8Array();
  /** @type {Int32Array | Uint16Array} */
  cellName = new Int32Array();
  cellMark = new Uint8Array();
  /** `cellName` points into it; null: `cellName` holds the names' own numbers. @type {Int32Array | null} */
  names = null;
  marked = false;
  /** Which marks it shows, in the count of who asked. */
  marks = 0;
  /** The cells as an image, made when first drawn. @type {{key: string, canvas: HTMLCanvasElement} | null} */
  atlas = null;

  /**
   * @param {number} t0
   * @param {number} t1
   * @param {number} width in pixel columns
   */
  constructor(t0, t1, width) {
    this.t0 = t0;
    this.t1 = t1;
    this.width = width;
  }

  /** @param {number} cell */
  nameOfCell(cell) {
    const name = this.cellName[cell];
    return this.names === null ? name : (this.names[name] ?? -1);
  }

  /**
   * @param {number} t0
   * @param {number} t1
   * @param {number[]} lanes
   */
  covers(t0, t1, lanes) {
    return this.t0 <= t0 && this.t1 >= t1 && lanes.every((lane) => this.lanes.has(lane));
  }

  /**
   * The span at a point, or the cell there; null when nothing is.
   * @param {number} lane
   * @param {number} t
   * @param {number} slack a time
   * @returns {{span: number} | {span?: undefined, cell: number} | null}
   */
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
