"""How each piece of device work came about, for a timeline: its module, operator and launch, and its wait.

The numbers are those of :func:`torchtrt_viz.analysis.launched_work`; here they only get rows of a scene.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.analysis.core.attributes import attribute
from torchtrt_viz.analysis.device.launched import launched_work
from torchtrt_viz.model.optional_ints import filled
from torchtrt_viz.scene.scene import Scene

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["LaunchStories"]

_LONGEST = 200  # characters of shapes
_MODULE = "nn.Module: "


class LaunchStories:
    """Tells of one event after the other; the frame of a trace is made when its first is asked for."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._work: dict[int, tuple[pd.DataFrame, NDArray[np.int64], NDArray[np.int64]]] = {}

    def __call__(self, row: int) -> dict[str, Any] | None:
        """Return the story of the event at a scene row; None for what nothing is known to have launched.

        ``queued`` is the time in ns since the launching call began, ``ahead`` the number of pieces that it
        waited for, ``path`` the way from the module to the kind of work, outermost first: texts and scene
        rows, -1 for what is no event. ``shapes`` are those of the operator's inputs.
        """
        _, block, frame_row = self._scene.event(row)
        if block.frame != "spans":
            return None
        frame, rows, order = self._of(block.part)
        at = int(np.searchsorted(rows, frame_row, sorter=order))
        if at == len(order) or rows[order[at]] != frame_row:
            return None
        work = frame.iloc[int(order[at])]
        host, operator = (_row(work[name]) for name in ("host_row", "operator_row"))
        if host < 0 and operator < 0:
            return None
        part = self._scene.parts[block.part]
        path: list[dict[str, Any]] = []
        story: dict[str, Any] = {"path": path}
        if operator >= 0:
            module, shapes = (_text(part.trace, operator, name) for name in ("module", "shape"))
            if module:
                path.append({"text": module.removeprefix(_MODULE), "row": -1})
            if shapes:
                story["shapes"] = shapes[:_LONGEST]
            path.append({"text": str(work["operator"]), "row": self._scene_row(operator, block.part)})
        if host >= 0:
            path.append({"text": str(work["launched_by"]), "row": self._scene_row(host, block.part)})
            story |= {"queued": int(work["queued_ns"]), "ahead": int(work["ahead"])}
        path.append({"text": str(part.trace.spans["kind"].iloc[frame_row]), "row": row})
        return story

    def columns(self) -> tuple[dict[str, NDArray[np.int64]], list[str]]:
        """Return the stories of all events, for a page: columns by name, and the texts that they point to."""
        names = ("row", "host", "operator", "queued", "ahead", "module", "shapes")
        out: dict[str, list[NDArray[np.int64]]] = {name: [np.empty(0, np.int64)] for name in names}
        texts: dict[str, int] = {}

        def code(values: NDArray[Any]) -> NDArray[np.int64]:
            return np.array(
                [
                    -1 if text is None else texts.setdefault(str(text)[:_LONGEST], len(texts))
                    for text in values
                ],
                np.int64,
            )

        for block in self._scene.blocks:
            if block.frame != "spans":
                continue
            frame, rows, order = self._of(block.part)
            to_scene = np.full(len(self._scene.parts[block.part].trace.spans) + 1, -1, np.int64)
            drawn = np.arange(block.end - block.begin) if block.rows is None else block.rows
            to_scene[drawn] = np.arange(block.begin, block.end)
            operator = filled(frame["operator_row"])[order]
            host = filled(frame["host_row"])[order]
            kept = (to_scene[rows[order]] >= 0) & ((operator >= 0) | (host >= 0))
            operator, host, chosen = operator[kept], host[kept], order[kept]
            trace = self._scene.parts[block.part].trace
            callers, back = np.unique(operator, return_inverse=True)
            known = callers >= 0
            for name, key in (("module", "module"), ("shapes", "shape")):
                values = np.full(len(callers), None, dtype=object)
                values[known] = attribute(trace, callers[known], key)
                if key == "module":
                    values = np.array(
                        [v if v is None else str(v).removeprefix(_MODULE) for v in values], object
                    )
                out[name].append(code(values)[back])
            out["row"].append(to_scene[rows[chosen]])
            out["host"].append(to_scene[host])
            out["operator"].append(to_scene[operator])
            out["queued"].append(filled(frame["queued_ns"])[chosen])
            out["ahead"].append(filled(frame["ahead"])[chosen])
        joined = {name: np.concatenate(values) for name, values in out.items()}
        by_row = np.argsort(joined["row"], kind="stable")
        return {name: values[by_row] for name, values in joined.items()}, list(texts)

    def _of(self, part: int) -> tuple[pd.DataFrame, NDArray[np.int64], NDArray[np.int64]]:
        """Return the frame of a part, the rows of its spans, and the order that sorts these."""
        if part not in self._work:
            frame = launched_work(self._scene.parts[part].trace)
            rows = frame["row"].to_numpy(dtype=np.int64)
            self._work[part] = frame, rows, np.argsort(rows, kind="stable")
        return self._work[part]

    def _scene_row(self, row: int, part: int) -> int:
        found = self._scene.scene_rows([row], part)
        return int(found[0]) if len(found) else -1


def _row(value: Any) -> int:
    import pandas as pd

    return -1 if pd.isna(value) else int(value)


def _text(trace: Any, row: int, name: str) -> str | None:
    found = attribute(trace, np.array([row], np.int64), name)[0]
    return None if found is None else str(found)
