"""A scanner for text that is almost JSON, without recursion and in linear time.

It accepts what JSON accepts, and mends: raw control characters, trailing and missing commas, ``nan`` and
``inf`` in every spelling that printf has, unknown escapes, quotes inside a string that were not escaped, and
a document that stops. Of a document that stops, records that are whole are kept and the one that is not is
left out.
"""

from __future__ import annotations

import re
from typing import Any

__all__ = ["MAX_DEPTH", "Scan"]

MAX_DEPTH = 200

_SPACE = re.compile(r"[\s\x00\ufeff]*")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.#])")
_NOT_A_NUMBER = re.compile(r"[-+]?(?:nan(?:\(\w*\))?|1\.#(?:ind|qnan|snan)\d*)(?!\w)", re.IGNORECASE)
_INFINITE = re.compile(r"([-+]?)(?:inf(?:inity)?|1\.#inf\d*)(?!\w)", re.IGNORECASE)
_WORD = re.compile(r"(?:true|false|null|True|False|None)(?!\w)")
_WORDS = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None}
_NEXT_OBJECT = re.compile(r"\s*,\s*\{")
_STOP = re.compile(r'["\\]')
_AFTER_KEY = re.compile(r"\s*:")
_AFTER_MEMBER = re.compile(r'\s*(?:,\s*(?:"|[}\]]|$)|[}\]]|$)')
_AFTER_ITEM = re.compile(r'\s*(?:,\s*(?:["{\[}\]\d-]|$)|[}\]]|$)')
_ESCAPE = re.compile(r'\\(?:(["\\/bfnrt])|u([0-9a-fA-F]{4}))')
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_NO_VALUE = object()


class Scan:
    """One pass over ``text`` from ``start``.

    Attributes
    ----------
    repairs
        Code -> (message, index of the first place, how often).
    nothing_whole
        Set when the text failed before any value was whole.
    failed_at, expected
        Where it failed, and what JSON would have there.
    """

    def __init__(self, text: str, start: int, *, wrapped: bool = False) -> None:
        self._text = text
        self._at = start
        self._wrapped = wrapped
        # Unescaped quotes need a look ahead; the budget keeps the whole pass linear.
        self._budget = 4 * len(text) + 65536
        self.repairs: dict[str, tuple[str, int, int]] = {}
        self.nothing_whole = False
        self.failed_at = start
        self.expected = "a value"

    def run(self) -> tuple[Any, int]:
        """Return (value, index behind it)."""
        if self._wrapped:
            return self._list_without_brackets()
        value = self._value()
        if value is _NO_VALUE:
            self.nothing_whole = True
            return None, self._at
        after = _NEXT_OBJECT.match(self._text, self._at)
        if isinstance(value, dict) and after and not self.nothing_whole:
            self._at = after.end() - 1
            return self._list_without_brackets([value])
        return value, self._at

    def _list_without_brackets(self, values: list[Any] | None = None) -> tuple[Any, int]:
        self._note("no_brackets", "the list has lost its brackets", self._at)
        values = values or []
        while True:
            self._skip()
            if self._peek() == ",":
                self._at += 1
                continue
            if self._peek() not in ("{", "["):
                break
            value = self._value()
            if value is _NO_VALUE:
                break
            values.append(value)
        if self._peek() == "]":
            self._at += 1
        self.nothing_whole = not values
        return values, self._at

    # -- containers ------------------------------------------------------------------------------------

    def _value(self) -> Any:
        """Read one value with an explicit stack of open containers: [container, pending key]."""
        stack: list[tuple[Any, str | None]] = []
        while True:
            value = self._open_or_scalar(stack)
            if value is _NO_VALUE:
                return self._stopped(stack)
            # close as many containers as end here
            while True:
                if not stack:
                    return value
                container, key = stack[-1]
                if value is not _NO_VALUE:
                    if key is None:
                        container.append(value)
                    else:
                        container[key] = value
                        stack[-1] = (container, "")
                state = self._between(container)
                if state == "more":
                    if isinstance(container, dict):
                        name = self._key()
                        if name is None:
                            return self._stopped(stack)
                        stack[-1] = (container, name)
                    break
                if state == "end":
                    stack.pop()
                    value = container
                    continue
                return self._stopped(stack)

    def _open_or_scalar(self, stack: list[tuple[Any, str | None]]) -> Any:
        """Descend to the next scalar or empty container; containers that are opened go on the stack."""
        while True:
            self._skip()
            char = self._peek()
            if char == "{" or char == "[":
                if len(stack) >= MAX_DEPTH:
                    return self._fail(f"at most {MAX_DEPTH} levels of nesting")
                self._at += 1
                self._skip()
                if self._peek() == ("}" if char == "{" else "]"):
                    self._at += 1
                    return {} if char == "{" else []
                if char == "[":
                    stack.append(([], None))
                    continue
                # The container is open before its first key is read, so that a cut in the key drops it.
                stack.append(({}, ""))
                name = self._key()
                if name is None:
                    return _NO_VALUE
                stack[-1] = (stack[-1][0], name)
                continue
            return self._scalar(bool(stack) and stack[-1][1] is not None)

    def _between(self, container: object) -> str:
        """Pass the comma or the end of a container: "more", "end" or "stop"."""
        closing = "}" if isinstance(container, dict) else "]"
        self._skip()
        char = self._peek()
        if char == ",":
            comma = self._at
            while self._peek() == ",":
                self._at += 1
                self._skip()
            char = self._peek()
            if char in ("}", "]"):
                self._note("trailing_comma", "commas before a closing bracket were passed over", comma)
            elif char:
                return "more"
        if char == closing:
            self._at += 1
            return "end"
        if char in ("}", "]") or not char:
            self._fail(f"{closing} or a comma")
            return "stop"
        if char in ('"', "{", "["):
            self._note("missing_comma", "missing commas were filled in", self._at)
            return "more"
        self._fail(f"{closing} or a comma")
        return "stop"

    def _stopped(self, stack: list[tuple[Any, str | None]]) -> Any:
        """Unwind a document that stops: keep lists and what holds them, drop records that are cut."""
        value: Any = _NO_VALUE
        while stack:
            container, key = stack.pop()
            if value is not _NO_VALUE and value and key:
                container[key] = value
            cut_record = isinstance(container, dict) and bool(stack) and isinstance(stack[-1][0], list)
            value = _NO_VALUE if cut_record else container
        if value is _NO_VALUE or not value:
            self.nothing_whole = True
            return _NO_VALUE
        self._note(
            "truncated",
            "the document stops here or is damaged: whole records before it were kept",
            self.failed_at,
        )
        self._at = len(self._text)
        return value

    # -- scalars ---------------------------------------------------------------------------------------

    def _key(self) -> str | None:
        self._skip()
        if self._peek() != '"':
            self._fail('a name in quotes or "}"')
            return None
        name = self._string(_AFTER_KEY)
        if name is None:
            return None
        self._skip()
        if self._peek() != ":":
            self._fail('":"')
            return None
        self._at += 1
        return name

    def _scalar(self, in_object: bool) -> Any:
        text, at = self._text, self._at
        if self._peek() == '"':
            value = self._string(_AFTER_MEMBER if in_object else _AFTER_ITEM)
            return _NO_VALUE if value is None else value
        if match := _NUMBER.match(text, at):
            if match.end() == len(text):  # more digits may have followed
                return self._fail("the rest of a number")
            self._at = match.end()
            digits = match.group()
            if any(c in ".eE" for c in digits) or len(digits) > 30:
                return float(digits)
            number = int(digits)
            return number if -(2**63) <= number < 2**64 else float(number)
        if match := _WORD.match(text, at):
            self._at = match.end()
            return _WORDS[match.group()]
        if match := _NOT_A_NUMBER.match(text, at):
            self._at = match.end()
            self._note("not_a_number", "values that are not a number (nan) are missing", at)
            return float("nan")
        if match := _INFINITE.match(text, at):
            self._at = match.end()
            self._note("not_a_number", "values that are not a number (inf) are missing", at)
            return float(match.group(1) + "inf")
        return self._fail("a value")

    def _string(self, after: re.Pattern[str]) -> str | None:
        """Read a string whose end is a quote that is followed by what may follow a string."""
        text, begin = self._text, self._at + 1
        first_quote: int | None = None
        at, quotes = begin, 0
        limit = begin + max(self._budget, 0)
        while match := _STOP.search(text, at):
            at = match.start()
            if text[at] == "\\":
                at += 2
                continue
            if after.match(text, at + 1):
                break
            first_quote = at if first_quote is None else first_quote
            at += 1
            quotes += 1
            if at > limit:
                match = None
                break
        if match is None:
            if first_quote is None:
                self._fail("the end of a string")
                return None
            self._budget -= at - begin
            at, quotes = first_quote, 0
        if quotes:
            self._budget -= at - begin
            self._note("unescaped_quote", "quotes inside names were not escaped", begin)
        self._at = at + 1
        raw = text[begin:at]
        return self._unescape(raw, begin) if "\\" in raw else raw

    def _unescape(self, raw: str, begin: int) -> str:
        out, at = [], 0
        while (slash := raw.find("\\", at)) >= 0:
            out.append(raw[at:slash])
            match = _ESCAPE.match(raw, slash)
            if match is None:
                self._note("invalid_escape", "unknown escapes were taken literally", begin + slash)
                out.append("\\")
                at = slash + 1
                continue
            letter, code = match.groups()
            out.append(_ESCAPES[letter] if letter else chr(int(code, 16)))
            at = match.end()
        out.append(raw[at:])
        joined = "".join(out)
        # pairs of \uD8xx\uDCxx become one character; lone halves are replaced later
        return joined.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

    # -- the text --------------------------------------------------------------------------------------

    def _skip(self) -> None:
        match = _SPACE.match(self._text, self._at)
        assert match is not None
        self._at = match.end()

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _fail(self, expected: str) -> Any:
        self.failed_at, self.expected = self._at, expected
        return _NO_VALUE

    def _note(self, code: str, message: str, at: int) -> None:
        _, first, count = self.repairs.get(code, ("", at, 0))
        self.repairs[code] = (message, first, count + 1)
