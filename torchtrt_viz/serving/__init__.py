"""Profiles of serving engines: many processes, one session, nothing stalled and nothing lost.

One process::

    from torchtrt_viz.serving import ProfileConfig, start_profile, stop_profile, wait_for_profile_artifacts

    start_profile(ProfileConfig("profiles", active=20))     # on the engine's thread
    for batch in work:
        with engine_step():
            engine.step(batch)
    wait_for_profile_artifacts()

An engine of several processes gives its messages to a `ProfileCoordinator` (`PipeHub`, `StoreHub`) on one
side and a `ProfileWorker` (`StoreWorker`) on the other. `profile_routes` puts start, stop and status
behind HTTP, `add_profile_arguments` behind command-line flags, and `recover` finishes what a killed
process left behind.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchtrt_viz.serving.annotations import unrecorded
    from torchtrt_viz.serving.api import (
        engine_step,
        local_profiler,
        profile_status,
        start_profile,
        stop_profile,
        wait_for_profile_artifacts,
    )
    from torchtrt_viz.serving.config import ProfileConfig
    from torchtrt_viz.serving.coordinator import ProfileCoordinator
    from torchtrt_viz.serving.errors import (
        ControlTimeoutError,
        ProfileActiveError,
        ProfileStartError,
        WrongThreadError,
    )
    from torchtrt_viz.serving.flags import add_profile_arguments, profile_config_from_args
    from torchtrt_viz.serving.http import profile_app, profile_routes, serve_profile_app
    from torchtrt_viz.serving.identity import RankIdentity
    from torchtrt_viz.serving.local import LocalProfiler
    from torchtrt_viz.serving.pipes import PipeHub
    from torchtrt_viz.serving.profiler import RankProfiler
    from torchtrt_viz.serving.recover import recover
    from torchtrt_viz.serving.settings import Settings
    from torchtrt_viz.serving.status import ArtifactStatus, CollectionStatus, ProfileStatus
    from torchtrt_viz.serving.store import StoreHub, StoreWorker
    from torchtrt_viz.serving.worker import ProfileWorker

_HOME = {
    "ArtifactStatus": "status",
    "CollectionStatus": "status",
    "ControlTimeoutError": "errors",
    "LocalProfiler": "local",
    "PipeHub": "pipes",
    "ProfileActiveError": "errors",
    "ProfileConfig": "config",
    "ProfileCoordinator": "coordinator",
    "ProfileStartError": "errors",
    "ProfileStatus": "status",
    "ProfileWorker": "worker",
    "RankIdentity": "identity",
    "RankProfiler": "profiler",
    "Settings": "settings",
    "StoreHub": "store",
    "StoreWorker": "store",
    "WrongThreadError": "errors",
    "add_profile_arguments": "flags",
    "engine_step": "api",
    "local_profiler": "api",
    "profile_app": "http",
    "profile_config_from_args": "flags",
    "profile_routes": "http",
    "profile_status": "api",
    "recover": "recover",
    "serve_profile_app": "http",
    "start_profile": "api",
    "unrecorded": "annotations",
    "stop_profile": "api",
    "wait_for_profile_artifacts": "api",
}

__all__ = [  # noqa: RUF022 - in the order in which a reader meets them
    "ProfileConfig",
    "Settings",
    "start_profile",
    "stop_profile",
    "profile_status",
    "wait_for_profile_artifacts",
    "engine_step",
    "local_profiler",
    "LocalProfiler",
    "RankProfiler",
    "RankIdentity",
    "ProfileCoordinator",
    "ProfileWorker",
    "PipeHub",
    "StoreHub",
    "StoreWorker",
    "unrecorded",
    "recover",
    "add_profile_arguments",
    "profile_config_from_args",
    "profile_routes",
    "profile_app",
    "serve_profile_app",
    "ProfileStatus",
    "CollectionStatus",
    "ArtifactStatus",
    "ProfileActiveError",
    "ProfileStartError",
    "ControlTimeoutError",
    "WrongThreadError",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(f"torchtrt_viz.serving.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'torchtrt_viz.serving' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
