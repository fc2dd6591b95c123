"""``trtprofile report``: the whole report as one HTML page."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

import torchtrt_viz as tv
from torchtrt_viz.cli.destination import agreed
from torchtrt_viz.cli.graph_captures import graph_captures
from torchtrt_viz.cli.json_mode import Asked, json_option
from torchtrt_viz.cli.rank_progress import reading_ranks
from torchtrt_viz.cli.ranks import spread
from torchtrt_viz.cli.streams import STDOUT, say, write_to_stdout
from torchtrt_viz.evidence.envelope import Evidence
from torchtrt_viz.evidence.expressions import loading
from torchtrt_viz.evidence.sheets import session_sheets, sheet, trace_sheets
from torchtrt_viz.evidence.sources import source_of, warnings_of
from torchtrt_viz.report.columns import one_line
from torchtrt_viz.report.session_facts import not_here, not_whole


@click.command("report")
@click.argument("paths", nargs=-1, required=True, type=click.Path())
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Where to; - is standard output. Default: report.html here.",
)
@click.option("--etrecord", type=click.Path(), help="ETRecord of the program that wrote an ETDump.")
@graph_captures
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@click.option("--title", help="Heading of the page.")
@click.option(
    "--rank",
    "ranks",
    multiple=True,
    type=int,
    help="Rank to show in the timeline (repeatable); default: of every role the slowest and the fastest.",
)
@click.option(
    "--timelines",
    default=8,
    show_default=True,
    type=click.IntRange(0, 64),
    help="Most recordings in a session's timeline.",
)
@click.option(
    "--align",
    type=click.Choice(["start", "clock"]),
    help="Place a session's recordings by their hosts' clocks as they are, or all at 0. By default those of "
    "one host by its clock, others at 0: clocks of different hosts are not assumed to agree.",
)
@click.option(
    "--workers",
    type=click.IntRange(1),
    help="Read a session's ranks in so many processes (extra: cluster).",
)
@json_option
def command(
    paths: tuple[str, ...],
    output: Path | None,
    etrecord: str | None,
    graphs: tuple[str, ...],
    force: bool,
    title: str | None,
    ranks: tuple[int, ...],
    timelines: int,
    align: str | None,
    workers: int | None,
    asked: Asked | None,
) -> Evidence | None:
    """Write the report of PATHS as one page that opens offline.

    A trace, a folder of one capture, or a session of many ranks (a folder, an archive, several files). The
    page of a trace has its timeline, tables and answers; that of a session what stands out over its ranks,
    missing and damaged ones, stragglers, prefill against decode, requests, and the timeline of some of them.
    """
    output = output or Path("report.html")
    agreed(None, output, {"html": (".html", ".htm")}, default="html")
    if output.exists() and not force and output != STDOUT:
        raise click.ClickException(f"{output} exists; --force overwrites it")
    loaded = tv.load(paths[0] if len(paths) == 1 else list(paths), etrecord=etrecord, graphs=graphs or None)
    write: Callable[[Path], object]
    if isinstance(loaded, tv.Trace):
        given = [
            name for name, value in (("--rank", ranks), ("--align", align), ("--workers", workers)) if value
        ]
        if given:
            raise click.ClickException(f"{paths[0]} holds one recording: {', '.join(given)} is for sessions")
        write = partial(loaded.to_html, title=title)
    else:
        options = {"title": title, "ranks": ranks or None, "timelines": timelines, "align": align}
        write = partial(_session, loaded, workers, options, quiet=output == STDOUT or asked is not None)
    if output == STDOUT:
        if asked is not None:
            raise click.UsageError("--json takes standard output: name a file with -o")
        write_to_stdout(".html", write)
        return None
    write(output)
    if asked is not None:
        return _evidence(loaded, output, loading(paths, etrecord=etrecord, graphs=list(graphs)), asked)
    say(f"wrote {output} ({output.stat().st_size:,} bytes)")
    return None


def _evidence(loaded: tv.Trace | tv.Session, output: Path, expression: str, asked: Asked) -> Evidence:
    """Return what the report is about: what was written, and what stands out."""
    found = Evidence("report", asked.arguments, [source_of(loaded, expression)])
    found.wrote("html", output)
    found.warnings = warnings_of(loaded)
    if isinstance(loaded, tv.Trace):
        found.tables = trace_sheets(loaded, expression, ("explain",))
    elif bool((loaded.ranks["state"] == "ok").any()):
        found.tables = session_sheets(loaded, expression, ("explain",))
    else:
        found.tables = [sheet("session.ranks", loaded.ranks, "Ranks", f"{expression}.ranks")]
    return found


def _session(
    session: tv.Session, workers: int | None, options: dict[str, Any], output: Path, *, quiet: bool
) -> None:
    """Write a session's report, and print what is damaged or missing and, unless quiet, what stands out."""
    # slow to import: it needs rich
    from torchtrt_viz.cli.output import heading, print_text

    if not quiet:
        say(repr(session))
    bad, absent = not_whole(session), not_here(session)
    for row in bad.head(10).to_dict("records"):
        say(one_line(f"{row['state']}: {row['file']}: {row['why']}"), err=True)
    if len(bad) > 10:
        say(f"... {len(bad) - 10} more are not whole: see the report", err=True)
    if absent:
        say(absent, err=True)
    with spread(session, workers), reading_ranks(len(session)) as advance:
        session.to_html(output, progress=advance, **options)
    whole = bool((session.ranks["state"] == "ok").any())
    found = session.explain()["finding"].tolist() if whole and not quiet else []
    if found:
        heading("What stands out")
        for text in found:
            print_text(text, "- ", "  ")
        say()
