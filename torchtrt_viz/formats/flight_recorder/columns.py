"""The entries of a dump as columns."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from torchtrt_viz.formats.flight_recorder.call_sites import CallSites
from torchtrt_viz.formats.flight_recorder.dump import Dump, ProcessGroup
from torchtrt_viz.formats.io.json_values import finite, text, whole

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["entries_frame", "group_of"]

#: "nccl:send 0->1" and "nccl:recv 1<-0" name ranks within the group, the rank's own first.
_NAME = re.compile(
    r"(?:(?P<backend>[A-Za-z_][\w.-]*):)?(?P<operation>.*?)(?:\s+(?P<own>\d+)(?P<way>->|<-)(?P<peer>\d+))?",
    re.DOTALL,
)
_TYPES = {
    **{"Byte": "uint8", "Char": "int8", "Short": "int16", "Int": "int32", "Long": "int64", "Bool": "bool"},
    **{"Half": "float16", "Float": "float32", "Double": "float64", "BFloat16": "bfloat16"},
    **{"ComplexHalf": "complex32", "ComplexFloat": "complex64", "ComplexDouble": "complex128"},
}
_MAX_TENSORS, _MAX_DIMS = 4096, 64
_TEXTS = ("group", "group_desc", "backend", "operation", "state", "input_sizes", "input_types")
_MORE_TEXTS = ("output_sizes", "output_types", "source", "stack", "thread", "thread_name", "profiling_name")
_NUMBERS = ("record", "group_id", "sequence", "p2p_sequence", "operation_id", "sender", "receiver")
_TIMES = ("created_unix_ns", "started_unix_ns", "completed_unix_ns", "device_ns", "timeout_ns")
#: Keys of an entry that are read; the rest is counted.
_READ = frozenset(
    {
        *("record_id", "pg_id", "process_group", "collective_seq_id", "seq_id", "p2p_seq_id", "op_id"),
        *(
            "profiling_name",
            "input_sizes",
            "input_dtypes",
            "output_sizes",
            "output_dtypes",
            "state",
            "retired",
        ),
        *("time_created_ns", "time_discovered_started_ns", "time_discovered_completed_ns", "duration_ms"),
        *("time_created_us", "timeout_ms", "is_p2p", "frames", "thread_id", "thread_name"),
    }
)


def entries_frame(dump: Dump) -> pd.DataFrame:
    """Return one row per entry, in the order of the dump.

    The columns are those of ``recorded_collectives``, and ``profiling_name``, the name as recorded. Keys of
    entries that are not read are counted in ``dump.unread``.
    """
    import pandas as pd

    sites = CallSites()
    columns: dict[str, list[Any]] = {
        name: [] for name in (*_TEXTS, *_MORE_TEXTS, *_NUMBERS, *_TIMES, "p2p", "retired")
    }
    for entry in dump.entries:
        row = _row(entry, dump, sites)
        for name, values in columns.items():
            values.append(row.get(name))
        for key in entry.keys() - _READ:
            dump.unread[f"entries: {str(key)[:64]}"] += 1
    made: dict[str, Any] = {}
    for name, values in columns.items():
        if name in ("p2p", "retired"):
            made[name] = pd.array(values, dtype="boolean")
        elif name in _NUMBERS or name in _TIMES:
            made[name] = pd.array(values, dtype="Int64")
        else:
            known: dict[str, int] = {}
            codes = [-1 if value is None else known.setdefault(value, len(known)) for value in values]
            index = pd.Index(list(known), dtype="str")
            made[name] = pd.Categorical.from_codes(codes, categories=index, validate=False)
    return pd.DataFrame(made)


def group_of(entry: dict[str, Any], dump: Dump) -> tuple[str | None, str | None]:
    """Return name and description of the group of an entry."""
    named = entry.get("process_group")
    if isinstance(named, (list, tuple)) and len(named) == 2:
        name, desc = text(named[0]), text(named[1])
        return name, None if desc in ("", "undefined") else desc
    number = entry.get("pg_id")
    known = dump.groups.get(number) if isinstance(number, int) else None
    if known is None and isinstance(number, int):
        known = ProcessGroup(str(number), "")
    return (None, None) if known is None else (known.name, known.desc or None)


def _row(entry: dict[str, Any], dump: Dump, sites: CallSites) -> dict[str, Any]:
    profiled = text(entry.get("profiling_name"))
    named = _NAME.fullmatch(profiled[:4096] if profiled else "")
    assert named is not None  # it matches every text
    operation = named["operation"] or None
    group, desc = group_of(entry, dump)
    sequence = _whole(entry.get("collective_seq_id", entry.get("seq_id")))
    p2p = entry.get("is_p2p")
    p2p = p2p if isinstance(p2p, bool) else operation in ("send", "recv")
    site = sites.site(entry.get("frames"))
    own, peer = (None, None) if named["own"] is None else (_rank(named["own"]), _rank(named["peer"]))
    sends = named["way"] == "->"
    return {
        "record": _whole(entry.get("record_id")),
        "group": group,
        "group_desc": desc,
        "group_id": _whole(entry.get("pg_id")),
        "backend": named["backend"],
        "operation": operation,
        "profiling_name": profiled,
        "sequence": sequence,
        "p2p_sequence": _whole(entry.get("p2p_seq_id")),
        "operation_id": _whole(entry.get("op_id")),
        "sender": own if sends else peer,
        "receiver": peer if sends else own,
        "p2p": p2p,
        "state": text(entry.get("state")),
        "retired": entry["retired"] if isinstance(entry.get("retired"), bool) else None,
        "created_unix_ns": _time(entry.get("time_created_ns")) or _micros(entry.get("time_created_us")),
        "started_unix_ns": _time(entry.get("time_discovered_started_ns")),
        "completed_unix_ns": _time(entry.get("time_discovered_completed_ns")),
        "device_ns": _millis(entry.get("duration_ms")),
        "timeout_ns": _millis(entry.get("timeout_ms")),
        "input_sizes": _sizes(entry.get("input_sizes")),
        "input_types": _types(entry.get("input_dtypes")),
        "output_sizes": _sizes(entry.get("output_sizes")),
        "output_types": _types(entry.get("output_dtypes")),
        "source": site.source,
        "stack": site.stack,
        "thread": text(entry.get("thread_id")),
        "thread_name": text(entry.get("thread_name")),
    }


def _whole(value: object) -> int | None:
    return whole(value, 0, 2**63)


def _rank(digits: str) -> int | None:
    return whole(int(digits[:12]), 0, 2**31)


def _time(value: object) -> int | None:
    """Return a Unix time; JSON writes 0 where there is none."""
    return whole(value, 1, 2**63)


def _micros(value: object) -> int | None:
    found = whole(value, 1, 2**53)
    return None if found is None else 1000 * found


def _millis(value: object) -> int | None:
    found = finite(value, 9e12)
    return None if found is None or found < 0 else round(1e6 * found)


def _sizes(value: object) -> str | None:
    """Write the shapes of an entry's tensors as ``[[16], [4, 4]]``; None where they are not recorded."""
    if not isinstance(value, list) or len(value) > _MAX_TENSORS:
        return None
    shapes = []
    for shape in value:
        if not isinstance(shape, list) or len(shape) > _MAX_DIMS or any(type(n) is not int for n in shape):
            return None
        shapes.append(f"[{', '.join(map(str, shape))}]")
    return f"[{', '.join(shapes)}]"


def _types(value: object) -> str | None:
    """Write element types as torch names them: ``float32``; several with commas where they differ."""
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list) or len(value) > _MAX_TENSORS:
        return None
    names = [_TYPES.get(name, name) for name in value if isinstance(name, str)]
    if not names:
        return None
    return ", ".join(names if len(set(names)) > 1 else names[:1])[:4096]
