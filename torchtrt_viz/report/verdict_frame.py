"""Frames that show themselves as answers: a verdict, the six questions. They are plain frames otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from torchtrt_viz.report.verdict_text import verdict_text

if TYPE_CHECKING:
    from torchtrt_viz.analysis.answers.judgement import Judgement

__all__ = ["VerdictFrame"]


class VerdictFrame(pd.DataFrame):
    """The frame `verdict`; what is made of it is a plain frame."""

    @property
    def _constructor(self) -> Any:
        return pd.DataFrame

    @classmethod
    def of(cls, judged: Judgement) -> VerdictFrame:
        """Return the frame of a judgement, which it shows."""
        frame = judged.frame()
        made = cls(frame)
        made.attrs.update(frame.attrs)
        object.__setattr__(made, "_judged", judged)
        return made

    def __repr__(self) -> str:
        judged = self.__dict__.get("_judged")
        return super().__repr__() if judged is None else verdict_text(judged)
