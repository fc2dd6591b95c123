"""What a rank's session asks of torch.profiler."""

from __future__ import annotations

from collections.abc import Callable

from torchtrt_viz.runtime.torch_profiler import TorchRecording, check_activities
from torchtrt_viz.serving.contract.config import ProfileConfig
from torchtrt_viz.serving.contract.identity import RankIdentity

__all__ = ["resolve_activities", "session_recording"]


def resolve_activities(config: ProfileConfig, device: str) -> tuple[str, ...]:
    """Return the activities that a session on ``device`` records.

    Raises
    ------
    MissingDependencyError
        Without torch.
    OptionError
        When this build of torch, or this machine, does not support one of them.
    """
    wanted = config.activities
    if wanted is None:
        kind = device.split(":")[0]
        wanted = ("cpu",) if kind == "cpu" else ("cpu", kind)
    return check_activities(wanted, None, f" (engine on {device})")


def session_recording(
    config: ProfileConfig,
    identity: RankIdentity,
    session_id: str,
    *,
    window: bool,
    on_trace: Callable[[TorchRecording], None],
) -> TorchRecording:
    """Return the recording of one session on one rank, not started yet.

    Parameters
    ----------
    window
        Record from start to stop; otherwise by the configuration's schedule.
    on_trace
        Called on the engine's thread when a cycle is complete.
    """
    known = {
        "session_id": session_id,
        "role": identity.role,
        "instance": identity.instance,
        "rank": str(identity.rank),
    }
    return TorchRecording(
        f"profile session {session_id}",
        resolve_activities(config, identity.device),
        on_trace=on_trace,
        schedule=None if window else config.schedule(),
        metadata={key: value for key, value in known.items() if value is not None},
        record_shapes=config.record_shapes,
        with_stack=config.with_stack,
        profile_memory=config.profile_memory,
        with_flops=config.with_flops,
    )
