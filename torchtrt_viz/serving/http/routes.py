"""Profiling over HTTP: routes for any ASGI application, and a small server of their own.

==========================  ========================================================================
``POST /start_profile``     Body: the options of `ProfileConfig` as JSON, all optional; ``output_dir`` is
                            relative to the configured root. Also ``window`` (bool) and ``session_id``.
                            Bodies of SGLang's and vLLM's clients are understood as well; ``notes`` of the
                            answer says what of them is not done, and names that are not known.
                            200 when every rank records; 400 for a wrong value; 409 while a session is
                            active; 504, with the missing and the failed ranks, when one does not start.
``POST /stop_profile``      200 when every rank has exported; archives are made afterwards. Stopping
                            again, also at the same time, is harmless.
``POST /profile_retry``     Processes failed artifacts again, and repeats a clean-up that failed.
``GET /profile_status``     Collection and artifacts, each with its own state.
``GET /profile_artifacts``  Archives, or what went wrong; ``?timeout=SECONDS`` waits for them (at most 60).
==========================  ========================================================================
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from torchtrt_viz.errors import MissingDependencyError, OptionError, TorchTrtVizError
from torchtrt_viz.formats.session.manifest import confined
from torchtrt_viz.serving.artifacts.session_folder import check_session_id
from torchtrt_viz.serving.contract.config import ProfileConfig
from torchtrt_viz.serving.contract.errors import ControlTimeoutError, ProfileActiveError, ProfileStartError
from torchtrt_viz.serving.contract.status import ArtifactStatus, ProfileStatus
from torchtrt_viz.serving.http.access import Refused, check_access, is_loopback, read_json
from torchtrt_viz.serving.http.bodies import StartRequest, start_request

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

__all__ = ["ProfileBackend", "profile_app", "profile_routes", "serve_profile_app"]

_LONGEST_WAIT_S = 60.0
_WAITING_CLIENTS = 4
_TOKEN_CHARACTERS = 16


class ProfileBackend(Protocol):
    """What the routes control: a `LocalProfiler` or a `ProfileCoordinator`."""

    def start_profile(
        self, config: ProfileConfig, *, window: bool = False, session_id: str | None = None
    ) -> ProfileStatus:
        """Start a session."""
        ...

    def stop_profile(self) -> ProfileStatus:
        """Stop the session."""
        ...

    def retry_profile_artifacts(self) -> ProfileStatus:
        """Process failed artifacts again."""
        ...

    def profile_status(self) -> ProfileStatus:
        """Return the state of collection and artifacts."""
        ...

    def wait_for_profile_artifacts(self, timeout: float | None = None) -> list[ArtifactStatus]:
        """Wait for the session's archives."""
        ...


class _Handlers:
    """One method per route."""

    def __init__(
        self, backend: ProfileBackend, root: Path, token: str | None, defaults: dict[str, Any]
    ) -> None:
        self._backend = backend
        self._root = root
        self._token = token
        self._defaults = defaults
        self._command = asyncio.Lock()
        self._waiting = 0

    def route(self, handler: Callable[[Request], Awaitable[Any]]) -> Callable[[Request], Awaitable[Response]]:
        """Wrap a handler: check access first, turn errors into JSON with a matching status."""
        from starlette.responses import JSONResponse

        async def answer(request: Request) -> Response:
            try:
                check_access(request, self._token)
                return JSONResponse(await handler(request))
            except Refused as error:
                status, body = error.status, error.body
            except OptionError as error:
                status, body = 400, {"error": str(error), "option": error.key}
            except ProfileActiveError as error:
                status, body = 409, {"error": str(error)}
            except ProfileStartError as error:
                status = 504
                body = {"error": str(error), "session_id": error.session_id}
                body |= {"missing": error.missing, "failed": error.failed}
            except ControlTimeoutError as error:
                status, body = 504, {"error": str(error)}
            except TorchTrtVizError as error:
                status, body = 500, {"error": str(error)}
            except Exception as error:
                status, body = 500, {"error": f"{type(error).__name__}: {error}"}
            headers = {"www-authenticate": "Bearer"} if status == 401 else None
            # The rest of a refused body is not read, so the connection has to close after the answer.
            close = {"connection": "close"} if status in (401, 403, 408, 413) else {}
            return JSONResponse(body, status, headers={**(headers or {}), **close})

        return answer

    async def start(self, request: Request) -> Any:
        """Start a session."""
        asked = start_request(await read_json(request), self._defaults)
        if asked.session_id is not None:
            check_session_id(asked.session_id)
        config = ProfileConfig.from_mapping({**asked.options, "output_dir": str(self._folder(asked))})
        answer = await self._run(
            lambda: self._backend.start_profile(config, window=asked.window, session_id=asked.session_id)
        )
        return {**answer, "notes": asked.notes}

    def _folder(self, asked: StartRequest) -> Path:
        """Return the folder for a session: below the server's own, whichever way the client names it."""
        given = asked.output_dir
        if isinstance(given, str):
            with suppress(ValueError, OSError):
                given = str(Path(given).relative_to(self._root))
        folder = confined(self._root, given) if isinstance(given, str) else None
        if folder is None:
            raise OptionError(
                "output_dir",
                asked.output_dir,
                f"a path below the server's profile folder {self._root.name!r}",
            )
        return folder

    async def stop(self, request: Request) -> Any:
        """Stop the session."""
        await read_json(request)
        return await self._run(self._backend.stop_profile, wait=True)

    async def retry(self, request: Request) -> Any:
        """Process failed artifacts again."""
        await read_json(request)
        return await self._run(self._backend.retry_profile_artifacts)

    async def _run(self, command: Callable[[], ProfileStatus], *, wait: bool = False) -> Any:
        """Run one command at a time, off the event loop.

        Those that may be repeated wait for the one before.
        """
        if self._command.locked() and not wait:
            raise Refused(409, "another command is being carried out")
        async with self._command:
            status = await asyncio.get_running_loop().run_in_executor(None, command)
        return status.to_dict()

    async def status(self, request: Request) -> Any:
        """Return the session's state."""
        return self._backend.profile_status().to_dict()

    async def artifacts(self, request: Request) -> Any:
        """List the archives, waiting for them if asked."""
        text = request.query_params.get("timeout", "0")
        try:
            timeout = float(text)
        except ValueError:
            timeout = -1.0
        if not 0.0 <= timeout <= _LONGEST_WAIT_S:
            raise OptionError("timeout", text[:40], f"seconds from 0 to {_LONGEST_WAIT_S:g}")
        if self._waiting >= _WAITING_CLIENTS:
            raise Refused(503, "too many clients are waiting for artifacts")
        self._waiting += 1
        try:
            found = await asyncio.get_running_loop().run_in_executor(
                None, self._backend.wait_for_profile_artifacts, timeout
            )
        finally:
            self._waiting -= 1
        return {"artifacts": [status.to_dict() for status in found]}


def profile_routes(
    backend: ProfileBackend,
    *,
    root: str | PathLike[str],
    token: str | None = None,
    prefix: str = "",
    defaults: dict[str, Any] | None = None,
) -> list[Route]:
    """Return the routes, to be added to a Starlette or FastAPI application.

    ``app.router.routes.extend(profile_routes(...))`` adds them.

    Parameters
    ----------
    backend
        A `LocalProfiler` or a `ProfileCoordinator`, attached to its engine's thread.
    root
        Folder below which sessions are written; no request can write outside of it.
    token
        Bearer token that requests must carry, at least 16 characters. Without one, only clients on this
        machine are served.
    prefix
        Put before every path, as "/admin".
    defaults
        Options of `ProfileConfig` for requests that do not give them.

    Raises
    ------
    MissingDependencyError
        Without starlette.
    OptionError
        For a token that is too short.
    """
    try:
        from starlette.routing import Route
    except ImportError as error:
        raise MissingDependencyError("starlette", "serving", "control profiles over HTTP") from error
    if token is not None and len(token) < _TOKEN_CHARACTERS:
        raise OptionError(
            "token", "...", f"at least {_TOKEN_CHARACTERS} characters, so that it cannot be guessed"
        )
    folder = Path(root).expanduser().resolve()
    folder.mkdir(parents=True, exist_ok=True)
    handlers = _Handlers(backend, folder, token, dict(defaults or {}))
    routes = (
        ("/start_profile", "POST", handlers.start),
        ("/stop_profile", "POST", handlers.stop),
        ("/profile_retry", "POST", handlers.retry),
        ("/profile_status", "GET", handlers.status),
        ("/profile_artifacts", "GET", handlers.artifacts),
    )
    return [
        Route(prefix + path, handlers.route(handler), methods=[method]) for path, method, handler in routes
    ]


def profile_app(
    backend: ProfileBackend,
    *,
    root: str | PathLike[str],
    token: str | None = None,
    prefix: str = "",
    defaults: dict[str, Any] | None = None,
) -> Starlette:
    """Return an application with only the profiling routes; parameters as of :func:`profile_routes`."""
    routes = profile_routes(backend, root=root, token=token, prefix=prefix, defaults=defaults)
    from starlette.applications import Starlette

    return Starlette(routes=routes)


def serve_profile_app(
    backend: ProfileBackend,
    *,
    root: str | PathLike[str],
    token: str | None = None,
    prefix: str = "",
    defaults: dict[str, Any] | None = None,
    host: str = "127.0.0.1",
    port: int = 8900,
) -> Any:
    """Make a uvicorn server for :func:`profile_app`; run it with ``server.run()`` or in a thread.

    Connections that do not send a whole request header within 10 s are closed.

    Parameters
    ----------
    backend, root, token, prefix, defaults
        As of :func:`profile_routes`.
    host, port
        Where to listen; port 0 takes a free one.

    Raises
    ------
    OptionError
        When ``host`` is not a loopback address and no token is given.
    MissingDependencyError
        Without uvicorn.
    """
    if not is_loopback(host) and token is None:
        raise OptionError(
            "host", host, "an address of this machine's own (127.0.0.1), unless a token is given"
        )
    try:
        import uvicorn
    except ImportError as error:
        raise MissingDependencyError("uvicorn", "serving", "serve the profiling routes") from error
    # it needs uvicorn, which is optional
    from torchtrt_viz.serving.http.server import timed_protocol

    return uvicorn.Server(
        uvicorn.Config(
            profile_app(backend, root=root, token=token, prefix=prefix, defaults=defaults),
            host=host,
            port=port,
            http=timed_protocol(),
            limit_concurrency=64,
            timeout_keep_alive=5,
            h11_max_incomplete_event_size=16 << 10,
            proxy_headers=False,
            access_log=False,
            log_level="warning",
        )
    )
