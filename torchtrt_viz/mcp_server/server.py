"""The protocol, by the official SDK: tools in, documents out, nothing else offered."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from torchtrt_viz._version import __version__
from torchtrt_viz.errors import MissingDependencyError, OptionError, TorchTrtVizError
from torchtrt_viz.evidence.envelope import failure
from torchtrt_viz.evidence.paging import document
from torchtrt_viz.mcp_server.descriptions import INSTRUCTIONS, LARGEST, TOOLS, USUAL

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from torchtrt_viz.mcp_server.questions import Questions

__all__ = ["Limits", "make_server", "serve"]

_TEXT_LIMIT = 400
_WORKERS = 4
_TOLD_SECONDS = 0.5  # between two messages about progress


@dataclass(frozen=True)
class Limits:
    """What an answer may take.

    Attributes
    ----------
    budget
        Bytes of an answer that asks for no other size.
    timeout_s
        Seconds until a call is answered that its work goes on.
    memory
        Bytes of loaded traces that are kept.
    """

    budget: int = USUAL
    timeout_s: float = 60.0
    memory: int = 2 << 30


@dataclass
class _Progress:
    """How far a load is; written by its thread."""

    done: int = 0
    total: int | None = None
    told: int = field(default=-1)

    def __call__(self, done: int, total: int | None) -> None:
        self.done, self.total = done, total


def answer(
    questions: Questions,
    name: str,
    arguments: dict[str, Any],
    limits: Limits,
    progress: _Progress | None = None,
) -> tuple[bytes, bool]:
    """Return the document that answers a call, and whether it says why there is no answer."""
    given = dict(arguments)
    budget = given.pop("budget", limits.budget)
    cursor = given.pop("cursor", None)
    try:
        _check(name, {**given, "budget": budget})
        found = questions.tools[name](**given, progress=progress)
        return document(found, budget=budget, cursor=cursor, text_limit=_TEXT_LIMIT), False
    except TorchTrtVizError as error:
        return document(failure(name, error, 2, given), budget=limits.budget), True
    except Exception as error:  # a fault of this package: the client is answered all the same
        print(f"trtprofile mcp: {name} failed: {error!r}", file=sys.stderr)
        return document(failure(name, error, 1, given), budget=limits.budget), True


def _check(name: str, given: dict[str, Any]) -> None:
    """Refuse an unknown tool, and arguments that its description does not allow."""
    import jsonschema  # comes with the SDK

    if name not in TOOLS:
        raise OptionError("tool", name[:80], f"one of {', '.join(TOOLS)}")
    wrong = next(jsonschema.Draft202012Validator(TOOLS[name]["input_schema"]).iter_errors(given), None)
    if wrong is not None:
        place = ".".join(map(str, wrong.absolute_path)) or name
        raise OptionError(place, str(wrong.instance)[:200], wrong.message[:400])


def make_server(questions: Questions, limits: Limits) -> Server[Any]:
    """Return a server that answers with the tools; it offers no resources, prompts or sampling.

    Raises
    ------
    MissingDependencyError
        Without the SDK (extra: mcp).
    """
    try:
        import mcp_types as types
        from mcp.server.lowlevel import Server
    except ImportError as error:
        raise MissingDependencyError("mcp", "mcp", "serve traces to agents") from error

    if not 0 < limits.budget <= LARGEST:
        raise OptionError("budget", limits.budget, f"at most {LARGEST} bytes")
    pool = ThreadPoolExecutor(_WORKERS, thread_name_prefix="trtprofile")
    annotations = types.ToolAnnotations(
        read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    )
    tools = [types.Tool(name=name, annotations=annotations, **described) for name, described in TOOLS.items()]

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        progress = _Progress()
        given = params.arguments or {}
        work = pool.submit(answer, questions, params.name, given, limits, progress)
        written, wrong = await _waited(work, context, progress, params.name, limits)
        text = types.TextContent(text=written.decode())
        return types.CallToolResult(content=[text], is_error=wrong)

    server: Server[Any] = Server(
        "torchtrt_viz",
        version=__version__,
        title="Profiler traces",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    return server


async def _waited(
    work: Future[tuple[bytes, bool]], context: Any, progress: _Progress, name: str, limits: Limits
) -> tuple[bytes, bool]:
    """Wait for an answer and tell the client how far its load is; after the timeout the work goes on."""
    loop = asyncio.get_running_loop()
    future = asyncio.ensure_future(asyncio.wrap_future(work))
    end = loop.time() + limits.timeout_s
    try:
        while True:
            left = end - loop.time()
            done, _ = await asyncio.wait({future}, timeout=max(0.0, min(_TOLD_SECONDS, left)))
            if done:
                return future.result()
            if left <= 0:
                break
            if progress.done > progress.told:
                progress.told = progress.done
                total = None if progress.total is None else float(progress.total)
                await context.session.report_progress(float(progress.done), total, "bytes read")
    finally:
        if not future.done():
            future.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    said = TorchTrtVizError(
        f"not done after {limits.timeout_s:g} s; the work goes on, and what it loads is kept: ask again later"
    )
    return document(failure(name, said, 1), budget=limits.budget), True


def serve(folders: Sequence[str], limits: Limits) -> None:
    """Serve over stdin and stdout until stdin ends.

    Raises
    ------
    OptionError
        For what is no folder.
    MissingDependencyError
        Without the SDK (extra: mcp).
    """
    # slow to import: they need pandas
    from torchtrt_viz.mcp_server.folders import Folders
    from torchtrt_viz.mcp_server.held import Held
    from torchtrt_viz.mcp_server.questions import Questions

    server = make_server(Questions(Folders(folders), Held(limits.memory)), limits)
    asyncio.run(_over_stdio(server))
    # a load may be running, whose thread the interpreter would wait for
    sys.stderr.flush()
    os._exit(0)


async def _over_stdio(server: Server[Any]) -> None:
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (reader, writer):
        await server.run(reader, writer, server.create_initialization_options())
