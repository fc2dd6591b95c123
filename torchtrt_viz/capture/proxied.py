"""Other people's delegates, timed from outside: a copy of a program whose delegates go through proxies.

A proxy is a delegate under an id of the same length that passes everything on to the one it stands for and
times its calls. The program itself is never changed; the copy lives in a temporary folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torchtrt_viz.capture.temporary_folder import TemporaryFolder
from torchtrt_viz.errors import CaptureError, OptionError
from torchtrt_viz.formats.io.new_file import write_file

__all__ = ["proxied_copy", "proxy_id"]

_OWN = "TensorRTBackend"


def proxy_id(backend: str) -> str:
    """Return the id of the proxy of a backend: of the same length, as ids in a program cannot grow."""
    return backend[:-1] + ("_" if not backend.endswith("_") else "-")


def proxied_copy(
    native: Any, program: Path, backends: Sequence[str]
) -> tuple[TemporaryFolder, Path, dict[str, str]]:
    """Register proxies, and write a copy of a program that uses them.

    Parameters
    ----------
    native
        The compiled capture module.
    backends
        Ids of the delegates to time.

    Returns
    -------
    tuple
        The temporary folder, the copy in it, and the proxy's id for each backend.

    Raises
    ------
    OptionError
        For an id that is none, or the instrumented delegate's own, which records by itself.
    CaptureError
        When a backend is not registered, or the program does not use it.
    """
    if isinstance(backends, str) or not all(isinstance(b, str) and b.strip() for b in backends):
        raise OptionError("time_backends", backends, "a sequence of backend ids, ('XnnpackBackend',)")
    if _OWN in backends:
        raise OptionError("time_backends", _OWN, "other delegates: this one records its calls by itself")
    names = {backend: proxy_id(backend) for backend in backends}
    for backend, proxy in names.items():
        native.wrap_backend(backend, proxy)
    try:
        content, renamed = native.rename_backends(program.read_bytes(), names)
    except OSError as error:
        raise CaptureError(f"{program} cannot be read: {error.strerror or error}") from error
    missing = [backend for backend in backends if not renamed.get(backend)]
    if missing:
        raise CaptureError(f"{program} has no delegate {', '.join(missing)} to time")
    folder = TemporaryFolder()
    copy = Path(folder.name) / program.name
    write_file(copy, content)
    return folder, copy, names
