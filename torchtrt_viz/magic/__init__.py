"""``%load_ext torchtrt_viz``: the magics ``%%trtprofile`` and ``%trtprofile``.

The data flow: `options` reads a magic's line, `cell` turns a marked cell into the same code inside a capture,
`cell_capture` runs it, `output` shows what it found, `magics` is the ordinary magic (line form, help),
and `complete` completes options.
"""

from __future__ import annotations

from typing import Any

__all__ = ["load_ipython_extension", "unload_ipython_extension"]


def load_ipython_extension(shell: Any) -> None:
    """Add the magics to an IPython shell; loading twice changes nothing. Prints nothing."""
    # slow to import: it needs IPython
    from torchtrt_viz.magic import cell, complete, magics

    cell.install(shell)
    magics.install(shell)
    complete.install(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Remove everything that `load_ipython_extension` added."""
    # slow to import: it needs IPython
    from torchtrt_viz.magic import cell, cell_capture, complete, magics

    cell_capture.forget(shell)
    complete.uninstall(shell)
    magics.uninstall(shell)
    cell.uninstall(shell)
