"""``trtprofile doctor``: what works here, what is missing, what each gap costs."""

from __future__ import annotations

import sys
from dataclasses import asdict

import click

from torchtrt_viz.cli.json_mode import Asked, json_option
from torchtrt_viz.doctor import FINDINGS, Finding, examine
from torchtrt_viz.evidence.envelope import Evidence, Sheet


@click.command("doctor")
@json_option
def command(asked: Asked | None) -> Evidence | None:
    """Say what is installed and usable here, and what each gap costs.

    Exit status 1 when something required does not work; a missing optional part is no failure.
    """
    findings = examine()
    status = 1 if any(f.state == "broken" for f in findings) else 0
    if asked is not None:
        return _evidence(findings, status)
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
    sys.exit(status)


def _evidence(findings: list[Finding], status: int) -> Evidence:
    import pandas as pd

    frame = pd.DataFrame([asdict(f) for f in findings], columns=FINDINGS.names)
    found = Evidence("doctor", status=status)
    expression = "__import__('pandas').DataFrame(__import__('torchtrt_viz.doctor').doctor.examine())"
    found.tables = [Sheet("doctor", frame, FINDINGS, "What works here", expression)]
    return found
