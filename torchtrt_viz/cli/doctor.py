"""``trtprofile doctor``: what works here, what is missing, what each gap costs."""

from __future__ import annotations

import sys
from dataclasses import asdict

import click

from torchtrt_viz.cli.streams import say
from torchtrt_viz.doctor import examine


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def command(as_json: bool) -> None:
    """Say what is installed and usable here, and what each gap costs.

    Exit status 1 when something required does not work; a missing optional part is no failure.
    """
    findings = examine()
    if as_json:
        import orjson

        say(orjson.dumps([asdict(f) for f in findings], option=orjson.OPT_INDENT_2).decode())
    else:
        from rich.table import Table
        from rich.text import Text

        # slow to import: it needs rich
        from torchtrt_viz.cli.output import console

        styles = {"ok": "green", "missing": "yellow", "broken": "bold red"}
        table = Table(box=None, pad_edge=False, header_style="bold")
        for title in ("area", "what", "state", "detail"):
            table.add_column(title, overflow="fold")
        for f in findings:
            detail = f.detail if f.state == "ok" else f"{f.detail}: {f.cost}. {f.remedy}"
            table.add_row(Text(f.area), Text(f.name), Text(f.state, style=styles[f.state]), Text(detail))
        console().print(table)
    sys.exit(1 if any(f.state == "broken" for f in findings) else 0)
