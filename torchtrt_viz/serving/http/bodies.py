"""What clients of several engines send to ``/start_profile``, as options of ours.

Names and meanings are those of the engines' published interfaces: SGLang's ``ProfileReqInput``, vLLM's
``StartProfileRequest``, and the completion request that vLLM's benchmark sends to the same address.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from torchtrt_viz.errors import OptionError
from torchtrt_viz.serving.contract.config import SCHEDULE_FIELDS, ProfileConfig

__all__ = ["StartRequest", "start_request"]

_OWN = (*(field.name for field in fields(ProfileConfig)), "window", "session_id")
_SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_MOST_NOTES, _LONGEST_NAME = 20, 80

#: SGLang's kinds of activity: one of ours, or the option that collects it.
_ACTIVITIES = {"CPU": "cpu", "GPU": "cuda", "CUDA": "cuda", "XPU": "xpu", "HPU": "hpu"}


@dataclass(frozen=True)
class StartRequest:
    """What a client asks for.

    Attributes
    ----------
    options
        Of `ProfileConfig`, without ``output_dir``.
    output_dir
        A folder relative to the server's own; as the client gave it.
    notes
        What of the request was not done, for the answer.
    """

    options: dict[str, Any]
    window: bool
    session_id: Any
    output_dir: Any
    notes: list[str]


def start_request(body: Mapping[str, Any], defaults: Mapping[str, Any]) -> StartRequest:
    """Read the body of a start.

    Parameters
    ----------
    defaults
        The server's options, for what the body does not say.

    Raises
    ------
    OptionError
        For values that an option cannot have. Names that nothing is known of are noted, not refused.
    """
    given = {name: value for name, value in body.items() if name in _OWN}
    others = {name: value for name, value in body.items() if name not in _OWN}
    notes: list[str] = []
    for name in list(others):
        take = _OTHERS.get(name)
        if take is not None:
            value = others.pop(name)
            if value is not None:
                take(value, given, notes)
    if "activities" in given:
        _activities(given, notes)
    for name in list(others)[:_MOST_NOTES]:
        notes.append(f"{_shown(name)} is not known here and was ignored")
    if len(others) > _MOST_NOTES:
        notes.append(f"{len(others) - _MOST_NOTES} more names are not known here and were ignored")
    options = {**defaults, **given}
    window = options.pop("window", False)
    if not isinstance(window, bool):
        raise OptionError("window", window, "true or false")
    if window and "window" in given and not any(name in given for name in SCHEDULE_FIELDS):
        for name in SCHEDULE_FIELDS:  # the server's schedule is not for windows
            options.pop(name, None)
    return StartRequest(
        options, window, options.pop("session_id", None), options.pop("output_dir", "."), notes
    )


def _shown(name: str) -> str:
    return repr(name[:_LONGEST_NAME])


def _count(name: str, value: Any) -> int:
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, str))
        or not re.fullmatch(r"\d{1,9}", str(value))
    ):
        raise OptionError(name, value, "a whole number of steps, 0 or more")
    return int(value)


def _num_steps(value: Any, given: dict[str, Any], notes: list[str]) -> None:
    given["active"] = _count("num_steps", value)
    given.setdefault("warmup", 0)


def _max_iterations(value: Any, given: dict[str, Any], notes: list[str]) -> None:
    if _count("max_iterations", value):
        given["active"] = _count("max_iterations", value)
        given.setdefault("warmup", 0)


def _delay_iterations(value: Any, given: dict[str, Any], notes: list[str]) -> None:
    given["wait"] = _count("delay_iterations", value)


def _profile_id(value: Any, given: dict[str, Any], notes: list[str]) -> None:
    if isinstance(value, str) and _SESSION_ID.fullmatch(value):
        given.setdefault("session_id", value)
    else:
        notes.append("profile_id cannot name a session's folder, and another id was made")


def _ignored(why: str) -> Callable[[Any, dict[str, Any], list[str]], None]:
    def take(value: Any, given: dict[str, Any], notes: list[str]) -> None:
        if value is not False:
            notes.append(why)

    return take


def _request_of_a_benchmark(value: Any, given: dict[str, Any], notes: list[str]) -> None:
    """A benchmark's own request stands in the body: it records until it sends the stop."""
    if not any(name in given for name in SCHEDULE_FIELDS):
        given.setdefault("window", True)


_OTHERS: dict[str, Callable[[Any, dict[str, Any], list[str]], None]] = {
    "num_steps": _num_steps,
    "max_iterations": _max_iterations,
    "delay_iterations": _delay_iterations,
    "profile_id": _profile_id,
    "start_step": _ignored("start_step: recording starts with the next step; 'wait' skips steps"),
    "profile_by_stage": _ignored("profile_by_stage: steps of all kinds are recorded, and told apart by name"),
    "profile_stages": _ignored("profile_stages: steps of all kinds are recorded, and told apart by name"),
    "merge_profiles": _ignored("merge_profiles: load() reads the session's ranks together"),
    "profile_prefix": _ignored("profile_prefix: files are named by session, rank and cycle"),
    "model": _request_of_a_benchmark,
    "prompt": _request_of_a_benchmark,
    "messages": _request_of_a_benchmark,
}


def _activities(given: dict[str, Any], notes: list[str]) -> None:
    """Replace the kinds of activity by which SGLang's clients ask, in capital letters."""
    kinds = given["activities"]
    if not isinstance(kinds, (list, tuple)) or not all(isinstance(kind, str) for kind in kinds):
        return  # the configuration says what is wrong with it
    if not any(kind.isupper() for kind in kinds):
        return
    names: list[str] = list(kinds)
    out: list[str] = []
    for kind in names:
        if kind == "MEM":
            given.setdefault("profile_memory", True)
        elif kind in ("CUDA_PROFILER", "RPD"):
            notes.append(f"{kind} is recorded by another tool, and not from here")
        else:
            out.append(_ACTIVITIES.get(kind, kind))
    if out:
        given["activities"] = list(dict.fromkeys(out))
    else:
        del given["activities"]
