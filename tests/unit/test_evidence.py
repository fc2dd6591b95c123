"""What programs get: strict JSON, nothing invented, whole over pages, and Python that makes it again."""

from __future__ import annotations

import json
import math
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trace_builder import Builder

import torchtrt_viz as tv
from torchtrt_viz.analysis.catalogue import TABLES
from torchtrt_viz.cli import COMMANDS, main
from torchtrt_viz.errors import OptionError
from torchtrt_viz.evidence.envelope import Evidence, Sheet, json_schema
from torchtrt_viz.evidence.expressions import Condition, chosen
from torchtrt_viz.evidence.paging import SMALLEST, document
from torchtrt_viz.evidence.sheets import EVENT_FRAMES, trace_sheets
from torchtrt_viz.evidence.values import Bound, dumps, plain

jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
OF_THE_DOCUMENT = jsonschema.Draft202012Validator(json_schema())


def strict(text: str | bytes):
    """Parse as a strict reader does, and check against the schema."""

    def refuse(constant: str):
        raise AssertionError(f"{constant} is no JSON")

    found = json.loads(text, parse_constant=refuse)
    OF_THE_DOCUMENT.validate(found)
    return found


# -- values ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (float("nan"), "null"),
        (pd.NA, "null"),
        (pd.NaT, "null"),
        (None, "null"),
        (float("inf"), '"Infinity"'),
        (-np.inf, '"-Infinity"'),
        (0, "0"),
        (2**53 + 1, "9007199254740993"),
        (-(2**63), "-9223372036854775808"),
        (2**64 - 1, "18446744073709551615"),
        (2**64, '"18446744073709551616"'),
        (np.int64(7), "7"),
        (np.float32(0.5), "0.5"),
        (np.float64(0.5), "0.5"),
        (np.str_("a"), '"a"'),
        (np.int8(-1), "-1"),
        (np.bool_(True), "true"),
        ((1, "a", pd.NA), '[1,"a",null]'),
        ({1: float("nan")}, '{"1":null}'),
        (b"\x00\xff", '"00ff"'),
        ("\ud83d", '"\\\\ud83d"'),
    ],
)
def test_values(value, written):
    assert dumps(plain(value, Bound())).decode() == written


@given(st.text())
def test_a_text_comes_back_and_nothing_unseen_is_in_the_document(text):
    written = dumps(text if text.isascii() else plain(text, Bound())).decode()
    assert json.loads(written) == text.encode("utf-8", "backslashreplace").decode()
    assert not {c for c in written if c in "\u202e\u200b\ufeff\x1b\u2028" or 0xE0000 <= ord(c) < 0xE1000}


def test_what_steers_or_hides_is_escaped():
    name = "\x1b[2J\u202egnp\u200b\U000e0041\x85"
    written = dumps(name).decode()
    assert written == '"\\u001b[2J\\u202egnp\\u200b\\udb40\\udc41\\u0085"'
    assert json.loads(written) == name


def test_a_long_text_keeps_both_ends_and_is_counted():
    bound = Bound(30)
    text = bound.text("a" * 100 + "z" * 100)
    assert text.startswith("a" * 20 + " (... 170 characters ...) ")
    assert text.endswith(" " + "z" * 10)
    assert bound.cut == 1
    assert bound.text("short") == "short"
    assert bound.cut == 1


def test_nesting_has_an_end():
    deep: list = []
    deep.append(deep)
    dumps(plain({"a": [[[[[[[[[[1]]]]]]]]]]}, Bound()))
    assert len(dumps(plain(deep, Bound(100)))) < 1000


# -- pages -----------------------------------------------------------------------------------------------


def sheets(rows: int, text: str = "x") -> Evidence:
    frame = pd.DataFrame({"number": range(rows), "name": [f"{text}{n}" for n in range(rows)]})
    small = pd.DataFrame({"value": [1.5, math.nan]}, index=["one", "two"])
    return Evidence("test", {"a": 1}, tables=[Sheet("first", frame), Sheet("second", small)])


@pytest.mark.parametrize("budget", [SMALLEST, 10_000, 50_000])
def test_pages_hold_every_row_once_within_the_budget(budget):
    found = sheets(3_000)
    whole = strict(document(found))
    assert whole["budget"]["complete"]
    rows: dict[str, list] = {"first": [], "second": []}
    cursor, pages = None, 0
    while pages == 0 or cursor:
        text = document(found, budget=budget, cursor=cursor)
        assert len(text) <= budget
        page = strict(text)
        for table in page["tables"]:
            assert table["first_row"] == len(rows[table["name"]])
            rows[table["name"]] += zip(table["row_ids"], table["rows"], strict=True)
        left = 3_002 - sum(map(len, rows.values()))
        assert page["budget"]["rows_left"] == left
        assert not page["budget"]["complete"]
        cursor, pages = page["budget"]["cursor"], pages + 1
    assert pages > 1
    for table in whole["tables"]:
        assert rows[table["name"]] == list(zip(table["row_ids"], table["rows"], strict=True))


def test_a_page_is_most_of_its_budget():
    assert len(document(sheets(3_000), budget=20_000)) > 0.9 * 20_000


def test_a_row_that_is_too_long_is_cut_and_said():
    page = strict(document(sheets(2, "y" * 50_000), budget=SMALLEST))
    assert page["tables"][0]["rows"][0][1].startswith("yyy")
    assert "characters ...)" in page["tables"][0]["rows"][0][1]
    assert page["budget"]["texts_cut"] == 2
    assert not page["budget"]["complete"]


def test_warnings_leave_room_for_the_tables_and_are_counted():
    found = sheets(3)
    found.warnings = [
        {"code": "c", "message": f"m{n}" * 20, "path": None, "offset": None, "count": 1} for n in range(500)
    ]
    page = strict(document(found, budget=12_000))
    assert [len(table["rows"]) for table in page["tables"]] == [3, 2]
    assert page["budget"]["left_out"]["warnings"] + len(page["warnings"]) == 500
    assert page["warnings"]


@pytest.mark.parametrize("cursor", ["", "nonsense", "MC4w", "é", "MC4wLmFiYw", "a" * 10_000])
def test_a_cursor_that_is_none_is_refused(cursor):
    with pytest.raises(OptionError, match="cursor"):
        document(sheets(3_000), budget=SMALLEST, cursor=cursor)


def test_a_cursor_of_another_question_or_file_is_refused():
    found = sheets(3_000)
    cursor = strict(document(found, budget=SMALLEST))["budget"]["cursor"]
    document(found, budget=SMALLEST, cursor=cursor)
    found.arguments = {"a": 2}
    with pytest.raises(OptionError, match="the same question"):
        document(found, budget=SMALLEST, cursor=cursor)
    with pytest.raises(OptionError, match="files that have not changed"):
        document(sheets(3_001), budget=SMALLEST, cursor=cursor)


def test_a_budget_that_holds_nothing_is_refused():
    with pytest.raises(OptionError, match=f"at least {SMALLEST}"):
        document(sheets(3), budget=SMALLEST - 1)


# -- tables ----------------------------------------------------------------------------------------------


@pytest.fixture
def events(tmp_path):
    """A file, and what it holds: 40 calls of one operator, 3 of another, one kernel with a bad name."""
    calls = [("aten::mm", 10 * n, 7) for n in range(40)] + [("aten::add", 1000 + n * 5, 2) for n in range(3)]
    rows = [
        {"ph": "X", "cat": "cpu_op", "name": name, "ts": ts, "dur": dur, "pid": 1, "tid": 1}
        for name, ts, dur in calls
    ]
    rows.append(
        {"ph": "X", "cat": "kernel", "name": "<b>\x1b[1mgemm", "ts": 5, "dur": 3, "pid": 0, "tid": 7}
        | {"args": {"device": 0, "stream": 7, "correlation": 2**60}}
    )
    path = tmp_path / 'it\'s "a" trace.json'
    path.write_text(json.dumps({"traceEvents": rows}))
    return path, calls


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return int(ended.value.code or 0)


def test_show_says_what_the_file_holds_with_units_and_the_python_behind_it(events, capsys):
    path, calls = events
    assert run("show", path, "--json") == 0
    found = strict(capsys.readouterr().out)
    tables = {table["name"]: table for table in found["tables"]}
    operators = tables["operators"]
    columns = {column["name"]: column for column in operators["columns"]}
    rows = {row[0]: dict(zip(columns, row, strict=True)) for row in operators["rows"]}
    assert rows["aten::mm"]["calls"] == sum(name == "aten::mm" for name, *_ in calls)
    assert rows["aten::mm"]["total_ns"] == 40 * 7_000
    assert columns["total_ns"]["unit"] == "ns"
    assert columns["self_pct"]["unit"] == "%"
    assert columns["graph_calls"]["state"] == "NA"
    assert {columns[name]["state"] for name in ("calls", "total_ns")} == {"measured"}
    source = found["sources"][0]
    assert source["accounting"]["in_file"] == len(calls) + 1 == source["accounting"]["read"]
    namespace: dict = {}
    exec(found["prelude"], namespace)
    for table in found["tables"]:
        frame = eval(table["expression"], namespace)
        assert table["row_count"] == len(frame)
        for label, row in zip(table["row_ids"], table["rows"], strict=True):
            assert [plain(value, Bound()) for value in frame.loc[label].tolist()] == row
    verdict = tables["verdict"]
    place = [column["name"] for column in verdict["columns"]].index("frame")
    assert verdict["rows"]
    for row in verdict["rows"]:
        assert len(eval(row[place], namespace))


def test_spans_keep_their_rows_and_64_bit_ids(events, capsys):
    path, calls = events
    assert run("show", path, "--json", "--table", "spans") == 0
    (table,) = strict(capsys.readouterr().out)["tables"]
    names = [column["name"] for column in table["columns"]]
    assert table["row_ids"] == list(range(len(calls) + 1))
    kernel = dict(zip(names, table["rows"][-1], strict=True))
    assert (kernel["name"], kernel["correlation"]) == ("<b>\x1b[1mgemm", 2**60)
    assert dict(zip(names, table["rows"][0], strict=True))["correlation"] is None


def test_what_a_graphs_capture_tells_is_modeled():
    assert {c.name for c in TABLES["operators"].schema.columns if c.modeled} == {
        "graph_calls",
        "device_graph_ns",
    }
    frame = pd.DataFrame({"name": ["a"], "graph_calls": pd.array([3], "Int64")})
    states = {
        c["name"]: c["state"] for c in Sheet("operators", frame, TABLES["operators"].schema).head()["columns"]
    }
    assert states == {"name": "measured", "graph_calls": "modeled"}


def test_every_table_of_a_trace_is_a_sheet_that_fits_the_schema():
    b = Builder()
    thread, stream = b.track("thread", process=1, thread=1), b.stream(7)
    b.span("aten::mm", 0, 10, thread)
    b.span("launch", 2, 3, thread, "runtime", correlation=1)
    b.span("gemm", 20, 10, stream, "kernel", correlation=1)
    made = trace_sheets(b.build(), "t", [*TABLES, *EVENT_FRAMES])
    found = strict(document(Evidence("test", tables=made)))
    assert [table["name"] for table in found["tables"]] == [*TABLES, *EVENT_FRAMES]
    for table in found["tables"]:
        assert all(len(row) == len(table["columns"]) for row in table["rows"])
        assert all(column["meaning"] for column in table["columns"])


def test_rows_that_were_chosen_come_back_out_of_their_expression(events):
    path, _ = events
    expression = chosen(
        f"tv.load({str(path)!r}).spans",
        where=[
            Condition("dur_ns", ">", 2_000),
            Condition("name", "contains", "MM"),
            Condition("kind", "==", "operator"),
        ],
        sort="start_ns",
        columns=["name", "start_ns"],
    )
    frame = eval(expression, {"tv": tv})
    assert frame.columns.tolist() == ["name", "start_ns"]
    assert len(frame) == 40
    assert frame["start_ns"].is_monotonic_decreasing


# -- commands --------------------------------------------------------------------------------------------


def test_every_command_has_it(capsys):
    for name in COMMANDS:
        if name != "mcp":
            assert run(name, "--help") == 0
            out = capsys.readouterr().out
            assert {"--json", "--budget", "--cursor"} <= set(out.split()), name


@pytest.mark.parametrize(
    ("arguments", "status", "error"),
    [
        (["show", "nothing.json"], 2, {"type": "TraceFormatError", "path": "nothing.json"}),
        (["show", "FILE", "--no-such-option"], 2, {"type": "NoSuchOption"}),
        (["show", "FILE", "--table", "ranks"], 2, {"type": "BadParameter"}),
        (["show", "FILE", "--budget", "10"], 2, {"type": "OptionError", "option": "budget"}),
        (["show", "FILE", "--cursor", "x"], 2, {"type": "OptionError", "option": "cursor"}),
        (["export", "FILE", "-o", "FILE"], 1, {"type": "ClickException"}),
        (["export", "FILE", "--to", "csv", "-o", "-"], 2, {"type": "UsageError"}),
        (["report", "FILE", "-o", "-"], 2, {"type": "UsageError"}),
        (["compare", "FILE", "nothing.json"], 2, {"type": "TraceFormatError"}),
        (["run", "nothing.pte"], 2, {"type": "BadParameter"}),
        (["no-such-command"], 2, {"remedy": None}),
    ],
)
def test_errors_are_documents_with_the_exit_status(
    arguments, status, error, events, tmp_path, monkeypatch, capsys
):
    path = tmp_path / "run.json"
    path.write_bytes(events[0].read_bytes())
    monkeypatch.chdir(tmp_path)
    options = [str(path) if argument == "FILE" else argument for argument in arguments]
    assert run(options[0], "--json", *options[1:]) == status
    found = strict(capsys.readouterr().out)
    assert found["status"] == status
    assert error.items() <= found["error"].items()
    assert found["error"]["message"]
    assert found["tables"] == []


def test_budget_and_cursor_are_for_documents(events, capsys):
    assert run("show", events[0], "--budget", "5000") == 2
    assert "are for --json" in capsys.readouterr().err


def test_files_that_were_written_are_named(events, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run("export", "--json", events[0], "-o", "t.csv") == 0
    found = strict(capsys.readouterr().out)
    size = (tmp_path / "t.csv").stat().st_size
    assert found["files"] == [{"what": "csv", "path": "t.csv", "bytes": size}]
    assert run("report", "--json", events[0], "-o", "t.html") == 0
    found = strict(capsys.readouterr().out)
    assert [entry["path"] for entry in found["files"]] == ["t.html"]


def test_compare_says_what_it_comes_to(cases, capsys):
    folder = cases / "outside" / "compare_sees_nothing"
    base, slow = folder / "nsys_base.json", folder / "nsys_slow.json"
    assert run("compare", "--json", base, slow, "--fail-on", "5%") == 1
    found = strict(capsys.readouterr().out)
    assert (found["status"], found["facts"]["verdicts"]["slower"]) == (1, 3)
    assert found["facts"]["why"] == "3 slower by 5 % or more"
    assert found["error"] is None
    frame = eval(found["tables"][0]["expression"], {"tv": tv})
    assert frame["verdict"].tolist() == [row[4] for row in found["tables"][0]["rows"]]


def test_nothing_but_the_document_is_on_stdout(events, capfd, monkeypatch):
    from torchtrt_viz.cli import show

    def noisy(*arguments, **options):
        print("a library says something")
        sys.__stdout__.flush()
        return tv.load(*arguments, **options)

    class Noisy:
        load = staticmethod(noisy)

    monkeypatch.setattr(show, "tv", Noisy)
    assert run("show", "--json", events[0], "--table", "kernels") == 0
    out, err = capfd.readouterr()
    strict(out)
    assert "a library says something" in err
