"""Parts of files joined into engines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from torchtrt_viz.formats.engine.bindings import bindings_frame
from torchtrt_viz.formats.engine.info import LAYERS, EngineInfo
from torchtrt_viz.formats.engine.join import Join, join_names
from torchtrt_viz.formats.engine.notes import notes_of
from torchtrt_viz.formats.engine.parts import Part
from torchtrt_viz.formats.engine.torchtrt_calls import profile_of_calls
from torchtrt_viz.formats.engine.trex_graph import Graph, graph_of_names, layer_columns
from torchtrt_viz.formats.engine.trex_profile import Profile

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Group", "build_engine", "group_parts"]

_LEAST_OVERLAP = 0.9
#: Section of the metadata -> attribute of `EngineInfo` that holds it.
_SECTIONS = {
    name: name for name in ("performance", "inference_options", "build_options", "model_options", "device")
}


@dataclass
class Group:
    """Parts that are about one engine."""

    name: str
    graph: Part | None = None
    profile: Part | None = None
    timing: Part | None = None
    metadata: list[Part] = field(default_factory=list)
    devices: list[Part] = field(default_factory=list)
    phases: list[Part] = field(default_factory=list)
    calls: list[Part] = field(default_factory=list)

    @property
    def is_engine(self) -> bool:
        """Whether it says anything about layers or runs."""
        return any(part is not None for part in (self.graph, self.profile, self.timing)) or bool(self.calls)


def group_parts(parts: Iterable[Part]) -> list[Group]:
    """Bring together the parts of each engine.

    The stem of the file names decides. What is left over joins by content: layer times go to the layer
    information with the same names, timed runs and metadata to the only engine there is.
    """
    groups: dict[str, Group] = {}
    for part in parts:
        group = groups.setdefault(part.stem, Group(part.stem))
        if part.kind in ("graph", "profile", "timing"):
            number = 1
            while getattr(group, part.kind) is not None:
                number += 1
                group = groups.setdefault(f"{part.stem} ({number})", Group(f"{part.stem} ({number})"))
            setattr(group, part.kind, part)
        else:
            lists = {
                "metadata": group.metadata,
                "device": group.devices,
                "phase": group.phases,
                "calls": group.calls,
            }
            lists[part.kind].append(part)
    out = list(groups.values())
    _join_by_names(out)
    out = [group for group in out if group.is_engine or group.metadata or group.devices or group.phases]
    _attach_loose(out)
    return out


def _join_by_names(groups: list[Group]) -> None:
    """Give times without layer information the layer information without times whose names agree best."""
    graphs = [g for g in groups if g.graph is not None and g.profile is None and not g.calls]
    for group in [g for g in groups if g.profile is not None and g.graph is None]:
        names = set(group.profile.content.names) if group.profile else set()
        shares = [
            (len(names & set(g.graph.content.names)) / max(len(names), 1), -i)
            for i, g in enumerate(graphs)
            if g.graph is not None
        ]
        best, index = max(shares, default=(0.0, 0))
        if best < _LEAST_OVERLAP:
            continue
        home = graphs.pop(-index)
        group.graph, home.graph = home.graph, None
        group.timing = group.timing or home.timing
        group.metadata += home.metadata
        group.devices += home.devices
        group.phases += home.phases
        home.timing, home.metadata, home.devices, home.phases = None, [], [], []


def _attach_loose(groups: list[Group]) -> None:
    layered = [g for g in groups if g.graph is not None or g.profile is not None or g.calls]
    engines = [g for g in groups if g.is_engine]
    if len(layered) == 1 and layered[0].timing is None:
        timed = [g for g in groups if g.timing is not None]
        if len(timed) == 1:
            layered[0].timing, timed[0].timing = timed[0].timing, None
            engines = layered
    for group in list(groups):
        if group.is_engine:
            continue
        if len(engines) == 1:
            # several runs in one log are several things: the first is the engine's
            told = {part.source for part in engines[0].metadata}
            if not any(part.source in told for part in group.metadata):
                engines[0].metadata += group.metadata
                group.metadata = []
            engines[0].phases += group.phases
            group.phases = []
        for engine in engines:
            engine.devices += group.devices
        if engines:
            group.devices = []
        if not (group.metadata or group.devices or group.phases):
            groups.remove(group)


def build_engine(group: Group, run_id: str) -> EngineInfo:
    """Join the parts of one engine."""
    graph: Graph | None = None if group.graph is None else group.graph.content
    profile: Profile | None = None if group.profile is None else group.profile.content
    if profile is None and group.calls:
        profile = profile_of_calls([part.content for part in group.calls])
    layers, join = _layers(graph, profile)
    engine = EngineInfo(
        name=(profile.engine if profile is not None and profile.engine else group.name),
        run_id=run_id,
        layers=layers,
        bindings=bindings_frame(graph, layers),
        runtime=_runtime(graph, profile, [part.content.runtime for part in group.calls]),
        producer="unknown" if profile is None else profile.producer,
        count=None if profile is None else profile.count,
        timing=None if group.timing is None else group.timing.content,
        verbosity=None if graph is None else graph.verbosity,
        notes=[] if profile is None else list(profile.notes),
    )
    lists = (group.metadata, group.devices, group.phases, group.calls)
    for part in (group.graph, group.profile, group.timing, *(part for parts in lists for part in parts)):
        if part is not None:
            key = part.kind if part.kind not in engine.files else f"{part.kind} {part.source}"
            engine.files[key] = part.source
    for part in group.metadata:
        for section, content in part.content.items():
            held = _SECTIONS.get(section)
            if held is None:
                engine.other_sections.setdefault(section, {}).update(content)
            else:
                getattr(engine, held).update(content)
    if graph is not None and graph.header:
        engine.other_sections["layer_information"] = graph.header
    properties = [device for part in group.devices for device in part.content]
    if properties:
        engine.device["properties"] = properties
    engine.notes += notes_of(engine, join, None if profile is None else len(profile.names))
    return engine


def _runtime(graph: Graph | None, profile: Profile | None, said: list[str]) -> str:
    if profile is not None:
        said = [*said, profile.runtime]
    if graph is not None:
        said = said + [
            "host" for key in ("engine_runtime", "EngineRuntime") if graph.header.get(key) == "host"
        ]
    return "host" if "host" in said else "tensorrt"


def _layers(graph: Graph | None, profile: Profile | None) -> tuple[pd.DataFrame, Join | None]:
    """Make the frame of layers: those of the graph in order, then rows that only the times name."""
    columns = layer_columns(graph or graph_of_names([]))
    known = len(columns["name"])
    join: Join | None = None
    rows: list[int] = [-1] * known
    if profile is not None:
        join = join_names(columns["name"], profile.names)
        rows = join.times + join.left
        if join.left:
            bare = layer_columns(graph_of_names([profile.names[row] for row in join.left]))
            bare["layer"] = np.full(len(join.left), -1, np.int32)
            columns = {name: _appended(values, bare[name]) for name, values in columns.items()}
    count = len(rows)
    data: dict[str, Any] = {
        name: _missing(values) if LAYERS[name].dtype in ("Int32", "Int64") else values
        for name, values in columns.items()
    }
    data["occurrence"] = _occurrences(columns["name"])
    data["in_graph"] = np.arange(count) < known
    data["in_profile"] = np.asarray(rows, dtype=np.int64) >= 0
    data.update(_times(profile, rows))
    if profile is not None:
        for index, row in enumerate(rows):
            if row >= 0 and profile.details[row]:
                data["attributes"][index] = {**data["attributes"][index], **profile.details[row]}
    return LAYERS.frame(data, count), join


def _times(profile: Profile | None, rows: list[int]) -> dict[str, Any]:
    if profile is None:
        return {}
    out: dict[str, Any] = {
        column: [None if row < 0 else values[row] for row in rows]
        for column, values in (
            ("total_ms", profile.total_ms),
            ("average_ms", profile.average_ms),
            ("median_ms", profile.median_ms),
            ("percentage_recorded", profile.percentage),
        )
    }
    out["count"] = [
        None if row < 0 else profile.counts[row] if profile.counts[row] is not None else profile.count
        for row in rows
    ]
    out["average_ms"] = [
        average if average is not None or total is None or not count else total / count
        for average, total, count in zip(out["average_ms"], out["total_ms"], out["count"], strict=True)
    ]
    base = out["total_ms"] if any(t is not None for t in out["total_ms"]) else out["average_ms"]
    whole = sum(t for t in base if t is not None)
    out["percentage"] = [None if t is None or whole <= 0 else 100 * t / whole for t in base]
    return out


def _occurrences(names: list[str]) -> np.ndarray:
    """Count for each name how many earlier rows have it."""
    out = np.zeros(len(names), np.int32)
    if len(set(names)) < len(names):
        seen: dict[str, int] = {}
        for row, name in enumerate(names):
            out[row] = seen.get(name, 0)
            seen[name] = int(out[row]) + 1
    return out


def _appended(above: Any, below: Any) -> Any:
    if isinstance(above, list):
        return above + below
    return np.concatenate([above, below])


def _missing(values: np.ndarray) -> Any:
    """Return numbers with -1 as missing values."""
    import pandas as pd

    return pd.arrays.IntegerArray(values.astype(np.int64, copy=False), values < 0)
