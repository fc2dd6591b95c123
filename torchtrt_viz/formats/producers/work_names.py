"""The kind of an event by its own name: copies, fills, collectives, calls of the driver."""

from __future__ import annotations

import re

from torchtrt_viz.formats.producers.categories import NAME_RULES
from torchtrt_viz.model.schema import KINDS

__all__ = ["kind_by_rules", "kind_on_device", "kind_on_host"]

_COPY = re.compile(
    r"\[?(CUDA |HIP )?(Memcpy|MEMCPY|memcpy)|Copy(Host|Device|Buffer)|MEMORY_COPY|__amd_rocclr_copy"
)
_FILL = re.compile(r"\[?(CUDA |HIP )?(Memset|MEMSET|memset)|FillBuffer|__amd_rocclr_fill")
_COLLECTIVE = re.compile(
    "|".join(re.escape(text) for how, text, *_ in NAME_RULES if how == "contains") + "|hcom_"
)
_PYTHON_FRAME = re.compile(r"\$(<unknown>|[^ ]+:\d+) ")  # the mark of XLA's tracer of Python
_API = re.compile(r"(cu|cuda|hip|hsa_|nvrtc|cudnn)[A-Z_]\w*(_v\d+)?$")
_MEMCPY, _MEMSET, _COMMUNICATION, _RUNTIME, _PYTHON = (
    KINDS.index(kind) for kind in ("memcpy", "memset", "communication", "runtime", "python")
)


def kind_on_device(name: str) -> int:
    """Return the kind (position in ``schema.KINDS``) of a device's event that is no kernel, else -1."""
    if _COPY.match(name):
        return _MEMCPY
    if _FILL.match(name):
        return _MEMSET
    return _COMMUNICATION if _COLLECTIVE.search(name.partition("(")[0]) else -1


def kind_on_host(name: str) -> int:
    """Return the kind of a host's event that is a call of the driver or a frame of Python, else -1."""
    if _PYTHON_FRAME.match(name):
        return _PYTHON
    return _RUNTIME if _API.match(name) else -1


def kind_by_rules(kind: int, name: str) -> int:
    """Return what `NAME_RULES` make of an event of this kind and name."""
    for how, text, before, after in NAME_RULES:
        if kind != before:
            continue
        said = name.partition("(")[0] if how == "contains" else name
        if (
            (how == "starts" and said.startswith(text))
            or (how == "equals" and said == text)
            or (how == "contains" and text in said)
        ):
            return after
    return kind
