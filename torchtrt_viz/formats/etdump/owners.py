"""What an ETDump's spans belong to: a method, or a delegate instance within it (``run_id``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.formats.etdump.args import Mapping
from torchtrt_viz.formats.etdump.dump import Events
from torchtrt_viz.formats.etdump.names import DELEGATE, DELEGATE_CALL, Engines, group
from torchtrt_viz.formats.etdump.runs import Runs

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["run_ids"]


def run_ids(events: Events, runs: Runs, engines: Engines, mapping: Mapping | None) -> pd.Categorical:
    """Name what each span belongs to: the method, or the delegate within it."""
    import pandas as pd

    names: dict[str, int] = {}
    of_method = np.array(
        [names.setdefault(method, len(names)) for method in runs.methods] + [-1], np.int32
    )  # the last one stands for "unknown"
    code = of_method[runs.method[events.run]] if len(events) else np.zeros(0, np.int32)
    rows = np.flatnonzero((events.role == DELEGATE_CALL) | ((events.role >= DELEGATE) & (events.chain >= 0)))
    if len(rows):
        method = runs.method[events.run[rows]]
        # a run that the ETRecord does not explain has no backends, even if another run of the method does
        explained = np.zeros(len(runs), np.int32)
        if mapping is not None:
            explained[list(mapping.runs)] = 1
        instance, first = group(
            [method, explained[events.run[rows]], events.chain[rows], events.instruction[rows]]
        )
        engine_ids = _engine_ids(engines, rows, instance, len(first))
        table = np.empty(len(first), np.int32)
        for i, row in enumerate(rows[first].tolist()):
            name = engine_ids[i] or _delegate_name(events, runs, row, mapping)
            table[i] = names.setdefault(name, len(names))
        code[rows] = table[instance]
    return pd.Categorical.from_codes(code, categories=pd.Index(list(names), dtype="str"), validate=False)


def _engine_ids(
    engines: Engines, rows: NDArray[np.int64], instance: NDArray[np.int32], instances: int
) -> list[str | None]:
    """Return the engine of each delegate instance, None where its calls name none or several."""
    found: list[set[str]] = [set() for _ in range(instances)]
    where = np.searchsorted(rows, engines.rows)
    for at, row, engine in zip(where.tolist(), engines.rows.tolist(), engines.engine_id, strict=True):
        if engine is not None and at < len(rows) and rows[at] == row:
            found[int(instance[at])].add(engine)
    return [next(iter(ids)) if len(ids) == 1 else None for ids in found]


def _delegate_name(events: Events, runs: Runs, row: int, mapping: Mapping | None) -> str:
    run, instruction, chain = int(events.run[row]), int(events.instruction[row]), int(events.chain[row])
    method = runs.method_name(run)
    backend = "delegate"
    if mapping is not None and method is not None and run in mapping.runs:
        delegate = mapping.record.methods[method].delegates.get(instruction)
        backend = delegate.backend if delegate is not None else backend
    place = f"{backend}@{instruction}" if chain == 0 else f"{backend}@{chain}.{instruction}"
    return place if method is None else f"{method}/{place}"
