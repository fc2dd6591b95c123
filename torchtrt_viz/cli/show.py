"""``trtprofile show``: what a trace holds, as tables on the terminal."""

from __future__ import annotations

import click

from torchtrt_viz.cli.output import heading, print_frame, print_questions, print_warnings
from torchtrt_viz.report.columns import one_line

TABLES = (
    "summary",
    "operators",
    "kernels",
    "delegates",
    "phases",
    "layers",
    "memory",
    "host_gpu",
    "questions",
)


@click.command("show")
@click.argument("paths", nargs=-1, required=True, type=click.Path())
@click.option("--etrecord", type=click.Path(), help="ETRecord of the program that wrote an ETDump.")
@click.option(
    "--table", "tables", multiple=True, type=click.Choice(TABLES), help="Show this table (repeatable)."
)
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1), help="Rows of each table.")
@click.option("--wide", is_flag=True, help="Shorten no names, leave out no columns.")
@click.option("--format", "format_", help="Read as this format instead of telling it by the content.")
@click.option("--strict", is_flag=True, help="Fail at the first damage instead of loading what is whole.")
def command(
    paths: tuple[str, ...],
    etrecord: str | None,
    tables: tuple[str, ...],
    limit: int,
    wide: bool,
    format_: str | None,
    strict: bool,
) -> None:
    """Print what PATHS (a trace, an archive, a folder, several files) hold."""
    # loads numpy and pandas, which --help does without
    import torchtrt_viz as tv
    from torchtrt_viz.trace import Trace

    loaded = tv.load(
        paths[0] if len(paths) == 1 else list(paths),
        etrecord=etrecord,
        format=format_,
        strict=strict,
        progress=True,
    )
    click.echo(repr(loaded))
    if not isinstance(loaded, Trace):
        heading("Ranks")
        print_frame(loaded.ranks, limit=limit)
        made = loaded.overview()
        found = [] if tables else made.explain()["finding"].tolist()
        if found:
            heading("What stands out")
            for text in found:
                click.echo(f"- {one_line(text)}")
        if not tables or "operators" in tables:
            heading("Operators over the ranks (host; ns)")
            print_frame(made.operators, limit=limit)
        if not tables and len(made.requests):
            heading("Requests over prefill and decode (host; ns)")
            print_frame(made.requests, limit=limit)
        return
    print_warnings(loaded.meta["warnings"])
    for name in tables or TABLES:
        frame = getattr(loaded, name)()
        if len(frame) == 0:
            if tables:
                heading(f"{name}: nothing of it was recorded")
            continue
        heading(name)
        if name == "questions":
            print_questions(frame)
        else:
            print_frame(frame, limit=None if name == "summary" else limit, width=None if wide else 48)
