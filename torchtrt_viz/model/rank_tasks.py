"""Functions over the traces of many ranks: here, one after the other, or as tasks of a dask cluster."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

from torchtrt_viz.errors import MissingDependencyError, TraceFormatError

if TYPE_CHECKING:
    import pandas as pd

    from torchtrt_viz.model.repair import Repair
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["RankTrace", "ReadOptions", "Result", "Work", "run_calls", "run_here", "run_tasks"]


class ReadOptions(Protocol):
    """How traces are read: what a session has to know of it.

    Attributes
    ----------
    strict
        Damage is an error instead of a warning.
    warnings
        Repairs so far.
    """

    @property
    def strict(self) -> bool:
        """Whether damage is an error instead of a warning."""
        ...

    @property
    def warnings(self) -> list[Repair]:
        """Repairs so far."""
        ...

    def elsewhere(self) -> Self:
        """Return the options for another process: nobody watches there, and nothing was repaired yet."""
        ...


class RankTrace(Protocol):
    """One trace of one rank, or the want of it: a frozen dataclass with the columns of ``Session.ranks``."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def path(self) -> str:
        """Where it lies, or should."""
        ...

    @property
    def rank(self) -> int | None:
        """Number of the rank; None where nothing says it."""
        ...

    @property
    def cycle(self) -> int | None:
        """Number of the recording; None where nothing says it."""
        ...

    @property
    def role(self) -> str | None:
        """Prefill, decode, ...; None where nothing says it."""
        ...

    @property
    def what(self) -> str:
        """What it is: "trace", or what it is instead of one rank's work."""
        ...

    @property
    def state(self) -> str:
        """Its state: "ok", "damaged", "staged" or "missing"."""
        ...

    @property
    def key(self) -> tuple[Any, ...]:
        """What identifies the rank."""
        ...

    def load(self, options: Any) -> TraceData:
        """Read the trace."""
        ...


Work = Sequence[tuple[Callable[..., "pd.DataFrame"], "dict[str, Any]"]]
"""What is computed of each trace: functions with their options."""

Result = tuple["list[pd.DataFrame] | None", "str | None"]
"""A rank's frames, one for each function, or None and why its trace could not be read."""

_RETRIES = 2
_LEAST_AHEAD = 16
_AHEAD_PER_THREAD = 8


def run_here(load: Callable[[int], TraceData], row: int, work: Work) -> Result:
    """Read one trace and reduce it in this process."""
    try:
        trace = load(row)
    except TraceFormatError as error:
        return None, str(error)
    return [function(trace, **options) for function, options in work], None


def run_calls(calls: Sequence[tuple[Callable[..., Any], tuple[Any, ...]]]) -> Iterable[Any]:
    """Call each function as a task on the current client, or on dask's threads; results come in their order.

    Raises
    ------
    MissingDependencyError
        Without dask.
    """
    try:
        import dask
    except ImportError as error:
        raise MissingDependencyError("dask", "cluster", "spread the ranks of a session over tasks") from error
    client = _client()
    if client is not None:
        return _from_client(client, calls)
    results: tuple[Any, ...] = dask.compute(*[dask.delayed(function)(*given) for function, given in calls])
    return iter(results)


def run_one(
    file: RankTrace, load_options: ReadOptions, work: Work, present: Callable[[TraceData], TraceData]
) -> Result:
    """Read one trace and reduce it: the whole work of a task."""
    return run_here(lambda _: present(file.load(load_options)), 0, work)


def run_tasks(
    files: Sequence[RankTrace],
    load_options: ReadOptions,
    work: Work,
    present: Callable[[TraceData], TraceData],
) -> Iterable[Result]:
    """Run one task for each rank on the current client, or on dask's threads.

    Results come in the order of ``files``. A task whose worker is lost is run again elsewhere. On a client,
    a few tasks for each of its threads are under way at a time, so that what is held does not grow with the
    number of ranks.

    Raises
    ------
    MissingDependencyError
        Without dask.
    """
    load_options = load_options.elsewhere()
    return run_calls([(run_one, (file, load_options, work, present)) for file in files])


def _client() -> Any:
    """Return the current distributed client, None when there is none."""
    try:
        from distributed import get_client
    except ImportError:
        return None
    try:
        return get_client()
    except ValueError:
        return None


def _from_client(client: Any, calls: Sequence[tuple[Callable[..., Any], tuple[Any, ...]]]) -> Iterator[Any]:
    # Only so many tasks at a time as keep the workers busy: results that wait to be taken are held by them.
    left = iter(calls)
    pending: deque[Any] = deque()
    ahead = 0
    while True:
        if len(pending) <= ahead // 2:  # workers may have come or gone since
            ahead = max(_LEAST_AHEAD, _AHEAD_PER_THREAD * sum(client.nthreads().values()))
            for function, given in islice(left, ahead - len(pending)):
                pending.append(client.submit(function, *given, pure=False, retries=_RETRIES))
        if not pending:
            return
        yield pending.popleft().result()
