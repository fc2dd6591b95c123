"""The ``--profile*`` flags, as a group that any engine's command line can add."""

from __future__ import annotations

import argparse

from torchtrt_viz.errors import OptionError
from torchtrt_viz.serving.contract.config import SCHEDULE_FIELDS, ProfileConfig

__all__ = ["add_profile_arguments", "profile_config_from_args"]


def _count(least: int) -> object:
    def whole(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of {least} or more")
        return value

    return whole


def add_profile_arguments(parser: argparse.ArgumentParser) -> None:
    """Add ``--profile`` and its options to a parser.

    The same options as :class:`~torchtrt_viz.serving.ProfileConfig` has, with the same defaults.
    """
    group = parser.add_argument_group(
        "profiling", "record the engine with torch.profiler; archives are made in the background"
    )
    group.add_argument(
        "--profile", action="store_true", help="record the schedule below, from the first step on"
    )
    group.add_argument("--profile-dir", metavar="PATH", help="folder for the sessions; needed with --profile")
    group.add_argument(
        "--profile-activities",
        metavar="LIST",
        help="comma-separated: cpu, cuda, xpu, mtia, hpu (default: cpu, and the device the engine runs on)",
    )
    for flag, what in (
        ("record-shapes", "record input shapes"),
        ("with-stack", "record source stacks (stopping takes several times longer)"),
        ("memory", "record allocations and releases (stopping takes several times longer)"),
        ("with-flops", "estimate operations, where shapes are recorded too"),
    ):
        group.add_argument(f"--profile-{flag}", action="store_true", help=what)
    for name, least, what in (
        ("wait", 0, "steps to skip in each cycle (default: 0)"),
        ("warmup", 0, "steps to warm up the profiler in each cycle (default: 1)"),
        ("active", 1, "steps to record in each cycle (default: 10)"),
        ("repeat", 0, "cycles, 0 until the engine ends (default: 1)"),
    ):
        group.add_argument(f"--profile-{name}", type=_count(least), metavar="N", help=what)  # type: ignore[arg-type]


def profile_config_from_args(args: argparse.Namespace) -> ProfileConfig | None:
    """Return the configuration that the flags ask for; None without ``--profile``.

    Raises
    ------
    OptionError
        When ``--profile-dir`` is missing, an option is given without ``--profile``, or a value is wrong.
    """
    given = {
        name.removeprefix("profile_"): value
        for name, value in vars(args).items()
        if name.startswith("profile_") and value is not None and value is not False
    }
    if not args.profile:
        if given:
            flag = "--profile-" + next(iter(given)).replace("_", "-")
            raise OptionError(flag, next(iter(given.values())), "options of a profile need --profile as well")
        return None
    if "dir" not in given:
        raise OptionError("--profile-dir", None, "the folder for the sessions: --profile needs it")
    return ProfileConfig(
        output_dir=given["dir"],
        activities=tuple(given["activities"].split(",")) if "activities" in given else None,
        record_shapes="record_shapes" in given,
        with_stack="with_stack" in given,
        profile_memory="memory" in given,
        with_flops="with_flops" in given,
        **{name: given[name] for name in SCHEDULE_FIELDS if name in given},
    )
