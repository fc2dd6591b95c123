"""``trtprofile export``: a trace in another format."""

from __future__ import annotations

from pathlib import Path

import click

import torchtrt_viz as tv
from torchtrt_viz.analysis.catalogue import TABLES
from torchtrt_viz.cli.graph_captures import graph_captures
from torchtrt_viz.model.schema import EVENTS
from torchtrt_viz.report.table import write_table

EVENT_FRAMES = tuple(schema.name for schema in EVENTS)
SUFFIXES = {
    "csv": ".csv",
    "parquet": ".parquet",
    "xlsx": ".xlsx",
    "markdown": ".md",
    "html": ".html",
    "perfetto": ".pftrace",
}


@click.command("export")
@click.argument("path", type=click.Path())
@click.option("--to", "to", required=True, type=click.Choice(list(SUFFIXES)), help="What to write.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Where to; default: beside the input.")
@click.option(
    "--table",
    default="operators",
    show_default=True,
    type=click.Choice((*TABLES, *EVENT_FRAMES)),
    help="Which table, for the table formats.",
)
@click.option("--etrecord", type=click.Path(), help="ETRecord of the program that wrote an ETDump.")
@graph_captures
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
def command(
    path: str,
    to: str,
    output: Path | None,
    table: str,
    etrecord: str | None,
    graphs: tuple[str, ...],
    force: bool,
) -> None:
    """Write PATH's tables (csv, parquet, xlsx, markdown) or its timeline (html, perfetto)."""
    # slow to import: it needs numpy
    from torchtrt_viz.trace import Trace

    loaded = tv.load(path, etrecord=etrecord, graphs=graphs or None, progress=True)
    if output is None:
        stem = Path(path).name.split(".")[0] or "trace"
        name = stem if to in ("html", "perfetto") else f"{stem}.{table}"
        output = Path(path).resolve().parent / (name + SUFFIXES[to])
    if output.exists() and not force:
        raise click.ClickException(f"{output} exists; --force overwrites it")
    if to in ("html", "perfetto"):
        if not isinstance(loaded, Trace):
            raise click.ClickException(
                f"{path} holds several ranks: export one rank's file, or write a report"
            )
        if to == "html":
            loaded.to_html(output)
        else:
            loaded.to_perfetto(output)
    else:
        if not hasattr(loaded, table):
            raise click.ClickException(
                f"{path} holds several ranks, which have no {table}: export one rank's"
            )
        frame = getattr(loaded, table)
        write_table(frame() if callable(frame) else frame, output)
    click.echo(f"wrote {output} ({output.stat().st_size:,} bytes)")
