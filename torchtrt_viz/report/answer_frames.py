"""Frames that show themselves as answers: a verdict, the six questions. They are plain frames otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from torchtrt_viz.analysis.catalogue import TABLES
from torchtrt_viz.report.answers import answers_html, answers_text
from torchtrt_viz.report.static_html import table_html
from torchtrt_viz.report.verdict.html import static_verdict
from torchtrt_viz.report.verdict.text import verdict_lines

if TYPE_CHECKING:
    from torchtrt_viz.model.trace_data import TraceData
    from torchtrt_viz.report.verdict.words import VerdictWords

__all__ = ["AnswersFrame", "VerdictFrame"]


class _Shown(pd.DataFrame):
    """A frame that shows itself in its own way; what is made of it is a plain frame."""

    @property
    def _constructor(self) -> Any:
        return pd.DataFrame

    def __reduce__(self) -> Any:
        """Travel as a plain frame: what shows it may hold a whole trace."""
        return _same, (_plain(self),)


def _plain(frame: pd.DataFrame) -> pd.DataFrame:
    made = pd.DataFrame(frame, copy=False)
    made.attrs.update(frame.attrs)
    return made


def _same(frame: pd.DataFrame) -> pd.DataFrame:
    return frame


class VerdictFrame(_Shown):
    """The frame `verdict`, shown as bars and findings."""

    @classmethod
    def of(cls, frame: pd.DataFrame, words: VerdictWords) -> VerdictFrame:
        """Return the frame of a verdict that is shown in these words."""
        made = cls(frame)
        made.attrs.update(frame.attrs)
        object.__setattr__(made, "_words", words)
        return made

    def __repr__(self) -> str:
        words = self.__dict__.get("_words")
        return super().__repr__() if words is None else "\n".join(verdict_lines(words))

    def _repr_html_(self) -> str:
        words = self.__dict__.get("_words")
        if words is None:
            return str(super()._repr_html_())  # type: ignore[misc]
        return f'<div style="font-size:13px;text-align:left">{static_verdict(words)}</div>'


class AnswersFrame(_Shown):
    """The frame `questions`, shown as short answers with their tables behind."""

    @classmethod
    def of(cls, frame: pd.DataFrame, trace: TraceData) -> AnswersFrame:
        """Return the answers about a trace, whose tables are made when they are shown."""
        made = cls(frame)
        made.attrs.update(frame.attrs)
        object.__setattr__(made, "_trace", trace)
        return made

    def __repr__(self) -> str:
        return super().__repr__() if self.__dict__.get("_trace") is None else answers_text(self)

    def _repr_html_(self) -> str:
        trace = self.__dict__.get("_trace")
        if trace is None:
            return str(super()._repr_html_())  # type: ignore[misc]
        return answers_html(self, lambda name: _table(trace, name))


def _table(trace: TraceData, name: str) -> str:
    entry = TABLES[name]
    frame = entry(trace)
    if frame.empty:
        return ""
    kept = [column for column in entry.brief or frame.columns if not frame[column].isna().all()]
    return table_html(frame[kept].head(8), name, heading=entry.title, rows=8)
