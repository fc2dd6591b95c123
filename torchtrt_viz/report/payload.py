"""The timeline data of a page without a kernel: compact, and complete up to a stated limit.

A page holds up to ``max_spans`` events as they are. In a longer trace the shortest spans are merged:
neighbours of one lane become blocks that say how many spans they stand for and how much of the block is busy.
"""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.model import schema
from torchtrt_viz.model.optional_ints import filled
from torchtrt_viz.report.events.launch_stories import LaunchStories
from torchtrt_viz.scene.counters import counter_series
from torchtrt_viz.scene.scene import Scene
from torchtrt_viz.scene.service import aggregates, extent, minimap
from torchtrt_viz.scene.wire import pack, since

__all__ = ["DEFAULT_MAX_SPANS", "Payload", "payload"]

DEFAULT_MAX_SPANS = 1_000_000
_MAX_FLOWS = 1_000_000
_MAX_COUNTER_POINTS = 200_000
_MAX_ARGS = 20_000
_MAX_ARGS_BYTES = 3_000_000

# Details that say what was computed. Everything else (paths, environment, request texts, tensor values) stays
# out of a page that may be passed on.
ARG_KEYS = frozenset(
    {
        *("Input Dims", "Input type", "Input Strides", "Concrete Inputs", "Sequence number", "Fwd thread id"),
        *("grid", "block", "stream", "device", "registers per thread", "shared memory", "context"),
        *("warps per SM", "blocks per SM", "est. achieved occupancy %", "memory bandwidth (GB/s)"),
        *("bytes", "Bytes", "Total Allocated", "Total Reserved", "Device Id", "correlation", "External id"),
        *("Collective name", "In msg nelems", "Out msg nelems", "Group size", "dtype", "In split size"),
        *("Out split size", "op_type", "op_types", "module", "module_path", "nodes", "instruction"),
        *("delegate_id", "delegate_debug_id", "debug_handle", "engine", "layer_type", "precision"),
        *("formats", "shape", "shapes", "calls", "percent"),
        *("recovered", "graph", "batch", "mode", "ambiguous"),
    }
)


@dataclass(frozen=True)
class Payload:
    """``text`` goes into the page; ``events`` are in it one by one, ``merged`` only in blocks."""

    text: str
    events: int
    merged: int
    left_out: str


def payload(scene: Scene, *, max_spans: int = DEFAULT_MAX_SPANS) -> Payload:
    """Encode what the page's timeline draws."""
    columns, merged, blocks, threshold = _columns(scene, max_spans)
    drawn = ~scene.lane_is_cover
    events = int((columns["lane_end"][drawn] - columns["lane_begin"][drawn]).sum()) - blocks
    known = columns["row"] < _events(scene)
    more, runs = _more(scene, columns["row"][known])
    more["covered"] = np.where(more["self"] < 0, 0, columns["dur"][known] - more.pop("self"))
    of_name = np.append(scene.name_kind.astype(np.int64), 0)
    more["kind"] = np.where(more["kind"] < 0, 0, more["kind"] - of_name[columns["name"][known]])
    for name, values in more.items():
        columns[name] = np.full(len(columns["row"]), 0 if name in ("covered", "kind") else -1, np.int64)
        columns[name][known] = values
    source, target, (flow_name, flow_names), flows_left = _flows(scene, columns["row"])
    stories, story_texts = LaunchStories(scene).columns()
    present = np.isin(stories["row"], columns["row"][known])
    host, gpu = minimap(scene)
    counters, samples, counter_note = _counters(scene)
    frame, data = pack(
        "page",
        {
            **columns,
            **samples,
            **{f"story_{name}": values[present] for name, values in stories.items()},
            "host_busy": _shares(host),
            "gpu_busy": _shares(gpu),
            "name_color": scene.name_color,
            "name_kind": scene.name_kind,
            "flow_source": source,
            "flow_target": target,
            "flow_name": flow_name,
        },
    )
    used = set(np.unique(columns["name"]).tolist())
    texts = [name if code in used else "" for code, name in enumerate(scene.names)]
    words = []
    if merged:
        words.append(f"{merged:,} spans shorter than {threshold:,} ns are merged into {blocks:,} blocks")
    if flows_left:
        words.append(f"{flows_left:,} links are left out")
    if counter_note:
        words.append(counter_note)
    left_out = "; ".join(words)
    head: dict[str, Any] = {
        "length": scene.length_ns,
        **extent(scene),
        "origin": str(scene.origin_ns),
        "synthetic": any(part.trace.meta.get("synthetic") for part in scene.parts),
        "tracks": [track.to_dict() for track in scene.tracks],
        "kinds": [*schema.KINDS, "event"],
        "kinds_of": {side: sorted(kinds) for side, kinds in scene.kinds_of.items()},
        "names": texts,
        "flow_names": flow_names,
        "runs": runs,
        "stories": story_texts,
        "events": events,
        "aggregates": aggregates(scene),
        "counters": counters,
        "left_out": left_out,
        "note": scene.note,
        "args": _args(scene, columns["row"][known], columns["dur"][known]),
        "frame": frame,
    }
    body = json.dumps(head, separators=(",", ":")).encode()
    body += b" " * (-len(body) % 8)  # the columns behind it stay aligned
    packed = zlib.compressobj(6, zlib.DEFLATED, 31)
    made = [packed.compress(part) for part in (len(body).to_bytes(8, "little"), body, data)]
    text = base64.b64encode(b"".join([*made, packed.flush()])).decode("ascii")
    return Payload(text, events, merged, left_out)


def _events(scene: Scene) -> int:
    return scene.blocks[-1].end if scene.blocks else 0


def _shares(values: NDArray[np.float32]) -> NDArray[np.uint8]:
    shares: NDArray[np.uint8] = np.ceil(values * 255).astype(np.uint8)
    return shares


def _columns(scene: Scene, max_spans: int) -> tuple[dict[str, NDArray[Any]], int, int, int]:
    """Return the columns lane after lane, how many spans are merged, into how many blocks, and the limit."""
    start, dur, name, row = scene.index.whole()
    start = since(start, scene.origin_ns)
    columns: dict[str, NDArray[Any]] = {
        "start": start,
        "dur": dur,
        "name": name.astype(np.int64),
        "row": row.astype(np.int64),
        "lane_begin": scene.lane_begin.astype(np.int64),
        "lane_end": scene.lane_end.astype(np.int64),
    }
    if _events(scene) <= max_spans:  # the lanes of collapsed tracks come on top
        return columns, 0, 0, 0
    order = np.concatenate([np.arange(b, e) for b, e in zip(scene.lane_begin, scene.lane_end, strict=True)])
    lane = np.repeat(
        np.arange(len(scene.lane_begin)), scene.lane_end.astype(np.int64) - scene.lane_begin.astype(np.int64)
    )
    start, dur, name, row = (values[order] for values in (start, dur, columns["name"], columns["row"]))
    end = start + dur
    begins, short, threshold = _blocks(start, end, dur, lane, max_spans, scene.length_ns)
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(start)) - 1
    stands = last - first + 1
    block = short[first] & (stands > 1)
    busy = np.add.reduceat(dur, first)
    extent = end[last] - start[first]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(block & (extent > 0), np.clip(np.ceil(255 * busy / extent), 1, 255), 255)
    longest = _longest_of(dur, first, last)
    merged_row = np.where(block, _events(scene) + np.cumsum(block) - 1, row[first])
    lanes = lane[first]
    counts = np.bincount(lanes, minlength=len(scene.lane_begin))
    ends = np.cumsum(counts)
    return (
        {
            "start": start[first],
            "dur": extent,
            "name": name[longest],
            "row": merged_row,
            "share": share.astype(np.uint8),
            "stands": stands,
            "lane_begin": ends - counts,
            "lane_end": ends,
        },
        int(stands[block].sum()),
        int(block.sum()),
        threshold,
    )


def _blocks(
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    dur: NDArray[np.int64],
    lane: NDArray[Any],
    most: int,
    length: int,
) -> tuple[NDArray[Any], NDArray[Any], int]:
    """Choose what is kept and what is merged so that at most ``most`` rows remain.

    A block ends before a kept span, another lane or a gap too wide to hide. Narrow gaps are tried first, then
    wider ones, then fewer kept spans: between any two of these there may be a block.

    Returns
    -------
    tuple
        Where a row begins, which spans are merged, and the duration from which on spans are kept.
    """
    for share in (0.75, 0.6, 0.48, 0.36, 0.24, 0.12, 0.0):
        keep = int(most * share)
        threshold = int(np.partition(dur, len(dur) - keep - 1)[len(dur) - keep - 1]) + 1
        short = dur < threshold
        joint = short[1:] & short[:-1] & (lane[1:] == lane[:-1])
        gap = max(1, length // 50_000)
        while gap <= length // 500 or (share < 0.2 and gap <= 4 * length):
            begins = np.ones(len(start), bool)
            begins[1:] = ~(joint & (start[1:] - end[:-1] <= gap))
            if int(begins.sum()) <= most:
                return begins, short, threshold
            gap *= 4
    raise ValueError(f"the trace has more lanes than max_spans={most}: raise it")


def _longest_of(dur: NDArray[np.int64], first: NDArray[Any], last: NDArray[Any]) -> NDArray[Any]:
    """Return the position of the longest value of every run [first, last]."""
    most = np.repeat(np.maximum.reduceat(dur, first), last - first + 1)
    at = np.where(dur == most, np.arange(len(dur)), len(dur))
    positions: NDArray[Any] = np.minimum.reduceat(at, first)
    return positions


def _more(scene: Scene, rows: NDArray[np.int64]) -> tuple[dict[str, NDArray[np.int64]], list[str]]:
    """Return what else is said of scene rows (-1 for nothing), and the texts of their runs."""
    names = ("self", "iteration", "depth", "kind", "run", "correlation")
    out = {name: np.full(len(rows), -1, np.int64) for name in names}
    runs: list[str] = []
    for block in scene.blocks:
        mine = (rows >= block.begin) & (rows < block.end)
        if not mine.any():
            continue
        trace = scene.parts[block.part].trace
        at = block.frame_rows(rows[mine])
        if block.frame != "spans":
            out["kind"][mine] = trace.instants["kind"].cat.codes.to_numpy()[at]
            continue
        spans = trace.spans
        out["kind"][mine] = spans["kind"].cat.codes.to_numpy()[at]
        out["self"][mine] = spans["self_ns"].to_numpy()[at]
        for name in ("iteration", "depth", "correlation"):
            if name in spans.columns:
                out[name][mine] = filled(spans[name])[at]
        if "run_id" in spans.columns:
            codes = spans["run_id"].cat.codes.to_numpy()[at].astype(np.int64)
            out["run"][mine] = np.where(codes < 0, -1, codes + len(runs))
            runs += [str(text) for text in spans["run_id"].cat.categories]
    return out, runs


def _flows(
    scene: Scene, shown: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], tuple[NDArray[np.int64], list[str]], int]:
    present = np.zeros(_events(scene), bool)
    present[shown[shown < len(present)]] = True
    sources, targets, codes = [], [], []
    names: list[str] = []
    for block in scene.blocks:
        if block.frame != "spans":
            continue
        flows = scene.parts[block.part].trace.flows
        if flows.empty:
            continue
        spans = len(scene.parts[block.part].trace.spans)
        to_scene = np.full(spans + 1, -1, np.int64)
        rows = np.arange(spans) if block.rows is None else block.rows
        to_scene[rows] = np.arange(block.begin, block.end)
        source = to_scene[filled(flows["source"])]
        target = to_scene[filled(flows["target"])]
        both = (source >= 0) & (target >= 0)
        both[both] = present[source[both]] & present[target[both]]
        codes.append(flows["name"].cat.codes.to_numpy()[both].astype(np.int64) + len(names))
        names += [str(name) for name in flows["name"].cat.categories]
        sources.append(source[both])
        targets.append(target[both])
    empty = np.empty(0, np.int64)
    source, target, code = (
        np.concatenate(values) if values else empty for values in (sources, targets, codes)
    )
    left = max(0, len(source) - _MAX_FLOWS)
    return source[:_MAX_FLOWS], target[:_MAX_FLOWS], (code[:_MAX_FLOWS], names), left


def _counters(scene: Scene) -> tuple[list[dict[str, Any]], dict[str, NDArray[Any]], str]:
    """Return what each counter is, the samples of all of them in columns, and what is left out."""
    kept = []
    points = 0
    dropped = 0
    for series in counter_series(scene.parts):
        points += len(series.ts_ns)
        if points > _MAX_COUNTER_POINTS:
            dropped += 1
        else:
            kept.append(series)
    values = np.concatenate([np.empty(0), *(series.value for series in kept)]).astype(np.float64)
    samples = {
        "counter_end": np.cumsum(np.array([len(series.ts_ns) for series in kept], np.int64)),
        "counter_time": np.concatenate(
            [np.empty(0, np.int64), *(since(series.ts_ns, scene.origin_ns) for series in kept)]
        ),
        "counter_value": np.where(np.isfinite(values), values, np.nan),
    }
    note = f"{dropped} counters are left out" if dropped else ""
    return [series.to_dict() for series in kept], samples, note


def _args(scene: Scene, rows: NDArray[np.int64], dur: NDArray[np.int64]) -> dict[str, dict[str, str]]:
    """Return the allowed details of the longest events, as text, within a budget."""
    out: dict[str, dict[str, str]] = {}
    size = 0
    chosen = np.unique(rows[np.argsort(-dur, kind="stable")[:_MAX_ARGS]])
    for block in scene.blocks:
        trace = scene.parts[block.part].trace
        mine = chosen[(chosen >= block.begin) & (chosen < block.end)]
        args = trace.args if block.frame == "spans" else trace.instant_args
        for row, found in zip(mine, args.read(block.frame_rows(mine)), strict=True):
            allowed = {key: str(value)[:400] for key, value in found.items() if key in ARG_KEYS}
            size += sum(len(key) + len(text) + 6 for key, text in allowed.items())
            if size > _MAX_ARGS_BYTES:
                return out
            if allowed:
                out[str(int(row))] = allowed
    return out
