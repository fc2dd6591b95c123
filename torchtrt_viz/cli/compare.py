"""``trtprofile compare``: two captures against each other, with exit statuses for CI."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

import torchtrt_viz as tv
from torchtrt_viz.cli import structure as by_structure
from torchtrt_viz.cli.comparison_status import DIFFERENT_PROGRAMS, NOTHING_COMPARABLE, REGRESSION
from torchtrt_viz.cli.destination import agreed
from torchtrt_viz.cli.json_mode import Asked, json_option
from torchtrt_viz.cli.output import heading, print_frame, print_text
from torchtrt_viz.cli.streams import STDOUT, say, write_to_stdout
from torchtrt_viz.errors import TorchTrtVizError
from torchtrt_viz.evidence.envelope import Evidence
from torchtrt_viz.evidence.expressions import loading
from torchtrt_viz.evidence.sheets import sheet
from torchtrt_viz.evidence.sources import source_of, warnings_of
from torchtrt_viz.report.table import write_table

if TYPE_CHECKING:
    import pandas as pd

ENDINGS: dict[str, tuple[str, ...]] = {
    "csv": (".csv",),
    "parquet": (".parquet",),
    "xlsx": (".xlsx",),
    "markdown": (".md",),
    "html": (".html",),
}

COLUMNS = (
    *("level", "name", "domain", "verdict", "change_pct"),
    *("low_pct", "high_pct", "a_ns", "b_ns", "basis"),
)
WORTH = ("name", "verdict", "change_pct", "b_ns", "a_ns", "domain", "level")
"""The same by their worth, where not all fit."""


class Percent(click.ParamType[float]):
    """A percentage, with or without its sign: ``5%`` or ``5``."""

    name = "percent"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number of percent."""
        try:
            percent = float(str(value).strip().rstrip("%"))
        except ValueError:
            percent = -1.0
        if not percent >= 0:
            self.fail(f"{value!r} is no percentage such as 5%", param, ctx)
        return percent


@click.command("compare")
@click.argument("before", type=click.Path())
@click.argument("after", type=click.Path())
@click.option(
    "--fail-on", type=Percent(), help="Exit with status 1 when something is slower by this or more."
)
@click.option(
    "--min-change", default=1.0, show_default=True, type=Percent(), help="Smaller changes are no findings."
)
@click.option(
    "--structure",
    is_flag=True,
    help="Align by the tree of modules, operators and kernels: other vendors, compiled, an upgrade.",
)
@click.option("--all", "everything", is_flag=True, help="Also print what did not change.")
@click.option("--limit", default=30, show_default=True, type=click.IntRange(1), help="Rows to print.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Also write the whole table (csv, parquet, xlsx, md), or a page that says what changed (html); "
    "- writes it to standard output instead.",
)
@click.option("--to", type=click.Choice(list(ENDINGS)), help="What -o writes; default: as it ends, or csv.")
@json_option
def command(
    before: str,
    after: str,
    fail_on: float | None,
    min_change: float,
    structure: bool,
    everything: bool,
    limit: int,
    output: Path | None,
    to: str | None,
    asked: Asked | None,
) -> Evidence | None:
    """Compare BEFORE and AFTER, two captures of the same program.

    A verdict respects the noise within the runs: capture ten or more iterations of each.
    Things are aligned by name; with --structure by their place in the program, so that a kernel
    of another vendor, or a fused operator, is found beside what it replaces.

    \b
    Exit status:
      0  compared; with --fail-on, nothing is slower by that much
      1  with --fail-on: something is slower by that much or more
      2  unusable input
      3  nothing comparable: no thing is in both runs with three or more samples,
         or the files hold only averages; with --structure: no time in common
      4  different programs: less than half of the program's time has a counterpart
    """  # noqa: D301 (click takes the character for "as it is")
    to = agreed(to, output, ENDINGS, default="csv")
    # slow to import: it needs pandas
    from torchtrt_viz.trace import Trace

    traces = []
    for path in (before, after):
        loaded = tv.load(path)
        if not isinstance(loaded, Trace):
            raise TorchTrtVizError(f"{path} holds several ranks: compare one rank's files")
        traces.append(loaded)
    name = by_structure.NAME if structure else "compare"
    comparing = tv.compare_structure if structure else tv.compare
    table = comparing(traces[0], traces[1], min_change_pct=min_change)
    status, why = (by_structure.ending if structure else ending)(table, fail_on)
    write: Callable[[Path], Path] = partial(write_table, table, name=name)
    if to == "html" and not structure:
        # slow to import: what draws pages
        from torchtrt_viz.report.comparison.page import write_comparison

        called = [Path(path).resolve().name for path in (before, after)]
        write = partial(write_comparison, table, before=called[0], after=called[1])
    if asked is not None:
        facts = by_structure.facts(table) if structure else _facts(table)
        paths = (before, after)
        return _evidence(name, paths, traces, table, min_change, (status, why), facts, (output, write), asked)
    if output == STDOUT:
        write_to_stdout(ENDINGS[to][0], write)
    else:
        if output is not None:
            write(output)
        if structure:
            by_structure.print_structure(table, everything=everything, limit=limit)
        else:
            _print(table, everything, limit, min_change if fail_on is None else fail_on)
    if status:
        say(why, err=True)
        sys.exit(status)
    return None


def _evidence(
    name: str,
    paths: tuple[str, str],
    traces: list[tv.Trace],
    table: pd.DataFrame,
    min_change: float,
    end: tuple[int, str],
    facts: dict[str, object],
    written: tuple[Path | None, Callable[[Path], Path]],
    asked: Asked,
) -> Evidence:
    """Return the whole comparison, and what it comes to."""
    loads = [loading([path]) for path in paths]
    status, why = end
    found = Evidence("compare", asked.arguments, status=status)
    found.sources = [source_of(trace, load) for trace, load in zip(traces, loads, strict=True)]
    found.warnings = warnings_of(*traces)
    expression = f"tv.analysis.{name}({', '.join(loads)}, min_change_pct={min_change!r})"
    found.tables = [sheet(name, table, "What changed", expression)]
    found.facts = {"why": why or None, **facts}
    output, write = written
    if output == STDOUT:
        raise click.UsageError("--json takes standard output: name a file with -o")
    if output is not None:
        found.wrote("table", write(output))
    return found


def _facts(table: pd.DataFrame) -> dict[str, object]:
    # slow to import: it needs pandas
    from torchtrt_viz.analysis.runs.comparison import outcome

    return {
        "outcome": outcome(table),
        "verdicts": table["verdict"].value_counts().to_dict(),
        "program_coverage_pct": table.attrs["program_coverage_pct"],
    }


def _print(table: pd.DataFrame, everything: bool, limit: int, limit_pct: float) -> None:
    """Print what changed, how much was compared, and what is not certain."""
    # slow to import: it needs pandas
    from torchtrt_viz.analysis.runs.comparison import outcome

    shown = table if everything else table[~table["verdict"].isin(["same", "unclear"])]
    counts = table["verdict"].value_counts()
    heading(", ".join(f"{int(counts[verdict])} {verdict}" for verdict in counts.index if counts[verdict]))
    if len(shown):
        print_frame(shown[list(COLUMNS)], table="compare", limit=limit, columns=WORTH)
    elif outcome(table) == "unchanged":
        say("nothing changed beyond the noise within the runs (--all shows every row)")
    print_text(table.attrs["coverage"])
    doubtful = table[(table["verdict"] == "unclear") & (table["change_pct"] >= limit_pct).fillna(False)]
    if len(doubtful):
        print_text(
            f"not certain: {len(doubtful)} slower by {limit_pct:g} % or more on average, within the noise or "
            "with too few samples to tell (--all shows them)"
        )


def ending(table: pd.DataFrame, fail_on: float | None) -> tuple[int, str]:
    """Return the exit status that a comparison deserves, and why; "" where there is nothing to say."""
    # slow to import: it needs pandas
    from torchtrt_viz.analysis.runs.comparison import outcome, regressions

    found = outcome(table)
    if found == "different programs":
        share = table.attrs["program_coverage_pct"]
        matched = "nothing of one run is in the other" if not share else f"{share:.3g} % of its time matches"
        return DIFFERENT_PROGRAMS, f"the programs are different: {matched}"
    if found == "nothing comparable":
        both = table["a_ns"].notna() & table["b_ns"].notna()
        why = (
            "the files hold averages, which say nothing of the scatter; record the times of single runs"
            if both.any() and (table.loc[both, "basis"] == "mean").all()
            else "no thing is in both runs with three or more samples; capture ten or more iterations"
        )
        return NOTHING_COMPARABLE, f"nothing comparable: {why} (--all shows every row)"
    worse = 0 if fail_on is None else len(regressions(table, fail_on))
    return (REGRESSION, f"{worse} slower by {fail_on:g} % or more") if worse else (0, "")
