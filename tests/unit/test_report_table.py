"""Tables as files and as text."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
from timeline_traces import model_trace

from torchtrt_viz.errors import OptionError, TorchTrtVizError
from torchtrt_viz.report.columns import MISSING, duration, number, quantity, show
from torchtrt_viz.report.table import FORMATS, to_markdown, with_units, write_table


@pytest.fixture
def frame():
    return pd.DataFrame(
        {
            "name": ["aten::mm", "=cmd|' /C calc'!A0", "a|b\n<c>"],
            "calls": pd.array([3, 1, None], dtype="Int64"),
            "self_ns": [1_500, 20, 3_000_000_000],
            "self_pct": [12.5, np.nan, 87.5],
            "in_bytes": pd.array([2048, None, 5], dtype="Int64"),
            "values": [{"a": 1}, None, [1, 2]],
        }
    )


def test_headers_name_the_unit(frame):
    assert with_units(frame).columns.tolist() == [
        "name", "calls", "self [ns]", "self [%]", "in [bytes]", "values",
    ]  # fmt: skip


def test_csv_keeps_numbers_and_leaves_missing_values_empty(frame, tmp_path):
    write_table(frame, tmp_path / "t.csv")
    got = pd.read_csv(tmp_path / "t.csv")
    assert got["self [ns]"].tolist() == [1_500, 20, 3_000_000_000]
    assert got["calls"].isna().tolist() == [False, False, True]
    assert got["name"].tolist() == ["aten::mm", "'=cmd|' /C calc'!A0", "a|b\n<c>"]


def test_parquet_round_trip(frame, tmp_path):
    write_table(frame, tmp_path / "t.parquet")
    got = pd.read_parquet(tmp_path / "t.parquet")
    assert got["name"].tolist() == frame["name"].tolist()
    assert got["in [bytes]"].isna().tolist() == [False, True, False]
    assert got["values"].tolist()[0] == "{'a': 1}"


def test_an_unusable_pyarrow_is_an_error_with_a_remedy_and_leaves_no_file(frame, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(TorchTrtVizError, match=r"pyarrow.*cannot be used.*another format"):
        write_table(frame, tmp_path / "t.parquet")
    assert list(tmp_path.iterdir()) == []


def test_workbook_holds_texts_not_formulas(frame, tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    write_table(frame, tmp_path / "t.xlsx", name="operators")
    sheet = openpyxl.load_workbook(tmp_path / "t.xlsx")["operators"]
    assert [cell.value for cell in sheet[1]][:3] == ["name", "calls", "self [ns]"]
    assert sheet["A3"].data_type == "s"
    assert sheet["A3"].value == "=cmd|' /C calc'!A0"
    assert sheet["C4"].value == 3_000_000_000
    assert sheet["B4"].value is None


def test_markdown_is_for_people(frame):
    lines = to_markdown(frame, "operators").splitlines()
    assert lines[0].split("|")[3].strip() == "host self"
    assert lines[1].split("|")[3].endswith("-:")
    assert [cell.strip() for cell in lines[2].split("|")[1:5]] == ["aten::mm", "3", "1.5 µs", "12.5 %"]
    assert "a\\|b &lt;c>" in lines[4]
    assert lines[4].split("|")[3].strip() == MISSING or MISSING in lines[4]
    assert len({len(line) for line in lines}) == 1


def test_html_table_is_escaped(frame, tmp_path):
    write_table(frame, tmp_path / "t.html")
    text = (tmp_path / "t.html").read_text()
    assert "<c>" not in text
    assert "&lt;c&gt;" in text


@pytest.mark.parametrize("suffix", FORMATS)
def test_every_table_of_a_trace_can_be_written(tmp_path, suffix):
    if suffix == ".xlsx":
        pytest.importorskip("openpyxl", reason="openpyxl is not installed (extra lab)")
    trace = model_trace(steps=1, hostile=True)
    for name in ("operators", "kernels", "delegates", "phases", "layers", "summary", "questions", "host_gpu"):
        file = write_table(getattr(trace, name)(), tmp_path / f"{name}{suffix}", name=name)
        assert file.stat().st_size > 0


def test_an_unknown_suffix_names_the_known_ones(frame, tmp_path):
    with pytest.raises(OptionError, match=r"\.csv, \.tsv, \.parquet, \.xlsx"):
        write_table(frame, tmp_path / "t.doc")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"), (999, "999 ns"), (1_000, "1 µs"), (12_345, "12.35 µs"), (1_204_000, "1.204 ms"),
        (2.5e9, "2.5 s"), (-1_500, "-1.5 µs"), (0.25, "0.25 ns"),
    ],
)  # fmt: skip
def test_durations(ns, text):
    assert duration(ns) == text


def test_values_carry_their_units():
    assert quantity(3, "calls") == "3 calls"
    assert quantity(5 * 2**20, "bytes") == "5 MiB"
    assert quantity(pd.NA, "ns") == MISSING
    assert quantity("text", "") == "text"
    assert number(1234567.0) == "1,234,567"
    assert number(0.000012) == "1.2e-05"


def test_summary_values_are_shown_with_their_unit():
    columns = {column.column: column for column in show(model_trace(steps=1).summary())}
    assert "unit" not in columns
    texts = dict(zip(columns["item"].texts, columns["value"].texts, strict=True))
    assert texts["spans"].endswith(" spans")
    assert texts["rank"] == MISSING
