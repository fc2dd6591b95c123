"""Numbers as the tool prints them, with separators of thousands, in English or another language."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

__all__ = ["decimal_comma", "number"]

_PLAIN = re.compile(r"[-+]?\d+(\.\d+)?([eE][-+]?\d+)?")
_ENGLISH = re.compile(r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?")
_CONTINENTAL = re.compile(r"[-+]?\d{1,3}([.\u00a0\u202f ]\d{3})*(,\d+)?|[-+]?\d+,\d+")
#: What only one of the two can mean.
_SURELY_CONTINENTAL = re.compile(
    r"[-+]?\d+,(\d{1,2}|\d{4,})|[-+]?\d{1,3}(\.\d{3}){2,}(,\d+)?|[-+]?\d{1,3}(\.\d{3})+,\d+"
)
_SURELY_ENGLISH = re.compile(
    r"[-+]?\d+\.(\d{1,2}|\d{4,})|[-+]?\d{1,3}(,\d{3}){2,}(\.\d+)?|[-+]?\d{1,3}(,\d{3})+\.\d+"
)
#: Values of several instances stand behind their sum.
_INSTANCES = re.compile(r"(\S+) \(.*\)", re.DOTALL)
_LONGEST = 400


def decimal_comma(texts: Iterable[str]) -> bool:
    """Tell whether a page's numbers have a comma before their decimals: what can only be so decides."""
    continental = english = 0
    for text in texts:
        text = text.strip()[:_LONGEST]
        continental += _SURELY_CONTINENTAL.fullmatch(text) is not None
        english += _SURELY_ENGLISH.fullmatch(text) is not None
    return continental > english


def number(text: str, comma: bool) -> float | None:
    """Return a number, None for text that is none."""
    text = text.strip()[:_LONGEST]
    instances = _INSTANCES.fullmatch(text)
    if instances is not None:
        text = instances[1]
    if comma and _CONTINENTAL.fullmatch(text):
        text = re.sub(r"[.\u00a0\u202f ]", "", text).replace(",", ".")
    elif not comma and _ENGLISH.fullmatch(text):
        text = text.replace(",", "")
    elif not _PLAIN.fullmatch(text):
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
