"""Which events are known to belong to which part of the model."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from torchtrt_viz.analysis.columns.engines import PROVENANCE
from torchtrt_viz.analysis.core.ancestry import nearest
from torchtrt_viz.analysis.core.groups import Groups
from torchtrt_viz.analysis.core.links import operator_rows
from torchtrt_viz.analysis.core.masks import among, names_matching, strings
from torchtrt_viz.analysis.core.tables import text
from torchtrt_viz.analysis.engine.delegate_calls import delegate_calls
from torchtrt_viz.analysis.engine.engine_facts import details_of, engine_infos, first_detail
from torchtrt_viz.model.frame_docs import returns
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["provenance"]

Ints = NDArray[np.int64]

_MODULE_FRAME = re.compile(r"^nn\.Module: ")
_SOURCE_FRAME = re.compile(r"\(\d+\): ")
_SAMPLE = 2000  # kinds of event looked at, one event each


@returns(PROVENANCE)
def provenance(trace: TraceData) -> pd.DataFrame:
    """How many events lead back to the model: to operators of the exported graph, modules, source lines.

    Events of the same name and instance lead to the same place, so one of each is looked at.

    Returns
    -------
    pandas.DataFrame
        One row per sort of event and sort of origin: how many lead back to the model.

    Examples
    --------
    >>> tv.analysis.provenance(trace)["of"].unique().tolist()
    ['delegate calls', 'layers', 'operators']
    """
    rows: list[dict[str, Any]] = []
    spans = trace.spans
    for label, mask in (
        ("delegate calls", delegate_calls(trace).call),
        ("layers", among(spans["kind"], ("layer",))),
        ("operators", operator_rows(trace)),
    ):
        chosen = np.flatnonzero(mask)
        run_id = strings(spans["run_id"])
        groups = Groups.by({"name": spans["name"].array[chosen], "run_id": text(run_id[chosen])})
        sample = chosen[groups.first_row()][:_SAMPLE] if groups.size else np.zeros(0, np.int64)
        details = details_of(trace, sample)
        described = _described(trace, sample, run_id)
        answers = {
            "graph operators": [
                _text(first_detail(found, "op_types", "op_type")) or known.get("operators")
                for found, known in zip([[d] for d in details], described, strict=True)
            ],
            "module paths": [
                _text(first_detail(found, "module", "modules")) or known.get("module")
                for found, known in zip([[d] for d in details], described, strict=True)
            ],
            "source lines": [
                _text(first_detail([found], "source", "stack", "Call stack")) for found in details
            ],
        }
        if label == "operators":
            answers["module paths"] = _or_enclosing(trace, sample, answers["module paths"], _MODULE_FRAME)
            answers["source lines"] = _or_enclosing(trace, sample, answers["source lines"], _SOURCE_FRAME)
        for what, values in answers.items():
            known_values = [value for value in values if value]
            rows.append(
                {
                    "of": label,
                    "what": what,
                    "events": len(sample),
                    "known": len(known_values),
                    "example": known_values[0] if known_values else None,
                }
            )
    return pd.DataFrame(rows)


def _text(value: object) -> str | None:
    if value in (None, "", [], ()):
        return None
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return str(value)


def _described(trace: TraceData, rows: Ints, run_id: NDArray[Any]) -> list[dict[str, Any]]:
    """What the descriptions of engines say of the layers at ``rows``.

    A description of whose layers no span is known is matched by the engine and the layer's name.
    """
    by_span: dict[int, dict[str, Any]] = {}
    by_name: dict[tuple[str, str], dict[str, Any]] = {}
    for engine, info in engine_infos(trace).items():
        table = info.layers
        for span, name, module, found in zip(
            table["span"], table["name"], table["module"], table["operators"], strict=True
        ):
            known = {"module": None if pd.isna(module) else str(module), "operators": _text(found)}
            if span >= 0:
                by_span[int(span)] = known
            else:
                by_name.setdefault((engine, str(name)), known)
    layer = among(trace.spans["kind"], ("layer",))
    names = strings(trace.spans["name"])
    return [
        by_span.get(int(row)) or (by_name.get((str(run_id[row]), str(names[row])), {}) if layer[row] else {})
        for row in rows
    ]


def _or_enclosing(
    trace: TraceData, rows: Ints, values: list[str | None], pattern: re.Pattern[str]
) -> list[str | None]:
    spans = trace.spans
    frames = among(spans["kind"], ("python",)) & names_matching(spans["name"], pattern)
    if not frames.any() or not len(rows):
        return values
    above = nearest(spans["parent"].to_numpy(), frames)[rows]
    names = strings(spans["name"])
    return [
        value or (str(names[row]) if row >= 0 else None) for value, row in zip(values, above, strict=True)
    ]
