"""How an engine's steps are named: this package's ranges and marks, and the ranges of vLLM and SGLang.

Serving writes what analyses read, so both use this module. It needs nothing, since it is imported by engines.
"""

from __future__ import annotations

import re

__all__ = ["COUNTED", "NUMBER", "kind_in_mark", "kind_in_name", "step_mark", "step_name"]

COUNTED = re.compile(r"engine_step\[step=\d+")
"""Beginning of the range that this package puts around a step."""

NUMBER = re.compile(r"\[step=(\d+)")
"""The step's number in such a name."""

_UNSAFE = re.compile(r"[^A-Za-z0-9_.:+-]")
_MAX_KIND = 64
_MARK = re.compile(r"engine_step_(?:kind\[kind=([^\] ]+)\]|idle$)")
_SAID = re.compile(r"\bkind=([^\] ]+)")
_VLLM = re.compile(r"execute(?:_\d+)?_context_(\d+)\(.*?\)_generation_(\d+)\(")
_SGLANG = re.compile(r"step\[([A-Za-z]+)")


def step_name(number: int, kind: str | None = None) -> str:
    """Make the name of an engine step's range.

    Parameters
    ----------
    number
        Counted from 0 in the session.
    kind
        What the step does: prefill, decode, mixed, or what the engine calls it.
    """
    return f"engine_step[step={number}" + (f" kind={_safe(kind)}]" if kind else "]")


def step_mark(kind: str | None) -> str:
    """Make the name of the mark at a step's end: its kind, or (None) that it found nothing to do."""
    return "engine_step_idle" if kind is None else f"engine_step_kind[kind={_safe(kind)}]"


def kind_in_mark(name: str) -> str | None:
    """Return the kind that a mark says, "idle" for a step that found nothing to do, None for another name."""
    found = _MARK.match(name)
    return None if found is None else found[1] or "idle"


def kind_in_name(name: str) -> str | None:
    """Return what a step does by the name of its range; "idle" where it does nothing, None where unsaid.

    vLLM's names count the requests in their prompt and those that generate; SGLang's begin with its mode.
    """
    if found := _SAID.search(name):
        return found[1]
    if found := _VLLM.match(name):
        context, generation = int(found[1]), int(found[2])
        if context and generation:
            return "mixed"
        return "prefill" if context else "decode" if generation else "idle"
    if found := _SGLANG.match(name):
        word = found[1].lower()
        return {"extend": "prefill"}.get(word, word)
    if name.startswith("prefill"):
        return "prefill"
    return "decode" if name.startswith("decode") else None


def _safe(kind: str) -> str:
    return _UNSAFE.sub("_", str(kind))[:_MAX_KIND]
