"""``trtprofile save``: a trace or a session as Parquet, which everything here reads back."""

from __future__ import annotations

from pathlib import Path

import click

import torchtrt_viz as tv
from torchtrt_viz.cli.graph_captures import graph_captures
from torchtrt_viz.cli.json_mode import Asked, json_option
from torchtrt_viz.cli.rank_progress import reading_ranks
from torchtrt_viz.cli.ranks import spread
from torchtrt_viz.cli.streams import say
from torchtrt_viz.evidence.envelope import Evidence
from torchtrt_viz.evidence.expressions import loading
from torchtrt_viz.evidence.sources import source_of, warnings_of


@click.command("save")
@click.argument("paths", nargs=-1, required=True, type=click.Path())
@click.option(
    "-o", "--output", required=True, type=click.Path(path_type=Path), help="Folder to make; it appears whole."
)
@click.option("--etrecord", type=click.Path(), help="ETRecord of the program that wrote an ETDump.")
@graph_captures
@click.option(
    "--workers",
    type=click.IntRange(1),
    help="Write a session's ranks in so many processes (extra: cluster).",
)
@click.option("--force", is_flag=True, help="Replace a folder that was saved before.")
@json_option
def command(
    paths: tuple[str, ...],
    output: Path,
    etrecord: str | None,
    graphs: tuple[str, ...],
    workers: int | None,
    force: bool,
    asked: Asked | None,
) -> Evidence | None:
    """Write PATHS (a trace, or a session of many ranks) as Parquet files that load() reads back equal.

    DuckDB, polars and pandas read them, too. When the saving of a session was stopped, the same command goes
    on where it was.
    """
    # slow to import: it needs numpy
    from torchtrt_viz.trace import Trace

    loaded = tv.load(paths[0] if len(paths) == 1 else list(paths), etrecord=etrecord, graphs=graphs or None)
    if isinstance(loaded, Trace):
        if workers:
            raise click.ClickException(f"{paths[0]} holds one recording: --workers is for sessions")
        loaded.save(output, force=force)
        held = f"{len(loaded.spans):,} spans"
    else:
        with spread(loaded, workers), reading_ranks(len(loaded)) as advance:
            loaded.save(output, force=force, progress=advance)
        held = f"{len(loaded):,} recordings"
    if asked is not None:
        expression = loading(list(paths), etrecord=etrecord, graphs=list(graphs))
        found = Evidence("save", asked.arguments, [source_of(loaded, expression)])
        found.wrote("saved", output)
        found.warnings = warnings_of(loaded)
        return found
    say(f"wrote {output} ({held})")
    return None
