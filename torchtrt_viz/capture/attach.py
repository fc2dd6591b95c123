"""`attach()`: layer times of TensorRT engines that live in Python.

For execution contexts of ``tensorrt``, ``tensorrt_lean`` and ``tensorrt_rtx``, and for modules that hold such
contexts (Torch-TensorRT's Python runtime) or engines with a profiler of their own (its C++ runtime).

While a profiler is attached, TensorRT waits for the device in each enqueue, unless the context's
``enqueue_emits_profile`` is off (``attach(..., asynchronous=True)``): then the execution stays asynchronous,
and ``report()`` after the caller's own synchronisation fetches the times of the last execution.
"""

from __future__ import annotations

import re
import weakref
from os import PathLike, fspath
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from torchtrt_viz._native import native
from torchtrt_viz.capture.artifacts import keep_alive
from torchtrt_viz.capture.layer_runs import LayerRuns, sort_runs, trex_profile
from torchtrt_viz.capture.temporary_folder import TemporaryFolder
from torchtrt_viz.capture.tensorrt_python import contexts_in, is_context, layer_information, layer_profiler
from torchtrt_viz.errors import CaptureActiveError, CaptureError, OptionError
from torchtrt_viz.formats.engine.file_set import read_set
from torchtrt_viz.formats.io.new_file import write_file
from torchtrt_viz.formats.io.options import LoadOptions
from torchtrt_viz.formats.io.source import Source
from torchtrt_viz.model.merge import merge
from torchtrt_viz.model.repair import Repair

if TYPE_CHECKING:
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["LayerAttachment", "attach_layers", "attachments"]

_EXECUTES = ("execute_async_v3", "execute_v2", "execute_async_v2", "execute_async", "execute")
A = TypeVar("A", bound="LayerAttachment")

_living: weakref.WeakSet[LayerAttachment] = weakref.WeakSet()


def attach_layers(target: Any, make: type[A], *, name: str | None, asynchronous: bool, replace: bool) -> A:
    """Attach a layer profiler: see :func:`torchtrt_viz.attach`."""
    found = [(None, target, None)] if is_context(target) else contexts_in(target)
    made: list[_Attached] = []
    try:
        for place, context, owner in found:
            label = name if name is not None and len(found) == 1 else None
            made.append(_Attached(context, label or place, asynchronous, replace, owner))
    except BaseException:
        for one in made:
            one.detach()
        raise
    attachment = make(made)
    _living.add(attachment)
    return attachment


def attachments() -> list[LayerAttachment]:
    """Return the attachments that are attached now."""
    return [attachment for attachment in _living if not attachment.detached]


class LayerAttachment:
    """Layer profilers attached to one or several execution contexts; made by :func:`attach_layers`."""

    def __init__(self, engines: list[_Attached]) -> None:
        self._engines = engines
        self.detached = False

    def __repr__(self) -> str:
        state = "detached" if self.detached else "attached"
        return f"<Attachment to {', '.join(e.name for e in self._engines)}: {state}, {len(self)} reports>"

    def __len__(self) -> int:
        return sum(len(engine.times) for engine in self._engines)

    @property
    def engines(self) -> list[str]:
        """Names of the engines."""
        return [engine.name for engine in self._engines]

    @property
    def context(self) -> Any:
        """The context, to be used in the place of the original: it also tells executions apart for certain.

        Everything goes through to the original. Executions that report no layer (CUDA graphs being captured
        or replayed) are noticed only here.
        """
        if len(self._engines) != 1:
            raise CaptureError(f"{len(self._engines)} contexts are attached: attach one at a time to get one")
        return self._engines[0].counted

    def report(self) -> None:
        """Fetch the times of the last execution (``asynchronous=True``), which the caller has waited for."""
        for engine in self._engines:
            engine.report()

    @property
    def problems(self) -> list[str]:
        """What was not recorded, and why."""
        return [problem for engine in self._engines for problem in engine.problems()]

    def detach(self) -> None:
        """Take the profilers off, and put back what was there before. Twice is fine."""
        if not self.detached:
            self.detached = True
            for engine in self._engines:
                engine.detach()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.detach()

    def position(self) -> list[int]:
        """Return how many reports there are of each engine, for :meth:`save` to begin from."""
        return [len(engine.times) for engine in self._engines]

    def save(
        self, folder: str | PathLike[str], *, force: bool = False, since: list[int] | None = None
    ) -> list[list[Path]]:
        """Write a TREX set: ``<engine>.profile.json``, and ``<engine>.graph.json`` where the engine gives it.

        Parameters
        ----------
        folder
            Made if it is not there.
        force
            Overwrite files that are there.
        since
            What :meth:`position` returned: only what was reported after it. None: everything.

        Returns
        -------
        list
            The files of each engine that reported anything.

        Raises
        ------
        CaptureError
            When a file exists and ``force`` is not set.
        """
        target = Path(fspath(folder))
        target.mkdir(parents=True, exist_ok=True)
        written = []
        for files in self.files(since):
            for file_name, content in files.items():
                write_file(target / file_name, content, force=force)
            written.append([target / file_name for file_name in files])
        return written

    def files(self, since: list[int] | None = None, taken: set[str] | None = None) -> list[dict[str, bytes]]:
        """Return what :meth:`save` writes: for each engine that reported anything, content by file name.

        Parameters
        ----------
        since
            As in :meth:`save`.
        taken
            File names that are not free: ours get a number then, and are added.
        """
        made = []
        taken = set() if taken is None else taken
        for engine, first in zip(self._engines, since or [0] * len(self._engines), strict=True):
            layers = engine.runs(first)
            if layers.runs:
                made.append(engine.files(layers, taken))
        return made

    def recorded(self) -> TraceData:
        """Return the layers as a trace: device times summed over executions, with no place on a time axis.

        Raises
        ------
        CaptureError
            When nothing was reported; it says what may be the reason.
        """
        folder = TemporaryFolder()
        sets = self.save(folder.name)
        if not sets:
            problems = self.problems
            why = "; ".join(problems) if problems else "run the context while it is attached"
            raise CaptureError(f"no layer was reported: {why}")
        parts = []
        for files in sets:
            parts.append(read_set([Source(path) for path in files], LoadOptions()))
        trace = merge(parts) if len(parts) > 1 else parts[0]
        trace.meta["warnings"] = [
            *trace.meta["warnings"],
            *(Repair("not_captured", problem) for problem in self.problems),
        ]
        return keep_alive(trace, folder)


class _Attached:
    """One context with our profiler on it."""

    def __init__(self, context: Any, name: str | None, asynchronous: bool, replace: bool, owner: Any) -> None:
        before = getattr(context, "profiler", None)
        if before is not None and not replace:
            raise CaptureActiveError(
                f"a profiler is attached to {name or 'the context'} already ({type(before).__name__}): take "
                "it off (context.profiler = None), or attach(..., replace=True)"
            )
        self.context = context
        self.engine = getattr(context, "engine", None)
        self.name = name or str(getattr(self.engine, "name", "") or "engine")
        self.times = native("layer_times").LayerTimes()
        self.profiler = layer_profiler(context, self.times)
        self.counted = _Counted(context, self)
        self.silent = 0
        self._before = before
        # the module, asked later whether it still uses this context
        self._owner = None if owner is None else weakref.ref(owner)
        self._emits = getattr(context, "enqueue_emits_profile", None)
        self._asynchronous = asynchronous
        if asynchronous:
            if self._emits is None:
                raise OptionError("asynchronous", True, "False: this context has no enqueue_emits_profile")
            context.enqueue_emits_profile = False
        context.profiler = self.profiler

    def report(self) -> None:
        if not self._asynchronous:
            raise CaptureError(
                "report() is for attach(..., asynchronous=True): the enqueue reports by itself"
            )
        self.times.mark()
        if not self.context.report_to_profiler():
            self.silent += 1

    def executed(self, reports_before: int) -> None:
        if not self._asynchronous and len(self.times) == reports_before:
            self.silent += 1

    def runs(self, first: int = 0) -> LayerRuns:
        count = getattr(self.engine, "num_layers", None)
        return sort_runs(self.times.columns(), first, count if isinstance(count, int) else None)

    def problems(self) -> list[str]:
        found = []
        if self.silent:
            found.append(
                f"{self.name}: {self.silent} executions reported no layers; TensorRT reports none while a "
                "CUDA graph is captured or replayed"
            )
        owner = self._owner() if self._owner is not None else None
        if owner is not None and getattr(owner, "context", self.context) is not self.context:
            found.append(
                f"{self.name}: its module has made a new execution context since (settings or shapes "
                "changed); the new one is not profiled: attach again"
            )
        elif not self._detached and getattr(self.context, "profiler", None) is not self.profiler:
            found.append(f"{self.name}: another profiler was attached in our place")
        layers = self.runs()
        if not layers.known:
            found.append(
                f"{self.name}: where an execution begins is not known, because the layers differ from one to "
                "the next; run attachment.context instead of the context"
            )
        if layers.dropped:
            found.append(f"{self.name}: {layers.dropped} reports gave no time")
        return found

    _detached = False

    def detach(self) -> None:
        self._detached = True
        if getattr(self.context, "profiler", None) is self.profiler:
            self.context.profiler = self._before
        if self._asynchronous and self._emits is not None:
            self.context.enqueue_emits_profile = self._emits

    def files(self, layers: LayerRuns, taken: set[str]) -> dict[str, bytes]:
        stem = re.sub(r"[^A-Za-z0-9_.-]+", "_", self.name).strip("._")[:80] or "engine"
        number = 2
        whole = stem
        while whole in taken:
            whole = f"{stem}-{number}"
            number += 1
        taken.add(whole)
        stem = whole
        made = {f"{stem}.profile.json": trex_profile(layers)}
        information = layer_information(self.engine, self.context)
        if information is not None:
            made[f"{stem}.graph.json"] = information.encode()
        return made


class _Counted:
    """A context that marks where each execution begins; all else goes through to the original."""

    def __init__(self, context: Any, attached: _Attached) -> None:
        object.__setattr__(self, "_context", context)
        object.__setattr__(self, "_attached", weakref.ref(attached))

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._context, name)
        if name not in _EXECUTES:
            return value

        def execute(*arguments: Any, **keywords: Any) -> Any:
            attached = self._attached()
            if attached is None or attached._detached:
                return value(*arguments, **keywords)
            before = len(attached.times)
            if not attached._asynchronous:
                attached.times.mark()
            done = value(*arguments, **keywords)
            attached.executed(before)
            return done

        return execute

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._context, name, value)
