"""The staging folder of a session's first cycle, made before the engine's thread is asked for anything."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from torchtrt_viz.errors import CaptureError
from torchtrt_viz.formats.session.manifest import STAGING
from torchtrt_viz.serving.artifacts.space import free_bytes
from torchtrt_viz.serving.artifacts.staging import Job
from torchtrt_viz.serving.contract.config import ProfileConfig
from torchtrt_viz.serving.contract.identity import RankIdentity
from torchtrt_viz.serving.contract.settings import Settings

__all__ = ["FirstStage", "first_stage", "staged"]


class FirstStage:
    """A staging folder that the engine's thread takes over, unless the caller has given up before."""

    def __init__(self, job: Job) -> None:
        self._job: Job | None = job
        self._guard = threading.Lock()

    def take(self) -> Job:
        """Take it over.

        Raises
        ------
        CaptureError
            When the caller has given up.
        """
        with self._guard:
            job, self._job = self._job, None
        if job is None:
            raise CaptureError("the start of the session was given up before the engine's thread came to it")
        return job

    def abandon(self) -> bool:
        """Delete it unless it was taken; True when nothing of it is left."""
        with self._guard:
            job, self._job = self._job, None
        if job is not None:
            try:
                job.delete()
            except OSError:
                return False
            finally:
                job.release()
        return True


def first_stage(
    config: ProfileConfig,
    identity: RankIdentity,
    settings: Settings,
    folder: Path,
    session_id: str,
    *,
    window: bool,
) -> FirstStage:
    """Make the session's folder, and the staging folder of its first cycle in it.

    Raises
    ------
    CaptureError
        When there is not enough space, or no folder can be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CaptureError(f"the session's folder {folder} cannot be made: {error}") from error
    free = free_bytes(folder)
    if free < settings.min_free_bytes:
        raise CaptureError(
            f"{config.output_dir} has {free >> 20} MiB free, and a session asks for "
            f"{settings.min_free_bytes >> 20} MiB: free some space, or choose another output_dir"
        )
    try:
        return FirstStage(staged(config, identity, folder, folder / STAGING, session_id, 0, window=window))
    except OSError as error:
        raise CaptureError(f"no staging folder can be made in {folder}: {error}") from error


def staged(
    config: ProfileConfig,
    identity: RankIdentity,
    folder: Path,
    root: Path,
    session_id: str,
    cycle: int,
    *,
    window: bool,
) -> Job:
    """Make the staging folder of one cycle below ``root``.

    Raises
    ------
    OSError
        When it cannot be made.
    """
    mode = "window" if window else "steps"
    return Job.create(root, folder, session_id, identity, cycle, mode, config, time.time_ns())
