"""Ranges that torch names (``emit_nvtx``, on ROCm too): an operator, number and shapes behind its name.

Names are kept without what stands behind them, so that calls of one operator have one name.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any

__all__ = ["CUTS", "details_of", "names_operator", "stem_of"]

#: What torch writes behind an operator's name.
CUTS = (", seq = ", ", op_id = ", ", sizes = ", ", input_op_ids = ")
#: A name of torch's own; labels of users may have other signs ("## forward ##", "Optimizer.step#SGD.step").
_OPERATOR = re.compile(r"[\w:.~]+(: [\w:.~]+)?$")
_SIZES = re.compile(r", sizes = (\[.*?\])(?=, input_op_ids = |$)", re.DOTALL)
_NUMBERS = {"Sequence number": re.compile(r", seq = (\d+)"), "op_id": re.compile(r", op_id = (\d+)")}


def stem_of(text: str) -> str:
    """Return a range's text without what torch writes behind the name of an operator."""
    at = min((found for cut in CUTS if (found := text.find(cut)) >= 0), default=len(text))
    return text[:at]


def names_operator(stem: str) -> bool:
    """Whether a text that `stem_of` shortened to this is an operator's."""
    return _OPERATOR.match(stem) is not None


def details_of(text: str) -> dict[str, Any]:
    """Return what torch wrote behind an operator's name, under the keys of its profiler."""
    out: dict[str, Any] = {}
    for key, pattern in _NUMBERS.items():
        if (number := pattern.search(text)) is not None:
            out[key] = int(number[1][:18])
    sizes = _SIZES.search(text) if CUTS[2] in text else None
    if sizes is not None:
        with suppress(ValueError, RecursionError):
            out["Input Dims"] = json.loads(sizes[1])
    return out
