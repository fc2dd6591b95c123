"""A temporary folder that belongs to the process that made it, and to no fork of that."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref

__all__ = ["TemporaryFolder"]


class TemporaryFolder:
    """A new folder, removed when this object is gone or the process ends.

    A fork inherits the object: with :class:`tempfile.TemporaryDirectory`, the end of the fork would remove
    the folder of the process that still uses it.

    Attributes
    ----------
    name : str
        Its path.
    """

    def __init__(self) -> None:
        self.name = tempfile.mkdtemp(prefix="torchtrt_viz-")
        self._finalizer = weakref.finalize(self, _remove, self.name, os.getpid())

    def cleanup(self) -> None:
        """Remove it now."""
        self._finalizer()


def _remove(name: str, maker: int) -> None:
    if os.getpid() == maker:
        shutil.rmtree(name, ignore_errors=True)
