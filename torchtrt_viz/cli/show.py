"""``trtprofile show``: what a trace holds, as tables on the terminal."""

from __future__ import annotations

import click
from click.core import ParameterSource

import torchtrt_viz as tv
from torchtrt_viz.analysis.catalogue import SESSION_TABLES, shown_in
from torchtrt_viz.cli.graph_captures import graph_captures
from torchtrt_viz.cli.json_mode import Asked, json_option
from torchtrt_viz.cli.output import (
    RANK_COLUMNS,
    console,
    heading,
    print_frame,
    print_warnings,
)
from torchtrt_viz.cli.rank_progress import reading_ranks
from torchtrt_viz.cli.streams import say
from torchtrt_viz.cli.trace_tables import print_trace
from torchtrt_viz.evidence.envelope import Evidence
from torchtrt_viz.evidence.expressions import loading
from torchtrt_viz.evidence.sheets import EVENT_FRAMES, session_sheets, trace_sheets
from torchtrt_viz.evidence.sources import source_of, warnings_of
from torchtrt_viz.report.columns import one_line

TABLES = shown_in("terminal")
"""The tables of a trace that the terminal shows."""


@click.command("show")
@click.argument("paths", nargs=-1, required=True, type=click.Path())
@click.option("--etrecord", type=click.Path(), help="ETRecord of the program that wrote an ETDump.")
@graph_captures
@click.option(
    "--table",
    "tables",
    multiple=True,
    type=click.Choice(list(dict.fromkeys((*TABLES, *SESSION_TABLES, *EVENT_FRAMES)))),
    help="Show this table (repeatable).",
)
@click.option("--timeline", is_flag=True, help="Draw the tracks over time, host and GPU apart.")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1), help="Rows of each table.")
@click.option("--wide", is_flag=True, help="Shorten no names, leave out no columns.")
@click.option("--format", "format_", help="Read as this format instead of telling it by the content.")
@click.option("--strict", is_flag=True, help="Fail at the first damage instead of loading what is whole.")
@json_option
def command(
    paths: tuple[str, ...],
    etrecord: str | None,
    graphs: tuple[str, ...],
    tables: tuple[str, ...],
    timeline: bool,
    limit: int,
    wide: bool,
    format_: str | None,
    strict: bool,
    asked: Asked | None,
) -> Evidence | None:
    """Print what PATHS (a trace, an archive, a folder, several files) hold.

    With --json, tables are whole unless --limit or --budget is given.
    """
    # slow to import: it needs numpy
    from torchtrt_viz.trace import Trace

    loaded = tv.load(
        paths[0] if len(paths) == 1 else list(paths),
        etrecord=etrecord,
        graphs=graphs or None,
        format=format_,
        strict=strict,
    )
    if asked is not None:
        given = click.get_current_context().get_parameter_source("limit")
        rows = limit if given is ParameterSource.COMMANDLINE else None
        expression = loading(paths, format=format_, etrecord=etrecord, graphs=list(graphs), strict=strict)
        found = Evidence("show", asked.arguments, [source_of(loaded, expression)])
        found.warnings = warnings_of(loaded)
        if isinstance(loaded, Trace):
            found.tables = trace_sheets(loaded, expression, _chosen(tables), rows=rows)
        else:
            found.tables = session_sheets(loaded, expression, _over_ranks(tables), rows=rows)
        return found
    say(one_line(repr(loaded)))
    if timeline:
        _show_timeline(loaded)
        if not tables:
            return None
    if isinstance(loaded, Trace):
        print_trace(loaded, _chosen(tables), limit=limit, wide=wide)
    else:
        _show_session(loaded, tables, limit, wide)
    return None


def _show_timeline(loaded: tv.Trace | tv.Session) -> None:
    # slow to import: they need numpy
    from torchtrt_viz.report.text_timeline import text_timeline
    from torchtrt_viz.scene.scene import Scene

    say(text_timeline(Scene.of(loaded), width=console().width))


def _show_session(session: tv.Session, tables: tuple[str, ...], limit: int, wide: bool) -> None:
    tables = _over_ranks(tables)
    # slow to import: it needs numpy
    from torchtrt_viz.report.hangs_section import hangs_table

    print_warnings(session.meta["warnings"])
    heading("Ranks")
    print_frame(session.ranks, table="session.ranks", limit=limit, columns=RANK_COLUMNS, wide=wide)
    # slow to import: it needs pandas
    from torchtrt_viz.cli.verdict import print_session_verdict

    with reading_ranks(len(session)) as advance:
        made = session.overview(advance)
    if not tables or "explain" in tables:
        print_session_verdict(made)
    for name, table in SESSION_TABLES.items():
        if name in tables or (not tables and "terminal" in table.views):
            frame = getattr(made, name)
            if len(frame) or tables:
                heading(f"{name}: {table.title}")
                shown = hangs_table(frame) if name == "hangs" else frame
                if table.brief and not wide:
                    shown = shown[[column for column in table.brief if column in shown]]
                print_frame(shown, table=f"session.{name}", entry=table, limit=limit, wide=wide)


def _chosen(tables: tuple[str, ...]) -> tuple[str, ...]:
    """Return the tables that were asked for, if a trace has them."""
    unknown = [name for name in tables if name not in TABLES and name not in EVENT_FRAMES]
    if unknown:
        raise click.ClickException(f"{', '.join(unknown)}: only for a session of several ranks")
    return tables


def _over_ranks(tables: tuple[str, ...]) -> tuple[str, ...]:
    """Return the tables that were asked for, if a session has them."""
    unknown = [name for name in tables if name not in SESSION_TABLES and name != "explain"]
    if unknown:
        raise click.ClickException(
            f"{', '.join(unknown)}: only for one rank's trace; over ranks there are "
            f"{', '.join(['explain', *SESSION_TABLES])}"
        )
    return tables
