"""Profiles of ONNX Runtime: its nodes as operators, its runs as executions of a method.

The profiler of a session writes trace events of four categories: Session (loading, initialization, runs),
Node (a node of the graph, named after it, with the type of its operator in the arguments), and of execution
providers on a GPU Kernel and Api. Versions before 1.14 put a fence before and behind each node. Times are
whole microseconds since the profiling began. Events of a provider stand in the file behind the event that
launched them, and repeat its name (``parent_name``, since 1.14) and its operator (``op_name``).

Nodes that a provider compiled (TensorRT, OpenVINO, QNN, ...) run a part of the graph as one call: they are
delegates.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.formats.kineto.onnxruntime_args import NODE_ENDING, ProfileArgs
from torchtrt_viz.formats.kineto.rounded_nesting import nest_rounded
from torchtrt_viz.formats.producers.work_names import kind_on_device
from torchtrt_viz.model.schema import DOMAINS, KINDS

if TYPE_CHECKING:
    from torchtrt_viz.formats.kineto.args import EventArgs
    from torchtrt_viz.formats.kineto.tracks import Lane

__all__ = ["Profile", "is_profile", "shaped"]

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

_CATEGORIES = frozenset({"Session", "Node", "Kernel", "Api"})
_SESSION_EVENTS = frozenset(
    {"model_run", "session_initialization", "SequentialExecutor::Execute", "ParallelExecutor::Execute"}
)
_RUN = "model_run"
_NODE_EVENT = re.compile(r".*_(kernel_time|fence_before|fence_after)\Z", re.DOTALL)
_FENCES = ("_fence_before", "_fence_after")
_OPERATOR, _METHOD, _DELEGATE, _OTHER, _ANNOTATION, _KERNEL = (
    KINDS.index(kind) for kind in ("operator", "method", "delegate", "other", "annotation", "kernel")
)
_GPU = DOMAINS.index("gpu")
#: Providers whose nodes are parts of the graph that they compiled.
_COMPILING = re.compile(
    r"(Tensorrt|NvTensorRTRTX|QNN|OpenVINO|CoreML|Nnapi|MIGraphX|VitisAI|SNPE|Rknpu|CANN|Tvm)\w*ExecutionProvider"
)
#: What such providers run one by one all the same.
_COPIES = ("MemcpyFromHost", "MemcpyToHost")
_SAMPLED = 64
_MOST_STREAMS = 4096
_POOL = re.compile(r"session-\d{1,9}")


@dataclass(frozen=True)
class Profile:
    """What a profile is besides its events.

    Attributes
    ----------
    described
        For ``trace.meta["onnxruntime"]``.
    run_ids
        Names of sessions and compiled nodes, and which of them each span belongs to (-1 none).
    overlaps
        Spans that cut into another one.
    """

    described: dict[str, Any]
    run_ids: tuple[list[str], NDArray[np.int32]]
    args: ProfileArgs
    lanes: list[Lane]
    overlaps: int


def is_profile(categories: Mapping[str | None, int], names: Sequence[str]) -> bool:
    """Tell whether events of these categories and names are a profile of ONNX Runtime."""
    found = set(categories)
    if not found or not found <= _CATEGORIES or not found & {"Session", "Node"}:
        return False
    return any(
        name in _SESSION_EVENTS or name.startswith("model_loading") or _NODE_EVENT.match(name)
        for name in names
    )


def shaped(spans: dict[str, Any], lanes: Sequence[Lane], args: EventArgs) -> Profile:
    """Rename, classify, nest and join the spans of a profile in place.

    Parameters
    ----------
    spans
        The decoder's columns: name, kind, domain, track, start_ns, dur_ns, offset, ...
    args
        The events' arguments, by row.
    """
    names, codes = list(spans["name"][0]), np.asarray(spans["name"][1])
    count = len(codes)
    on_gpu = spans["domain"] == _GPU
    stems = _Stems(names, codes)
    host = np.flatnonzero(~on_gpu & (stems.node | stems.fence))
    op = _column(args, host, "op_name", count)
    provider = _column(args, np.flatnonzero(stems.node & ~on_gpu), "provider", count)
    kind = np.array(spans["kind"], copy=True)
    kind[stems.run & ~on_gpu] = _METHOD
    kind[(kind == _OPERATOR) & ~stems.node] = _ANNOTATION
    kind[stems.fence & ~on_gpu] = _OTHER
    compiled = _compiled(provider, op) & stems.node & ~on_gpu
    kind[compiled] = _DELEGATE
    kind = _device_kinds(kind, on_gpu, names, codes)
    joined = _joined(spans, args, on_gpu, stems, op)
    all_lanes, track = _streams(spans, lanes, args, on_gpu)
    parent, depth, own, overlaps = nest_rounded(track, spans["start_ns"], spans["dur_ns"])
    said = _names(names, codes, stems, op)
    session = _session(args, np.flatnonzero(stems.node & ~on_gpu))
    run_ids = _run_ids(session, compiled, said)
    spans.update(
        name=said,
        kind=kind,
        track=track,
        parent=parent,
        depth=depth,
        self_ns=own,
        external_id=joined.ids,
        iteration=_iterations(spans["start_ns"], parent, np.flatnonzero(kind == _METHOD)),
    )
    runs = int((kind == _METHOD).sum())
    described = {
        "session": session,
        "runs": runs,
        "nodes": int(((kind == _OPERATOR) | compiled).sum()),
        "providers": _counted(provider),
        "device_events": {"joined": joined.number, "without_node": int(on_gpu.sum()) - joined.number},
    }
    nodes = (stems.nodes, np.where(on_gpu, -1, stems.code))
    return Profile(described, run_ids, ProfileArgs(args, nodes, compiled), all_lanes, overlaps)


class _Stems:
    """What each event's name says: the node, and whether it is its execution or a fence around it."""

    def __init__(self, names: Sequence[str], codes: NDArray[Any]) -> None:
        self.nodes: list[str] = []
        number: dict[str, int] = {}
        of_name = np.full(len(names) + 1, -1, np.int32)
        what = np.zeros(len(names) + 1, np.int8)
        for code, name in enumerate(names):
            if name.endswith(NODE_ENDING):
                what[code], stem = 1, name.removesuffix(NODE_ENDING)
            elif name.endswith(_FENCES):
                what[code], stem = 2, name.rpartition("_fence_")[0]
            else:
                what[code] = 3 if name == _RUN else 0
                continue
            of_name[code] = number.setdefault(stem, len(number))
        self.nodes = list(number)
        self.code: NDArray[np.int32] = of_name[codes]
        self.node: Mask = what[codes] == 1
        self.fence: Mask = what[codes] == 2
        self.run: Mask = what[codes] == 3


@dataclass(frozen=True)
class _Column:
    """A text argument of all spans: values, and the code of each span, -1 none."""

    texts: list[str]
    codes: NDArray[np.int64]


def _column(args: EventArgs, rows: Ints, key: str, count: int) -> _Column:
    found, values = args.values(rows, key)
    texts: dict[str, int] = {}
    known = [_whole(value) if isinstance(value, str) and value else None for value in values]
    table = np.array([*(-1 if v is None else texts.setdefault(v, len(texts)) for v in known), -1], np.int64)
    codes = np.full(count, -1, np.int64)
    codes[rows] = table[found]
    return _Column(list(texts), codes)


def _whole(text: str) -> str:
    """Replace halves of surrogate pairs, as the names of events have them replaced."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _counted(column: _Column) -> dict[str, int]:
    numbers = np.bincount(column.codes[column.codes >= 0], minlength=len(column.texts))
    return dict(zip(column.texts, numbers.tolist(), strict=True))


def _compiled(provider: _Column, op: _Column) -> Mask:
    compiling = np.array([*(_COMPILING.fullmatch(text) is not None for text in provider.texts), False])
    copies = np.array([*(text in _COPIES for text in op.texts), False])
    out: Mask = compiling[provider.codes] & ~copies[op.codes]
    return out


def _device_kinds(
    kind: NDArray[Any], on_gpu: Mask, names: Sequence[str], codes: NDArray[Any]
) -> NDArray[Any]:
    """Tell copies and fills from kernels, all of which are of category Kernel."""
    rows = np.flatnonzero(on_gpu & (kind == _KERNEL))
    table = np.full(len(names) + 1, -1, np.int16)
    for code in np.unique(codes[rows]).tolist():
        table[code] = kind_on_device(names[code])
    better = table[codes[rows]]
    kind[rows[better >= 0]] = better[better >= 0].astype(kind.dtype)
    return kind


@dataclass(frozen=True)
class _Joined:
    """Ids that nodes and the device's events that they launched have in common (-1 none)."""

    ids: Ints
    number: int


def _joined(spans: dict[str, Any], args: EventArgs, on_gpu: Mask, stems: _Stems, op: _Column) -> _Joined:
    """Join the device's events to the node behind whose event they stand, where their arguments agree."""
    count = len(on_gpu)
    ids = np.full(count, -1, np.int64)
    device = np.flatnonzero(on_gpu)
    if not len(device):
        return _Joined(ids, 0)
    names, codes = spans["name"]
    in_file = np.argsort(spans["offset"], kind="stable")
    place = np.empty(count, np.int64)
    place[in_file] = np.arange(count)
    before = np.maximum.accumulate(np.where(on_gpu[in_file], -1, np.arange(count)))
    owner = np.where(before[place[device]] >= 0, in_file[before[place[device]]], -1)
    parent = _column(args, device, "parent_name", count)
    of_op = _column(args, device, "op_name", count)
    code_of = {name: code for code, name in enumerate(names)}
    stated = np.array([*(code_of.get(text, -2) for text in parent.texts), -1], np.int64)[parent.codes[device]]
    op_of = {text: code for code, text in enumerate(op.texts)}
    operator = np.array([*(op_of.get(text, -2) for text in of_op.texts), -1], np.int64)[of_op.codes[device]]
    known = owner >= 0
    by_name = known & (stated >= 0) & (codes[owner] == stated)
    by_op = known & (stated == -1) & (operator >= 0) & (op.codes[owner] == operator)
    # of a fence, its node is the next event of that node
    behind = _next_execution(in_file, place, stems, owner)
    target = np.where(stems.node[owner], owner, np.where(stems.fence[owner], behind, owner))
    found = (by_name | by_op) & (target >= 0)
    found &= stems.node[np.maximum(target, 0)] | by_name
    rows, targets = device[found], target[found]
    distinct, number = np.unique(targets, return_inverse=True)
    ids[distinct] = np.arange(1, len(distinct) + 1)
    ids[rows] = number + 1
    return _Joined(ids, len(rows))


def _next_execution(in_file: Ints, place: Ints, stems: _Stems, owner: Ints) -> Ints:
    """Return for fences the execution of their node that follows in the file, -1 where none does."""
    count = len(in_file)
    nodes = np.where(stems.node[in_file], np.arange(count), count)
    following = np.minimum.accumulate(nodes[::-1])[::-1]
    at = following[place[np.maximum(owner, 0)]]
    row = np.where(at < count, in_file[np.minimum(at, count - 1)], -1)
    same = stems.code[np.maximum(row, 0)] == stems.code[np.maximum(owner, 0)]
    return np.where((row >= 0) & same, row, -1)


def _streams(
    spans: dict[str, Any], lanes: Sequence[Lane], args: EventArgs, on_gpu: Mask
) -> tuple[list[Lane], NDArray[np.int32]]:
    """Give each stream a lane: the writer puts all device work under process and thread -1."""
    track = np.array(spans["track"], np.int32)
    out = list(lanes)
    device = np.flatnonzero(on_gpu)
    if not len(device):
        return out, track
    codes, values = args.values(device, "stream")
    texts = [_whole(str(v)) if isinstance(v, (str, int)) and v != "" else None for v in values]
    streams = list(dict.fromkeys(text for text in texts if text is not None))
    if not streams or len(streams) > _MOST_STREAMS:
        return out, track
    processes = {lane[1] for at, lane in enumerate(lanes) if lane[0] == "thread" and lane[1] != "-1"}
    process = processes.pop() if len(processes) == 1 else "-1"
    number = {text: len(out) + at for at, text in enumerate(streams)}
    out += [("stream", process, text, None, None) for text in streams]
    table = np.array([*(number.get(text, -1) if text else -1 for text in texts), -1], np.int32)[codes]
    track[device[table >= 0]] = table[table >= 0]
    return out, track


def _names(
    names: Sequence[str], codes: NDArray[Any], stems: _Stems, op: _Column
) -> tuple[list[str], NDArray[np.int32]]:
    """Name executions of nodes by the operator, and by the node where the file does not say it."""
    named = stems.node & (op.codes >= 0)
    bare = stems.node & (op.codes < 0)
    texts: dict[str, int] = {}
    tables = [
        np.array([*(texts.setdefault(text, len(texts)) for text in part), -1], np.int32)
        for part in (names, op.texts, [stem or "(unnamed node)" for stem in stems.nodes])
    ]
    out = tables[0][codes]
    out[named] = tables[1][op.codes[named]]
    out[bare] = tables[2][stems.code[bare]]
    used = np.unique(out[out >= 0])
    small = np.full(len(texts) + 1, -1, np.int32)
    small[used] = np.arange(len(used))
    every = list(texts)
    return [every[code] for code in used.tolist()], small[out]


def _session(args: EventArgs, rows: Ints) -> str | None:
    """Return the name of the session, out of the names of its pools of threads."""
    _, values = args.values(rows[:_SAMPLED], "thread_scheduling_stats")
    for value in values:
        main = value.get("main_thread") if isinstance(value, dict) else None
        pool = main.get("thread_pool_name") if isinstance(main, dict) else None
        found = _POOL.match(pool) if isinstance(pool, str) else None
        if found is not None:
            return found[0]
    return None


def _run_ids(
    session: str | None, compiled: Mask, said: tuple[list[str], NDArray[np.int32]]
) -> tuple[list[str], NDArray[np.int32]]:
    """Name the instance that each span belongs to: the compiled part of the graph, else the session."""
    texts = [] if session is None else [session]
    out = np.full(len(compiled), 0 if session is not None else -1, np.int32)
    for code in np.unique(said[1][compiled]).tolist():
        out[compiled & (said[1] == code)] = len(texts)
        texts.append(said[0][code])
    return texts, out


def _iterations(start: Ints, parent: Ints, runs: Ints) -> Ints:
    """Return the number of the run that each span lies in, by start; -1 outside of runs."""
    out = np.full(len(start), -1, np.int64)
    ordered = runs[np.argsort(start[runs], kind="stable")]
    out[ordered] = np.arange(len(ordered))
    above = parent
    for _ in range(len(start)):
        open_rows = np.flatnonzero((out < 0) & (above >= 0))
        if not len(open_rows):
            break
        out[open_rows] = out[above[open_rows]]
        following = np.full(len(start), -1, np.int64)
        following[open_rows] = parent[above[open_rows]]
        above = following
    return out
