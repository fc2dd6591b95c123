"""Python values as JSON text and back, equal: tuples, bytes, missing values and this package's records too.

What JSON has no form for is an object with one key that begins with ``$``. Only the classes of `RECORDS` are
made when text is read, of fields that have the types they should have.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from types import NoneType
from typing import Any

import numpy as np
import orjson
import pandas as pd

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.engine.info import EngineInfo, Tensor
from torchtrt_viz.formats.kineto.ids import MergedRank
from torchtrt_viz.formats.session.manifest import CycleRecord, Manifest, RankRecord
from torchtrt_viz.model.repair import Repair

__all__ = ["NotPlain", "dumps", "from_plain", "loads", "texts_of", "to_plain"]

_DEEPEST = 100
_LONG_INTEGER = re.compile(r"[0-9]{19}")  # orjson makes a float of an integer beyond 64 bits
_EXACT = orjson.OPT_PASSTHROUGH_SUBCLASS | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME

_TEXT, _NUMBER, _MAP, _LIST = (str,), (int,), (dict,), (list,)
_MAYBE_TEXT, _MAYBE_NUMBER = (str, NoneType), (int, NoneType)

#: Class -> the types that each of its fields may have.
RECORDS: dict[str, tuple[type[Any], dict[str, tuple[type, ...]]]] = {
    "Repair": (
        Repair,
        {
            "code": _TEXT,
            "message": _TEXT,
            "path": _MAYBE_TEXT,
            "offset": _MAYBE_NUMBER,
            "count": _NUMBER,
        },
    ),
    "EngineInfo": (
        EngineInfo,
        {
            **dict.fromkeys(("name", "run_id", "runtime", "producer"), _TEXT),
            **dict.fromkeys(("layers", "bindings"), (pd.DataFrame,)),
            "timing": (pd.DataFrame, NoneType),
            "count": _MAYBE_NUMBER,
            **dict.fromkeys(("performance", "inference_options", "build_options", "model_options"), _MAP),
            **dict.fromkeys(("device", "other_sections", "files"), _MAP),
            "verbosity": _MAYBE_TEXT,
            "notes": _LIST,
        },
    ),
    "Tensor": (
        Tensor,
        {
            "name": _TEXT,
            "shape": (tuple, NoneType),
            **dict.fromkeys(("dtype", "format", "location"), _MAYBE_TEXT),
            "bytes": _MAYBE_NUMBER,
        },
    ),
    "MergedRank": (
        MergedRank,
        {"mark": _TEXT, "rank": _NUMBER, "lanes": (tuple,), "shift": _MAP},
    ),
    "Manifest": (
        Manifest,
        {**dict.fromkeys(("session_id", "state", "mode"), _TEXT), "config": _MAP, "ranks": _LIST},
    ),
    "RankRecord": (RankRecord, {"rank": _NUMBER, "state": _TEXT, "error": _MAYBE_TEXT, "cycles": _LIST}),
    "CycleRecord": (CycleRecord, {"cycle": _NUMBER, "state": _TEXT, "error": _MAYBE_TEXT}),
}
_NAMES = {made: name for name, (made, _) in RECORDS.items()}


class NotPlain(ValueError):
    """A value that cannot be written, or text that no value was written as."""


Frames = Callable[[pd.DataFrame], Any]
"""Keeps a frame somewhere, and returns what stands for it."""


def to_plain(value: Any, keep: Frames | None = None, *, where: str = "", depth: int = 0) -> Any:
    """Return a value as what JSON can hold.

    Parameters
    ----------
    keep
        Keeps the frames that are found; None: there can be none.
    where
        Place of the value, for messages.

    Raises
    ------
    NotPlain
        For a value of another type, and one that is nested too deeply.
    """
    if depth > _DEEPEST:
        raise NotPlain(f"{where} is nested more than {_DEEPEST} deep")
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        return value if math.isfinite(value) else {"$float": str(value)}

    def inner(each: Any, place: object) -> Any:
        return to_plain(each, keep, where=f"{where}[{place!r}]", depth=depth + 1)

    if kind is list:
        return [inner(each, place) for place, each in enumerate(value)]
    if kind is dict:
        if all(type(key) is str and not key.startswith("$") for key in value):
            return {key: inner(each, key) for key, each in value.items()}
        return {"$map": [[inner(key, "key"), inner(each, key)] for key, each in value.items()]}
    if kind in _NAMES:
        members = value._asdict() if kind is Tensor else _members(value)
        made = {name: inner(each, name) for name, each in members.items()}
        return {"$record": [_NAMES[kind], made]}
    return _tagged(value, inner, keep, where)


def _tagged(value: Any, inner: Callable[[Any, object], Any], keep: Frames | None, where: str) -> Any:
    kind = type(value)
    if kind is tuple:
        return {"$tuple": [inner(each, place) for place, each in enumerate(value)]}
    if kind in (set, frozenset):
        return {f"${kind.__name__}": sorted((inner(each, "set") for each in value), key=repr)}
    if kind is bytes:
        return {"$bytes": value.hex()}
    if value is pd.NA:
        return {"$na": True}
    if isinstance(value, np.generic) and value.dtype.kind in "biufU":
        return inner(value.item(), "number")
    if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "biuf":
        return {"$array": [str(value.dtype), [inner(each, "array") for each in value.tolist()]]}
    if isinstance(value, pd.DataFrame) and keep is not None:
        return {"$frame": keep(value)}
    if isinstance(value, Mapping) and not isinstance(value, dict):
        return inner(dict(value), "mapping")
    # subclasses of plain types (enumerations of texts, counters) are kept as what they are underneath
    plain: Any
    for plain in (bool, int, float, str, dict, list):
        if isinstance(value, plain):
            return inner(plain(value), kind.__name__)
    raise NotPlain(f"{where} is a {kind.__module__}.{kind.__qualname__}, which is no plain value")


def _members(value: Any) -> dict[str, Any]:
    assert is_dataclass(value)
    return {one.name: getattr(value, one.name) for one in fields(value)}


def from_plain(value: Any, frame: Callable[[Any], pd.DataFrame] | None = None, *, depth: int = 0) -> Any:
    """Return the value that `to_plain` made this of.

    Parameters
    ----------
    frame
        Reads a frame by what stands for it; None: there can be none.

    Raises
    ------
    NotPlain
        For anything that it cannot have made.
    """
    if depth > 3 * _DEEPEST:
        raise NotPlain("values are nested too deeply")
    if isinstance(value, list):
        return [from_plain(each, frame, depth=depth + 1) for each in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((key, held),) = value.items()
        if key.startswith("$"):
            return _untagged(key, held, frame, depth + 1)
    return {key: from_plain(each, frame, depth=depth + 1) for key, each in value.items()}


def _untagged(tag: str, held: Any, frame: Callable[[Any], pd.DataFrame] | None, depth: int) -> Any:
    try:
        if tag == "$float":
            return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[held]
        if tag == "$bytes":
            return bytes.fromhex(held)
        if tag == "$na":
            return pd.NA
        if tag == "$array":
            dtype, numbers = held
            if np.dtype(dtype).kind not in "biuf":
                raise NotPlain(f"an array of {str(dtype)[:40]!r}")
            return np.array([from_plain(each, depth=depth) for each in numbers], np.dtype(dtype))
        if tag == "$frame" and frame is not None:
            return frame(held)
        if tag == "$record":
            return _record(held, frame, depth)
        if tag == "$map":
            return {
                from_plain(key, frame, depth=depth): from_plain(each, frame, depth=depth)
                for key, each in held
            }
        if tag in ("$tuple", "$set", "$frozenset") and isinstance(held, list):
            made = [from_plain(each, frame, depth=depth) for each in held]
            return {"$tuple": tuple, "$set": set, "$frozenset": frozenset}[tag](made)
    except (NotPlain, TraceFormatError):
        raise
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise NotPlain(f"what stands for a {tag[:20]} is damaged ({type(error).__name__})") from error
    raise NotPlain(f"{tag[:40]!r} stands for no value that is known")


def _record(held: Any, frame: Callable[[Any], pd.DataFrame] | None, depth: int) -> Any:
    name, given = held
    made, types = RECORDS[name]
    known = Tensor._fields if made is Tensor else [one.name for one in fields(made)]
    # what a later version adds is passed over
    values = {key: from_plain(given[key], frame, depth=depth) for key in known if key in given}
    for key, allowed in types.items():
        if key in values and type(values[key]) not in allowed:
            raise NotPlain(f"{key} of a {name} is {type(values[key]).__name__}")
    if name == "EngineInfo" and not {"in_profile", "name"} <= set(values["layers"].columns):
        raise NotPlain("layers of an engine lack their columns")
    return made(**values)


def dumps(value: Any) -> str:
    """Return a value as JSON text.

    Raises
    ------
    NotPlain
        For a value that cannot be written.
    """
    return json.dumps(to_plain(value), ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def loads(text: str) -> Any:
    """Return the value that `dumps` or `texts_of` wrote.

    Raises
    ------
    NotPlain
        For other text.
    """
    try:
        if _LONG_INTEGER.search(text) is None and "\\ud" not in text:
            value = orjson.loads(text)
        else:
            value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NotPlain(f"not JSON: {error}") from error
    return from_plain(value) if '"$' in text else value


def texts_of(mappings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return each mapping as JSON text from which `loads` makes an equal one."""
    out = []
    for mapping in mappings:
        try:
            data = orjson.dumps(mapping, option=_EXACT)
            # orjson writes nan as null and tuples as lists
            exact = b'"$' not in data and orjson.loads(data) == mapping
        except (orjson.JSONEncodeError, orjson.JSONDecodeError, RecursionError):
            exact = False
        out.append(data.decode() if exact else dumps(mapping))
    return out
