"""What an ETDump's events are called, and what their metadata says about them.

A runtime event has a name, a delegate's event has a string or a number as identifier. Delegates of this
package write a JSON object as metadata: ``torchtrt.delegate`` carries ``method``, ``engine_id`` (or
``engine``), ``engine_runtime`` ("host" or "tensorrt") and the call's number; a layer carries ``name`` and
``timing`` (one of the capture's: measured, laid_out, scaled, rest, device); ``torchtrt.enqueue_gpu``, the
device's time of a call, carries ``timing`` and ``domain`` as well. A time of another call than the one that
reports it carries that one's number as ``call``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
from numpy.typing import NDArray

from torchtrt_viz._native import native
from torchtrt_viz.formats.etdump.dump import Events
from torchtrt_viz.formats.etdump.runs import Runs

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "DELEGATE",
    "LAYER",
    "Engines",
    "Placing",
    "delegate_debug_id",
    "group",
    "labels",
    "metadata_of",
    "parse_metadata",
    "read_engines",
]

DELEGATE_CALL, DELEGATE, PHASE, LAYER = 3, 7, 8, 10  # rows of ROLES
MAX_METADATA_BYTES = 1 << 20
MEASURED, MODELED, ELSEWHERE = 1, 2, 3  # codes of `placing`
_PLACINGS = {
    "measured": MEASURED,
    "modeled": MODELED,
    "laid_out": MODELED,  # a duration that was measured, laid behind the one before it
    "scaled": MODELED,  # the same, cut down to fit into its call
    "rest": MODELED,  # what is left of a call behind its operators
    "device": ELSEWHERE,  # the device's own duration, at no known place on the host's clock
}


def metadata_of(data: bytes, events: Events, row: int) -> bytes:
    """Return the metadata bytes of an event, b"" where it has none."""
    offset, length = int(events.metadata_offset[row]), int(events.metadata_length[row])
    return data[offset : offset + min(length, MAX_METADATA_BYTES)]


def parse_metadata(raw: bytes) -> dict[str, Any] | str:
    """Return a JSON object as a dict, other text as text, and other bytes in hexadecimal."""
    if raw[:1] == b"{":
        try:
            document = orjson.loads(raw)
        except orjson.JSONDecodeError:
            document = _lenient(raw)
        if isinstance(document, dict):
            return document
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return f"0x{raw.hex()}"


def _lenient(raw: bytes) -> Any:
    """Parse JSON with the bare tokens NaN and Infinity, which C++ writers are prone to; None: not JSON."""
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def group(columns: Sequence[NDArray[Any]]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Number the rows of int32 columns by their distinct combinations: (code per row, first row per code)."""
    made: tuple[NDArray[np.int32], NDArray[np.int64]] = native("etdump").group_rows(
        [np.ascontiguousarray(column, np.int32) for column in columns]
    )
    return made


def delegate_debug_id(events: Events, row: int, strings: list[str]) -> int | str | None:
    """Return the identifier that a delegate logged; None for an event of the runtime."""
    if events.delegate_name[row] >= 0:
        return strings[int(events.delegate_name[row])]
    number = int(events.delegate_id[row])
    return None if number == -1 else number


@dataclass
class Placing:
    """What layers' metadata says of their times, for the native arrangement; empty arrays: nothing."""

    placing: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))
    in_engine: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))
    names: dict[int, str] = field(default_factory=dict)
    layer_rows: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    layer_group: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))

    @property
    def elsewhere(self) -> NDArray[np.int64]:
        """Rows of the layers, and times of whole calls, that are the device's."""
        return np.flatnonzero(self.placing == ELSEWHERE)


@dataclass
class Engines:
    """Engines by their ``torchtrt.delegate`` events.

    Attributes
    ----------
    rows
        Rows of those events.
    engine_id, runtime
        What each says of its engine; None not said.
    placing
        What follows for the layers.
    """

    rows: NDArray[np.int64]
    engine_id: list[str | None]
    runtime: list[str | None]
    placing: Placing


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def read_engines(data: bytes, events: Events, runs: Runs, strings: list[str]) -> Engines:
    """Read the metadata of the delegates' own events; methods that they name are entered into ``runs``.

    A run's method is taken from the metadata only where nothing else has told it, and only when all
    delegates of the run agree.
    """
    rows = np.flatnonzero((events.role == DELEGATE) & (events.metadata_length > 0))
    offsets = events.metadata_offset[rows]
    lengths = np.minimum(events.metadata_length[rows], MAX_METADATA_BYTES)
    engine_id: list[str | None] = []
    runtime: list[str | None] = []
    methods: list[str | None] = []
    for offset, length in zip(offsets.tolist(), lengths.tolist(), strict=True):
        facts = parse_metadata(data[offset : offset + length])
        if not isinstance(facts, dict):
            facts = {}
        engine_id.append(_text(facts.get("engine_id")) or _text(facts.get("engine")))
        runtime.append(_text(facts.get("engine_runtime")) or _text(facts.get("runtime")))
        methods.append(_text(facts.get("method")))
    _enter_methods(runs, events.run[rows], methods)
    return Engines(rows, engine_id, runtime, _placing(data, events, runs, strings, rows, runtime))


def _enter_methods(runs: Runs, run: NDArray[np.int32], methods: list[str | None]) -> None:
    numbers: dict[str | None, int] = {}
    said = np.array([numbers.setdefault(name, len(numbers)) for name in methods], np.int64)
    names = list(numbers)
    low = np.full(len(runs), len(names), np.int64)
    high = np.full(len(runs), -1, np.int64)
    np.minimum.at(low, run, said)
    np.maximum.at(high, run, said)
    agreed = np.flatnonzero((low == high) & (runs.method < 0))
    codes = np.array([-1 if name is None else runs.method_code(name) for name in names] or [-1], np.int32)
    runs.method[agreed] = codes[low[agreed]]


def _placing(
    data: bytes,
    events: Events,
    runs: Runs,
    strings: list[str],
    rows: NDArray[np.int64],
    runtime: list[str | None],
) -> Placing:
    """Read the first layer of each kind in delegates of ours: equal layers of later calls are like it.

    A phase that says anything of itself (the device's time of a call) is read as a layer is.
    """
    delegates = np.flatnonzero(events.role == DELEGATE)
    told = (events.role == LAYER) | (events.role == PHASE)
    layers = np.flatnonzero(told & (events.metadata_length > 0))
    if len(delegates) == 0 or len(layers) == 0:
        return Placing()
    shape = runs.shape[events.run]
    both = np.concatenate((delegates, layers))
    instance, _ = group([shape[both], events.chain[both], events.instruction[both]])
    instances = int(instance.max()) + 1
    ours = np.zeros(instances, bool)
    ours[instance[: len(delegates)]] = True
    runtime_of: list[str | None] = [None] * instances
    position = {row: i for i, row in enumerate(delegates.tolist())}
    for row, name in zip(rows.tolist(), runtime, strict=True):
        runtime_of[int(instance[position[row]])] = name
    layer_instance = instance[len(delegates) :]
    keep = ours[layer_instance]
    layers, layer_instance = layers[keep], layer_instance[keep]
    code, first = group([layer_instance, events.delegate_id[layers], events.delegate_name[layers]])
    names: dict[int, str] = {}
    taken: dict[tuple[int, str], list[int]] = {}
    place = np.zeros(len(first), np.uint8)
    host = np.zeros(len(first), np.uint8)
    for kind, at in enumerate(first.tolist()):
        facts = parse_metadata(metadata_of(data, events, int(layers[at])))
        facts = facts if isinstance(facts, dict) else {}
        if events.role[layers[at]] == PHASE:
            place[kind] = ELSEWHERE if facts.get("domain") == "gpu" else 0
            continue
        name = _text(facts.get("name"))
        if name is not None:
            names[kind] = name
            taken.setdefault((int(layer_instance[at]), name), []).append(kind)
        engine = runtime_of[int(layer_instance[at])]
        place[kind] = _PLACINGS.get(str(facts.get("timing")), 0)
        if facts.get("domain") == "gpu" or (engine == "tensorrt" and facts.get("domain") != "host"):
            place[kind] = ELSEWHERE
        host[kind] = engine == "host"
    for (_, name), kinds in taken.items():
        if len(kinds) > 1:  # layers of one engine may share a name: their identifiers keep them apart
            for kind in kinds:
                row = int(layers[first[kind]])
                identifier = delegate_debug_id(events, row, strings)
                names[kind] = f"{name} [{identifier}]"
    placing = np.zeros(len(events), np.uint8)
    placing[layers] = place[code]
    in_engine = np.zeros(len(events), np.uint8)
    in_engine[layers] = host[code]
    return Placing(placing, in_engine, names, layers, code)


def labels(strings: list[str], events: Events, placing: Placing) -> pd.Categorical:
    """Return the names of the events: as recorded, ``#7`` for number 7, or what a layer's metadata says."""
    import pandas as pd

    table = [text or "(no name)" for text in strings]
    code = np.where(events.name >= 0, events.name, events.delegate_name)
    numbered = np.flatnonzero(code < 0)
    if len(numbered):
        numbers, inverse = np.unique(events.delegate_id[numbered], return_inverse=True)
        code[numbered] = len(table) + inverse.reshape(-1)
        table += ["(no name)" if number == -1 else f"#{number}" for number in numbers.tolist()]
    if placing.names:
        new = np.full(int(placing.layer_group.max()) + 1, -1, np.int64)
        for kind, name in placing.names.items():
            new[kind] = len(table)
            table.append(name)
        renamed = new[placing.layer_group] >= 0
        code[placing.layer_rows[renamed]] = new[placing.layer_group[renamed]]
    used = np.flatnonzero(np.bincount(code, minlength=len(table)))
    position: dict[str, int] = {}
    compact = np.zeros(len(table), np.int64)
    for old in used.tolist():
        compact[old] = position.setdefault(table[old], len(position))
    return pd.Categorical.from_codes(
        compact[code].astype(np.int32), categories=pd.Index(list(position), dtype="str"), validate=False
    )
