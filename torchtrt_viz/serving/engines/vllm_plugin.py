"""vLLM's plugin: its profiling commands make sessions of this package, without editing it.

vLLM calls :func:`register` in each of its processes (entry point group ``vllm.general_plugins``). Nothing
happens unless ``TORCHTRT_VIZ_VLLM=1`` is in the environment. With it, vLLM's ``torch`` profiler is recorded,
exported, parsed and packed by :class:`~torchtrt_viz.serving.LocalProfiler`: ``/start_profile``,
``/stop_profile``, ``LLM.start_profile()``, delay and iteration limits, schedules, prefixes and annotations
work as before, and ``torch_profiler_dir`` gets a session folder.

``TORCHTRT_VIZ_ROLE`` (prefill, decode) is the worker's role in the session. ``TORCHTRT_VIZ_VLLM_STACKS=1``
records Python stacks: vLLM asks for them by default, and they make a stop ten times as long.

Written against ``vllm.profiler.wrapper`` of vLLM 0.32.
"""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Callable
from typing import Any

__all__ = ["SWITCH", "register"]

SWITCH = "TORCHTRT_VIZ_VLLM"
"""Environment variable that switches the plugin on: 1, true, yes or on."""

_MARK = "_torchtrt_viz"
_METHODS = ("_start", "_stop", "_profiler_step", "annotate_context_manager", "shutdown")
_log = logging.getLogger("torchtrt_viz.vllm")


def register() -> None:
    """Connect vLLM's torch profiler with this package, where the environment asks for it; never raises."""
    if os.environ.get(SWITCH, "").strip().lower() not in ("1", "true", "yes", "on"):
        return
    try:
        _connect()
    except Exception as error:  # an engine starts, with or without us
        _log.warning(
            "torchtrt_viz: vLLM's own profiler is used, since its interface is not the known one (%s: %s)",
            type(error).__name__,
            error,
        )


def _connect() -> None:
    from vllm.profiler import wrapper  # the engine is there when it calls its plugin

    from torchtrt_viz.serving.engines import vllm_profiler

    kind = wrapper.TorchProfilerWrapper
    if getattr(kind, _MARK, False):
        return
    missing = [name for name in _METHODS if not callable(getattr(kind, name, None))]
    if missing:
        raise AttributeError(f"TorchProfilerWrapper has no {', '.join(missing)}")
    kind._start = vllm_profiler.start
    kind._stop = vllm_profiler.stop
    kind._profiler_step = vllm_profiler.step
    kind.annotate_context_manager = vllm_profiler.annotate
    kind.shutdown = _followed(kind.shutdown, vllm_profiler.shutdown)
    setattr(kind, _MARK, True)
    _name_sessions(vllm_profiler.session_prefix)


def _followed(first: Any, then: Any) -> Any:
    @functools.wraps(first)
    def both(self: Any) -> None:
        try:
            first(self)
        finally:
            then(self)

    return both


def _name_sessions(prefix: Callable[[str | None], str]) -> None:
    """Let whoever starts a profile name the session: as vLLM's prefix the name reaches every worker."""
    import importlib

    for module, name in (
        ("vllm.v1.engine.llm_engine", "LLMEngine"),
        ("vllm.v1.engine.async_llm", "AsyncLLM"),
    ):
        kind = getattr(importlib.import_module(module), name)
        kind.start_profile = _with_session(kind.start_profile, prefix)


def _with_session(start: Any, prefix: Callable[[str | None], str]) -> Any:
    @functools.wraps(start)
    def started(self: Any, profile_prefix: str | None = None, *args: Any, **more: Any) -> Any:
        return start(self, prefix(profile_prefix), *args, **more)

    return started
