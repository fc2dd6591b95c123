"""What takes the place of torch's profiler inside vLLM's ``TorchProfilerWrapper``.

The functions become methods of vLLM's class, so ``self`` is an instance of it.
"""

from __future__ import annotations

import logging
import os
import re
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from torchtrt_viz.analysis.core.step_names import kind_in_name
from torchtrt_viz.serving.artifacts.session_folder import new_session_id
from torchtrt_viz.serving.contract.config import ProfileConfig
from torchtrt_viz.serving.contract.identity import RankIdentity
from torchtrt_viz.serving.rank.local import LocalProfiler

__all__ = ["annotate", "session_prefix", "shutdown", "start", "step", "stop"]

_log = logging.getLogger("torchtrt_viz.vllm")

_ROLE = "TORCHTRT_VIZ_ROLE"
_STACKS = "TORCHTRT_VIZ_VLLM_STACKS"
_SESSION = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9._-]{0,100}\.)?\d{8}-\d{6}-[0-9a-f]{8}")
#: The end of a worker's name: where it stands in each group, then its rank.
_WORKER = re.compile(r"(?:^|_)((?:[a-z]+\d+_)*)rank(\d+)$")
_LONGEST_PREFIX = 90
_EXIT_S = 3.0  # vLLM kills a worker that takes longer than some seconds to end

_profiler: LocalProfiler | None = None  # one per process: torch has one profiling session


def session_prefix(prefix: str | None) -> str:
    """Return vLLM's prefix with a session id at its end; the whole is the session's id.

    vLLM checks what a user gives afterwards, so a wrong prefix stays one.
    """
    return new_session_id() if prefix is None else f"{prefix[:_LONGEST_PREFIX]}.{new_session_id()}"


def start(self: Any) -> None:
    """Start a session on this worker.

    vLLM's frontend, which runs no model, is not recorded.
    """
    worker = _WORKER.search(self._worker_name)
    if worker is None:
        self._torchtrt_viz_records = False
        _log.info("torchtrt_viz: the frontend process runs no model and is not recorded")
        return
    profiling = _local(self, worker)
    session = self._worker_name[: worker.start()]
    if not _SESSION.fullmatch(session):
        # Started over a way that names no session: workers of one engine core have one parent.
        session = f"{session or 'vllm'}.{os.getppid()}-{_starts(self)}"
    window, config = _config(self)
    self._torchtrt_viz_records = True
    profiling.start_profile(config, window=window, session_id=session)
    if self._profiler_kwargs["with_stack"] and not config.with_stack:
        profiling.profiler.note(
            f"Python stacks, which vLLM asks for by default, are not recorded: they make a stop ten times as "
            f"long; {_STACKS}=1 records them"
        )
    if self.local_rank in (None, 0):
        _log.info("torchtrt_viz: recording into %s", config.output_dir / session)


def stop(self: Any) -> None:
    """End the session; archives are made in the background."""
    if _profiler is not None and self._torchtrt_viz_records:
        _profiler.stop_profile()
        error = _profiler.profile_status().collection.error
        if error is not None:
            _log.warning("torchtrt_viz: %s", error)


def step(self: Any) -> bool:
    """Count a step; True for one that is recorded."""
    if _profiler is None or not self._torchtrt_viz_records:
        return True
    _profiler.profiler.advance()
    return _profiler.profiler.phase in (None, "active")


def annotate(self: Any, name: str) -> AbstractContextManager[Any]:
    """Return vLLM's range around a step, inside one that tells the step's number and kind."""
    return nullcontext() if _profiler is None else _profiler.profiler.annotate_step(name, kind_in_name(name))


def shutdown(self: Any) -> None:
    """Finish the archives before the worker ends."""
    if _profiler is not None and not _profiler.close(_EXIT_S):
        _log.warning(
            "torchtrt_viz: archives are not finished; torchtrt_viz.serving.recover(folder) completes them"
        )


def _starts(self: Any) -> int:
    count: int = getattr(self, "_torchtrt_viz_starts", 0) + 1
    self._torchtrt_viz_starts = count
    return count


def _local(self: Any, worker: re.Match[str]) -> LocalProfiler:
    global _profiler
    if _profiler is None:
        kinds = {str(activity).rpartition(".")[2].lower() for activity in self._profiler_kwargs["activities"]}
        device = next(iter(sorted(kinds - {"cpu"})), "cpu")
        identity = RankIdentity.here(
            role=os.environ.get(_ROLE) or None, instance=worker[1].rstrip("_") or None, device=device
        )
        if identity.world_size is None:
            identity = identity.with_rank(int(worker[2]))
        _profiler = LocalProfiler(identity)
        _profiler.attach()
    return _profiler


def _config(self: Any) -> tuple[bool, ProfileConfig]:
    """Return whether it records from start to stop, and vLLM's options as ours."""
    theirs, asked = self.profiler_config, self._profiler_kwargs
    steps: dict[str, int] = {}
    if self._uses_schedule:
        steps = {
            "wait": theirs.wait_iterations,
            "warmup": theirs.warmup_iterations,
            "active": theirs.active_iterations,
            "repeat": 1,
        }
    config = ProfileConfig(
        self._torch_profiler_trace_dir,
        activities=tuple(str(kind).rpartition(".")[2].lower() for kind in asked["activities"]),
        record_shapes=bool(asked["record_shapes"]),
        with_stack=bool(asked["with_stack"]) and os.environ.get(_STACKS) == "1",
        profile_memory=bool(asked["profile_memory"]),
        with_flops=bool(asked["with_flops"]),
        **steps,
    )
    return not steps, config
