// @ts-check
// Which of the events that a page holds a search is for; torchtrt_viz/scene/matching.py answers for the kernel's.

import { pattern } from "./query.js";

/** @import { Term, Tree } from "./query.js" */
/** @import { Role, Track } from "./types.js" */
/** @typedef {Record<number, number> & {readonly length: number}} Numbers */

/**
 * What a page holds of its events, one value per event, and of their tracks. -1 is "none".
 * @typedef {object} Held
 * @property {string[]} texts names, by number
 * @property {string[]} kinds
 * @property {string[]} runs
 * @property {Numbers} name
 * @property {Uint8Array} nameKind
 * @property {Numbers} kind less that of the name
 * @property {Numbers} start
 * @property {Numbers} dur
 * @property {Numbers} covered
 * @property {Numbers} depth
 * @property {Numbers} iteration
 * @property {Numbers} correlation
 * @property {Numbers} run
 * @property {Numbers} row
 * @property {Numbers} laneBegin
 * @property {Numbers} laneEnd
 * @property {Record<string, Record<string, string>>} args by row
 */
/** @typedef {(at: number) => boolean} Test of the event at a position */
/** What is the same for all events of a lane. @typedef {{track: Track, role: Role}} Lane */

const NUMBER = /^\s*[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$/;

/** Whether a search looks at nothing but names. @param {Tree} tree @returns {boolean} */
export function byNameAlone(tree) {
  return tree.op === "term" ? tree.field === "name" : tree.of.every(byNameAlone);
}

/** One byte per name: 1 where a search by name alone finds it. @param {Tree} tree @param {string[]} names */
export function matchingNames(tree, names) {
  const test = joined(tree, (term) => {
    const one = textTest(term);
    return (at) => one(names[at]);
  });
  return Uint8Array.from(names, (_, at) => (test(at) ? 1 : 0));
}

/**
 * One byte per row: 1 where the search finds it.
 * @param {Tree} tree
 * @param {Held} held
 * @param {Track[]} tracks
 */
export function matchingRows(tree, held, tracks) {
  let most = -1;
  for (let i = 0; i < held.row.length; i++) most = Math.max(most, held.row[i]);
  const mask = new Uint8Array(most + 1);
  for (const track of tracks) {
    track.lanes.forEach((lane, at) => {
      const test = joined(tree, (term) => testOf(term, held, { track, role: track.roles[at] }));
      for (let i = held.laneBegin[lane]; i < held.laneEnd[lane]; i++) if (test(i)) mask[held.row[i]] = 1;
    });
  }
  return mask;
}

/**
 * @param {Tree} tree
 * @param {(term: Term) => Test} one
 * @returns {Test}
 */
function joined(tree, one) {
  if (tree.op === "term") return one(tree);
  const tests = tree.of.map((part) => joined(part, one));
  if (tree.op === "not") return (at) => !tests[0](at);
  if (tree.op === "and") return (at) => tests.every((test) => test(at));
  return (at) => tests.some((test) => test(at));
}

/**
 * @param {Term} term
 * @param {Held} held
 * @param {Lane} lane
 * @returns {Test}
 */
function testOf(term, held, { track, role }) {
  const { kinds, nameKind, name, start, dur } = held;
  const span = role !== "instants";
  const { field } = term;
  /** @param {string | null} text @returns {Test} */
  const always = (text) => {
    const answer = textTest(term)(text);
    return () => answer;
  };
  /** @param {(at: number) => number} value @param {boolean} [optional] -1 is none @returns {Test} */
  const number = (value, optional = false) => {
    const test = numberTest(term);
    const missing = term.rel === "!=";
    return optional ? (at) => (value(at) < 0 ? missing : test(value(at))) : (at) => test(value(at));
  };
  /** Of values that occur many times. @param {(string | null)[]} texts @param {(at: number) => number} code @returns {Test} */
  const category = (texts, code) => {
    const test = textTest(term);
    const answers = texts.map(test);
    const none = test(null);
    return (at) => answers[code(at)] ?? none;
  };
  if (field === "name") {
    const test = textTest(term);
    /** @type {boolean[]} */
    const answers = [];
    const none = test("");
    return (at) => (name[at] < 0 ? none : (answers[name[at]] ??= test(held.texts[name[at]] ?? "")));
  }
  if (field === "kind") return category(kinds.map((kind) => (kind === "event" ? null : kind)), (at) => (nameKind[name[at]] ?? 0) + held.kind[at]);
  if (field === "run") return category(held.runs, (at) => held.run[at]);
  if (field === "domain") return always(track.section);
  if (field === "event") return always(span ? "span" : "instant");
  if (field === "timing") return always(span ? (role === "modeled" || role === "implausible" ? role : "measured") : null);
  if (field === "track") return always(track.name);
  if (field === "process") return always(track.process);
  if (field === "thread") return always(track.thread);
  if (field === "stream") return always(track.stream);
  if (field === "device") return number(() => track.device, true);
  if (field === "rank") return number(() => track.rank, true);
  if (field === "iteration") return number((at) => held.iteration[at], true);
  if (field === "depth") return number((at) => held.depth[at], true);
  if (field === "correlation") return number((at) => held.correlation[at], true);
  if (field === "start") return number((at) => start[at]);
  if (field === "end") return number((at) => start[at] + dur[at]);
  if (field === "dur") return span ? number((at) => dur[at]) : () => term.rel === "!=";
  if (field === "self") return span ? number((at) => dur[at] - held.covered[at]) : () => term.rel === "!=";
  return argumentTest(term, held);
}

/** Of texts; null is one that is missing. @param {Term} term @returns {(text: string | null) => boolean} */
function textTest({ rel, values }) {
  const texts = values.map((value) => String(value).toLowerCase());
  const negative = rel === "!=" || rel === "!~";
  if (rel === "~" || rel === "!~") {
    const expression = pattern(String(values[0]));
    return (text) => (text !== null && expression.test(text)) !== negative;
  }
  if (rel === "contains") return (text) => text !== null && text.toLowerCase().includes(texts[0]);
  return (text) => (text !== null && texts.includes(text.toLowerCase())) !== negative;
}

/** @param {Term} term @returns {(number: number) => boolean} */
function numberTest({ rel, values }) {
  const [first, last] = values.map(Number);
  if (rel === "<") return (number) => number < first;
  if (rel === "<=") return (number) => number <= first;
  if (rel === ">") return (number) => number > first;
  if (rel === ">=") return (number) => number >= first;
  if (rel === "in") return (number) => number >= first && number <= last;
  return (number) => values.includes(number) !== (rel === "!=");
}

/** @param {Term} term @param {Held} held @returns {Test} */
function argumentTest(term, { args, row }) {
  const { key, rel } = term;
  const negative = rel === "!=" || rel === "!~";
  if (key) {
    const numbers = /[<>]/.test(rel) ? numberTest(term) : null;
    const texts = numbers ? null : textTest(term);
    return (at) => {
      const own = args[row[at]];
      if (!own || !Object.hasOwn(own, key)) return negative;
      const text = own[key];
      return numbers ? NUMBER.test(text) && numbers(Number(text)) : Boolean(texts?.(text));
    };
  }
  const positive = textTest({ ...term, rel: { "!=": "=", "!~": "~" }[rel] ?? rel });
  return (at) => Object.entries(args[row[at]] ?? {}).some(([name, value]) => positive(`${name}: ${value}`)) !== negative;
}
