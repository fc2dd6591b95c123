"""The options of a capture, in one table: profile(), the notebook magics and the command line share it.

A field of :class:`CaptureOptions` is an option; its metadata say what it may be and what it means.
:func:`capture_options` validates everything before anything starts, :func:`arguments` gives the same
options as command line arguments, for argparse, ``magic_arguments`` and click alike.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Any

from torchtrt_viz.errors import OptionError
from torchtrt_viz.runtime.profile_settings import FORMATS, LEVELS, check_choice, check_path_prefix

__all__ = ["ACTIVITIES", "CaptureOptions", "Option", "arguments", "capture_options", "options_table"]

#: What torch.profiler records, beside what programs record themselves.
ACTIVITIES: tuple[str, ...] = ("cpu", "cuda")


def _option(default: Any, meaning: str, *, choices: Sequence[str] = (), metavar: str = "") -> Any:
    return field(default=default, metadata={"help": meaning, "choices": tuple(choices), "metavar": metavar})


@dataclass(frozen=True)
class CaptureOptions:
    """Options of one capture, validated.

    Make it with :func:`capture_options`; the meaning of each field is in ``options_table()``.
    """

    level: str = _option(
        "phases",
        "detail of delegate calls: off (capture nothing at all), delegate (calls), phases (binding, staging, "
        "enqueue, ... inside a call), layers (also the engine's layers; adds a little to each)",
        choices=LEVELS,
    )
    format: str = _option(
        "etdump",
        "where layers go: etdump (into the capture only), perfetto or trex (also one sidecar file per engine "
        "below the path prefix)",
        choices=FORMATS,
    )
    path_prefix: str | None = _option(
        None,
        "folder (or folder and name prefix) of the sidecar files of formats perfetto and trex",
        metavar="PATH",
    )
    activities: str | tuple[str, ...] = _option(
        "auto",
        "what torch.profiler records: auto (cpu, and cuda where there is one, if torch is loaded), none, "
        "cpu, cuda, or cpu,cuda",
        metavar="LIST",
    )
    record_shapes: bool = _option(False, "torch.profiler: record shapes of the operators' inputs")
    with_stack: bool = _option(False, "torch.profiler: record Python source lines (costs several times more)")
    profile_memory: bool = _option(False, "torch.profiler: record allocations and releases")
    with_flops: bool = _option(
        False, "torch.profiler: record what FLOP estimates need (implies record_shapes)"
    )

    def as_dict(self) -> dict[str, Any]:
        """Return the options as plain JSON values."""
        values = asdict(self)
        if isinstance(self.activities, tuple):
            values["activities"] = list(self.activities)
        return values


@dataclass(frozen=True)
class Option:
    """One row of the table of options.

    ``kind`` is "choice", "flag", "path" or "list"; ``flag`` the long command line form.
    """

    name: str
    kind: str
    default: Any
    help: str
    choices: tuple[str, ...]
    flag: str
    metavar: str


def options_table() -> list[Option]:
    """Return every option of a capture, in the order in which help lists them."""
    table = []
    for item in fields(CaptureOptions):
        assert item.default is not MISSING
        choices: tuple[str, ...] = item.metadata["choices"]
        if isinstance(item.default, bool):
            kind = "flag"
        elif choices:
            kind = "choice"
        else:
            kind = "list" if item.name == "activities" else "path"
        word = item.name.replace("_", "-")
        flag = f"--no-{word}" if item.default is True else f"--{word}"
        table.append(
            Option(
                item.name, kind, item.default, item.metadata["help"], choices, flag, item.metadata["metavar"]
            )
        )
    return table


def arguments() -> Iterator[tuple[str, dict[str, Any]]]:
    """Give each option as ``(flag, keywords)`` for ``argparse.add_argument`` or ``magic_arguments.argument``.

    Values are left out of the namespace's defaults (``None``), so that what the user did not say stays
    open; hand ``{name: value}`` of what is not None to :func:`capture_options`.
    """
    for option in options_table():
        keywords: dict[str, Any] = {"dest": option.name, "default": None}
        if option.kind == "flag":
            # a flag that is on by default is switched off by its --no- form
            keywords["action"] = "store_false" if option.default else "store_true"
            text = f"do not {option.help}" if option.default else option.help
        else:
            if option.kind == "choice":
                keywords["choices"] = option.choices
            else:
                keywords["metavar"] = option.metavar
            text = f"{option.help} [{option.default if option.default is not None else 'none'}]"
        keywords["help"] = text.replace("%", "%%")
        yield option.flag, keywords


def capture_options(given: Mapping[str, Any] | None = None, /, **more: Any) -> CaptureOptions:
    """Return the options of a capture, each one checked.

    Raises
    ------
    OptionError
        For an option that does not exist, and for a value that one cannot have; it names key, value and
        choices.
    """
    values = {**(given or {}), **more}
    known = {item.name: item for item in fields(CaptureOptions)}
    for name, value in values.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"there is no such option{f', did you mean {near[0]!r}?' if near else ''}; "
            raise OptionError(name, value, f"{hint}the options are {', '.join(known)}")
        values[name] = _checked(name, value, known[name].metadata["choices"], known[name].default)
    if values.get("with_flops"):
        values["record_shapes"] = True
    options = CaptureOptions(**values)
    if options.format != "etdump" and options.level == "layers" and options.path_prefix is None:
        raise OptionError(
            "path_prefix", None, f"format {options.format!r} writes files: give the folder where they go"
        )
    return options


def _checked(name: str, value: Any, choices: tuple[str, ...], default: Any) -> Any:
    if choices:
        return check_choice(name, value, choices)
    if name == "path_prefix":
        return None if value is None else check_path_prefix(name, value)
    if name == "activities":
        return _activities(value)
    if not isinstance(value, bool):
        raise OptionError(name, value, "True or False")
    return value


def _activities(value: object) -> str | tuple[str, ...]:
    """Return "auto" or the tuple of activities, from text ("cpu,cuda", "none") or a sequence."""
    if value is None:
        return ()
    if isinstance(value, str):
        if value == "auto":
            return value
        items = [] if value in ("none", "") else [part.strip() for part in value.split(",")]
    elif isinstance(value, Sequence):
        # torch.profiler.ProfilerActivity members are taken by name
        items = [
            part if isinstance(part, str) else getattr(part, "name", repr(part)).lower() for part in value
        ]
    else:
        raise OptionError("activities", value, f"'auto', 'none', or some of {', '.join(ACTIVITIES)}")
    for item in items:
        if item not in ACTIVITIES:
            raise OptionError("activities", value, f"'auto', 'none', or some of {', '.join(ACTIVITIES)}")
    return tuple(name for name in ACTIVITIES if name in items)
