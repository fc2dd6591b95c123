"""A reader of pickles that knows plain values only, and can do nothing but make them.

A pickle is a program for a small machine with a stack. This machine has the instructions that make dicts,
lists, tuples, strings, bytes, numbers, booleans and None, and no others: nothing in it imports, looks up or
calls anything. What a file makes it hold is bounded by the file's size; keys of dicts are plain values, so
that nothing nested is ever hashed; and nothing here recurses.
"""

from __future__ import annotations

import struct
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NoReturn

from torchtrt_viz.errors import TraceFormatError

__all__ = ["MAX_BYTES", "MAX_DEPTH", "Plain", "read_plain"]

MAX_BYTES = 1 << 30
"""Pickles larger than this are refused: a dump of two million collectives is smaller."""
MAX_DEPTH = 32
"""Containers in containers in ...: a dump has six levels."""
MAX_OPEN = 1 << 12
"""Lists, dicts and tuples that are under way at a time."""

_MAX_INTEGER = 16
_EXPECTED = "a pickle of dicts, lists, tuples, strings, bytes, numbers, booleans and None"
_NEVER = "Such a pickle can run any code when Python loads it: it was not run, and nothing of it is used"
_KEYS = (str, int, float, bool, bytes, type(None))

#: Instructions of other pickles, which this machine does not have.
_REFUSED = {
    **{0x63: "GLOBAL", 0x93: "STACK_GLOBAL", 0x69: "INST", 0x6F: "OBJ", 0x52: "REDUCE", 0x62: "BUILD"},
    **{0x81: "NEWOBJ", 0x92: "NEWOBJ_EX", 0x50: "PERSID", 0x51: "BINPERSID"},
    **{0x82: "EXT1", 0x83: "EXT2", 0x84: "EXT4", 0x97: "NEXT_BUFFER", 0x98: "READONLY_BUFFER"},
    **{0x8F: "EMPTY_SET", 0x90: "ADDITEMS", 0x91: "FROZENSET", 0x96: "BYTEARRAY8"},
    **{0x30: "POP", 0x31: "POP_MARK", 0x32: "DUP"},
    **{0x49: "INT", 0x4C: "LONG", 0x46: "FLOAT", 0x53: "STRING", 0x56: "UNICODE", 0x67: "GET", 0x70: "PUT"},
}
#: Bytes behind an instruction, where their number does not depend on them.
_OPERANDS = {
    **{0x68: 1, 0x6A: 4, 0x71: 1, 0x72: 4, 0x4B: 1, 0x4D: 2, 0x4A: 4, 0x47: 8, 0x80: 1, 0x95: 8},
    **{0x58: 4, 0x8C: 1, 0x8D: 8, 0x42: 4, 0x43: 1, 0x8E: 8, 0x54: 4, 0x55: 1, 0x8A: 1, 0x8B: 4},
}
_STRING = {0x58: "<I", 0x8C: "<B", 0x8D: "<Q"}
_BYTES = {0x42: "<I", 0x43: "<B", 0x8E: "<Q", 0x54: "<i", 0x55: "<B"}
_LONG = {0x8A: "<B", 0x8B: "<i"}


@dataclass(frozen=True)
class Plain:
    """What a pickle holds.

    Attributes
    ----------
    value
        Its value, as far as it could be read.
    cut
        Byte at which reading ended before the pickle did; None for a whole one.
    damage
        Why it ended there.
    unfinished
        Containers that were under way there, the outermost first: parts of ``value``.
    """

    value: Any
    cut: int | None = None
    damage: str = ""
    unfinished: tuple[Any, ...] = ()


class _Broken(Exception):
    """The file does not read on from here."""


def read_plain(data: bytes, name: str) -> Plain:
    """Read a pickle of plain values.

    Parameters
    ----------
    name
        Label for messages.

    Raises
    ------
    TraceFormatError
        For an instruction that could make anything else, named with its place; for a pickle that is too
        large or too deep; and where nothing could be read before the damage.
    """
    if len(data) > MAX_BYTES:
        raise TraceFormatError(
            "the pickle is too large",
            path=name,
            expected=f"at most {MAX_BYTES} bytes",
            found=f"{len(data)} bytes",
        )
    machine = _Machine(data, name)
    try:
        value = machine.run()
        plain = Plain(value)
    except _Broken as broken:
        value, unfinished = machine.folded()
        plain = Plain(value, machine.at, str(broken), tuple(unfinished))
        if value is None:
            raise TraceFormatError(
                "nothing of the pickle is whole",
                path=name,
                offset=machine.at,
                expected=_EXPECTED,
                found=str(broken),
                hint="Dump it again, or copy it again",
            ) from None
    _check_depth(plain.value, name)
    return plain


class _Machine:
    """Stack, marks and memo while a pickle is read."""

    def __init__(self, data: bytes, name: str) -> None:
        self._data = data
        self._name = name
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self.at = 0

    def run(self) -> Any:
        """Return the value of the whole pickle.

        Raises
        ------
        _Broken
            Where it does not read on; ``at`` is the place.
        """
        try:
            return self._run()
        except (IndexError, KeyError, TypeError, struct.error):
            op = self._data[self.at]
            if len(self._data) - self.at <= _OPERANDS.get(op, 0):
                raise _Broken("the end of the file") from None
            raise _Broken(f"byte {op:#04x}, which does not fit what is before it") from None

    def _run(self) -> Any:
        # one loop with the commonest instructions first, so that a step costs little
        data, size, stack, marks = self._data, len(self._data), self._stack, self._marks
        memo: dict[int, Any] = {}
        push, word = stack.append, struct.Struct("<I").unpack_from
        made, most = 0, size // 2 + 64
        i = 0
        while i < size:
            self.at = i
            op = data[i]
            i += 1
            if op == 0x68:  # BINGET
                push(memo[data[i]])
                i += 1
            elif op == 0x6A:  # LONG_BINGET
                push(memo[word(data, i)[0]])
                i += 4
            elif op == 0x71:  # BINPUT
                memo[data[i]] = stack[-1]
                i += 1
            elif op == 0x72:  # LONG_BINPUT
                memo[word(data, i)[0]] = stack[-1]
                i += 4
            elif op == 0x94:  # MEMOIZE
                memo[len(memo)] = stack[-1]
            elif op == 0x4B:  # BININT1
                push(data[i])
                i += 1
            elif op == 0x28:  # MARK
                if len(marks) >= MAX_OPEN:
                    self._too_deep(i - 1)
                marks.append(len(stack))
            elif op == 0x5D or op == 0x7D:  # EMPTY_LIST, EMPTY_DICT
                made += 1
                if made > most:
                    self._too_many(i - 1)
                push([] if op == 0x5D else {})
            elif op == 0x65 or op == 0x75 or op == 0x74 or op == 0x6C or op == 0x64:
                # APPENDS, SETITEMS, TUPLE, LIST, DICT
                mark = marks[-1]
                items = stack[mark:]
                self._finish(op, mark, items)
                marks.pop()
            elif op == 0x61:  # APPEND
                item, into = stack[-1], stack[-2]
                if type(into) is not list:
                    raise TypeError
                into.append(item)
                stack.pop()
            elif op == 0x73:  # SETITEM
                value, key, mapping = stack[-1], stack[-2], stack[-3]
                if type(mapping) is not dict or type(key) not in _KEYS:
                    self._no_key(key)
                mapping[key] = value
                del stack[-2:]
            elif op == 0x4E:  # NONE
                push(None)
            elif op == 0x88 or op == 0x89:  # NEWTRUE, NEWFALSE
                push(op == 0x88)
            elif op == 0x4D:  # BININT2
                push(struct.unpack_from("<H", data, i)[0])
                i += 2
            elif op == 0x4A:  # BININT
                push(struct.unpack_from("<i", data, i)[0])
                i += 4
            elif op == 0x47:  # BINFLOAT
                push(struct.unpack_from(">d", data, i)[0])
                i += 8
            elif op == 0x85 or op == 0x86 or op == 0x87:  # TUPLE1, TUPLE2, TUPLE3
                made += 1
                if made > most:
                    self._too_many(i - 1)
                count = op - 0x84
                if len(stack) < count:
                    raise IndexError
                stack[-count:] = [tuple(stack[-count:])]
            elif op in _OPERANDS and op not in (0x80, 0x95):  # strings, bytes, long integers
                i = self._sized(op, i)
            elif op == 0x29:  # EMPTY_TUPLE
                push(())
            elif op == 0x2E:  # STOP
                return stack[-1]
            elif op == 0x80:  # PROTO
                if data[i] > 5:
                    raise _Broken(f"protocol {data[i]}")
                i += 1
            elif op == 0x95:  # FRAME: how the file was written, and nothing to allocate
                i += 8
            elif op in _REFUSED:
                self._refuse(op, i)
            else:
                raise _Broken(f"byte {op:#04x}, which is no instruction of a pickle")
        self.at = size
        raise _Broken("the end of the file")

    def _sized(self, op: int, i: int) -> int:
        """Push a string, bytes or a long integer; return the index behind it."""
        form = _STRING.get(op) or _BYTES.get(op) or _LONG[op]
        length = int(struct.unpack_from(form, self._data, i)[0])
        begin = i + struct.calcsize(form)
        end = begin + length
        if length < 0 or end > len(self._data):
            raise _Broken("the end of the file")
        content = self._data[begin:end]
        if op in _STRING:
            self._stack.append(content.decode("utf-8", errors="replace"))
        elif op in _LONG:
            if length > _MAX_INTEGER:
                raise _Broken(f"an integer of {length} bytes")
            self._stack.append(int.from_bytes(content, "little", signed=True))
        else:
            self._stack.append(content)
        return end

    def _finish(self, op: int, mark: int, items: list[Any]) -> None:
        """Put the items above the innermost mark into their container."""
        stack = self._stack
        if op == 0x65:  # APPENDS
            into = stack[mark - 1] if mark else None
            if type(into) is not list:
                raise TypeError
            into.extend(items)
        elif op in (0x75, 0x64):  # SETITEMS, DICT
            if len(items) % 2:
                raise TypeError
            for key in items[::2]:
                if type(key) not in _KEYS:
                    self._no_key(key)
            pairs = dict(zip(items[::2], items[1::2], strict=True))
            if op == 0x64:
                items[:] = [pairs]
            else:
                mapping = stack[mark - 1] if mark else None
                if type(mapping) is not dict:
                    raise TypeError
                mapping.update(pairs)
        del stack[mark:]
        if op == 0x74:
            stack.append(tuple(items))
        elif op == 0x6C:
            stack.append(items)
        elif op == 0x64:
            stack.append(items[0])

    def folded(self) -> tuple[Any, list[Any]]:
        """Return what there is of the value where reading ended, and the containers that were under way."""
        stack, marks = self._stack, self._marks
        unfinished: list[Any] = []
        while marks:
            mark = marks.pop()
            items = stack[mark:]
            del stack[mark:]
            into = stack[-1] if stack else None
            if type(into) is list:
                into.extend(items)
            elif type(into) is dict:
                pairs = zip(items[::2], items[1::2], strict=False)
                into.update((key, value) for key, value in pairs if type(key) in _KEYS)
            else:
                continue
            unfinished.append(into)
        value = stack[0] if stack and isinstance(stack[0], (dict, list)) else None
        return value, unfinished[::-1]

    # -- what is refused -----------------------------------------------------------------------------

    def _refuse(self, op: int, i: int) -> NoReturn:
        named = ""
        if op in (0x63, 0x69):  # the names stand behind it, a line each
            lines = self._data[i : i + 256].split(b"\n")[:2]
            named = " " + " ".join(ascii(line.decode("latin-1"))[1:-1] for line in lines)
        elif op == 0x93:
            texts = [ascii(each)[1:-1] for each in self._stack[-2:] if isinstance(each, str)]
            named = " " + " ".join(text[:128] for text in texts)
        raise TraceFormatError(
            "the pickle holds more than plain values",
            path=self._name,
            offset=i - 1,
            expected=_EXPECTED,
            found=f"the instruction {_REFUSED[op]}{named}",
            hint=_NEVER,
        )

    def _no_key(self, key: object) -> NoReturn:
        if type(key) in _KEYS:
            raise TypeError
        raise TraceFormatError(
            "the pickle has a dict whose key is no plain value",
            path=self._name,
            offset=self.at,
            expected="strings, numbers, bytes, booleans or None as keys",
            found=type(key).__name__,
        )

    def _too_deep(self, at: int) -> NoReturn:
        raise TraceFormatError(
            "the pickle is nested too deep",
            path=self._name,
            offset=at,
            expected=f"at most {MAX_DEPTH} levels",
            found=f"more than {MAX_OPEN} containers under way",
        )

    def _too_many(self, at: int) -> NoReturn:
        raise TraceFormatError(
            "the pickle makes more containers than its size allows",
            path=self._name,
            offset=at,
            expected="a container for every two bytes at most",
            found="more",
        )


def _check_depth(value: object, name: str) -> None:
    """Refuse what is nested too deep, or in itself; each container is looked at once, level by level."""
    seen: set[int] = set()
    level: list[object] = [value] if type(value) in (dict, list, tuple) else []
    for _ in range(MAX_DEPTH):
        below: list[object] = []
        for each in level:
            parts: Collection[object] = each.values() if isinstance(each, dict) else each  # type: ignore[assignment]
            for part in parts:
                if type(part) in (dict, list, tuple) and id(part) not in seen:
                    seen.add(id(part))
                    below.append(part)
        level = below
        if not level:
            return
    raise TraceFormatError(
        "the pickle is nested too deep", path=name, expected=f"at most {MAX_DEPTH} levels", found="more"
    )
