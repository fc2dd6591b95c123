"""``trtprofile serve-demo``: a serving engine of several processes, profiled together."""

from __future__ import annotations

from pathlib import Path

import click

import torchtrt_viz as tv
from torchtrt_viz.cli.json_mode import Asked, json_option
from torchtrt_viz.cli.output import RANK_COLUMNS, heading, print_frame
from torchtrt_viz.cli.streams import say
from torchtrt_viz.errors import MissingDependencyError
from torchtrt_viz.evidence.envelope import Evidence
from torchtrt_viz.evidence.expressions import loading
from torchtrt_viz.evidence.sheets import session_sheets
from torchtrt_viz.evidence.sources import source_of, warnings_of


@click.command("serve-demo")
@click.option(
    "-o",
    "--output",
    default="trtprofile-serve-demo",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Profile folder.",
)
@click.option("--prefill", default=2, show_default=True, type=click.IntRange(1, 16), help="Prefill workers.")
@click.option("--decode", default=2, show_default=True, type=click.IntRange(1, 16), help="Decode workers.")
@click.option("--requests", default=8, show_default=True, type=click.IntRange(1), help="Requests to serve.")
@click.option(
    "--scheduled", is_flag=True, help="Record by a step schedule instead of one window over all workers."
)
@click.option(
    "--http", "port", type=click.IntRange(0, 65535), help="Serve on, with the profiling routes on this port."
)
@click.option("--token", help="Bearer token for the routes.")
@json_option
def command(
    output: Path,
    prefill: int,
    decode: int,
    requests: int,
    scheduled: bool,
    port: int | None,
    token: str | None,
    asked: Asked | None,
) -> Evidence | None:
    """Run the example engine: prefill and decode workers on the CPU, one profile per worker.

    The workers exchange key-value caches over gloo; every rank's recording is parsed, packed, verified and
    published in the background, and the session is loaded back at the end.
    """
    try:
        # slow to import: it needs torch
        from torchtrt_viz.examples.serving_pd.demo import run_demo
    except ImportError as error:
        raise MissingDependencyError("torch", None, "run the example engine") from error

    folder = run_demo(
        output,
        prefill=prefill,
        decode=decode,
        requests=requests,
        window=not scheduled,
        http_port=port,
        token=token,
        echo=say,
    )
    if port is not None and asked is None:
        return None
    session = tv.load(folder)
    assert isinstance(session, tv.Session)
    if asked is not None:
        expression = loading([folder])
        found = Evidence("serve-demo", asked.arguments, [source_of(session, expression)])
        found.wrote("session", folder)
        found.tables = session_sheets(session, expression, ("operators",))
        found.warnings = warnings_of(session)
        return found
    say(repr(session))
    heading("Ranks")
    print_frame(session.ranks, table="session.ranks", columns=RANK_COLUMNS)
    heading("Operators over the ranks (host time, ns)")
    print_frame(session.operators(), table="session.operators", limit=10)
    say(f"\nload it with torchtrt_viz.load({str(folder)!r}), or: trtprofile report {folder}")
    return None
