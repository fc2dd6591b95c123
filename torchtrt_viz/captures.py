"""Captures as users hold them: `profile`, `Capture`, `Program` and `attach`, whose traces are `Trace`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, cast

from torchtrt_viz.analysis.columns.engines import LAYERS
from torchtrt_viz.capture.attach import LayerAttachment, attach_layers
from torchtrt_viz.capture.capture_run import CaptureRun, last_run
from torchtrt_viz.capture.columns import CAPTURE_SUMMARY
from torchtrt_viz.capture.options import capture_options
from torchtrt_viz.capture.program import LoadedProgram
from torchtrt_viz.model.frame_docs import returns
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

    Examples
    --------
    >>> with tv.profile(level="layers", activities="none") as capture:
    ...     y = program(*inputs)
    >>> capture.trace.questions()["measured"].tolist()[:3]
    ['yes', 'yes', 'yes']
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
    """Return the latest capture of the process, finished or running; None before the first.

    Examples
    --------
    >>> tv.last() is capture
    True
    """
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

        Examples
        --------
        >>> sorted(capture.trace.spans["domain"].unique())
        ['host']
        """
        return Trace.of(self.recorded)

    @returns(CAPTURE_SUMMARY)
    def summary(self) -> pd.DataFrame:
        """Return what was captured, what it cost, and what could not be reached.

        Costs are estimates from measured costs of one event in this process.

        Returns
        -------
        pandas.DataFrame
            One row per fact.

        Raises
        ------
        CaptureError
            While the capture is running.

        Examples
        --------
        >>> capture.summary().set_index("item").loc["level", "value"]
        'phases'
        """
        return super().summary()


class Program(LoadedProgram):
    """A loaded ExecuTorch program, its tracer and its engines, which live and die together.

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

    Examples
    --------
    >>> with tv.Program(path, level="layers") as own:
    ...     y = own(*inputs)
    ...     layers = own.trace().layers()
    >>> layers["domain"].unique().tolist()
    ['host']
    """

    def trace(self) -> Trace:
        """Return what was recorded since the program was loaded or cleared.

        Raises
        ------
        CaptureError
            When the program records nothing: it was loaded without ``level``.

        Examples
        --------
        >>> sorted(program.trace().delegates()["backend"].unique())
        ['TensorRTBackend', 'XnnpackBackend']
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

        Examples
        --------
        >>> layers.trace().spans["timing"].unique().tolist()
        ['aggregate']
        """
        return Trace.of(self.recorded())

    @returns(LAYERS)
    def layers(
        self,
        *,
        engine: str | None = None,
        untimed: bool = True,
        sort: str | None = "total_ns",
        top: int | None = None,
    ) -> pd.DataFrame:
        """Return the table of layers of what was reported so far.

        Parameters
        ----------
        engine, untimed, sort, top
            As in :meth:`torchtrt_viz.Trace.layers`.

        Returns
        -------
        pandas.DataFrame
            One row per layer.

        Raises
        ------
        CaptureError
            When nothing was reported; it says what may be the reason.
        OptionError
            For an option that cannot be.

        Examples
        --------
        >>> layers.layers(sort=None)[["name", "calls"]].head(1).to_dict("records")
        [{'name': 'conv', 'calls': 1}]
        """
        return self.trace().layers(engine=engine, untimed=untimed, sort=sort, top=top)


def attach(
    target: Any, *, name: str | None = None, asynchronous: bool = False, replace: bool = False
) -> Attachment:
    """Attach a layer profiler to an execution context, or to every context that a module holds.

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

    Examples
    --------
    >>> with tv.attach(context) as layers:
    ...     done = layers.context.execute_async_v3(stream)
    >>> layers.layers()["name"].tolist()
    ['conv', 'relu', 'conv']
    """
    return attach_layers(target, Attachment, name=name, asynchronous=asynchronous, replace=replace)
