"""Captures as users hold them: `profile`, `Capture`, `Program` and `attach`, whose traces are `Trace`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, cast

from torchtrt_viz.capture.attach import LayerAttachment, attach_layers
from torchtrt_viz.capture.capture_run import CaptureRun, last_run
from torchtrt_viz.capture.options import capture_options
from torchtrt_viz.capture.program import LoadedProgram
from torchtrt_viz.trace import Trace

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Attachment", "Capture", "Program", "attach", "last", "profile"]


def profile(
    *,
    level: str = "phases",
    format: str = "etdump",
    path_prefix: str | PathLike[str] | None = None,
    activities: str | Sequence[str] | None = "auto",
    record_shapes: bool = False,
    with_stack: bool = False,
    profile_memory: bool = False,
    with_flops: bool = False,
) -> Capture:
    """Capture what runs in a ``with`` block: torch's activity, and every program and engine of the process.

    >>> with torchtrt_viz.profile(level="layers") as capture:
    ...     y = program(x)
    >>> capture.trace.questions()

    Parameters
    ----------
    level : {"off", "delegate", "phases", "layers"}
        Detail of ``TensorRTBackend`` calls. ``"off"`` captures nothing at all and costs nothing.
    format : {"etdump", "perfetto", "trex"}
        Where layers go; ``"perfetto"`` and ``"trex"`` also write a sidecar file per engine.
    path_prefix
        Folder of the sidecar files.
    activities
        What torch.profiler records: ``"auto"`` (cpu, and cuda where it is in use, if torch is loaded),
        ``"none"``, ``"cpu"``, ``"cuda"``, ``"cpu,cuda"``, or a sequence of them.
    record_shapes, with_stack, profile_memory, with_flops
        As torch.profiler's. Each makes an event several times as expensive.

    Returns
    -------
    Capture
        A context manager; also ``start()`` and ``stop()``. Programs that were loaded before the block are
        captured too. Nothing is written outside a temporary folder unless asked for (``save``).

    Raises
    ------
    OptionError
        For an option that cannot be; nothing has been started then.
    CaptureActiveError
        On entering, when another capture, or a torch profiler of the user's own, is running.
    """
    return Capture(
        capture_options(
            level=level,
            format=format,
            path_prefix=path_prefix,
            activities=activities,
            record_shapes=record_shapes,
            with_stack=with_stack,
            profile_memory=profile_memory,
            with_flops=with_flops,
        )
    )


def last() -> Capture | None:
    """Return the latest capture of the process, finished or running; None before the first."""
    return cast("Capture | None", last_run())


class Capture(CaptureRun):
    """One capture: before, during and after its block. Made by :func:`profile`.

    Attributes
    ----------
    options : CaptureOptions
        What was asked for.
    state : str
        ``"new"``, ``"running"`` or ``"stopped"``.
    problems : list of str
        What could not be recorded, and why. Never silently empty: each entry is in ``summary()`` as well.
    error : BaseException or None
        The exception that ended the block, when one did; what ran before it is in the trace.
    """

    @cached_property
    def trace(self) -> Trace:
        """Everything recorded, as one trace on one time base (read from the artifacts on first use).

        Raises
        ------
        CaptureError
            While the capture is running.
        """
        return Trace.of(self.recorded)


class Program(LoadedProgram):
    """A loaded ExecuTorch program, its tracer and its engines, which live and die together.

    >>> program = Program("model.pte", level="layers")
    >>> y = program(x)
    >>> program.trace().layers()

    A program that is loaded without ``level`` records nothing by itself; a capture
    (:func:`torchtrt_viz.profile`, ``%%trtprofile``) records what it runs inside the block, even if it was
    loaded before.

    Parameters
    ----------
    path
        The ``.pte``.
    level
        Detail of the ``TensorRTBackend`` calls from now on: off, delegate, phases or layers. None: what the
        program carries, or what a capture asks for. A level given here wins over both; with ``"off"`` there
        is no tracer at all, and no capture can reach the program.
    format
        Where layers go: etdump, perfetto or trex (these two also write sidecar files).
    path_prefix
        Folder of the sidecar files.
    options
        More load-time options, by backend id: ``{"TensorRTBackend": {"torchtrt_profile_level": "phases"}}``.
    etrecord
        ETRecord of the program, for operator types and source lines; None: the file of the same stem beside
        the program, if there is one; False: none.
    operators
        Record the operators that the runtime itself calls, not only methods and delegates.
    time_backends
        Ids of other delegates whose calls are timed from outside (``torchtrt.delegate``), such as
        ``("XnnpackBackend",)``: they run behind a proxy, in a copy of the program. Calls obey ``level`` as
        ours do.
    share_memory
        Let methods share planned memory: for a program exported with ``share_mutable_buffers=True``.

    Raises
    ------
    CaptureError
        When the file cannot be loaded; the message names it and what to do.
    OptionError
        For an option that cannot be.
    MissingDependencyError, CompatibilityError
        Without the executorch that the extension was built with.
    """

    def trace(self) -> Trace:
        """Return what was recorded since the program was loaded or cleared.

        Raises
        ------
        CaptureError
            When the program records nothing: it was loaded without ``level``.
        """
        return Trace.of(self.recorded())


class Attachment(LayerAttachment):
    """Layer profilers attached to one or several execution contexts; made by :func:`attach`."""

    def trace(self) -> Trace:
        """Return the layers as a trace: device times summed over executions, with no place on a time axis.

        Raises
        ------
        CaptureError
            When nothing was reported; it says what may be the reason.
        """
        return Trace.of(self.recorded())

    def layers(self) -> pd.DataFrame:
        """Return the table of layers: see :meth:`torchtrt_viz.Trace.layers`."""
        return self.trace().layers()


def attach(
    target: Any, *, name: str | None = None, asynchronous: bool = False, replace: bool = False
) -> Attachment:
    """Attach a layer profiler to an execution context, or to every context that a module holds.

    >>> with attach(context) as layers:
    ...     layers.context.execute_async_v3(stream)
    >>> layers.trace().layers()

    Parameters
    ----------
    target
        An ``IExecutionContext``, or a ``torch.nn.Module`` with TensorRT engines in it.
    name
        Name of the engine in tables and files; None: the engine's own.
    asynchronous
        Keep enqueues asynchronous; call ``report()`` after each execution, when it has been waited for.
    replace
        Take the place of a profiler that is attached already; ``detach()`` puts it back.

    Raises
    ------
    OptionError
        When ``target`` is neither, or a module without engines.
    CaptureActiveError
        When a profiler is attached already and ``replace`` is not set.
    """
    return attach_layers(target, Attachment, name=name, asynchronous=asynchronous, replace=replace)
