"""What a session collects: `ProfileConfig`, checked before anything starts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from torchtrt_viz.errors import OptionError

__all__ = ["SCHEDULE_FIELDS", "ProfileConfig"]

SCHEDULE_FIELDS = ("wait", "warmup", "active", "repeat")
_FLAGS = ("record_shapes", "with_stack", "profile_memory", "with_flops")
_ACTIVITIES = ("cpu", "cuda", "xpu", "mtia", "hpu")
_MAX_STEPS = 10**9


class _Default(int):
    """Default of a schedule field: equal to the number, but recognisable as not given by the caller."""


@dataclass(frozen=True)
class ProfileConfig:
    """What one session collects, and where it is written. No option switches on another.

    Parameters
    ----------
    output_dir
        Folder below which each session makes its own.
    activities
        Kinds of activity, of cpu, cuda, xpu, mtia, hpu. By default cpu, and cuda as well where the engine
        runs on CUDA. One that this build of torch does not support is an error.
    record_shapes
        Record operators' input shapes.
    with_stack
        Record Python source stacks. Makes stopping several times slower.
    profile_memory
        Record allocations and releases of tensors. Makes stopping several times slower.
    with_flops
        Estimate floating-point operations of matrix products and convolutions. Needs ``record_shapes``;
        without it the estimate is marked unavailable.
    wait, warmup, active, repeat
        Steps that each cycle skips, runs for warm-up, and records; number of cycles, 0 for repeating
        until stopped. The meaning is that of :func:`torch.profiler.schedule`. They apply to sessions by
        steps; a session by window (``start_profile(config, window=True)``) records from start to stop,
        and refuses them.
    """

    output_dir: Path
    activities: tuple[str, ...] | None = None
    record_shapes: bool = False
    with_stack: bool = False
    profile_memory: bool = False
    with_flops: bool = False
    wait: int = _Default(0)
    warmup: int = _Default(1)
    active: int = _Default(10)
    repeat: int = _Default(1)

    def __post_init__(self) -> None:
        if not isinstance(self.output_dir, (str, os.PathLike)) or not os.fspath(self.output_dir):
            raise OptionError("output_dir", self.output_dir, "the folder that sessions are written to")
        object.__setattr__(self, "output_dir", Path(self.output_dir).expanduser())
        if self.activities is not None:
            object.__setattr__(self, "activities", _activities(self.activities))
        for name in _FLAGS:
            if not isinstance(getattr(self, name), bool):
                raise OptionError(name, getattr(self, name), "True or False")
        for name in SCHEDULE_FIELDS:
            value = getattr(self, name)
            least = 1 if name == "active" else 0
            whole = isinstance(value, int) and not isinstance(value, bool)
            if not whole or not least <= value <= _MAX_STEPS:
                raise OptionError(name, value, f"a whole number of steps, {least} or more")

    @property
    def supplied_schedule(self) -> dict[str, int]:
        """Schedule fields that the caller gave, even if they equal the default."""
        return {
            name: int(getattr(self, name))
            for name in SCHEDULE_FIELDS
            if not isinstance(getattr(self, name), _Default)
        }

    def schedule(self) -> dict[str, int]:
        """The four fields of :func:`torch.profiler.schedule`."""
        return {name: int(getattr(self, name)) for name in SCHEDULE_FIELDS}

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON has them; schedule fields only where they were given."""
        out: dict[str, Any] = {"output_dir": str(self.output_dir)}
        if self.activities is not None:
            out["activities"] = list(self.activities)
        out.update({name: getattr(self, name) for name in _FLAGS})
        out.update(self.supplied_schedule)
        return out

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> ProfileConfig:
        """Make a configuration out of JSON.

        Raises
        ------
        OptionError
            For a name that is no field, and for values that a field cannot have.
        """
        known = [f.name for f in fields(cls)]
        for name in values:
            if name not in known:
                raise OptionError(str(name)[:80], values[name], f"the options are {', '.join(known)}")
        if "output_dir" not in values:
            raise OptionError("output_dir", None, "the folder that sessions are written to")
        return cls(**values)

    def check(self, *, window: bool = False) -> None:
        """Check what depends on the mode and on the file system, without starting anything.

        Parameters
        ----------
        window
            Check for a session from start to stop, which has no schedule.

        Raises
        ------
        OptionError
            When schedule fields were given for a window, or the folder cannot be made or written.
        """
        if window and self.supplied_schedule:
            name, value = next(iter(self.supplied_schedule.items()))
            raise OptionError(
                name,
                value,
                "a session by window records from start to stop: leave wait, warmup, active and repeat out",
            )
        try:
            self.output_dir.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OptionError(
                "output_dir", str(self.output_dir), f"a folder that can be made ({error})"
            ) from error
        if not self.output_dir.is_dir() or not _writable(self.output_dir):
            raise OptionError("output_dir", str(self.output_dir), "a folder that may be written to")


def _activities(given: Any) -> tuple[str, ...]:
    names = given.split(",") if isinstance(given, str) else given
    if not isinstance(names, (list, tuple)) or not names:
        raise OptionError("activities", given, f"one or several of {', '.join(_ACTIVITIES)}")
    out = tuple(n.strip().lower() if isinstance(n, str) else n for n in names)
    for name in out:
        if name not in _ACTIVITIES:
            raise OptionError("activities", name, f"one or several of {', '.join(_ACTIVITIES)}")
    if len(set(out)) < len(out):
        raise OptionError("activities", given, "each one once")
    return out


def _writable(folder: Path) -> bool:
    """Try to write: permissions do not reveal read-only mounts, quotas or root."""
    probe = folder / f".torchtrt_viz-{os.getpid()}-{os.urandom(4).hex()}"
    try:
        with probe.open("xb"):
            pass
        probe.unlink()
    except OSError:
        return False
    return True
