"""`Session`: the traces of many ranks, each loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, cast

from torchtrt_viz.errors import TorchTrtVizError
from torchtrt_viz.model.rank_tasks import RankTrace
from torchtrt_viz.model.repair import Repair
from torchtrt_viz.model.session_data import KEY_COLUMNS, SessionData
from torchtrt_viz.model.trace_data import TraceData
from torchtrt_viz.trace import Trace

if TYPE_CHECKING:
    import pandas as pd

    from torchtrt_viz.analysis.session.rank_overview import Overview
    from torchtrt_viz.loading.rank_files import RankFile

__all__ = ["KEY_COLUMNS", "Session"]

_READ_TO_SHOW = 8 << 20


class Session(SessionData):
    """DOC"""

    @classmethod
    def present(cls) -> Callable[[TraceData], TraceData]:
        """Return what makes a `Trace` of the frames that were read."""
        return Trace.of

    def trace(self, rank: int | None = None, *, row: int | None = None, **wanted: Any) -> Trace:
        """DOC"""
        return cast(Trace, super().trace(rank, row=row, **wanted))

    def __getitem__(self, key: int | tuple[int, int]) -> Trace:
        """Read the trace of a rank, or of (rank, cycle)."""
        return cast(Trace, super().__getitem__(key))

    def traces(self) -> Iterator[tuple[RankTrace, Trace]]:
        """DOC"""
        return cast("Iterator[tuple[RankTrace, Trace]]", super().traces())

    def _repr_html_(self) -> str:
        """Show a static summary; a small session is read for it, a large one only when it has been before."""
        from torchtrt_viz.report.static_session import session_static_html

        if "overview" not in self.computed and self.engine is None and self._stored_bytes() < _READ_TO_SHOW:
            try:
                self.overview()
            except TorchTrtVizError:
                return session_static_html(self, None)
        return session_static_html(self, self.computed.get("overview"))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Show a static picture: no widget beside it, which would hide it where no kernel runs."""
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def _stored_bytes(self) -> int:
        """Size of the recordings as they are stored."""
        stored = {
            file.path: file.archive or file.source for file in cast("tuple[RankFile, ...]", self._files)
        }
        try:
            return sum((source.stored_bytes or 0) for source in stored.values() if source is not None)
        except OSError:  # a recording has gone since
            return _READ_TO_SHOW

    def check(self) -> pd.DataFrame:
        """Read every file to its end, archives against inventories; return the updated :attr:`ranks`."""
        from torchtrt_viz.formats.session.health import archive_damage, document_damage

        checked: list[RankFile] = []
        for file in cast("tuple[RankFile, ...]", self._files):
            damage = None
            if file.archive is not None:
                damage = archive_damage(file.archive)
            elif file.format == "kineto" and file.source is not None:
                damage = document_damage(file.source, whole=True)
            if damage is not None and file.state == "ok":
                file = replace(file, state="damaged", error=damage)
                self.meta["warnings"].append(Repair("damaged_rank", damage, path=file.path))
            checked.append(file)
        self._files = tuple(checked)
        self._ranks = None
        return self.ranks

    def overview(self, progress: Callable[[int, int], None] | None = None) -> Overview:
        """All tables over ranks at once: see :func:`torchtrt_viz.analysis.session.rank_overview.overview`."""
        from torchtrt_viz.analysis.session.rank_overview import overview

        return overview(self, progress)

    def explain(self, *, top: int = 6) -> pd.DataFrame:
        """What stands out over the ranks: see :mod:`torchtrt_viz.analysis.session.findings`.

        Tables that were computed before (by :meth:`overview`, :meth:`to_html`) are not computed again.
        """
        return (self.computed.get("overview") or self.overview()).explain(top=top)

    def to_html(self, path: str | PathLike[str], **options: Any) -> None:
        """Write a report that opens offline: see `torchtrt_viz.report.session_html.write_session_html`."""
        from torchtrt_viz.report.session_html import write_session_html

        write_session_html(self, path, **options)

    def operators(self, *, per_rank: bool = False, **options: Any) -> pd.DataFrame:
        """Operators over ranks: see :func:`torchtrt_viz.analysis.session.rank_operators.session_operators`."""
        from torchtrt_viz.analysis.session.rank_operators import session_operators

        return session_operators(self, per_rank=per_rank, **options)

    def steps(self) -> pd.DataFrame:
        """Steps of every rank: see :func:`torchtrt_viz.analysis.session.rank_steps.session_steps`."""
        from torchtrt_viz.analysis.session.rank_steps import session_steps

        return session_steps(self)

    def collectives(self) -> pd.DataFrame:
        """Collectives over ranks: see :func:`torchtrt_viz.analysis.session.rank_steps.session_collectives`."""
        from torchtrt_viz.analysis.session.rank_steps import session_collectives

        return session_collectives(self)

    def stragglers(self) -> pd.DataFrame:
        """Ranks behind the others: see :func:`torchtrt_viz.analysis.session.rank_steps.stragglers`."""
        from torchtrt_viz.analysis.session.rank_steps import stragglers

        return stragglers(self)

    def request_events(self) -> pd.DataFrame:
        """Annotated work on requests: see :func:`torchtrt_viz.analysis.session.request_flow.request_events`."""
        from torchtrt_viz.analysis.session.request_flow import request_events

        return request_events(self)

    def requests(self) -> pd.DataFrame:
        """Requests over prefill and decode: see :func:`torchtrt_viz.analysis.session.request_flow.requests`."""
        from torchtrt_viz.analysis.session.request_flow import requests

        return requests(self)

    def summary(self) -> pd.DataFrame:
        """Totals of each rank: its ``trace.summary()``, under each other with the rank's columns."""
        return self.map(_summary)


def _summary(trace: Trace) -> pd.DataFrame:
    return trace.summary()
