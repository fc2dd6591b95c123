// @ts-check
// Made from torchtrt_viz/scene/query.py, which says how. Do not edit.

/** @typedef {"text" | "id" | "choice" | "number" | "time"} Type */
/** @typedef {{type: Type, meaning: string, choices: string[]}} Field */
/** What a term of a search may ask for. @type {Record<string, Field>} */
export const FIELDS = {
  name: { type: "text", meaning: "name of the event", choices: [] },
  kind: { type: "choice", meaning: "what sort of work it is", choices: ["method", "operator", "annotation", "step", "runtime", "kernel", "memcpy", "memset", "communication", "delegate", "phase", "layer", "memory", "python", "other"] },
  domain: { type: "choice", meaning: "where the time was spent", choices: ["host", "gpu"] },
  timing: { type: "choice", meaning: "how its time is known", choices: ["measured", "aggregate", "modeled", "implausible", "ticks"] },
  event: { type: "choice", meaning: "with a duration, or without", choices: ["span", "instant"] },
  dur: { type: "time", meaning: "duration", choices: [] },
  self: { type: "time", meaning: "duration without what is nested in it", choices: [] },
  start: { type: "time", meaning: "start, from the trace's start", choices: [] },
  end: { type: "time", meaning: "end, from the trace's start", choices: [] },
  track: { type: "text", meaning: "label of its track", choices: [] },
  process: { type: "text", meaning: "name and number of its process", choices: [] },
  thread: { type: "id", meaning: "thread, as its producer numbered it", choices: [] },
  stream: { type: "id", meaning: "stream of the device", choices: [] },
  device: { type: "number", meaning: "number of the device", choices: [] },
  rank: { type: "number", meaning: "rank of the process", choices: [] },
  iteration: { type: "number", meaning: "run within the capture", choices: [] },
  depth: { type: "number", meaning: "nesting depth, 0 outermost", choices: [] },
  correlation: { type: "number", meaning: "id that links a launch with its device work", choices: [] },
  run: { type: "text", meaning: "engine, delegate or method instance", choices: [] },
  args: { type: "text", meaning: "an argument: args.KEY, or any of them", choices: [] },
};
/** In ns. @type {Record<string, number>} */
export const UNITS = { "ns": 1, "us": 1000, "µs": 1000, "μs": 1000, "ms": 1000000, "s": 1000000000 };
