// @ts-check
// The language of searches, as torchtrt_viz/scene/query.py describes and reads it: the same trees from the same texts.

import { FIELDS, UNITS } from "./fields.js";

/**
 * What joins terms, or a term. Times are ns; the ends of a range are both in `values`.
 * @typedef {{op: "and" | "or" | "not", of: Tree[]} | Term} Tree
 * @typedef {{op: "term", field: string, key: string, rel: string, values: (string | number)[]}} Term
 */

const RELATIONS = {
  text: [":", "=", "!=", "~", "!~"],
  id: [":", "=", "!=", "~", "!~"],
  choice: [":", "=", "!=", "~", "!~"],
  number: [":", "=", "!=", "<", "<=", ">", ">="],
  time: [":", "=", "!=", "<", "<=", ">", ">="],
};
const NUMERIC = [":", "=", "!=", "<", "<=", ">", ">=", "~", "!~"]; // of arguments
const FIELD = /[A-Za-z_]+/y;
const KEY = /\.(?:"((?:[^"\\]|\\[^])*)"|([^\s:=<>~!"()]+))/y;
const RELATION = /\s*(!=|!~|<=|>=|:(?!:)|=|<|>|~)[ \t]*/y;
const QUOTED = /"((?:[^"\\]|\\[^])*)"/y;
const TIME = /([0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[ \t]*(ns|us|µs|μs|ms|s)(?![A-Za-z0-9_]))?/y;
const NUMBER = /-?[0-9]+(?![A-Za-z0-9_])/y;
const DECIMAL = /^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$/;
const DEEPEST = 100; // brackets and negations within each other
const SPACE = " \t\n\r\f\v\u00a0";

/** Where a search cannot be read, and what should stand there. */
export class QueryError extends Error {
  /**
   * @param {string} query
   * @param {number} at
   * @param {string} expected
   */
  constructor(query, at, expected) {
    super(`expected ${expected}`);
    this.at = [...query.slice(0, at)].length; // characters, as Python counts them
    this.expected = expected;
  }
}

/** Reads a search; null for one that asks for nothing. @param {string} text */
export function parse(text) {
  return new Reader(text).whole();
}

/** The text of a search for a name, in quotes where it would be read as more than words. @param {string} text */
export function searchFor(text) {
  try {
    const tree = parse(text);
    if (tree?.op === "term" && tree.rel === "contains" && tree.field === "name" && tree.values[0] === text) return text;
  } catch {} // no search
  return `"${text.replace(/[\\"]/g, "\\$&")}"`;
}

/** Reads a text from left to right. */
class Reader {
  #at = 0;
  #open = 0; // brackets
  #depth = 0;
  #text;

  /** @param {string} text */
  constructor(text) {
    this.#text = text;
  }

  whole() {
    if (!this.#skip()) return null;
    const found = this.#or();
    if (this.#skip()) this.#fail(this.#at, 'a term, and no ")" without its "("');
    return found;
  }

  // -- and, or, not -----------------------------------------------------------------------------------

  /** @returns {Tree} */
  #or() {
    const parts = [this.#and()];
    while (this.#word("or")) parts.push(this.#and());
    return parts.length === 1 ? parts[0] : { op: "or", of: parts };
  }

  /** @returns {Tree} */
  #and() {
    const parts = [this.#not()];
    while (this.#skip() && !this.#ends() && !this.#peek("or")) {
      this.#word("and");
      parts.push(this.#not());
    }
    return parts.length === 1 ? parts[0] : { op: "and", of: parts };
  }

  /** @returns {Tree} */
  #not() {
    if (++this.#depth > DEEPEST) this.#fail(this.#at, `no more than ${DEEPEST} brackets and negations within each other`);
    const found = this.#one();
    this.#depth--;
    return found;
  }

  /** @returns {Tree} */
  #one() {
    if (this.#word("not")) return { op: "not", of: [this.#not()] };
    if (!this.#skip() || this.#ends() || this.#peek("and") || this.#peek("or")) {
      this.#fail(this.#at, "a term: words of a name, or a field such as kind:kernel");
    }
    if (this.#text[this.#at] === "(") {
      const begin = this.#at++;
      this.#open++;
      const inner = this.#or();
      if (!this.#skip()) this.#fail(begin, 'a ")" for this "("');
      this.#at++;
      this.#open--;
      return inner;
    }
    return this.#term() ?? this.#phrase();
  }

  #ends() {
    return this.#open > 0 && this.#text[this.#at] === ")";
  }

  /** Goes on behind white space; says whether anything is left. */
  #skip() {
    while (this.#at < this.#text.length && SPACE.includes(this.#text[this.#at])) this.#at++;
    return this.#at < this.#text.length;
  }

  /** @param {string} word */
  #peek(word) {
    const behind = this.#at + word.length;
    if (this.#text.slice(this.#at, behind).toLowerCase() !== word) return false;
    return behind === this.#text.length || `${SPACE}()`.includes(this.#text[behind]);
  }

  /** @param {string} word */
  #word(word) {
    if (!this.#skip() || !this.#peek(word)) return false;
    this.#at += word.length;
    return true;
  }

  // -- terms ------------------------------------------------------------------------------------------

  /** Words that stand together; white space between them counts. */
  #phrase() {
    const text = this.#text;
    const quoted = this.#match(QUOTED, this.#at);
    if (quoted) {
      this.#at += quoted[0].length;
      return term("name", "", "contains", [unquoted(quoted[1])]);
    }
    if (text[this.#at] === '"') this.#fail(this.#at, "a quote that ends this text");
    const begin = this.#at;
    let end = begin;
    while (this.#skip() && !this.#ends() && !'("'.includes(text[this.#at])) {
      if (["and", "or", "not"].some((word) => this.#peek(word)) || this.#field()) break;
      this.#run();
      end = this.#at;
    }
    this.#at = end;
    if (end === begin) this.#fail(begin, 'a term, and no ")" without its "("');
    return term("name", "", "contains", [text.slice(begin, end)]);
  }

  /** What holds together up to white space, with the brackets that it opens itself. */
  #run() {
    const text = this.#text;
    const begin = this.#at;
    let depth = 0;
    for (; this.#at < text.length && !SPACE.includes(text[this.#at]); this.#at++) {
      if (text[this.#at] === "(") depth++;
      else if (text[this.#at] === ")") {
        if (depth === 0 && this.#open) break;
        depth--;
      }
    }
    return text.slice(begin, this.#at);
  }

  /** Field, key, relation and where the value begins, if a term stands here. */
  #field() {
    const word = this.#match(FIELD, this.#at);
    if (!word) return null;
    const name = word[0].toLowerCase();
    let behind = this.#at + word[0].length;
    let key = "";
    const dotted = name === "args" ? this.#match(KEY, behind) : null;
    if (dotted) {
      key = dotted[1] === undefined ? dotted[2] : unquoted(dotted[1]);
      behind += dotted[0].length;
    }
    const relation = this.#match(RELATION, behind);
    if (!relation) return null;
    const sign = relation[1];
    const spaced = relation[0].length !== sign.length;
    if (Object.hasOwn(FIELDS, name)) {
      const before = relation[0].indexOf(sign);
      // "name : x" are words; "dur > 50us" is a term
      if (spaced && ([":", "~", "!~"].includes(sign) || !["number", "time"].includes(FIELDS[name].type))) {
        return before ? null : { name, key, sign, value: behind + sign.length };
      }
      return { name, key, sign, value: behind + relation[0].length };
    }
    const known = spaced || name.length <= 2 ? undefined : Object.keys(FIELDS).find((field) => near(name, field));
    if (known) this.#fail(this.#at, `a field, such as ${known}; a name that looks like one is put in double quotes`);
    return null;
  }

  /** @returns {Term | null} */
  #term() {
    const begin = this.#at;
    const found = this.#field();
    if (!found) return null;
    const { name, key, sign, value } = found;
    this.#at = value;
    const { type, choices } = FIELDS[name];
    const allowed = name === "args" && key ? NUMERIC : RELATIONS[type];
    if (!allowed.includes(sign)) this.#fail(begin + name.length, `one of ${allowed.join(" ")} after ${name}`);
    const text = this.#text;
    if (this.#at === text.length || SPACE.includes(text[this.#at]) || this.#ends()) this.#fail(this.#at, `a value after ${text.slice(begin, this.#at).trim()}`);
    if (sign === "~" || sign === "!~") return term(name, key, sign, [this.#pattern()]);
    if (type === "time") return this.#measure(name, sign, () => this.#time());
    if (type === "number") return this.#measure(name, sign, () => this.#number());
    if (name === "args" && /[<>]/.test(sign)) return term(name, key, sign, [this.#decimal()]);
    if (type === "text") return term(name, key, sign === ":" ? "contains" : sign, [this.#words()]);
    const where = this.#at;
    let values = text[this.#at] === '"' ? [this.#words()] : this.#run().split(",");
    if (type === "choice") {
      values = values.map((one) => one.toLowerCase());
      if (!values.every((one) => choices.includes(one))) this.#fail(where, `one of ${choices.join(", ")} after ${name}`);
    }
    return term(name, key, sign === ":" ? "=" : sign, values);
  }

  #words() {
    const quoted = this.#match(QUOTED, this.#at);
    if (quoted) {
      this.#at += quoted[0].length;
      return unquoted(quoted[1]);
    }
    if (this.#text[this.#at] === '"') this.#fail(this.#at, "a quote that ends this text");
    return this.#run();
  }

  #pattern() {
    const where = this.#at;
    const text = this.#words();
    try {
      pattern(text);
    } catch {
      this.#fail(where, "a regular expression");
    }
    return text;
  }

  /**
   * @param {string} name
   * @param {string} sign
   * @param {() => number} read
   */
  #measure(name, sign, read) {
    const first = read();
    if (sign === ":" && this.#text.startsWith("..", this.#at)) {
      this.#at += 2;
      return term(name, "", "in", [first, read()]);
    }
    const values = [first];
    while ([":", "=", "!="].includes(sign) && this.#text[this.#at] === ",") {
      this.#at++;
      values.push(read());
    }
    if (this.#at < this.#text.length && !SPACE.includes(this.#text[this.#at]) && !this.#ends()) this.#fail(this.#at, "a space behind the value");
    return term(name, "", sign === ":" ? "=" : sign, values);
  }

  #time() {
    const found = this.#match(TIME, this.#at);
    if (!found || (found[2] === undefined && Number(found[1]) !== 0)) this.#fail(this.#at, "a time with its unit, such as 50us (ns, us, ms, s)");
    this.#at += found[0].length;
    return whole(Number(found[1]) * UNITS[found[2] ?? "ns"]);
  }

  #number() {
    const found = this.#match(NUMBER, this.#at);
    if (!found) this.#fail(this.#at, "a whole number");
    this.#at += found[0].length;
    return Number(found[0]);
  }

  #decimal() {
    const where = this.#at;
    const text = this.#words();
    if (!DECIMAL.test(text)) this.#fail(where, "a number");
    return whole(Number(text));
  }

  /**
   * @param {RegExp} sticky
   * @param {number} at
   */
  #match(sticky, at) {
    sticky.lastIndex = at;
    return sticky.exec(this.#text);
  }

  /**
   * @param {number} at
   * @param {string} expected
   * @returns {never}
   */
  #fail(at, expected) {
    throw new QueryError(this.#text, at, expected);
  }
}

/** A regular expression as searches try it: anywhere, whatever the case. @param {string} text */
export function pattern(text) {
  return new RegExp(text, "i");
}

/**
 * @param {string} field
 * @param {string} key
 * @param {string} rel
 * @param {(string | number)[]} values
 * @returns {Term}
 */
function term(field, key, rel, values) {
  return { op: "term", field, key, rel, values };
}

/** @param {string} text */
function unquoted(text) {
  return text.replace(/\\([^])/g, "$1");
}

/** A whole number for what is one but for the rounding of decimal fractions. @param {number} value */
function whole(value) {
  const near = value >= 0 ? Math.floor(value + 0.5) : -Math.floor(0.5 - value);
  return Math.abs(value - near) < 1e-6 ? near : value;
}

/**
 * Whether one wrong, missing, added or exchanged letter turns a word into another.
 * @param {string} word
 * @param {string} known
 */
function near(word, known) {
  if (Math.abs(word.length - known.length) > 1) return false;
  let at = 0;
  while (at < word.length && at < known.length && word[at] === known[at]) at++;
  const [rest, other] = [word.slice(at), known.slice(at)];
  if (rest.length === other.length) {
    return rest.slice(1) === other.slice(1) || (rest.length > 1 && rest[0] === other[1] && rest[1] === other[0] && rest.slice(2) === other.slice(2));
  }
  return rest.length > other.length ? rest.slice(1) === other : rest === other.slice(1);
}
