"""Charts of a trace, each a plain plotly ``Figure`` that shows anywhere and can be changed freely.

Cool colours are host time, warm colours GPU time, as in the timeline; no chart adds the two up. Names come
from files: they are escaped, since plotly reads some markup.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from torchtrt_viz.analysis import delegate_gaps, flame_graph, idle_gaps, phases_by_call
from torchtrt_viz.analysis import iterations as table
from torchtrt_viz.analysis.device.host_gpu_time import host_gpu as host_gpu_table
from torchtrt_viz.analysis.device.memory_use import memory as memory_table
from torchtrt_viz.analysis.device.operator_tables import kernels as kernel_table
from torchtrt_viz.analysis.engine.delegate_calls import UNATTRIBUTED
from torchtrt_viz.analysis.engine.layer_table import layers as layer_table
from torchtrt_viz.errors import MissingDependencyError, OptionError
from torchtrt_viz.report.columns import duration, one_line

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["CHARTS", "gaps", "host_gpu", "iterations", "kernels", "layers", "memory", "modules", "phases"]

HOST = ("#2f6db5", "#2b8a86", "#6c72c0", "#3b9cc4", "#73879c", "#5a75bd", "#3f9e7d", "#8fb2d9")
GPU = ("#d3731f", "#b5532c", "#cfa11f", "#9c6f3c", "#c46a54", "#a98060", "#b98a14", "#a8584a")
_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
_LONGEST_LABEL = 46


def layers(
    trace: TraceData, *, engine: str | None = None, top: int = 30, height: int | None = None
) -> go.Figure:
    """Layers of the engines by time, longest first; colours say host or GPU.

    Parameters
    ----------
    engine
        Only this engine (a value of the column ``engine``).
    top
        At most so many layers; the title says how many there are.
    height
        Of the figure in pixels.

    Raises
    ------
    OptionError
        For an engine that the trace does not have.
    """
    frame = layer_table(trace)
    if engine is not None:
        known = frame["engine"].dropna().unique().tolist()
        if engine not in known:
            raise OptionError("engine", engine, f"one of {known}")
        frame = frame[frame["engine"] == engine]
    frame = frame[frame["total_ns"].notna()]
    shown = frame.sort_values("total_ns", ascending=False, kind="stable").head(top)
    title = f"Layers by time ({len(shown)} of {len(frame)})" if len(frame) > top else "Layers by time"
    return _bars(shown, title, height)


def kernels(trace: TraceData, *, top: int = 30, height: int | None = None) -> go.Figure:
    """Device work by name: sums of durations on the GPU, which is not wall time where streams overlap."""
    frame = kernel_table(trace)
    shown = frame.head(top).assign(domain="gpu")
    return _bars(shown, "GPU work by name, sums of durations", height)


def phases(trace: TraceData, *, delegate: str | None = None, height: int = 380) -> go.Figure:
    """Phases of every delegate call, stacked per call in the order of time: host time.

    Parameters
    ----------
    delegate
        Only this delegate (a ``run_id``); by default the one with the most calls.

    Raises
    ------
    OptionError
        For a delegate that the trace does not have.
    """
    frame = phases_by_call(trace)
    calls = frame.drop_duplicates("call_row")
    names = calls["delegate"].dropna()
    if delegate is not None and delegate not in set(names):
        raise OptionError("delegate", delegate, f"one of {sorted(set(names))}")
    if delegate is None and len(names):
        delegate = str(names.value_counts().index[0])
    frame, calls = frame[frame["delegate"] == delegate], calls[calls["delegate"] == delegate]
    figure = _figure(f"Phases per call of {_label(delegate or 'delegates')} (host time)", height)
    scale, unit = _scale(calls["call_dur_ns"])
    phases_in_order = [name for name in frame["phase"].unique() if name != UNATTRIBUTED]
    for at, name in enumerate([*phases_in_order, UNATTRIBUTED]):
        rows = frame[frame["phase"] == name]
        rest = name == UNATTRIBUTED
        figure.add_bar(
            x=rows["call"].tolist(),
            y=(rows["dur_ns"] / scale).tolist(),
            name="outside phases" if rest else _label(name),
            marker_color="#c3cad2" if rest else HOST[at % len(HOST)],
            customdata=[duration(value) for value in rows["dur_ns"]],
            hovertemplate="call %{x}: %{customdata} host time<extra>%{fullData.name}</extra>",
        )
    if calls.empty:
        _say_nothing(figure, "no delegate calls were recorded: profile(level='phases') does")
    figure.update_layout(barmode="stack", bargap=0.15)
    figure.update_xaxes(title="call")
    figure.update_yaxes(title=f"host time [{unit}]")
    return figure


def host_gpu(trace: TraceData, *, height: int = 380) -> go.Figure:
    """Where the whole window went on either side: shares that overlap, and are not to be added."""
    frame = host_gpu_table(trace)
    frame = frame[frame["pct"].notna() & (frame["measure"] != "window")]
    figure = _figure("Host and GPU: share of the whole window (shares overlap)", height)
    color = {"host": HOST[0], "gpu": GPU[0], "both": "#7a6a9c"}
    many = frame["device"].nunique() > 1
    labels = [
        f"{measure} (GPU {device})" if many and device >= 0 else measure
        for measure, device in zip(frame["measure"], frame["device"].fillna(-1).astype(int), strict=True)
    ]
    figure.add_bar(
        orientation="h",
        y=[_label(label) for label in labels][::-1],
        x=frame["pct"].astype(float).tolist()[::-1],
        marker_color=[color[str(side)] for side in frame["domain"]][::-1],
        customdata=[
            [duration(float(ns)), _safe(meaning)]
            for ns, meaning in zip(frame["ns"], frame["meaning"], strict=True)
        ][::-1],
        hovertemplate="%{x:.1f} % (%{customdata[0]})<br>%{customdata[1]}<extra></extra>",
    )
    figure.update_xaxes(title="share of the window [%]", range=[0, 102])
    return figure


def memory(trace: TraceData, *, height: int = 360) -> go.Figure:
    """Memory in use and held over time, per device, as steps."""
    frame = memory_table(trace)
    figure = _figure("Memory over time", height)
    begin = _begin(trace)
    t_scale, t_unit = _scale(frame["ts_ns"] - begin) if len(frame) else (1.0, "ns")
    for at, (device, rows) in enumerate(frame.groupby("device", sort=False, observed=True)):
        color = (GPU if str(device).startswith("cuda") else HOST)[at % 8]
        for column, words, dash in (
            ("allocated_bytes", "in use", "solid"),
            ("reserved_bytes", "held by the allocator", "dot"),
        ):
            values = rows[column].astype("Float64")
            if values.isna().all():
                continue
            figure.add_scatter(
                x=((rows["ts_ns"] - begin) / t_scale).tolist(),
                y=(values / 2**20).tolist(),
                name=f"{_label(device)}, {words}",
                mode="lines",
                line={"shape": "hv", "dash": dash, "color": color},
                hovertemplate="%{y:.2f} MiB at %{x:.4g} " + t_unit + "<extra>%{fullData.name}</extra>",
            )
    if frame.empty:
        _say_nothing(figure, "no memory was recorded: torch.profiler does with profile_memory=True")
    figure.update_xaxes(title=f"time from the first event [{t_unit}]")
    figure.update_yaxes(title="memory [MiB]", rangemode="tozero")
    return figure


def gaps(trace: TraceData, *, level: str = "delegates", height: int = 360) -> go.Figure:
    """How long the gaps are: between delegate calls on the host, or idle gaps of the GPU's streams.

    Parameters
    ----------
    level
        "delegates" (host time between calls) or "gpu" (idle time of streams, by cause).

    Raises
    ------
    OptionError
        For another level.
    """
    if level == "delegates":
        frame = delegate_gaps(trace)
        groups = [("host time between delegate calls", frame["dur_ns"], HOST[0])]
    elif level == "gpu":
        frame = idle_gaps(trace)
        groups = [
            (f"idle: {cause}", rows["dur_ns"], GPU[at % len(GPU)])
            for at, (cause, rows) in enumerate(frame.groupby("cause", observed=True))
        ]
    else:
        raise OptionError("level", level, "one of 'delegates', 'gpu'")
    figure = _figure(
        "Gaps between delegate calls" if level == "delegates" else "Idle gaps of the GPU", height
    )
    scale, unit = _scale(frame["dur_ns"])
    for name, values, color in groups:
        some = values.to_numpy(dtype=float)
        some = some[some > 0]
        if not len(some):
            continue
        edges = (
            np.geomspace(some.min(), some.max() * 1.001, 41)
            if some.max() > some.min()
            else np.array([some[0] * 0.99, some[0] * 1.01])
        )
        counts, _ = np.histogram(some, edges)
        sums, _ = np.histogram(some, edges, weights=some)
        figure.add_bar(
            x=np.sqrt(edges[:-1] * edges[1:]) / scale,
            width=np.diff(edges) / scale * 0.96,
            y=counts,
            name=_label(name),
            marker_color=color,
            customdata=[duration(total) for total in sums],
            hovertemplate="about %{x:.3g} "
            + unit
            + ": %{y} gaps, %{customdata} in all<extra>%{fullData.name}</extra>",
        )
    if frame.empty:
        _say_nothing(figure, "no gaps: the trace holds fewer than two such events in a row")
    figure.update_xaxes(title=f"length of a gap [{unit}]", type="log")
    figure.update_yaxes(title="gaps")
    figure.update_layout(barmode="stack")
    return figure


def iterations(trace: TraceData, *, height: int = 360) -> go.Figure:
    """Length of every iteration, and their distribution; warm-up is drawn apart."""
    frame = table(trace)
    figure = _figure("Iterations", height)
    scale, unit = _scale(frame["dur_ns"])
    for warmup, words, color in ((False, "iterations", HOST[0]), (True, "warm-up", "#9aa5b1")):
        rows = frame[frame["warmup"] == warmup]
        if rows.empty:
            continue
        figure.add_bar(
            x=rows["iteration"].tolist(),
            y=(rows["dur_ns"] / scale).tolist(),
            name=words,
            marker_color=color,
            customdata=[duration(value) for value in rows["dur_ns"]],
            hovertemplate="iteration %{x}: %{customdata}<extra>%{fullData.name}</extra>",
        )
    steady = frame[~frame["warmup"].astype(bool)]
    if len(steady) > 1:
        figure.add_box(
            y=(steady["dur_ns"] / scale).tolist(),
            name="distribution",
            marker_color=HOST[3],
            boxpoints="outliers",
            xaxis="x2",
        )
        figure.update_layout(
            xaxis={"domain": [0, 0.84], "title": "iteration"},
            xaxis2={"domain": [0.88, 1.0], "showticklabels": False},
        )
    if frame.empty:
        _say_nothing(figure, "the trace knows of no iterations, steps or methods")
    figure.update_yaxes(title=f"time from begin to end [{unit}]", rangemode="tozero")
    return figure


def modules(
    trace: TraceData,
    *,
    value: str = "host",
    kind: str = "icicle",
    kinds: Sequence[str] | None = None,
    min_pct: float = 0.2,
    height: int = 560,
) -> go.Figure:
    """Who calls whom, as an icicle or a tree map of the call tree: modules, annotations, operators.

    Parameters
    ----------
    value
        "host": host time; "gpu": durations of the GPU work that the code launched.
    kind
        "icicle" or "treemap".
    kinds
        Kinds of host spans to keep (``annotation``, ``operator``, ``python``, ...); all by default.
    min_pct
        Boxes below this share of the whole are left out; their time stays in their callers.

    Raises
    ------
    OptionError
        For another kind or value.
    """
    go = _plotly()
    if kind not in ("icicle", "treemap"):
        raise OptionError("kind", kind, "one of 'icicle', 'treemap'")
    if value not in ("host", "gpu"):
        raise OptionError("value", value, "one of 'host', 'gpu'")
    frame = flame_graph(trace, value=value, kinds=kinds, min_pct=min_pct)
    side = "GPU work launched" if value == "gpu" else "host time"
    shades = GPU if value == "gpu" else HOST
    whole = float(frame.loc[frame["parent"] == -1, "total_ns"].sum()) if len(frame) else 0.0
    ids = ["all", *(f"n{node}" for node in frame["node"])]
    parents = ["", *("all" if parent < 0 else f"n{parent}" for parent in frame["parent"])]
    make = go.Icicle if kind == "icicle" else go.Treemap
    orientation = {"tiling": {"orientation": "v"}} if kind == "icicle" else {}
    trace_ = make(
        ids=ids,
        labels=[f"all {side}", *(_label(name) for name in frame["name"])],
        parents=parents,
        values=[whole, *frame["total_ns"].astype(float)],
        branchvalues="total",
        marker={"colors": ["#c3cad2", *(shades[_hash(name) % len(shades)] for name in frame["name"])]},
        customdata=[
            [duration(whole), "", ""],
            *(
                [duration(float(total)), duration(float(own)), f"{int(calls):,} calls"]
                for total, own, calls in zip(frame["total_ns"], frame["self_ns"], frame["calls"], strict=True)
            ),
        ],
        hovertemplate="%{label}<br>%{customdata[0]} "
        + side
        + ", own %{customdata[1]}<br>%{customdata[2]}<extra></extra>",
        **orientation,
    )
    figure = _figure(f"Call tree by {side}", height)
    figure.add_trace(trace_)
    figure.update_layout(margin={"l": 8, "r": 8, "t": 44, "b": 8})
    return figure


CHARTS = {
    "layers": layers,
    "kernels": kernels,
    "phases": phases,
    "host_gpu": host_gpu,
    "memory": memory,
    "gaps": gaps,
    "iterations": iterations,
    "modules": modules,
}
"""Every chart by name; each takes a trace and gives a figure."""


def _plotly() -> Any:
    try:
        import plotly.graph_objects as go
    except ImportError as error:
        raise MissingDependencyError("plotly", "lab", "draw charts") from error
    return go


def _figure(title: str, height: int | None) -> go.Figure:
    figure = _plotly().Figure()
    figure.update_layout(
        title={"text": title, "font": {"size": 15}, "x": 0.01},
        height=height,
        template="plotly_white",
        autosize=True,
        margin={"l": 70, "r": 20, "t": 46, "b": 46},
        legend={"orientation": "h", "y": -0.18},
        hoverlabel={"namelength": 80, "align": "left"},
    )
    return figure


def _say_nothing(figure: go.Figure, why: str) -> None:
    figure.add_annotation(
        text=why, showarrow=False, xref="paper", yref="paper", x=0.5, y=0.5, font={"size": 14}
    )


def _bars(frame: pd.DataFrame, title: str, height: int | None) -> go.Figure:
    figure = _figure(title, height or max(260, 60 + 20 * len(frame)))
    scale, unit = _scale(frame["total_ns"])
    for side, colors, words in (("host", HOST, "host time"), ("gpu", GPU, "GPU time")):
        rows = frame[frame["domain"] == side].iloc[::-1]
        if rows.empty:
            continue
        calls = rows["calls"].astype(object).where(rows["calls"].notna(), None)
        figure.add_bar(
            orientation="h",
            y=_apart(_labels(rows)),
            x=(rows["total_ns"].astype(float) / scale).tolist(),
            name=words,
            marker_color=colors[0],
            customdata=[
                [_safe(name), duration(float(ns)), "" if count is None else f", {int(count):,} calls"]
                for name, ns, count in zip(rows["name"], rows["total_ns"], calls, strict=True)
            ],
            hovertemplate="%{customdata[0]}<br>%{customdata[1]} " + words + "%{customdata[2]}<extra></extra>",
        )
    if frame.empty:
        _say_nothing(figure, "nothing of the sort was collected")
    figure.update_xaxes(title=f"time [{unit}]")
    figure.update_layout(margin={"l": 10, "r": 20, "t": 46, "b": 46}, barmode="overlay")
    figure.update_yaxes(automargin=True)
    return figure


def _labels(rows: pd.DataFrame) -> list[str]:
    """Label bars by name, and by engine where there are several."""
    if "engine" not in rows or rows["engine"].nunique() < 2:
        return [_label(name) for name in rows["name"]]
    return [
        f"{_label(name)} · {_label(engine)}"
        for name, engine in zip(rows["name"], rows["engine"], strict=True)
    ]


def _apart(labels: list[str]) -> list[str]:
    """Keep equal labels (different engines) as bars of their own."""
    seen: dict[str, int] = {}
    out = []
    for label in labels:
        seen[label] = seen.get(label, 0) + 1
        out.append(label if seen[label] == 1 else f"{label} ({seen[label]})")
    return out


def _safe(text: Any) -> str:
    """Return text that plotly shows as it is: it reads tags and a few entities, quotes not among them."""
    return html.escape(one_line(text), quote=False)


def _label(name: Any) -> str:
    text = str(name)
    return _safe(text if len(text) <= _LONGEST_LABEL else text[: _LONGEST_LABEL - 1] + "…")


def _scale(values: pd.Series) -> tuple[float, str]:
    """Return the unit that suits the largest value: its size in ns and its name."""
    numbers = values.dropna()
    most = float(numbers.max()) if len(numbers) else 0.0
    return next((size, unit) for size, unit in _UNITS if most >= size or size == 1.0)


def _begin(trace: TraceData) -> int:
    measured = trace.measured
    return int(measured["start_ns"].min()) if len(measured) else 0


def _hash(name: Any) -> int:
    import zlib

    return zlib.crc32(str(name).encode("utf-8", "replace"))
