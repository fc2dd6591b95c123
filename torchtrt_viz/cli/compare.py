"""``trtprofile compare``: two captures against each other, with exit statuses for CI."""

from __future__ import annotations

import sys
from pathlib import Path

import click

import torchtrt_viz as tv
from torchtrt_viz.cli.output import heading, print_frame
from torchtrt_viz.errors import TorchTrtVizError
from torchtrt_viz.report.table import write_table

REGRESSION = 1  # 2 is for unusable input, as in every subcommand
NOTHING_COMPARABLE = 3
DIFFERENT_PROGRAMS = 4


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
@click.option("--all", "everything", is_flag=True, help="Also print what did not change.")
@click.option("--limit", default=30, show_default=True, type=click.IntRange(1), help="Rows to print.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Also write the table (csv, parquet, xlsx, md)."
)
def command(
    before: str,
    after: str,
    fail_on: float | None,
    min_change: float,
    everything: bool,
    limit: int,
    output: Path | None,
) -> None:
    """Compare BEFORE and AFTER, two captures of the same program.

    A verdict respects the noise within the runs: capture ten or more iterations of each.

    \b
    Exit status:
      0  compared; with --fail-on, nothing is slower by that much
      1  with --fail-on: something is slower by that much or more
      2  unusable input
      3  nothing comparable: no thing is in both runs with three or more samples,
         or the files hold only averages
      4  different programs: less than half of the program's time has a counterpart
    """  # noqa: D301 (click takes the character for "as it is")
    # slow to import: it needs pandas
    from torchtrt_viz.analysis.runs.comparison import compare, outcome, regressions
    from torchtrt_viz.trace import Trace

    traces = []
    for path in (before, after):
        loaded = tv.load(path, progress=True)
        if not isinstance(loaded, Trace):
            raise TorchTrtVizError(f"{path} holds several ranks: compare one rank's files")
        traces.append(loaded)
    table = compare(traces[0], traces[1], min_change_pct=min_change)
    if output is not None:
        write_table(table, output)
    shown = table if everything else table[~table["verdict"].isin(["same", "unclear"])]
    counts = table["verdict"].value_counts()
    heading(", ".join(f"{int(counts[verdict])} {verdict}" for verdict in counts.index if counts[verdict]))
    columns = [
        "level",
        "name",
        "domain",
        "verdict",
        "change_pct",
        "low_pct",
        "high_pct",
        "a_ns",
        "b_ns",
        "basis",
    ]
    found = outcome(table)
    if len(shown):
        print_frame(shown, limit=limit, columns=columns)
    elif found == "unchanged":
        click.echo("nothing changed beyond the noise within the runs (--all shows every row)")
    click.echo(table.attrs["coverage"])
    limit_pct = min_change if fail_on is None else fail_on
    doubtful = table[(table["verdict"] == "unclear") & (table["change_pct"] >= limit_pct).fillna(False)]
    if len(doubtful):
        click.echo(
            f"not certain: {len(doubtful)} slower by {limit_pct:g} % or more on average, within the noise or "
            "with too few samples to tell (--all shows them)"
        )
    if found == "different programs":
        share = table.attrs["program_coverage_pct"]
        matched = "nothing of one run is in the other" if not share else f"{share:.3g} % of its time matches"
        click.echo(f"the programs are different: {matched}", err=True)
        sys.exit(DIFFERENT_PROGRAMS)
    if found == "nothing comparable":
        both = table["a_ns"].notna() & table["b_ns"].notna()
        why = (
            "the files hold averages, which say nothing of the scatter; record the times of single runs"
            if both.any() and (table.loc[both, "basis"] == "mean").all()
            else "no thing is in both runs with three or more samples; capture ten or more iterations"
        )
        click.echo(f"nothing comparable: {why} (--all shows every row)", err=True)
        sys.exit(NOTHING_COMPARABLE)
    if fail_on is not None:
        worse = regressions(table, fail_on)
        if len(worse):
            click.echo(f"{len(worse)} slower by {fail_on:g} % or more", err=True)
            sys.exit(REGRESSION)
