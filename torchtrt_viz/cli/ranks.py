"""A session whose ranks are read in worker processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torchtrt_viz as tv
from torchtrt_viz.errors import MissingDependencyError

__all__ = ["spread"]


@contextmanager
def spread(session: tv.Session, workers: int | None) -> Iterator[None]:
    """Read the session's ranks in so many worker processes; None: here."""
    if workers is None:
        yield
        return

    try:
        import distributed
    except ImportError as error:
        raise MissingDependencyError("distributed", "cluster", "read ranks in several processes") from error
    with (
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster),
    ):
        session.engine = "dask"
        yield
