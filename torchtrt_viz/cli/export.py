"""``trtprofile export``: a trace in another format."""

from __future__ import annotations

from pathlib import Path

import click

import torchtrt_viz as tv
from torchtrt_viz.analysis.catalogue import TABLES
from torchtrt_viz.cli.destination import agreed
from torchtrt_viz.cli.graph_captures import graph_captures
from torchtrt_viz.cli.json_mode import Asked, json_option
from torchtrt_viz.cli.streams import STDOUT, say, write_to_stdout
from torchtrt_viz.evidence.envelope import Evidence
from torchtrt_viz.evidence.expressions import loading
from torchtrt_viz.evidence.sheets import EVENT_FRAMES
from torchtrt_viz.evidence.sources import source_of, warnings_of
from torchtrt_viz.report.table import write_table

ENDINGS: dict[str, tuple[str, ...]] = {
    "csv": (".csv",),
    "parquet": (".parquet",),
    "xlsx": (".xlsx",),
    "markdown": (".md",),
    "html": (".html", ".htm"),
    "perfetto": (".pftrace", ".perfetto-trace", ".json"),
}
"""What is written -> endings of its files, the usual one first; a Perfetto trace can be JSON."""


@click.command("export")
@click.argument("path", type=click.Path())
@click.option("--to", type=click.Choice(list(ENDINGS)), help="What to write; default: as -o ends.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Where to; - is standard output. Default: beside the input.",
)
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
@json_option
def command(
    path: str,
    to: str | None,
    output: Path | None,
    table: str,
    etrecord: str | None,
    graphs: tuple[str, ...],
    force: bool,
    asked: Asked | None,
) -> Evidence | None:
    """Write PATH's tables (csv, parquet, xlsx, markdown) or its timeline (html, perfetto).

    What -o ends in and --to have to agree; one of them is enough.
    """
    to = agreed(to, output, ENDINGS)
    # slow to import: it needs numpy
    from torchtrt_viz.trace import Trace

    loaded = tv.load(path, etrecord=etrecord, graphs=graphs or None)
    views = to in ("html", "perfetto")
    if views and not isinstance(loaded, Trace):
        raise click.ClickException(f"{path} holds several ranks: export one rank's file, or write a report")
    if not views and not hasattr(loaded, table):
        raise click.ClickException(f"{path} holds several ranks, which have no {table}: export one rank's")

    def write(target: Path) -> object:
        if to == "html":
            return loaded.to_html(target)
        if to == "perfetto":
            return loaded.to_perfetto(target)  # type: ignore[union-attr]
        frame = getattr(loaded, table)
        return write_table(frame() if callable(frame) else frame, target, name=table)

    if output == STDOUT:
        if asked is not None:
            raise click.UsageError("--json takes standard output: name a file with -o")
        write_to_stdout(ENDINGS[to][0], write)
        return None
    if output is None:
        stem = Path(path).name.split(".")[0] or "trace"
        name = stem if views else f"{stem}.{table}"
        output = Path(path).resolve().parent / (name + ENDINGS[to][0])
    if output.exists() and not force:
        raise click.ClickException(f"{output} exists; --force overwrites it")
    write(output)
    if asked is not None:
        expression = loading([path], etrecord=etrecord, graphs=list(graphs))
        found = Evidence("export", asked.arguments, [source_of(loaded, expression)])
        found.wrote(to, output)
        found.facts["table"] = None if views else table
        found.warnings = warnings_of(loaded)
        return found
    say(f"wrote {output} ({output.stat().st_size:,} bytes)")
    return None
