"""Which rank of which engine a profile belongs to."""

from __future__ import annotations

import os
import socket
import sys
from dataclasses import asdict, dataclass, replace
from typing import Any

from torchtrt_viz.errors import OptionError

__all__ = ["RankIdentity"]

_MAX_TEXT = 200


@dataclass(frozen=True)
class RankIdentity:
    """One rank of an engine.

    Attributes
    ----------
    rank
        Unique within a session: the global rank of the process group, or what a coordinator assigned, or 0.
    role
        What the worker does: prefill, decode, ... None for an engine without roles.
    instance
        Replica, where several have ranks of their own.
    host, pid
        Where it runs.
    device
        What the engine computes on, as torch writes it: cpu, cuda:0.
    world_size
        Ranks in the process group; None without one.
    """

    rank: int = 0
    role: str | None = None
    instance: str | None = None
    host: str = ""
    pid: int = 0
    device: str = "cpu"
    world_size: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.rank, bool) or not isinstance(self.rank, int) or not 0 <= self.rank < 10**9:
            raise OptionError("rank", self.rank, "a whole number, 0 or more")
        for name in ("role", "instance", "host", "device"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, str) or len(value) > _MAX_TEXT):
                raise OptionError(name, value, f"text of at most {_MAX_TEXT} characters")

    @classmethod
    def here(
        cls,
        rank: int | None = None,
        *,
        role: str | None = None,
        instance: str | None = None,
        device: str = "cpu",
    ) -> RankIdentity:
        """Describe this process.

        Parameters
        ----------
        rank
            By default the global rank of torch.distributed when a process group exists, else 0.
        """
        world_size = None
        distributed = sys.modules.get("torch.distributed")
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            world_size = distributed.get_world_size()
            rank = distributed.get_rank() if rank is None else rank
        return cls(
            rank=0 if rank is None else rank,
            role=role,
            instance=instance,
            host=socket.gethostname(),
            pid=os.getpid(),
            device=device,
            world_size=world_size,
        )

    def with_rank(self, rank: int) -> RankIdentity:
        """Return the same worker under another rank."""
        return replace(self, rank=rank)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON has them."""
        return asdict(self)
