"""Charts of a trace, each a plain plotly ``Figure`` that shows anywhere and can be changed freely.

Cool colours are host time, warm colours GPU time, as in the timeline; no chart adds the two up. Names come
from files: they are escaped, since plotly reads some markup.

Every chart takes ``height`` (pixels; None: what suits its content) and ``theme``: "light", "dark", or "auto",
which is that of plotly's default template, else that of the notebook once a widget of ours was shown in it.
``torchtrt_viz.Trace.save_chart`` writes the same charts as SVG, without a browser.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from torchtrt_viz.analysis import delegate_gaps, flame_graph, idle_gaps, phases_by_call
from torchtrt_viz.analysis import iterations as table
from torchtrt_viz.analysis.device.host_gpu_time import host_gpu as host_gpu_table
from torchtrt_viz.analysis.engine.delegate_calls import UNATTRIBUTED
from torchtrt_viz.charts.names import shade
from torchtrt_viz.charts.palette import GPU, HOST, REST
from torchtrt_viz.charts.registry import chart
from torchtrt_viz.charts.written import duration
from torchtrt_viz.errors import OptionError
from torchtrt_viz.widgets.figures.blank import blank, label, plotly, safe, say_nothing, unit_of
from torchtrt_viz.widgets.figures.drawn import figure_of
from torchtrt_viz.widgets.figures.structure import structure_figure

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

    from torchtrt_viz.analysis.device.device_specs import Device
    from torchtrt_viz.model.trace_data import TraceData

__all__ = [
    "CHARTS",
    "collectives",
    "critical_path",
    "delegate_phases",
    "flame",
    "flame_gpu",
    "gaps",
    "gpu_time",
    "graph_launches",
    "host_gpu",
    "idle",
    "iterations",
    "kernels",
    "launch_delay",
    "layer_types",
    "layers",
    "longest_delays",
    "memory",
    "modules",
    "phases",
    "plan",
    "roofline",
    "structure",
]


def layers(
    trace: TraceData,
    *,
    engine: str | None = None,
    top: int = 30,
    height: int | None = None,
    theme: str = "auto",
) -> go.Figure:
    """Layers of the engines by time, longest first; colours say host or GPU.

    Parameters
    ----------
    engine
        Only this engine (a value of the column ``engine``).
    top
        At most so many layers; the title says how many there are.

    Raises
    ------
    OptionError
        For an engine that the trace does not have.
    """
    return figure_of(chart(trace, "layers", engine=engine, top=top), height=height, theme=theme)


def layer_types(
    trace: TraceData, *, engine: str | None = None, height: int | None = None, theme: str = "auto"
) -> go.Figure:
    """Layers by type, each bar divided by precision; ``engine`` chooses one."""
    return figure_of(chart(trace, "layer_types", engine=engine), height=height, theme=theme)


def plan(
    trace: TraceData, *, engine: str | None = None, height: int | None = None, theme: str = "auto"
) -> go.Figure:
    """The graph of an engine: layers from the inputs down, and the tensors between them.

    Parameters
    ----------
    engine
        Which engine; by default the one whose layers took longest.

    Raises
    ------
    OptionError
        For an engine that the trace does not describe.
    """
    return figure_of(chart(trace, "plan", engine=engine), height=height, theme=theme)


def kernels(trace: TraceData, *, top: int = 30, height: int | None = None, theme: str = "auto") -> go.Figure:
    """Device work by name: sums of durations on the GPU, which is not wall time where streams overlap."""
    return figure_of(chart(trace, "kernels", top=top), height=height, theme=theme)


def delegate_phases(
    trace: TraceData, *, top: int = 20, height: int | None = None, theme: str = "auto"
) -> go.Figure:
    """Host time of each delegate, divided by the phases of its calls."""
    return figure_of(chart(trace, "delegate_phases", top=top), height=height, theme=theme)


def gpu_time(trace: TraceData, *, height: int | None = None, theme: str = "auto") -> go.Figure:
    """Where each device's time went: computing, communicating, copying, idle."""
    return figure_of(chart(trace, "gpu_time"), height=height, theme=theme)


def idle(
    trace: TraceData, *, level: str = "stream", height: int | None = None, theme: str = "auto"
) -> go.Figure:
    """Idle time of streams, or with ``level="device"`` of whole devices, by cause."""
    return figure_of(chart(trace, "idle", level=level), height=height, theme=theme)


def critical_path(trace: TraceData, *, height: int | None = None, theme: str = "auto") -> go.Figure:
    """What the end of the capture waited for, by segment and name."""
    return figure_of(chart(trace, "critical_path"), height=height, theme=theme)


def launch_delay(trace: TraceData, *, height: int | None = None, theme: str = "auto") -> go.Figure:
    """How many launches waited how long, from the call to the start of the work."""
    return figure_of(chart(trace, "launch_delay"), height=height, theme=theme)


def longest_delays(
    trace: TraceData, *, top: int = 15, height: int | None = None, theme: str = "auto"
) -> go.Figure:
    """The longest launch delay of each kernel, with the operator that launched it."""
    return figure_of(chart(trace, "longest_delays", top=top), height=height, theme=theme)


def graph_launches(trace: TraceData, *, height: int | None = None, theme: str = "auto") -> go.Figure:
    """Launches of CUDA (or HIP) graphs: host time of each, and GPU time of its work."""
    return figure_of(chart(trace, "graph_launches"), height=height, theme=theme)


def collectives(trace: TraceData, *, height: int | None = None, theme: str = "auto") -> go.Figure:
    """Collectives by start and duration on the device."""
    return figure_of(chart(trace, "collectives"), height=height, theme=theme)


def roofline(
    trace: TraceData,
    *,
    of: str | None = None,
    device: Device | str | None = None,
    height: int | None = None,
    theme: str = "auto",
) -> go.Figure:
    """Arithmetic reached over intensity, under the device's roofs where they are known.

    Parameters
    ----------
    of
        "operators" or "layers"; None: layers where an engine is described, else operators.
    device
        A known device's name, or a `Device`; None: the one that the trace names, if it is known.

    Raises
    ------
    OptionError
        For a device that is not known.
    """
    return figure_of(chart(trace, "roofline", of=of, device=device), height=height, theme=theme)


def flame(
    trace: TraceData,
    *,
    kinds: Iterable[str] | None = None,
    min_pct: float = 0.15,
    height: int | None = None,
    theme: str = "auto",
) -> go.Figure:
    """Host time of each thread by who called whom, each moment counted once.

    Parameters
    ----------
    kinds
        Kinds of host spans to keep; by default what threads did, without records of the recorder's own.
    min_pct
        Boxes below this share of the whole are left out.
    """
    return figure_of(chart(trace, "flame", kinds=kinds, min_pct=min_pct), height=height, theme=theme)


def flame_gpu(
    trace: TraceData,
    *,
    kinds: Iterable[str] | None = None,
    min_pct: float = 0.15,
    height: int | None = None,
    theme: str = "auto",
) -> go.Figure:
    """GPU work by the code that launched it: sums of durations; parameters as in `flame`."""
    return figure_of(chart(trace, "flame_gpu", kinds=kinds, min_pct=min_pct), height=height, theme=theme)


def memory(trace: TraceData, *, height: int | None = None, theme: str = "auto") -> go.Figure:
    """Memory in use and held over time, per device, as steps."""
    return figure_of(chart(trace, "memory"), height=height, theme=theme)


def phases(
    trace: TraceData, *, delegate: str | None = None, height: int = 380, theme: str = "auto"
) -> go.Figure:
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
    figure = blank(f"Phases per call of {label(delegate or 'delegates')} (host time)", height, theme)
    scale, unit = unit_of(calls["call_dur_ns"])
    phases_in_order = [name for name in frame["phase"].unique() if name != UNATTRIBUTED]
    for at, name in enumerate([*phases_in_order, UNATTRIBUTED]):
        rows = frame[frame["phase"] == name]
        rest = name == UNATTRIBUTED
        figure.add_bar(
            x=rows["call"].tolist(),
            y=(rows["dur_ns"] / scale).tolist(),
            name="outside phases" if rest else label(name),
            marker_color=REST if rest else HOST[at % len(HOST)],
            customdata=[duration(value) for value in rows["dur_ns"]],
            hovertemplate="call %{x}: %{customdata} host time<extra>%{fullData.name}</extra>",
        )
    if calls.empty:
        say_nothing(figure, "no delegate calls were recorded: profile(level='phases') does")
    figure.update_layout(barmode="stack", bargap=0.15)
    figure.update_xaxes(title="call")
    figure.update_yaxes(title=f"host time [{unit}]")
    return figure


def host_gpu(trace: TraceData, *, height: int = 380, theme: str = "auto") -> go.Figure:
    """Where the whole window went on either side: shares that overlap, and are not to be added."""
    frame = host_gpu_table(trace)
    frame = frame[frame["pct"].notna() & (frame["measure"] != "window")]
    figure = blank("Host and GPU: share of the whole window (shares overlap)", height, theme)
    color = {"host": HOST[0], "gpu": GPU[0], "both": REST}
    many = frame["device"].nunique() > 1
    labels = [
        f"{measure} (GPU {device})" if many and device >= 0 else measure
        for measure, device in zip(frame["measure"], frame["device"].fillna(-1).astype(int), strict=True)
    ]
    figure.add_bar(
        orientation="h",
        y=[label(name) for name in labels][::-1],
        x=frame["pct"].astype(float).tolist()[::-1],
        marker_color=[color[str(side)] for side in frame["domain"]][::-1],
        customdata=[
            [duration(float(ns)), safe(meaning)]
            for ns, meaning in zip(frame["ns"], frame["meaning"], strict=True)
        ][::-1],
        hovertemplate="%{x:.1f} % (%{customdata[0]})<br>%{customdata[1]}<extra></extra>",
    )
    figure.update_xaxes(title="share of the window [%]", range=[0, 102])
    return figure


def gaps(trace: TraceData, *, level: str = "delegates", height: int = 360, theme: str = "auto") -> go.Figure:
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
    figure = blank(
        "Gaps between delegate calls" if level == "delegates" else "Idle gaps of the GPU", height, theme
    )
    scale, unit = unit_of(frame["dur_ns"])
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
            name=label(name),
            marker_color=color,
            customdata=[duration(total) for total in sums],
            hovertemplate="about %{x:.3g} "
            + unit
            + ": %{y} gaps, %{customdata} in all<extra>%{fullData.name}</extra>",
        )
    if frame.empty:
        say_nothing(figure, "no gaps: the trace holds fewer than two such events in a row")
    figure.update_xaxes(title=f"length of a gap [{unit}]", type="log")
    figure.update_yaxes(title="gaps")
    figure.update_layout(barmode="stack")
    return figure


def iterations(trace: TraceData, *, height: int = 360, theme: str = "auto") -> go.Figure:
    """Length of every iteration, and their distribution; warm-up is drawn apart."""
    frame = table(trace)
    figure = blank("Iterations", height, theme)
    scale, unit = unit_of(frame["dur_ns"])
    for warmup, words, color in ((False, "iterations", HOST[0]), (True, "warm-up", REST)):
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
        say_nothing(figure, "the trace knows of no iterations, steps or methods")
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
    theme: str = "auto",
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
    go = plotly()
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
        labels=[f"all {side}", *(label(name) for name in frame["name"])],
        parents=parents,
        values=[whole, *frame["total_ns"].astype(float)],
        branchvalues="total",
        marker={"colors": [REST, *(shades[shade(name)] for name in frame["name"])]},
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
    figure = blank(f"Call tree by {side}", height, theme)
    figure.add_trace(trace_)
    figure.update_layout(margin={"l": 8, "r": 8, "t": 44, "b": 8})
    return figure


def structure(
    table: pd.DataFrame,
    *,
    domain: str | None = None,
    top: int = 20,
    height: int | None = None,
    theme: str = "auto",
) -> go.Figure:
    """Two runs side by side: what differs most, of a comparison of their structures.

    Parameters
    ----------
    table
        What :func:`torchtrt_viz.compare_structure` returned.
    domain
        gpu or host; None: gpu where either run has device work.
    top
        At most so many rows, the largest differences first.

    Raises
    ------
    OptionError
        For another domain.
    """
    return structure_figure(table, domain=domain, top=top, height=height, theme=theme)


CHARTS = {
    "layers": layers,
    "layer_types": layer_types,
    "plan": plan,
    "kernels": kernels,
    "phases": phases,
    "delegate_phases": delegate_phases,
    "host_gpu": host_gpu,
    "gpu_time": gpu_time,
    "idle": idle,
    "critical_path": critical_path,
    "launch_delay": launch_delay,
    "longest_delays": longest_delays,
    "graph_launches": graph_launches,
    "collectives": collectives,
    "roofline": roofline,
    "flame": flame,
    "flame_gpu": flame_gpu,
    "modules": modules,
    "memory": memory,
    "gaps": gaps,
    "iterations": iterations,
}
"""Every chart by name; each takes a trace and gives a figure."""
