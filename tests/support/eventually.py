"""Waiting for what another thread or process does, however long it takes on a busy machine."""

from __future__ import annotations

import time
from collections.abc import Callable


def eventually(condition: Callable[[], object]) -> None:
    """Return when the condition holds; what never happens runs into the limit that every test has."""
    while not condition():
        time.sleep(0.005)
