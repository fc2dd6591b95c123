"""``trtprofile compare --structure``: what moved, was fused, added or lost, on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from torchtrt_viz.cli.comparison_status import DIFFERENT_PROGRAMS, NOTHING_COMPARABLE, REGRESSION
from torchtrt_viz.cli.output import console, heading, print_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["NAME", "ending", "facts", "print_structure"]

NAME = "compare_structure"
"""The function, and the name of its frame."""

_LEAST = 24  # characters that names have at least
_TITLES = {"gpu": "GPU time", "host": "Host time"}


def ending(table: pd.DataFrame, fail_on: float | None) -> tuple[int, str]:
    """Return the exit status that a comparison deserves, and why; "" where there is nothing to say."""
    outcome = table.attrs["outcome"]
    if outcome == "different programs":
        return DIFFERENT_PROGRAMS, "the programs are different: less than half of the time is aligned"
    if outcome == "nothing to align":
        return NOTHING_COMPARABLE, "nothing to align: neither host nor GPU time was measured in both"
    if fail_on is None:
        return 0, ""
    slower = [
        ((table[f"{domain}_verdict"] == "slower") & (table[f"{domain}_change_pct"] >= fail_on)).fillna(False)
        for domain in ("gpu", "host")
    ]
    count = int((slower[0] | slower[1]).sum())
    return (REGRESSION, f"{count} slower by {fail_on:g} % or more") if count else (0, "")


def facts(table: pd.DataFrame) -> dict[str, object]:
    """Return what a comparison comes to."""
    found: dict[str, object] = {"changes": table["change"].value_counts().to_dict()}
    found.update((str(name), value) for name, value in table.attrs.items())
    return found


def print_structure(table: pd.DataFrame, *, everything: bool, limit: int) -> None:
    """Print the sums by what changed, then for either domain the rows with the largest differences.

    Unless ``everything`` is asked for, rows of the same name and place are printed only where they are
    certainly slower or faster.
    """
    # slow to import: it needs pandas
    from torchtrt_viz.analysis.runs.verdicts import SAMPLES
    from torchtrt_viz.analysis.structure.comparison import structure_summary

    _print_summary(structure_summary(table))
    nothing = True
    for domain in ("gpu", "host"):
        shown = table[table[f"{domain}_delta_ns"].notna()]
        if not everything:
            changed = (shown["change"] != "same") | shown[f"{domain}_verdict"].isin(["slower", "faster"])
            shown = shown[changed & (shown[f"{domain}_delta_ns"] != 0)]
        if len(shown):
            nothing = False
            size = shown[f"{domain}_delta_ns"].abs().sort_values(ascending=False, kind="stable")
            _print_rows(shown.loc[size.index], domain, limit, per=str(table.attrs["basis"]))
    if nothing and table.attrs["outcome"] == "same structure":
        print_text("the same structure, and nothing differs beyond the noise (--all shows every row)")
    console().print()
    print_text(table.attrs["coverage"])
    least = min(table.attrs["a_iterations"], table.attrs["b_iterations"])
    if least < SAMPLES:
        print_text(
            "nothing is called slower or faster: that takes three or more iterations of each (steps of the "
            f"profiler, or executions of a method), and one has {least}"
        )


def _print_summary(summary: pd.DataFrame) -> None:
    out = Table(box=None, pad_edge=False, header_style="bold")
    out.add_column("")
    for title in ("rows", "GPU, a", "GPU, b", "host, a", "host, b"):
        out.add_column(title, justify="right")
    for row in summary.itertuples(index=False):
        times = (row.a_gpu_ns, row.b_gpu_ns, row.a_host_ns, row.b_host_ns)
        out.add_row(str(row.change), f"{row.rows:,}", *(_time(value) for value in times))
    names = ("a_gpu_ns", "b_gpu_ns", "a_host_ns", "b_host_ns")
    whole = [None if summary[name].isna().all() else int(summary[name].sum()) for name in names]
    out.add_row("all", f"{int(summary['rows'].sum()):,}", *map(_time, whole), style="bold")
    console().print(out)


def _print_rows(rows: pd.DataFrame, domain: str, limit: int, per: str) -> None:
    # slow to import: they need pandas
    from torchtrt_viz.analysis.structure.short_names import place_of, row_label
    from torchtrt_viz.report.columns import one_line

    unit = "per iteration, warm-up left out" if per == "iteration" else "over the whole run"
    heading(f"{_TITLES[domain]}, {unit}: what differs most")
    out = console()
    shown = rows.head(limit).to_dict("records")
    numbers = [_numbers(row, domain) for row in shown]
    columns = ["change", "a", "b", "differs", "verdict"]
    if not rows[f"{domain}_verdict"].isin(["slower", "faster", "same"]).any():
        columns.pop()  # nothing was tested
    widths = [max(len(title), *(len(line[at]) for line in numbers)) for at, title in enumerate(columns)]
    room = max(_LEAST, out.width - sum(widths) - 2 * len(widths))
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in columns:
        table.add_column(title, justify="left" if title in ("change", "verdict") else "right", no_wrap=True)
    table.add_column("what, and where", no_wrap=True)
    for line, row in zip(numbers, shown, strict=True):
        what = Text(one_line(row_label(row, room)))
        where = place_of(row, room)
        if where:
            what.append(f"\n{one_line(where)}", style="dim")
        table.add_row(*line[: len(columns)], what)
    out.print(table)
    if len(rows) > limit:
        out.print(Text(f"... {len(rows) - limit:,} more rows", style="dim"))


def _numbers(row: dict[Any, Any], domain: str) -> list[str]:
    change = row[f"{domain}_change_pct"]
    delta = row[f"{domain}_delta_ns"]
    return [
        str(row["change"]),
        _time(row[f"a_{domain}_mean_ns"]),
        _time(row[f"b_{domain}_mean_ns"]),
        f"{'+' if delta > 0 else ''}{_time(delta)}" if _missing(change) else f"{change:+.0f} %",
        row[f"{domain}_verdict"] or "",
    ]


def _missing(value: Any) -> bool:
    import pandas as pd  # slow to import

    return value is None or bool(pd.isna(value))


def _time(value: Any) -> str:
    # slow to import: it needs pandas
    from torchtrt_viz.report.columns import MISSING, duration

    return MISSING if _missing(value) else duration(value)
