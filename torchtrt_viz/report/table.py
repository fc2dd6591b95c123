"""Write tables to files: csv, parquet, xlsx, markdown, text; every header names its unit."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchtrt_viz.errors import MissingDependencyError, OptionError, TorchTrtVizError
from torchtrt_viz.formats.io.whole_file import write_atomically
from torchtrt_viz.report.columns import Shown, missing, one_line, show
from torchtrt_viz.report.markup import escape, table
from torchtrt_viz.scene import assets

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FORMATS", "to_markdown", "with_units", "write_table"]

FORMATS: tuple[str, ...] = (".csv", ".tsv", ".parquet", ".xlsx", ".md", ".html", ".json")


def write_table(
    frame: pd.DataFrame, path: str | PathLike[str], *, name: str = "", index: bool = False
) -> Path:
    """Write a table in the format that the file's name asks for.

    Parameters
    ----------
    frame
        Any frame of this package.
    path
        ``.csv``, ``.tsv``, ``.parquet``, ``.xlsx``, ``.md``, ``.html`` or ``.json``. The file appears whole
        or not at all.
    name
        The table's name ("operators"), used for the sheet of a workbook.
    index
        Whether the frame's index is a column of the file.

    Returns
    -------
    Path
        The file written.

    Raises
    ------
    OptionError
        For another suffix.
    MissingDependencyError
        For ``.xlsx`` without openpyxl.

    Notes
    -----
    Numbers stay numbers, in the unit that the header names (``dur [ns]``); missing values are empty cells,
    not 0. A text that a spreadsheet program might run as a formula is written as text.
    """
    target = Path(path)
    writers: dict[str, Callable[[pd.DataFrame, Path], None]] = {
        ".csv": lambda table, file: _guarded(table).to_csv(file, index=False),
        ".tsv": lambda table, file: _guarded(table).to_csv(file, index=False, sep="\t"),
        ".parquet": lambda table, file: _write_parquet(_plain(table), file),
        ".xlsx": lambda table, file: _write_sheet(table, file, name or "table"),
        ".md": lambda table, file: _write_text(file, to_markdown(frame, name)),
        ".html": lambda table, file: _write_text(file, _html(frame, name)),
        ".json": lambda table, file: table.to_json(file, orient="records", force_ascii=False, indent=1),
    }
    writer = writers.get(target.suffix.lower())
    if writer is None:
        raise OptionError(
            "path",
            str(path),
            f"a file name that ends in {', '.join(FORMATS)}; found {target.suffix or 'none'!r}",
        )
    table = with_units(frame.reset_index() if index else frame)
    return write_atomically(target, lambda file: writer(table, file))


def with_units(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with units in its headers: ``dur_ns`` becomes ``dur [ns]``."""
    return frame.rename(columns={column: _header(str(column)) for column in frame.columns})


def _header(column: str) -> str:
    for suffix, unit in (
        ("_ns", "ns"),
        ("_us", "µs"),
        ("_ms", "ms"),
        ("_pct", "%"),
        ("_bytes", "bytes"),
        ("_gbps", "GB/s"),
        ("_gb_s", "GB/s"),
        ("_tflops", "TFLOP/s"),
    ):
        if column.endswith(suffix):
            return f"{column[: -len(suffix)]} [{unit}]"
    return {"ns": "time [ns]", "pct": "share [%]"}.get(column, column)


def to_markdown(frame: pd.DataFrame, name: str = "") -> str:
    """Return the table as markdown for people: durations scaled, numbers right aligned, texts escaped."""
    columns = show(frame, name)
    cells = [[_cell(c.title), *map(_cell, c.texts)] for c in columns]
    widths = [max(3, *map(len, column)) for column in cells]

    def line(row: int) -> str:
        return "| " + " | ".join(
            _pad(column[row], width, shown)
            for column, width, shown in zip(cells, widths, columns, strict=True)
        ) + " |"  # fmt: skip

    rule = "|" + "|".join(
        "-" * (width + 1) + (":" if shown.numeric else "-")
        for width, shown in zip(widths, columns, strict=True)
    ) + "|"  # fmt: skip
    return "\n".join([line(0), rule, *(line(row) for row in range(1, len(frame) + 1))]) + "\n"


def _cell(text: str) -> str:
    line = one_line(text)
    return line.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("`", "\\`")


def _pad(text: str, width: int, shown: Shown) -> str:
    return text.rjust(width) if shown.numeric else text.ljust(width)


def _text(value: Any) -> Any:
    return str(value) if isinstance(value, (dict, list, tuple, set)) else value


def _plain(table: pd.DataFrame) -> pd.DataFrame:
    """Turn values that a file's column cannot hold (mappings, lists, mixed values) into text."""
    out = table.copy()
    for column in out.columns:
        if out[column].dtype == object:
            values = [_text(value) for value in out[column]]
            mixed = len({type(value) for value in values if not missing(value)}) > 1
            out[column] = [None if missing(value) else str(value) if mixed else value for value in values]
    return out


def _guarded(table: pd.DataFrame) -> pd.DataFrame:
    """Keep spreadsheets from running a name as a formula: names come from files."""
    out = _plain(table)
    for column in out.columns:
        if out[column].dtype.kind not in "iufb" and str(out[column].dtype) not in ("Int64", "Float64"):
            out[column] = [
                "'" + value if isinstance(value, str) and value[:1] in "=+-@\t\r" else value
                for value in out[column].astype(object)
            ]
    return out


def _write_text(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")


def _html(frame: pd.DataFrame, name: str) -> str:
    return (
        f'<!doctype html><meta charset="utf-8"><title>{escape(name or "table")}</title>'
        f"<style>{assets.style('report')}</style>{table(frame, name, limit=len(frame), searchable=False)}"
    )


def _write_parquet(table: pd.DataFrame, file: Path) -> None:
    try:
        importlib.import_module("pyarrow")
    except ImportError as error:
        # incompatible releases of pyarrow and numpy can be installed together
        raise TorchTrtVizError(
            f"pyarrow, which writes Parquet, cannot be used: {error}. Install a release of it that fits, or "
            "choose another format"
        ) from error
    table.to_parquet(file, index=False, engine="pyarrow")


def _write_sheet(table: pd.DataFrame, file: Path, name: str) -> None:
    try:
        import openpyxl  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError("openpyxl", "lab", "write .xlsx files") from error
    import pandas as pd

    plain = _plain(table)
    for column in plain.columns:  # characters that a workbook cannot hold
        if plain[column].dtype.kind not in "iufb":
            plain[column] = [
                "".join(c if c >= " " or c in "\t\n" else "·" for c in value)
                if isinstance(value, str)
                else value
                for value in plain[column].astype(object)
            ]
    with pd.ExcelWriter(file, engine="openpyxl") as workbook:
        plain.to_excel(workbook, sheet_name=name[:31], index=False, freeze_panes=(1, 0))
        sheet = workbook.sheets[name[:31]]
        for cells in sheet.iter_cols():
            longest = max(len(str(cell.value)) for cell in cells[:200] if cell.value is not None)
            sheet.column_dimensions[cells[0].column_letter].width = min(60, max(9, longest + 2))
            for cell in cells:
                if isinstance(cell.value, str):
                    cell.data_type = "s"  # text, even if it begins like a formula
