"""Names by which findings know calls."""

from __future__ import annotations

import re

__all__ = ["ALLOCATION"]

ALLOCATION = re.compile(r"^(cuda|cu|hip)(Malloc|Free|Mem(Alloc|Free))(?!.*Async)")
"""Calls that allocate or free memory in the driver; they synchronise, unlike those of a stream's pool."""
