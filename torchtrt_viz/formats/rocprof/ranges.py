"""What the program itself named (roctx): names and kinds of its ranges and marks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.formats.producers.torch_ranges import names_operator, stem_of
from torchtrt_viz.formats.producers.work_names import kind_by_rules
from torchtrt_viz.formats.rocprof.events import Names
from torchtrt_viz.model.schema import KINDS

__all__ = ["ranges_of"]

_OPERATOR, _ANNOTATION = KINDS.index("operator"), KINDS.index("annotation")


def ranges_of(texts: Sequence[str | None], names: Names) -> tuple[NDArray[np.int32], NDArray[np.int8]]:
    """Return code of the name and kind of each text, and at the end -1 and annotation, as for None.

    Ranges that torch names (``emit_nvtx``) are operators, without what it writes behind their names.
    """
    codes: list[int] = []
    kinds: list[int] = []
    for text in (*texts, None):
        stem = None if text is None else stem_of(text)
        codes.append(-1 if stem is None else names.add(stem or "(unnamed)"))
        if stem is not None and stem != text and names_operator(stem):
            kinds.append(_OPERATOR)
        else:
            kinds.append(_ANNOTATION if stem is None else kind_by_rules(_ANNOTATION, stem))
    return np.array(codes, np.int32), np.array(kinds, np.int8)
