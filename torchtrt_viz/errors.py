"""Every exception that the package raises on purpose.

A message says what went wrong, where (file, byte offset, option), what was expected, what was found,
and what to do about it. The parts are also fields, so that programs need not read prose.
"""

from __future__ import annotations

import sys
from os import PathLike, fspath
from pathlib import Path

__all__ = [
    "CaptureActiveError",
    "CaptureError",
    "CompatibilityError",
    "MissingDependencyError",
    "OptionError",
    "OutputError",
    "OutputFolderError",
    "QueryError",
    "RecordingLostError",
    "TorchTrtVizError",
    "TraceFormatError",
    "WrongThreadError",
]


class TorchTrtVizError(Exception):
    """Base of every exception of this package."""


class TraceFormatError(TorchTrtVizError, ValueError):
    """A file cannot be read as the trace that it claims, or was said, to be.

    Parameters
    ----------
    path
        The file (or archive member, written ``archive!member``) at fault; None for data in memory.
    offset
        Byte offset of the fault in the uncompressed content; None where it has no single place.
    expected, found
        What the format asks for at that place, and what is there.
    hint
        What the user can do about it.
    """

    def __init__(
        self,
        message: str,
        *,
        path: str | PathLike[str] | None = None,
        offset: int | None = None,
        expected: str | None = None,
        found: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.path = None if path is None else fspath(path)
        self.offset = offset
        self.expected = expected
        self.found = found
        self.hint = hint
        place = self.path or "<data>"
        if offset is not None:
            place += f" at byte {offset}"
        parts = [f"{place}: {message}"]
        if expected is not None:
            parts.append(f"expected {expected}")
        if found is not None:
            parts.append(f"found {found}")
        text = "; ".join(parts)
        if hint:
            text += f". {hint}"
        super().__init__(text)


class CaptureError(TorchTrtVizError, RuntimeError):
    """A program could not be loaded, run or profiled."""


class CaptureActiveError(CaptureError):
    """A capture was asked for while another one is running in the process."""


class WrongThreadError(CaptureError):
    """A profiler was about to be used on another thread than its own, which would lose its data."""


class RecordingLostError(CaptureError):
    """What torch.profiler recorded is lost: another profiler took its session, or its thread has ended."""


class OptionError(TorchTrtVizError, ValueError):
    """An option has a value that it cannot have.

    Parameters
    ----------
    key, value
        The option and the value that was refused.
    choices
        What is allowed, in words or as the list of values.
    """

    def __init__(self, key: str, value: object, choices: str) -> None:
        self.key = key
        self.value = value
        self.choices = choices
        super().__init__(f"option {key!r} cannot be {value!r}: {choices}")


class QueryError(TorchTrtVizError, ValueError):
    """A search cannot be read.

    Parameters
    ----------
    query
        The whole search.
    at
        Where in it: characters from its begin, 0 first.
    expected
        What should stand there.
    """

    def __init__(self, query: str, at: int, expected: str) -> None:
        self.query = query
        self.at = at
        self.expected = expected
        found = repr(query[at : at + 20]) if at < len(query) else "its end"
        super().__init__(f"search {query!r}, character {at + 1}: expected {expected}, found {found}")


class OutputError(TorchTrtVizError, OSError):
    """A file or folder could not be written; what was there is untouched. ``errno`` is the system's."""

    @classmethod
    def of(cls, path: object, error: OSError) -> OutputError:
        """Return the error for a path from what the system said."""
        said = error.strerror or str(error)
        if isinstance(error, FileNotFoundError) and not Path(str(path)).absolute().parent.is_dir():
            made: OutputError = OutputFolderError(
                f"{path} cannot be written: its folder does not exist. Make it, or choose another place"
            )
        else:
            made = cls(f"{path} cannot be written: {said}. Free or permit it, or choose another place")
        made.errno = error.errno
        return made

    def __str__(self) -> str:
        return str(self.args[0])


class OutputFolderError(OutputError, FileNotFoundError):
    """The folder that a file is to be written to does not exist."""


class MissingDependencyError(TorchTrtVizError, ImportError):
    """An optional package is needed for what was asked.

    Made while an ``ImportError`` is handled, it tells a package that is there and cannot be imported from one
    that is not installed.

    Parameters
    ----------
    package
        The module that could not be imported.
    extra
        The extra of this package that installs it; None where no extra does.
    purpose
        What it is needed for, as a verb phrase ("draw the timeline").
    """

    def __init__(self, package: str, extra: str | None, purpose: str) -> None:
        self.package = package
        self.extra = extra
        said = sys.exception()
        if isinstance(said, ImportError) and not isinstance(said, ModuleNotFoundError):
            state = f"cannot be imported ({said})"
            remedy = f"pip install --force-reinstall {package}"
        else:
            state = "is not installed"
            remedy = f"pip install {package}" if extra is None else f"pip install 'torchtrt-viz[{extra}]'"
        super().__init__(f"{package} is needed to {purpose}, and {state}: {remedy}")


class CompatibilityError(TorchTrtVizError, ImportError):
    """A library is installed in a version that the compiled extension cannot work with.

    Parameters
    ----------
    library
        Its distribution.
    built
        The version that the extension was built against; empty where it was built against none.
    installed
        The version that is installed.
    fitting
        The versions that fit, as pip writes them ("==1.5.*").
    reason
        Why the installed one does not, as a clause.
    """

    def __init__(self, library: str, built: str, installed: str, fitting: str, reason: str) -> None:
        self.library = library
        self.built = built
        self.installed = installed
        self.fitting = fitting
        against = f"was built against {library} {built}" if built else f"works with {library}{fitting}"
        super().__init__(
            f"the capture extension {against}, but {library} {installed} is installed: {reason}. "
            f"pip install '{library}{fitting}'"
        )
