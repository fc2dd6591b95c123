"""Sums over an engine: the three totals that people compare, and times rolled up by module path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["NO_MODULE", "TimedEngine", "layer_sum_ms", "roll_up", "sums"]


class TimedEngine(Protocol):
    """What sums need of an engine: see `torchtrt_viz.formats.engine.info.EngineInfo`."""

    layers: pd.DataFrame
    timing: pd.DataFrame | None
    performance: dict[str, Any]
    count: int | None


#: Row of `roll_up` for layers whose name records no module.
NO_MODULE = "(no module recorded)"

_MAX_STEPS = 63

_LAYER_SUM = (
    "times of the layers added up, per inference. A profiler times layers one by one, so that gaps and "
    "overlap between them disappear and each gets some overhead"
)
_GPU = "mean time from the first to the last kernel of an inference, timed without the profiler"
_HOST = "mean of copying in, computing and copying out"
_END_TO_END = (
    "mean from the begin of copying in to the end of copying out, waiting for earlier inferences in between: "
    "longer than the host latency where inferences overlap (trtexec to TensorRT 8.2)"
)
_ENQUEUE = (
    "mean host time of the call that launches an inference: launch overhead, not GPU time, never added to it"
)
_ABOVE = (
    "per-layer timing costs time, and layers that overlap on auxiliary streams count twice: shares of the "
    "layer sum are not shares of latency"
)
_BELOW = "time between layers: launch gaps, host work and waiting that no layer has"


def layer_sum_ms(engine: TimedEngine) -> float | None:
    """Return the layers' times per call added up, in ms; None without times or the number of calls."""
    timed = engine.layers[engine.layers["in_profile"]]
    if timed.empty:
        return None
    if engine.count and timed["total_ms"].notna().any():
        return float(timed["total_ms"].sum()) / engine.count
    average = timed["average_ms"]
    return float(average.sum()) if average.notna().all() else None


def _mean(engine: TimedEngine, column: str, summary: str) -> tuple[float | None, str | None]:
    """Mean of a column of the timed runs, else of the summary; and where it is from."""
    if engine.timing is not None and column in engine.timing and engine.timing[column].notna().any():
        return float(engine.timing[column].mean()), "timed inferences"
    value = engine.performance.get(summary)
    if isinstance(value, dict) and "mean" in value:
        return float(value["mean"]), "performance summary"
    return None, None


def sums(engine: TimedEngine) -> pd.DataFrame:
    """Set an engine's totals side by side and name the gap between them.

    Returns
    -------
    pandas.DataFrame
        Columns: ``quantity``; ``ms`` per inference (NA: not recorded); ``percent`` of the GPU compute mean
        (NA where that is not recorded); ``source`` of the figure; ``meaning``. The rows are layer sum, GPU
        compute, host latency, enqueue, end to end (only where it is recorded), and the gap of the layer sum
        to the GPU compute.
    """
    import pandas as pd

    layers = layer_sum_ms(engine)
    gpu, gpu_source = _mean(engine, "computeMs", "gpu_compute_ms")
    host, host_source = _mean(engine, "latencyMs", "latency_ms")
    enqueue, enqueue_source = _enqueue(engine)
    rows: list[tuple[str, float | None, str | None, str]] = [
        ("layer sum", layers, None if layers is None else "layer times", _LAYER_SUM),
        ("gpu compute", gpu, gpu_source, _GPU),
        ("host latency", host, host_source, _HOST),
        ("enqueue", enqueue, enqueue_source, _ENQUEUE),
    ]
    whole, whole_source = _mean(engine, "endToEndMs", "end_to_end_ms")
    if whole is not None:
        rows.append(("end to end", whole, whole_source, _END_TO_END))
    if layers is not None and gpu is not None:
        gap = layers - gpu
        rows.append(("gap: layer sum - gpu compute", gap, "difference", _ABOVE if gap >= 0 else _BELOW))
    return pd.DataFrame(
        {
            "quantity": pd.array([r[0] for r in rows], dtype="string"),
            "ms": pd.array([r[1] for r in rows], dtype="Float64"),
            "percent": pd.array(
                [None if r[1] is None or not gpu else 100 * r[1] / gpu for r in rows], dtype="Float64"
            ),
            "source": pd.array([r[2] for r in rows], dtype="string"),
            "meaning": pd.array([r[3] for r in rows], dtype="string"),
        }
    )


def _enqueue(engine: TimedEngine) -> tuple[float | None, str | None]:
    timing = engine.timing
    if timing is not None and {"startEnqMs", "endEnqMs"} <= set(timing.columns):
        dur = timing["endEnqMs"] - timing["startEnqMs"]
        if dur.notna().any():
            return float(dur.mean()), "timed inferences"
    return _mean(engine, "", "enqueue_ms")


def roll_up(layers: pd.DataFrame, depth: int | None = None) -> pd.DataFrame:
    """Add layer times up along module paths.

    A fused layer counts where the modules of its parts meet, because its time cannot be split; a layer whose
    name records no module counts in a row of its own, so that the outermost rows add up to the total.

    Parameters
    ----------
    layers
        Frame with the columns of `engine_info.LAYERS`.
    depth
        Keep paths of at most so many steps.

    Returns
    -------
    pandas.DataFrame
        One row per module, parents first: ``module``, ``depth`` (steps), ``layers`` (within it, at any
        depth), ``self_ms`` (layers that belong to it and to no module inside), ``total_ms`` (with all
        inside), ``percentage`` (share of all timed layers). Times are totals over calls, as in
        ``layers.total_ms``.
    """
    import pandas as pd

    own: dict[str, list[float]] = {}
    inside: dict[str, list[float]] = {}
    grand = 0.0
    modules = layers["module"].astype(object).where(layers["module"].notna(), None)
    times = layers["total_ms"].to_numpy(dtype=float, na_value=0.0)
    for module, time in zip(modules, times, strict=True):
        grand += time
        path = NO_MODULE if module is None else module
        _add(own, path, time)
        for step in _ancestors(path):
            _add(inside, step, time)
    paths = sorted(inside, key=lambda p: (p == NO_MODULE, [] if p == "/" else p.split("/")))
    rows: list[tuple[Any, ...]] = []
    for path in paths:
        level = path.count("/") if path not in ("/", NO_MODULE) else 0
        if depth is None or level <= depth:
            count, time = inside[path]
            self_time = own.get(path, [0.0, 0.0])[1]
            rows.append((path, level, int(count), self_time, time, 100 * time / grand if grand else None))
    frame = pd.DataFrame(rows, columns=["module", "depth", "layers", "self_ms", "total_ms", "percentage"])
    return frame.astype({"module": "string", "depth": "int64", "layers": "int64", "percentage": "Float64"})


def _add(sums_by_path: dict[str, list[float]], path: str, time: float) -> None:
    entry = sums_by_path.setdefault(path, [0, 0.0])
    entry[0] += 1
    entry[1] += time


def _ancestors(path: str) -> list[str]:
    """Return the path and everything that holds it: /a/b, /a, /."""
    if path in (NO_MODULE, "/"):
        return [path]
    steps = path.strip("/").split("/", _MAX_STEPS)
    return ["/", *("/" + "/".join(steps[: i + 1]) for i in range(len(steps)))]
