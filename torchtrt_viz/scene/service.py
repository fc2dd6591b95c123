"""Answers requests of a timeline's front end with plain data and binary buffers, independent of any widget.

Requests and answers are JSON objects. An answer with a ``frame`` has columns, which travel beside it in one
buffer; :mod:`torchtrt_viz.scene.wire` says which and how. Times on the wire count from the scene's origin,
so that they are exact in a double. What the front end asks at one moment comes as one ``batch``, and an
answer that names an event brings what is to be shown of it: in a notebook a message costs far more time than
what it asks for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz._native import native
from torchtrt_viz.errors import QueryError
from torchtrt_viz.model import schema
from torchtrt_viz.scene.chosen import totals_of
from torchtrt_viz.scene.counters import CounterSeries, counter_series
from torchtrt_viz.scene.details import details, links
from torchtrt_viz.scene.matching import by_name_alone, matching_names, matching_rows
from torchtrt_viz.scene.query import parse
from torchtrt_viz.scene.scene import Place, Rows, Scene, placed
from torchtrt_viz.scene.wire import pack, since

__all__ = ["Answer", "Service", "aggregates", "extent", "minimap"]

Answer = tuple[dict[str, Any], list[bytes]]
WIDE_PX = 24
MAX_AGGREGATES = 300
_MINIMAP_WIDTH = 1200
_NAMES_AT_ONCE = 1_000_000  # characters of names that are sent unasked
_TOP_NAMES = 60


class Service:
    """Answers requests about one scene.

    Parameters
    ----------
    scene
        What is drawn.
    whole_limit
        Up to so many events are sent at once when the front end opens; zooming then needs no kernel.
    story
        Tells how the event at a scene row came about; its answer goes to the front end as it is.

    Notes
    -----
    Requests may come from several threads at once (a notebook's messages run in a subshell while a cell
    runs): the scene never changes, and the marks (search and highlight) are replaced as a whole under a lock.
    """

    def __init__(
        self,
        scene: Scene,
        whole_limit: int = 300_000,
        story: Callable[[int], dict[str, Any] | None] | None = None,
    ) -> None:
        self.scene = scene
        self.whole_limit = whole_limit
        self._story = story
        self.counters: list[CounterSeries] = counter_series(scene.parts)
        self._lock = threading.Lock()
        self._marked_names: NDArray[np.uint8] | None = None
        self._marked_rows: NDArray[np.uint8] | None = None
        self._text: str | None = None  # the search that the marks belong to
        self._chosen: Rows = np.empty(0, np.int64)
        self._folded: tuple[bytes, NDArray[np.int64]] | None = None
        self._ops: dict[str, Callable[[dict[str, Any]], Answer]] = {
            "batch": self._batch,
            "open": self._open,
            "view": self._view,
            "hit": self._hit,
            "neighbour": self._neighbour,
            "locate": self._locate,
            "detail": self._detail,
            "links": self._links,
            "search": self._search,
            "step": self._step,
            "names": self._names,
            "counters": self._counters,
            "totals": self._totals,
            "marks": self._send_marks,
            "chosen": self._send_chosen,
        }

    def answer(self, request: dict[str, Any]) -> Answer:
        """Answer one request; an invalid request gets an answer with ``error``."""
        op = request.get("op")
        handler = self._ops.get(op) if isinstance(op, str) else None
        if handler is None:
            return {"error": f"unknown request {op!r}"}, []
        try:
            return handler(request)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            return {"error": f"{op}: {type(error).__name__}: {error}"}, []

    @property
    def whole(self) -> bool:
        """Whether the front end gets every event at once."""
        return int(self.scene.lane_end.max(initial=0)) <= self.whole_limit

    # -- marks ---------------------------------------------------------------------------------------

    def mark(
        self, *, text: str | None = None, names: NDArray[np.uint8] | None = None, rows: Rows | None = None
    ) -> int:
        """Mark what a search is for, or what has a byte in ``names``, or the scene ``rows``.

        With neither, nothing is marked. Returns how many events are.

        Raises
        ------
        QueryError
            When the search cannot be read; the marks stay as they are.
        """
        row_mask = None
        node = parse(text) if text else None
        if text and node is not None:
            with self._lock:
                if text == self._text:
                    return self._count(self._marked_names, self._marked_rows)
            if by_name_alone(node):
                names = matching_names(node, self.scene.names, self.matching)
            else:
                row_mask = matching_rows(node, self.scene, text)
        if rows is not None:
            row_mask = np.zeros(self.scene.blocks[-1].end if self.scene.blocks else 0, np.uint8)
            row_mask[rows] = 1
        with self._lock:
            self._marked_names, self._marked_rows, self._text = names, row_mask, text
        return self._count(names, row_mask)

    def _count(self, names: NDArray[np.uint8] | None, rows: NDArray[np.uint8] | None) -> int:
        index = self.scene.index
        if rows is not None:
            return int(index.count_marked(names, rows)[~self.scene.lane_is_cover].sum())
        return 0 if names is None else int(index.name_counts[names[: len(index.name_counts)] != 0].sum())

    def matching(self, text: str) -> NDArray[np.uint8]:
        """Return one byte per name: 1 where it contains ``text``, whatever the case."""
        if self._folded is None:
            parts = [name.casefold().encode("utf-8", "surrogatepass") for name in self.scene.names]
            ends = np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)))
            self._folded = b"".join(parts), np.concatenate([np.zeros(1, np.int64), ends])
        wanted = text.casefold().encode("utf-8", "surrogatepass")
        found: NDArray[np.uint8] = native("columns").names_with(*self._folded, wanted)
        return found

    @property
    def marks(self) -> tuple[NDArray[np.uint8] | None, NDArray[np.uint8] | None]:
        """What is marked: one byte per name, one per scene row; None where neither decides."""
        with self._lock:
            return self._marked_names, self._marked_rows

    # -- chosen events -------------------------------------------------------------------------------

    @property
    def chosen(self) -> Rows:
        """Scene rows that were chosen one by one: what neither one click nor a box can say."""
        with self._lock:
            return self._chosen

    def choose(self, rows: Rows) -> None:
        """Choose the events at scene rows."""
        with self._lock:
            self._chosen = np.unique(rows)

    # -- requests ------------------------------------------------------------------------------------

    def _batch(self, request: dict[str, Any]) -> Answer:
        """Answer several requests in their order; the buffers are those of the answers with a ``frame``."""
        answers: list[dict[str, Any]] = []
        buffers: list[bytes] = []
        for one in request["requests"]:
            if one.get("op") == "batch":
                raise ValueError("a batch cannot hold another")
            answer, own = self.answer(one)
            answers.append(answer)
            buffers += own
        return {"answers": answers}, buffers

    def _open(self, request: dict[str, Any]) -> Answer:
        scene = self.scene
        whole = self.whole
        texts = scene.names if whole or sum(map(len, scene.names)) <= _NAMES_AT_ONCE else None
        info = {
            "length": scene.length_ns,
            **extent(scene),
            "origin": str(scene.origin_ns),
            "synthetic": any(part.trace.meta.get("synthetic") for part in scene.parts),
            "tracks": [track.to_dict() for track in scene.tracks],
            "kinds": [*schema.KINDS, "event"],
            "kinds_of": {side: sorted(kinds) for side, kinds in scene.kinds_of.items()},
            "name_count": len(scene.names),
            "names": texts,
            "events": scene.blocks[-1].end if scene.blocks else 0,
            "counters": [series.to_dict() for series in self.counters],
            "aggregates": aggregates(scene),
            "whole": whole,
            "note": scene.note,
        }
        host, gpu = minimap(scene)
        columns: dict[str, NDArray[Any]] = {
            "host_busy": host,
            "gpu_busy": gpu,
            "name_color": scene.name_color,
            "name_kind": scene.name_kind,
        }
        if whole:
            start, dur, name, row = scene.index.whole()
            columns |= {
                "start": since(start, scene.origin_ns).astype(np.float64),
                "dur": dur.astype(np.float64),
                "name": name,
                "row": row,
                "lane_begin": scene.lane_begin,
                "lane_end": scene.lane_end,
            }
        frame, data = pack("open", columns)
        return {**info, "frame": frame}, [data]

    def _view(self, request: dict[str, Any]) -> Answer:
        scene = self.scene
        t0, t1 = self._range(request)
        width = min(max(int(request["width"]), 1), 4096)
        lanes = np.asarray(request["lanes"], np.int32)
        names, rows = self.marks
        px = (t1 - t0) / width
        found: dict[str, Any] = scene.index.view(
            t0, t1, width, lanes, max(64, width // 4), max(1, int(px * WIDE_PX)), names, rows
        )
        frame, data = pack(
            "view",
            {
                "mode": found["mode"],
                "span_begin": found["span_begin"],
                "start": since(found["span_start"], t0).astype(np.float32),
                "dur": found["span_dur"].astype(np.float32),
                "row": found["span_row"],
                "name": found["span_name"],
                "marked": found["span_marked"],
                "cell_busy": found["column_busy"],
                "cell_name": found["column_name"],
                "cell_marked": found["column_marked"],
                "names": found["names"],
            },
        )
        return {
            "t0": t0 - scene.origin_ns,
            "t1": t1 - scene.origin_ns,
            "width": width,
            "marked": names is not None or rows is not None,
            "frame": frame,
        }, [data]

    def _range(self, request: dict[str, Any]) -> tuple[int, int]:
        """Times of a request on the scene's clock; views reach a little beyond both ends, not further."""
        begin, end = extent(self.scene).values()
        slack = 2 * (end - begin)
        t0 = min(max(int(request["t0"]), begin - slack), end + slack)
        t1 = min(max(int(request["t1"]), t0 + 1), end + slack + 1)
        low, high = np.iinfo(np.int64).min, np.iinfo(np.int64).max
        t0 = min(max(t0 + self.scene.origin_ns, low), high - 1)
        return t0, min(max(t1 + self.scene.origin_ns, t0 + 1), high)

    def _hit(self, request: dict[str, Any]) -> Answer:
        time = int(request["t"]) + self.scene.origin_ns
        found = self.scene.index.hit(int(request["lane"]), time, int(request.get("tolerance", 0)))
        return self._found(found), []

    def _neighbour(self, request: dict[str, Any]) -> Answer:
        found = self.scene.index.neighbour(
            int(request["lane"]),
            int(request["start"]) + self.scene.origin_ns,
            int(request["row"]),
            int(request["step"]),
        )
        return self._found(found), []

    def _locate(self, request: dict[str, Any]) -> Answer:
        return {"place": self._place(self.scene.locate(int(request["row"])))}, []

    def _found(self, found: tuple[int, int, int, int] | None) -> dict[str, Any]:
        """Return where an event is, and what the front end shows of it."""
        if found is None:
            return {"place": None}
        row = found[0]
        return {
            "place": self._place(Place(*found)),
            "detail": self._details(row),
            "links": self._linked(row),
        }

    def _place(self, place: Place | None) -> dict[str, Any] | None:
        if place is None:
            return None
        part, block, frame_row = self.scene.event(place.row)
        frame = part.trace.spans if block.frame == "spans" else part.trace.instants
        return {
            "row": place.row,
            "lane": place.lane,
            "start": place.start_ns - self.scene.origin_ns,
            "dur": place.dur_ns,
            "name": str(frame["name"].iloc[frame_row]),
            "kind": str(frame["kind"].iloc[frame_row]),
        }

    def _detail(self, request: dict[str, Any]) -> Answer:
        return self._details(int(request["row"])), []

    def _details(self, row: int) -> dict[str, Any]:
        told = details(self.scene, row)
        story = None if self._story is None else self._story(row)
        return told if story is None else {**told, "story": story}

    def _links(self, request: dict[str, Any]) -> Answer:
        return self._linked(int(request["row"])), []

    def _linked(self, row: int) -> dict[str, Any]:
        found, total = links(self.scene, row)
        return {"links": [link.to_dict(self.scene.origin_ns) for link in found], "total": total}

    def _search(self, request: dict[str, Any]) -> Answer:
        text = str(request.get("text", ""))
        try:
            return {"text": text, "count": self.mark(text=text)}, []
        except QueryError as error:
            self.mark()
            return {"text": text, "count": 0, "wrong": {"at": error.at, "expected": error.expected}}, []

    def _send_marks(self, request: dict[str, Any]) -> Answer:
        names, rows = self.marks
        frame, data = pack("marks", {"names": names, "rows": rows})
        return {"frame": frame}, [data]

    def _send_chosen(self, request: dict[str, Any]) -> Answer:
        return totals_of(self.scene, self.chosen), []

    def _step(self, request: dict[str, Any]) -> Answer:
        names, rows = self.marks
        if names is None and rows is None:
            return {"place": None}, []
        lanes = np.asarray(request["lanes"], np.int32)
        forward = bool(request["forward"])
        index = self.scene.index
        time = min(
            max(int(request["t"]) + self.scene.origin_ns, self.scene.first_ns - 1), self.scene.last_ns + 1
        )
        row = int(request.get("row", -1))
        found = index.next_marked(lanes, time, int(request["lane"]), forward, names, rows, row)
        if found is None:  # around the end
            time = self.scene.first_ns if forward else self.scene.last_ns
            found = index.next_marked(lanes, time, -1, forward, names, rows)
        answer = self._found(found)
        if found is not None:
            answer["number"] = index.marked_until(lanes, found[2], found[1], found[0], names, rows)
        return answer, []

    def _names(self, request: dict[str, Any]) -> Answer:
        ids = [int(code) for code in request["ids"]][:5_000]
        names = self.scene.names
        return {"ids": ids, "names": [names[code] if 0 <= code < len(names) else "" for code in ids]}, []

    def _counters(self, request: dict[str, Any]) -> Answer:
        t0, t1 = self._range(request)
        width = min(max(int(request["width"]), 1), 4096)
        ids = [int(number) for number in request["ids"]]
        low = np.empty((len(ids), width), np.float32)
        high = np.empty((len(ids), width), np.float32)
        for at, number in enumerate(ids):
            low[at], high[at] = self.counters[number].view(t0, t1, width)
        frame, data = pack("counters", {"low": low.ravel(), "high": high.ravel()})
        return {
            "ids": ids,
            "t0": t0 - self.scene.origin_ns,
            "t1": t1 - self.scene.origin_ns,
            "width": width,
            "frame": frame,
        }, [data]

    def _totals(self, request: dict[str, Any]) -> Answer:
        t0, t1 = self.scene.clipped(int(request["t0"]), int(request["t1"]))
        lanes = self.scene.drawn(map(int, request["lanes"]))
        name, count, inside = self.scene.index.totals(t0, t1, lanes)
        order = np.argsort(-inside, kind="stable")[:_TOP_NAMES]
        return {
            "events": int(count.sum()),
            "names": len(name),
            "rows": [
                [self.scene.names[name[i]] if name[i] >= 0 else "", int(count[i]), int(inside[i])]
                for i in order
            ],
        }, []


def extent(scene: Scene) -> dict[str, int]:
    """Return where anything drawn ``begin``s and ``end``s, from the scene's origin, which is part of it."""
    return {
        "begin": min(0, scene.first_ns - scene.origin_ns),
        "end": max(scene.length_ns, scene.last_ns - scene.origin_ns),
    }


def minimap(scene: Scene, width: int = _MINIMAP_WIDTH) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the busy share over the whole length of the host's and the GPU's tracks, the mean of each."""
    out = []
    for section in ("host", "gpu"):
        busy = np.zeros(width, np.float64)
        tracks = [track for track in scene.tracks if track.section == section and track.busy_ns]
        for track in tracks:
            ns, _, _ = scene.index.columns(
                scene.origin_ns, scene.origin_ns + scene.length_ns, width, track.collapsed
            )
            busy += ns
        busy /= max(1, len(tracks)) * scene.length_ns / width
        out.append(np.minimum(busy, 1).astype(np.float32))
    return out[0], out[1]


def aggregates(scene: Scene, limit: int = MAX_AGGREGATES) -> dict[str, Any]:
    """Return the records without a place on the time axis, longest first, and how many there are.

    Those are sums over calls, times that cannot be true, and numbers in an unknown unit: ``timing`` says it.
    """
    rows: list[dict[str, Any]] = []
    total = 0
    for number, part in enumerate(scene.parts):
        spans = part.trace.spans
        some = spans[~placed(part.trace)]
        total += len(some)
        labels = part.trace.tracks["label"].tolist()
        for _, record in some.sort_values("dur_ns", ascending=False, kind="stable").head(limit).iterrows():
            track = int(record["track"])
            rows.append(
                {
                    "part": number,
                    "name": str(record["name"]),
                    "kind": str(record["kind"]),
                    "domain": "" if record["domain"] not in schema.DOMAINS else str(record["domain"]),
                    "timing": str(record["timing"]),
                    "dur": int(record["dur_ns"]),
                    "track": str(labels[track]) if 0 <= track < len(labels) else "",
                }
            )
    rows.sort(key=lambda record: -int(record["dur"]))
    return {"rows": rows[:limit], "total": total}
