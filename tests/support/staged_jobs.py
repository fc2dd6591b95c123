"""Staged jobs with a recording in them, made without running a profiler."""

from __future__ import annotations

import time
from pathlib import Path

from rank_traces import simple_events, trace_json

from torchtrt_viz.formats.session.manifest import STAGING
from torchtrt_viz.serving.artifacts.pipeline import status_of, write_rank_meta
from torchtrt_viz.serving.artifacts.staging import Job
from torchtrt_viz.serving.contract.config import ProfileConfig
from torchtrt_viz.serving.contract.identity import RankIdentity
from torchtrt_viz.serving.contract.settings import Settings

SESSION = "session-1"


def quick(**more) -> Settings:
    """Settings for tests: parsing at normal priority, since the machine may be busy with other tests."""
    return Settings(**{"niceness": 0, "spare_staging": (), **more})


def stage(
    root: Path,
    rank: int = 0,
    cycle: int = 0,
    *,
    raw: bytes | None = None,
    staging: Path | None = None,
    session: str = SESSION,
    **options,
) -> Job:
    """Make a job as an engine leaves it to the background thread: its export is complete."""
    folder = root / session
    folder.mkdir(parents=True, exist_ok=True)
    config = ProfileConfig(root, **options)
    identity = RankIdentity(rank=rank, role="decode", host="node-a", pid=10)
    job = Job.create(
        staging or folder / STAGING, folder, session, identity, cycle, "steps", config, time.time_ns()
    )
    job.raw.write_bytes(trace_json(simple_events(), rank=rank) if raw is None else raw)
    job.collection = {"start_unix_ns": 5, "stop_unix_ns": 6, "cut_at_stop": ["r9"]}
    write_rank_meta(job)
    return job


def fresh_status(job: Job):
    return status_of(job)
