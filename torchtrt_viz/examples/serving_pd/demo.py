"""The whole example in one call: an engine, requests, a profile of every worker, and what it says."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from torchtrt_viz.errors import CaptureError
from torchtrt_viz.examples.serving_pd.engine import PDEngine
from torchtrt_viz.serving.contract.config import ProfileConfig
from torchtrt_viz.serving.contract.settings import Settings
from torchtrt_viz.serving.http.routes import serve_profile_app

__all__ = ["run_demo"]


def run_demo(
    output_dir: str | PathLike[str],
    *,
    prefill: int = 2,
    decode: int = 2,
    requests: int = 8,
    max_tokens: int = 8,
    window: bool = True,
    http_port: int | None = None,
    token: str | None = None,
    echo: Callable[[str], object] = print,
    settings: Settings | None = None,
    options: Mapping[str, Any] | None = None,
) -> Path:
    """Serve random requests with prefill and decode workers, and record all of them.

    Parameters
    ----------
    output_dir
        Profile folder.
    prefill, decode
        Numbers of workers.
    requests, max_tokens
        Requests to serve while recording, and tokens to generate for each.
    window
        Record from before the first request to after the last; otherwise by the schedule of ``options``.
    http_port
        Instead of recording by itself, go on serving requests until Ctrl-C, with the profiling routes on
        this port of 127.0.0.1.
    token
        Bearer token for the routes.
    echo
        Called with each line of progress.
    settings
        Limits and folders of the workers' profilers.
    options
        Fields of :class:`~torchtrt_viz.serving.ProfileConfig`, beyond ``output_dir``.

    Returns
    -------
    pathlib.Path
        Folder of the session, for ``torchtrt_viz.load`` (with ``http_port``: the profile folder).

    Raises
    ------
    CaptureError
        When a worker fails, or an archive could not be made.
    """
    config = ProfileConfig(Path(output_dir), **(options or {}))
    config.check(window=window)
    chance = random.Random(0)
    echo(f"starting {prefill} prefill and {decode} decode workers")
    with PDEngine(prefill, decode, settings=settings) as engine:
        for _ in range(prefill * decode):  # so that first-time costs are not recorded
            engine.submit(_prompt(chance), 2)
        engine.finish()
        if http_port is not None:
            _serve(engine, config.output_dir, http_port, token, chance, max_tokens, echo)
            return config.output_dir
        status = engine.coordinator.start_profile(config, window=window)
        session = config.output_dir / str(status.collection.session_id)
        echo(f"session {session.name}: every worker records")
        for _ in range(requests):
            engine.submit(_prompt(chance), max_tokens)
        engine.finish()
        engine.coordinator.stop_profile()
        echo(f"{requests} requests served; archives are being made")
        artifacts = engine.coordinator.wait_for_profile_artifacts(120.0)
    for artifact in artifacts:
        place = artifact.archive or f"{artifact.state}: {artifact.error}"
        echo(f"  rank {artifact.rank} ({artifact.role}) cycle {artifact.cycle}: {place}")
    bad = [a for a in artifacts if a.state != "published"]
    if bad or not artifacts:
        raise CaptureError(
            f"{len(bad)} of {len(artifacts)} archives are not ready; the recordings are kept in {session}"
        )
    return session


def _prompt(chance: random.Random) -> list[int]:
    return [chance.randrange(256) for _ in range(chance.randrange(16, 65))]


def _serve(
    engine: PDEngine,
    root: Path,
    port: int,
    token: str | None,
    chance: random.Random,
    max_tokens: int,
    echo: Callable[[str], object],
) -> None:
    """Serve random requests until Ctrl-C, with the profiling routes beside."""
    server = serve_profile_app(engine.coordinator, root=root, port=port, token=token)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    header = f" -H 'Authorization: Bearer {token}'" if token else ""
    echo(f"profiling routes on http://127.0.0.1:{port}; Ctrl-C ends")
    echo(f"  curl -X POST{header} -d '{{\"window\": true}}' http://127.0.0.1:{port}/start_profile")
    echo(f"  curl -X POST{header} http://127.0.0.1:{port}/stop_profile")
    echo(f"  curl{header} 'http://127.0.0.1:{port}/profile_artifacts?timeout=30'")
    try:
        while thread.is_alive():
            active = [r for r in engine.requests.values() if r.state != "finished"]
            if len(active) < 2:
                engine.requests = {r.request: r for r in active}
                engine.submit(_prompt(chance), max_tokens)
            engine.pump(0.01)
            if engine.lost:
                raise CaptureError(f"workers were lost: {', '.join(engine.lost)}")
    except KeyboardInterrupt:
        echo("stopping")
    finally:
        server.should_exit = True
        thread.join(10)
