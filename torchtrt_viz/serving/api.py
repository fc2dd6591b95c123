"""The functions for an engine in this process; all use one shared `LocalProfiler`."""

from __future__ import annotations

import threading

from torchtrt_viz.serving.contract.config import ProfileConfig
from torchtrt_viz.serving.contract.status import ArtifactStatus, ProfileStatus
from torchtrt_viz.serving.rank.local import LocalProfiler
from torchtrt_viz.serving.rank.profiler import EngineStep

__all__ = [
    "engine_step",
    "local_profiler",
    "profile_status",
    "start_profile",
    "stop_profile",
    "wait_for_profile_artifacts",
]

_shared: LocalProfiler | None = None
_guard = threading.Lock()


def local_profiler() -> LocalProfiler:
    """Return the profiler that these functions share, made at the first call."""
    global _shared
    with _guard:
        if _shared is None:
            _shared = LocalProfiler()
        return _shared


def start_profile(
    config: ProfileConfig, *, window: bool = False, session_id: str | None = None
) -> ProfileStatus:
    """Start a session; see :meth:`torchtrt_viz.serving.LocalProfiler.start_profile`.

    Call it on the thread that runs the engine, or have called ``local_profiler().attach()`` there.
    """
    return local_profiler().start_profile(config, window=window, session_id=session_id)


def stop_profile() -> ProfileStatus:
    """Stop the session; see :meth:`torchtrt_viz.serving.LocalProfiler.stop_profile`."""
    return local_profiler().stop_profile()


def profile_status() -> ProfileStatus:
    """Return the state of collection and, separately, of artifacts."""
    return local_profiler().profile_status()


def wait_for_profile_artifacts(timeout: float | None = None) -> list[ArtifactStatus]:
    """Wait for archives; see :meth:`torchtrt_viz.serving.LocalProfiler.wait_for_profile_artifacts`."""
    return local_profiler().wait_for_profile_artifacts(timeout)


def engine_step(kind: str | None = None) -> EngineStep:
    """Wrap one step of the engine; see :meth:`torchtrt_viz.serving.RankProfiler.engine_step`."""
    return local_profiler().engine_step(kind)
