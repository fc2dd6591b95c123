"""``trtprofile report``: the whole report as one HTML page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

import torchtrt_viz as tv
from torchtrt_viz.cli.graph_captures import graph_captures
from torchtrt_viz.errors import MissingDependencyError
from torchtrt_viz.report.columns import one_line
from torchtrt_viz.report.session_facts import not_here, not_whole


@click.command("report")
@click.argument("paths", nargs=-1, required=True, type=click.Path())
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Where to; default: report.html here.")
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
) -> None:
    """Write the report of PATHS as one page that opens offline.

    A trace, a folder of one capture, or a session of many ranks (a folder, an archive, several files). The
    page of a trace has its timeline, tables and answers; that of a session what stands out over its ranks,
    missing and damaged ones, stragglers, prefill against decode, requests, and the timeline of some of them.
    """
    output = output or Path("report.html")
    if output.exists() and not force:
        raise click.ClickException(f"{output} exists; --force overwrites it")
    loaded = tv.load(
        paths[0] if len(paths) == 1 else list(paths), etrecord=etrecord, graphs=graphs or None, progress=True
    )
    if isinstance(loaded, tv.Trace):
        given = [
            name for name, value in (("--rank", ranks), ("--align", align), ("--workers", workers)) if value
        ]
        if given:
            raise click.ClickException(f"{paths[0]} holds one recording: {', '.join(given)} is for sessions")
        loaded.to_html(output, title=title)
    else:
        _session(loaded, output, workers, title=title, ranks=ranks or None, timelines=timelines, align=align)
    click.echo(f"wrote {output} ({output.stat().st_size:,} bytes)")


def _session(session: tv.Session, output: Path, workers: int | None, **options: Any) -> None:
    """Write a session's report, and print what is damaged or missing and what stands out."""
    # slow to import: it needs rich
    from torchtrt_viz.cli.output import heading

    click.echo(repr(session))
    bad, absent = not_whole(session), not_here(session)
    for row in bad.head(10).to_dict("records"):
        click.echo(one_line(f"{row['state']}: {row['file']}: {row['why']}"), err=True)
    if len(bad) > 10:
        click.echo(f"... {len(bad) - 10} more are not whole: see the report", err=True)
    if absent:
        click.echo(absent, err=True)
    with _spread(session, workers), _progress(len(session)) as advance:
        session.to_html(output, progress=advance, **options)
    found = session.explain()["finding"].tolist() if (session.ranks["state"] == "ok").any() else []
    if found:
        heading("What stands out")
        for text in found:
            click.echo(f"- {one_line(text)}")
        click.echo()


@contextmanager
def _spread(session: tv.Session, workers: int | None) -> Iterator[None]:
    """Read the session's ranks in worker processes."""
    if workers is None:
        yield
        return

    try:
        import distributed
    except ImportError as error:
        raise MissingDependencyError("distributed", "cluster", "read ranks in several processes") from error
    with (
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster),
    ):
        session.engine = "dask"
        yield


@contextmanager
def _progress(total: int) -> Iterator[Any]:
    """Show how many ranks are read, on a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console(stderr=True)
    columns = (TextColumn("reading ranks"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("ranks", total=total)
        yield lambda done, whole: bar.update(task, completed=done, total=whole)
