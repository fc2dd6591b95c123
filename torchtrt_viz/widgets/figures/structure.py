"""Two runs side by side: what differs most, of a comparison of their structures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from torchtrt_viz.analysis.structure.short_names import place_of, row_label
from torchtrt_viz.charts.palette import GPU, HOST
from torchtrt_viz.charts.written import duration
from torchtrt_viz.errors import OptionError
from torchtrt_viz.widgets.figures.blank import apart, blank, safe, say_nothing, unit_of

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["structure_figure"]

_LABEL = 46  # characters


def structure_figure(
    table: pd.DataFrame, *, domain: str | None, top: int, height: int | None, theme: str
) -> go.Figure:
    """Draw the rows with the largest differences, a bar for either run."""
    if domain not in (None, "gpu", "host"):
        raise OptionError("domain", domain, "gpu, host or None")
    if domain is None:
        domain = "gpu" if table["gpu_delta_ns"].notna().any() else "host"
    delta = table[f"{domain}_delta_ns"]
    known = table[delta.notna() & (delta != 0).fillna(False)]
    size = known[f"{domain}_delta_ns"].abs().sort_values(ascending=False, kind="stable")
    shown = known.loc[size.index].head(top).iloc[::-1]
    words = "GPU time" if domain == "gpu" else "Host time"
    per = "per iteration" if table.attrs.get("basis") == "iteration" else "of the whole run"
    title = f"{words} {per}: what differs most"
    figure = blank(
        f"{title} ({len(shown)} of {len(known)})" if len(known) > top else title,
        height or max(280, 120 + 34 * len(shown)),
        theme,
    )
    if shown.empty:
        say_nothing(figure, "nothing differs")
        return figure
    rows = shown.to_dict("records")
    scale, unit = unit_of(value for side in "ab" for value in shown[f"{side}_{domain}_mean_ns"])
    labels = apart([safe(_named(row, _LABEL)) for row in rows])
    # groups are drawn from below
    for side, name in (("b", "second run"), ("a", "first run")):
        value = shown[f"{side}_{domain}_mean_ns"].to_numpy(dtype=float, na_value=np.nan)
        figure.add_bar(
            orientation="h",
            y=labels,
            x=(value / scale).tolist(),
            name=name,
            marker={
                "color": (GPU if domain == "gpu" else HOST)[0],
                "opacity": 0.55 if side == "a" else 1.0,
                "pattern": {"shape": "/" if side == "a" else ""},
            },
            customdata=[
                [safe(line) for line in _says(row, name, ns)] for row, ns in zip(rows, value, strict=True)
            ],
            hovertemplate="<br>".join(f"%{{customdata[{at}]}}" for at in range(4)) + "<extra></extra>",
        )
    figure.update_xaxes(title=f"time [{unit}]")
    figure.update_yaxes(automargin=True, showgrid=False)
    figure.update_layout(barmode="group", legend={"traceorder": "reversed"}, margin={"l": 10})
    return figure


def _named(row: dict[Any, Any], room: int) -> str:
    """Name a row: what it is in either run, with a sign what only one has."""
    mark = {"added": "+ ", "lost": "- "}.get(str(row["change"]), "")
    return mark + row_label(row, room - len(mark), "→")


def _says(row: dict[Any, Any], run: str, ns: float) -> tuple[str, str, str, str]:
    took = "not there" if np.isnan(ns) else duration(ns)
    return (
        f"{row['change']}: {_named(row, 160)}",
        f"in {place_of(row, 120)}",
        f"{run}: {took}",
        str(row["why"]),
    )
