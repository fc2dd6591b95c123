// @ts-check
// What crosses between Python and the browser: columns by name, and requests over a widget's messages.

import { MESSAGES } from "./schema.js";
import { Signal } from "./signal.js";

/** @import { Model } from "./types.js" */

const TYPES = {
  uint8: Uint8Array,
  uint16: Uint16Array,
  uint32: Uint32Array,
  int32: Int32Array,
  float32: Float32Array,
  float64: Float64Array,
};
const ALIGNMENT = 8; // bytes, of every column in its buffer

/** @typedef {typeof TYPES} Types */
/** @typedef {{name: string, dtype: string, offset: number, length: number, encoding?: string}} Column */
/**
 * The header of one buffer.
 * @typedef {{message: string, columns: Column[]}} Frame
 */
/** @typedef {ArrayBufferView<ArrayBuffer> | ArrayBuffer} Bytes */
/**
 * @template {keyof typeof MESSAGES} M
 * @typedef {{[C in keyof (typeof MESSAGES)[M]]:
 *   (typeof MESSAGES)[M][C] extends keyof Types ? InstanceType<Types[(typeof MESSAGES)[M][C]]> :
 *   (typeof MESSAGES)[M][C] extends `${infer D extends keyof Types}?` ? InstanceType<Types[D]> | null : never}} Columns
 */

/**
 * The columns of a message: views of the buffer, not copies, unless the buffer itself lies at an odd place.
 * @template {keyof typeof MESSAGES} M
 * @param {M} message
 * @param {Frame | undefined} frame
 * @param {Bytes | undefined} buffer
 * @returns {Columns<M>}
 */
export function columnsOf(message, frame, buffer) {
  if (!frame || !buffer) throw new Error(`the message "${message}" came without its columns`);
  if (frame.message !== message) throw new Error(`expected the message "${message}", got "${frame.message}"`);
  /** @type {Record<string, string>} */
  const schema = MESSAGES[message];
  /** @type {Record<string, unknown>} */
  const out = {};
  const bytes = aligned(buffer);
  for (const column of frame.columns) {
    const { name, dtype } = column;
    if (!Object.hasOwn(schema, name)) throw new Error(`unknown column "${name}" in the message "${message}"`);
    if (schema[name].replace("?", "") !== dtype) {
      throw new Error(`the column "${name}" of the message "${message}" should be ${schema[name]} and is ${dtype}`);
    }
    const Type = TYPES[/** @type {keyof Types} */ (dtype)];
    const { encoding = "plain" } = column;
    if (encoding !== "plain" && encoding !== "planes" && encoding !== "running") {
      throw new Error(`unknown encoding "${encoding}" of the column "${name}" of the message "${message}"`);
    }
    const size = encoding === "plain" ? column.length * Type.BYTES_PER_ELEMENT : 1 + bytes[column.offset] * column.length;
    if (!(column.offset + size <= bytes.length)) throw new Error(`the message "${message}" ends within its column "${name}"`);
    out[name] =
      encoding === "plain"
        ? new Type(bytes.buffer, bytes.byteOffset + column.offset, column.length)
        : fromPlanes(bytes.subarray(column.offset, column.offset + size), column.length, Type, encoding === "running");
  }
  for (const [name, dtype] of Object.entries(schema)) {
    if (Object.hasOwn(out, name)) continue;
    if (!dtype.endsWith("?")) throw new Error(`the message "${message}" lacks its column "${name}"`);
    out[name] = null;
  }
  return /** @type {Columns<M>} */ (out);
}

/**
 * The bytes of a buffer where typed arrays can look at them: a websocket's message may put them anywhere.
 * @param {Bytes} buffer
 */
function aligned(buffer) {
  const bytes = ArrayBuffer.isView(buffer) ? new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength) : new Uint8Array(buffer);
  return bytes.byteOffset % ALIGNMENT ? bytes.slice() : bytes;
}

/**
 * Whole numbers from byte planes, the sign in the lowest bit; `running` adds them up.
 * @param {Uint8Array} bytes
 * @param {number} length
 * @param {Types[keyof Types]} Type
 * @param {boolean} running
 */
function fromPlanes(bytes, length, Type, running) {
  const planes = bytes[0];
  const out = new Type(length);
  let sum = 0;
  for (let i = 0; i < length; i++) {
    const low = bytes[1 + i];
    let high = 0;
    for (let p = planes - 1; p > 0; p--) high = high * 256 + bytes[1 + p * length + i];
    const half = high * 128 + (low >> 1); // without the sign, so that 53 bits stay exact
    const value = low & 1 ? -half - 1 : half;
    sum = running ? sum + value : value;
    out[i] = sum;
  }
  return out;
}

/** @typedef {{request: object, resolve: (answer: any) => void, reject: (error: unknown) => void}} Asked */
/**
 * One answer, or several to what was asked at one moment; those with a frame have a buffer each.
 * @typedef {{reply?: string, answers?: Answer[]} & Answer} Reply
 * @typedef {{error?: string, frame?: Frame}} Answer
 */

/**
 * Requests over a widget's custom messages.
 *
 * With `batches`, what is asked at one moment travels as one message and is answered by one: the notebook's way
 * to the kernel and back takes many times longer than the kernel takes to answer.
 */
export class Wire {
  /** Bytes of the last answer's columns. */
  traffic = 0;
  /** Nobody can be asked any more. */
  lost = new Signal();
  #batches;
  /** @type {Asked[]} */
  #queue = [];
  /** Per message what was asked, in order. @type {Map<string, Asked[]>} */
  #waiting = new Map();
  #next = 1;
  #prefix = Math.random().toString(36).slice(2, 10); // several views of one widget hear every answer
  #listen;
  #probe = () => this.#send([]);

  /** @param {Model} model */
  constructor(model, { batches = false } = {}) {
    this.model = model;
    this.#batches = batches;
    model.on("comm_live_update", this.#probe); // a notebook says so when its kernel was restarted, or has gone
    this.#listen = (/** @type {Reply | null} */ message, /** @type {Bytes[] | undefined} */ buffers) => this.#hear(message, buffers ?? []);
    model.on("msg:custom", this.#listen);
  }

  /**
   * Asks; the answer is what Python sent, and `buffer` holds the columns that its `frame` describes.
   * @param {string} op
   * @returns {Promise<any>}
   */
  ask(op, content = {}) {
    return new Promise((resolve, reject) => {
      this.#queue.push({ request: { ...content, op }, resolve, reject });
      if (!this.#batches) this.#sendQueue();
      else if (this.#queue.length === 1) queueMicrotask(() => this.#sendQueue());
    });
  }

  #sendQueue() {
    const asked = this.#queue.splice(0);
    if (asked.length) this.#send(asked);
  }

  /** @param {Asked[]} asked nothing: only to see whether it can be sent */
  #send(asked) {
    const id = `${this.#prefix}-${this.#next++}`;
    this.#waiting.set(id, asked);
    const requests = asked.map((one) => one.request);
    try {
      this.model.send(requests.length === 1 ? { ...requests[0], id } : { op: "batch", requests, id });
    } catch (error) {
      this.#waiting.delete(id);
      for (const { reject } of asked) reject(error);
      this.lost.tell();
    }
  }

  /**
   * @param {Reply | null} message
   * @param {Bytes[]} buffers
   */
  #hear(message, buffers) {
    const id = message?.reply ?? "";
    const asked = this.#waiting.get(id);
    if (!message || !asked) return;
    this.#waiting.delete(id);
    this.traffic = buffers.reduce((sum, buffer) => sum + buffer.byteLength, 0);
    const answers = message.answers ?? [message];
    let at = 0;
    asked.forEach(({ resolve, reject }, i) => {
      const answer = answers[i];
      const buffer = answer.frame ? buffers[at++] : undefined;
      if (answer.error) reject(new Error(answer.error));
      else resolve({ ...answer, buffer });
    });
  }

  close() {
    this.model.off("msg:custom", this.#listen);
    this.model.off("comm_live_update", this.#probe);
    const left = [...this.#queue.splice(0), ...[...this.#waiting.values()].flat()];
    this.#waiting.clear();
    for (const { reject } of left) reject(new Error("closed"));
  }
}
