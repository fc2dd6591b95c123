"""The garbage collector, kept out of the way while a document becomes objects.

A parsed document is a large number of containers without a cycle among them; the collector would walk all
of them again and again while they are made.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["collector_paused"]


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the collector, unless somebody has switched it off already."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
