r"""The language in which events are searched for: read here, and in the browser by ``static/query.js``.

Plain words are part of a name, whatever the case, as long as they stand together: ``flash attention``. A term
is a field, a relation and a value::

    kind:kernel dur>50us name~gemm|conv stream:7 not (track:loader or args.grid:512)

Terms beside each other must all hold (``and`` may be written); ``or``, ``not`` and brackets do what they
say. ``:`` is "contains" for texts and "is" for the rest, where it takes a list (``kind:memcpy,memset``) and
for numbers a range (``dur:50us..1ms``); ``=``, ``!=``, ``<``, ``<=``, ``>``, ``>=`` compare, ``~`` and ``!~``
try a regular expression. Times have a unit: ns, us, ms, s. A double quote begins and ends a text that holds
anything: ``"and"``, ``name="aten::add"``, ``args."Input Dims":3``. What an event lacks fulfils no term but
``!=`` and ``!~``.

The browser knows the fields from ``static/fields.js``, which is made from this module::

    python -m torchtrt_viz.scene.query > torchtrt_viz/widgets/static/fields.js
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

from torchtrt_viz.errors import QueryError
from torchtrt_viz.model import schema

__all__ = ["FIELDS", "Field", "Node", "javascript", "parse"]

Node = dict[str, Any]
"""``{"op": "and" | "or" | "not", "of": [...]}``, or a term with ``field``, ``key``, ``rel`` and ``values``.

``key`` is that of an argument, else "". ``rel`` is one of contains, ``=``, ``!=``, ``<``, ``<=``, ``>``,
``>=``, in (``values`` are both ends), ``~`` and ``!~``. Times are ns.
"""

Type = Literal["text", "id", "choice", "number", "time"]


@dataclass(frozen=True)
class Field:
    """What a term may ask for; ``choices`` of a choice are all values that there are."""

    type: Type
    meaning: str
    choices: tuple[str, ...] = ()


FIELDS: dict[str, Field] = {
    "name": Field("text", "name of the event"),
    "kind": Field("choice", "what sort of work it is", schema.KINDS),
    "domain": Field("choice", "where the time was spent", schema.DOMAINS),
    "timing": Field("choice", "how its time is known", schema.TIMINGS),
    "event": Field("choice", "with a duration, or without", ("span", "instant")),
    "dur": Field("time", "duration"),
    "self": Field("time", "duration without what is nested in it"),
    "start": Field("time", "start, from the trace's start"),
    "end": Field("time", "end, from the trace's start"),
    "track": Field("text", "label of its track"),
    "process": Field("text", "name and number of its process"),
    "thread": Field("id", "thread, as its producer numbered it"),
    "stream": Field("id", "stream of the device"),
    "device": Field("number", "number of the device"),
    "rank": Field("number", "rank of the process"),
    "iteration": Field("number", "run within the capture"),
    "depth": Field("number", "nesting depth, 0 outermost"),
    "correlation": Field("number", "id that links a launch with its device work"),
    "run": Field("text", "engine, delegate or method instance"),
    "args": Field("text", "an argument: args.KEY, or any of them"),
}
UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9}
_RELATIONS: dict[Type, tuple[str, ...]] = {
    "text": (":", "=", "!=", "~", "!~"),
    "id": (":", "=", "!=", "~", "!~"),
    "choice": (":", "=", "!=", "~", "!~"),
    "number": (":", "=", "!=", "<", "<=", ">", ">="),
    "time": (":", "=", "!=", "<", "<=", ">", ">="),
}
_NUMERIC = (":", "=", "!=", "<", "<=", ">", ">=", "~", "!~")  # of arguments
_FIELD = re.compile(r"[A-Za-z_]+")
_KEY = re.compile(r'\.(?:"((?:[^"\\]|\\.)*)"|([^\s:=<>~!"()]+))')
_RELATION = re.compile(r"\s*(!=|!~|<=|>=|:(?!:)|=|<|>|~)[ \t]*")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_TIME = re.compile(r"([0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[ \t]*(ns|us|µs|μs|ms|s)(?![A-Za-z0-9_]))?")
_NUMBER = re.compile(r"-?[0-9]+(?![A-Za-z0-9_])")
_DEEPEST = 100  # brackets and negations within each other
_SPACE = " \t\n\r\f\v\u00a0"


def parse(text: str) -> Node | None:
    """Read a query; None for one that asks for nothing.

    Raises
    ------
    QueryError
        With the place where the query cannot be read, and what is expected there.
    """
    return _Reader(text).whole()


class _Reader:
    """Reads a text from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.open = 0  # brackets
        self.depth = 0

    def whole(self) -> Node | None:
        if not self._skip():
            return None
        found = self._or()
        if self._skip():
            self._fail(self.at, 'a term, and no ")" without its "("')
        return found

    # -- and, or, not ----------------------------------------------------------------------------------

    def _or(self) -> Node:
        parts = [self._and()]
        while self._word("or"):
            parts.append(self._and())
        return parts[0] if len(parts) == 1 else {"op": "or", "of": parts}

    def _and(self) -> Node:
        parts = [self._not()]
        while self._skip() and not self._ends() and not self._peek("or"):
            self._word("and")
            parts.append(self._not())
        return parts[0] if len(parts) == 1 else {"op": "and", "of": parts}

    def _not(self) -> Node:
        self.depth += 1
        if self.depth > _DEEPEST:
            self._fail(self.at, f"no more than {_DEEPEST} brackets and negations within each other")
        found = self._one()
        self.depth -= 1
        return found

    def _one(self) -> Node:
        if self._word("not"):
            return {"op": "not", "of": [self._not()]}
        if not self._skip() or self._ends() or self._peek("and") or self._peek("or"):
            self._fail(self.at, "a term: words of a name, or a field such as kind:kernel")
        if self.text[self.at] == "(":
            begin = self.at
            self.at += 1
            self.open += 1
            inner = self._or()
            if not self._skip():
                self._fail(begin, 'a ")" for this "("')
            self.at += 1
            self.open -= 1
            return inner
        return self._term() or self._phrase()

    def _ends(self) -> bool:
        return self.open > 0 and self.text[self.at] == ")"

    def _skip(self) -> bool:
        """Go on behind white space; say whether anything is left."""
        while self.at < len(self.text) and self.text[self.at] in _SPACE:
            self.at += 1
        return self.at < len(self.text)

    def _peek(self, word: str) -> bool:
        behind = self.at + len(word)
        if self.text[self.at : behind].lower() != word:
            return False
        return behind == len(self.text) or self.text[behind] in _SPACE or self.text[behind] in "()"

    def _word(self, word: str) -> bool:
        if self._skip() and self._peek(word):
            self.at += len(word)
            return True
        return False

    # -- terms -----------------------------------------------------------------------------------------

    def _phrase(self) -> Node:
        """Read words that stand together; white space between them counts."""
        if quoted := _QUOTED.match(self.text, self.at):
            self.at = quoted.end()
            return _term("name", "", "contains", [_unquoted(quoted[1])])
        if self.text[self.at] == '"':
            self._fail(self.at, "a quote that ends this text")
        begin = end = self.at
        while self._skip() and not self._ends() and self.text[self.at] not in '("':
            if any(self._peek(word) for word in ("and", "or", "not")) or self._field() is not None:
                break
            self._run()
            end = self.at
        self.at = end
        if end == begin:
            self._fail(begin, 'a term, and no ")" without its "("')
        return _term("name", "", "contains", [self.text[begin:end]])

    def _run(self) -> str:
        """Read what holds together up to white space, with the brackets that it opens itself."""
        begin, depth = self.at, 0
        while self.at < len(self.text) and self.text[self.at] not in _SPACE:
            if self.text[self.at] == "(":
                depth += 1
            elif self.text[self.at] == ")":
                if depth == 0 and self.open:
                    break
                depth -= 1
            self.at += 1
        return self.text[begin : self.at]

    def _field(self) -> tuple[str, str, str, int] | None:
        """Return field, key, relation and where the value begins, if a term stands here."""
        word = _FIELD.match(self.text, self.at)
        if word is None:
            return None
        name = word[0].lower()
        behind = word.end()
        key = ""
        if name == "args" and (found := _KEY.match(self.text, behind)):
            key = _unquoted(found[1]) if found[1] is not None else found[2]
            behind = found.end()
        relation = _RELATION.match(self.text, behind)
        if relation is None:
            return None
        sign, spaced = relation[1], relation.end() - relation.start() != len(relation[1])
        if name in FIELDS:
            # "name : x" are words; "dur > 50us" is a term
            if spaced and (sign in (":", "~", "!~") or FIELDS[name].type not in ("number", "time")):
                if relation.start(1) != behind:
                    return None
                return name, key, sign, relation.end(1)
            return name, key, sign, relation.end()
        if not spaced and len(name) > 2 and (near := [known for known in FIELDS if _near(name, known)]):
            self._fail(
                self.at, f"a field, such as {near[0]}; a name that looks like one is put in double quotes"
            )
        return None

    def _term(self) -> Node | None:
        begin = self.at
        found = self._field()
        if found is None:
            return None
        name, key, sign, self.at = found
        field = FIELDS[name]
        allowed = _NUMERIC if name == "args" and key else _RELATIONS[field.type]
        if sign not in allowed:
            self._fail(begin + len(name), f"one of {' '.join(allowed)} after {name}")
        after = f"{self.text[begin : self.at].strip()}"
        if self.at == len(self.text) or self.text[self.at] in _SPACE or self._ends():
            self._fail(self.at, f"a value after {after}")
        if sign in ("~", "!~"):
            return _term(name, key, sign, [self._pattern()])
        if field.type == "time":
            return self._measure(name, sign, self._time)
        if field.type == "number":
            return self._measure(name, sign, self._number)
        if name == "args" and sign in ("<", "<=", ">", ">="):
            return _term(name, key, sign, [self._decimal()])
        if field.type == "text":
            return _term(name, key, "contains" if sign == ":" else sign, [self._text()])
        where = self.at
        values = [self._text()] if self.text[self.at] == '"' else self._run().split(",")
        if field.type == "choice":
            values = [value.lower() for value in values]
            for value in values:
                if value not in field.choices:
                    self._fail(where, f"one of {', '.join(field.choices)} after {name}")
        return _term(name, key, "=" if sign == ":" else sign, values)

    def _text(self) -> str:
        if quoted := _QUOTED.match(self.text, self.at):
            self.at = quoted.end()
            return _unquoted(quoted[1])
        if self.text[self.at] == '"':
            self._fail(self.at, "a quote that ends this text")
        return self._run()

    def _pattern(self) -> str:
        where = self.at
        text = self._text()
        try:
            re.compile(text)
        except (re.error, OverflowError, RecursionError):
            self._fail(where, "a regular expression")
        return text

    def _measure(self, name: str, sign: str, read: Any) -> Node:
        first = read()
        if sign == ":" and self.text.startswith("..", self.at):
            self.at += 2
            return _term(name, "", "in", [first, read()])
        values = [first]
        while sign in (":", "=", "!=") and self.text.startswith(",", self.at):
            self.at += 1
            values.append(read())
        if self.at < len(self.text) and self.text[self.at] not in _SPACE and not self._ends():
            self._fail(self.at, "a space behind the value")
        return _term(name, "", "=" if sign == ":" else sign, values)

    def _time(self) -> float:
        found = _TIME.match(self.text, self.at)
        if found is None or (found[2] is None and float(found[1]) != 0):
            self._fail(self.at, "a time with its unit, such as 50us (ns, us, ms, s)")
        self.at = found.end()
        return _whole(float(found[1]) * UNITS[found[2] or "ns"])

    def _number(self) -> int:
        found = _NUMBER.match(self.text, self.at)
        if found is None:
            self._fail(self.at, "a whole number")
        self.at = found.end()
        return int(found[0])

    def _decimal(self) -> float:
        where, text = self.at, self._text()
        if not re.fullmatch(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", text):
            self._fail(where, "a number")
        return _whole(float(text))

    def _fail(self, at: int, expected: str) -> NoReturn:
        raise QueryError(self.text, at, expected)


def _term(field: str, key: str, rel: str, values: list[Any]) -> Node:
    return {"op": "term", "field": field, "key": key, "rel": rel, "values": values}


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)


def _whole(value: float) -> float:
    """Return a whole number for what is one but for the rounding of decimal fractions."""
    near = int(value + 0.5) if value >= 0 else -int(0.5 - value)
    return near if abs(value - near) < 1e-6 else value


def _near(word: str, known: str) -> bool:
    """Say whether one wrong, missing, added or exchanged letter turns a word into another."""
    if abs(len(word) - len(known)) > 1:
        return False
    at = 0
    while at < len(word) and at < len(known) and word[at] == known[at]:
        at += 1
    rest, other = word[at:], known[at:]
    if len(rest) == len(other):
        return rest[1:] == other[1:] or (
            len(rest) > 1 and rest[0] == other[1] and rest[1] == other[0] and rest[2:] == other[2:]
        )
    return rest[1:] == other if len(rest) > len(other) else rest == other[1:]


def javascript() -> str:
    """Return the fields as the text of ``static/fields.js``."""
    lines = [
        "// @ts-check",
        "// Made from torchtrt_viz/scene/query.py, which says how. Do not edit.",
        "",
        '/** @typedef {"text" | "id" | "choice" | "number" | "time"} Type */',
        "/** @typedef {{type: Type, meaning: string, choices: string[]}} Field */",
        "/** What a term of a search may ask for. @type {Record<string, Field>} */",
        "export const FIELDS = {",
    ]
    for name, field in FIELDS.items():
        choices = json.dumps(list(field.choices))
        lines.append(
            f'  {name}: {{ type: "{field.type}", meaning: {json.dumps(field.meaning)}, choices: {choices} }},'
        )
    lines += ["};", "/** In ns. @type {Record<string, number>} */"]
    units = ", ".join(f'"{unit}": {size}' for unit, size in UNITS.items())
    return "\n".join([*lines, f"export const UNITS = {{ {units} }};", ""])


if __name__ == "__main__":
    print(javascript(), end="")
