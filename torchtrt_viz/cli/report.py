"""``trtprofile report``: the whole report as one HTML page."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("report")
@click.argument("path", type=click.Path())
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Where to; default: report.html here.")
@click.option("--etrecord", type=click.Path(), help="ETRecord of the program that wrote an ETDump.")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
def command(path: str, output: Path | None, etrecord: str | None, force: bool) -> None:
    """Write the report of PATH (a file, or a folder of one capture): timeline, tables, answers."""
    import torchtrt_viz as tv

    output = output or Path("report.html")
    if output.exists() and not force:
        raise click.ClickException(f"{output} exists; --force overwrites it")
    loaded = tv.load(path, etrecord=etrecord, progress=True)
    if not isinstance(loaded, tv.Trace):
        raise click.ClickException(
            f"{path} holds {len(loaded)} recordings: name one rank's file (trtprofile show lists them)"
        )
    loaded.to_html(output)
    click.echo(f"wrote {output} ({output.stat().st_size:,} bytes)")
