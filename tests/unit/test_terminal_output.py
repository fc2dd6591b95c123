"""What a terminal shows: the columns that matter, in its width and encoding; nothing that steers it."""

from __future__ import annotations

import io
import sys

import pandas as pd
import pytest
from timeline_traces import model_trace
from trace_builder import Builder

from torchtrt_viz.analysis.catalogue import SESSION_TABLES, TABLES, shown_in
from torchtrt_viz.cli import main
from torchtrt_viz.cli.output import print_frame, print_text
from torchtrt_viz.report.characters import NEAR_CHARACTERS, shown_in_encoding
from torchtrt_viz.report.columns import title
from torchtrt_viz.report.fitting import clipped, fitted

LONG = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<c10::complex<double>>, 12>"


@pytest.fixture
def columns(monkeypatch):
    return lambda width: monkeypatch.setenv("COLUMNS", str(width))


@pytest.fixture(scope="module")
def model():
    return model_trace(steps=2, blocks=2)


def named(name: str):
    """A trace with one operator and one kernel of that name."""
    b = Builder()
    thread, stream = b.track("thread 1", process=1, thread=1), b.stream(7)
    b.span(name, 0, 12_345, thread)
    b.span(name, 20_000, 67_890, stream, "kernel")
    return b.build()


@pytest.mark.parametrize("name", shown_in("terminal"))
def test_at_80_columns_the_essential_columns_stay_and_no_line_is_longer(name, model, columns, capsys):
    columns(80)
    frame = TABLES[name](model)
    if name in ("questions", "explain", "verdict") or frame.empty:
        return
    print_frame(frame, table=name)
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert max(map(len, lines)) <= 80
    heads = " ".join(lines[:4])  # titles have up to three lines
    for column in TABLES[name].essential:
        if column != "unit" and frame[column].notna().any():  # values carry their unit
            for word in title(column, name).split():
                assert word in heads, (column, out)


def test_essential_columns_exist_and_fit_every_table_of_the_terminal():
    for prefix, tables in (("", TABLES), ("session.", SESSION_TABLES)):
        for name, entry in shown_in("terminal", tables).items():
            assert set(entry.essential) <= set(entry.schema.names), prefix + name
            assert entry.essential or name in ("questions", "explain", "verdict"), prefix + name


def test_a_long_name_leaves_room_for_its_time_and_share(columns, capsys):
    columns(60)
    print_frame(named(LONG).kernels(), table="kernels")
    out = capsys.readouterr().out
    row = next(line for line in out.splitlines() if line.startswith("void at::"))
    assert "67.89 µs" in row
    assert "100.0 %" in row
    assert len(row) <= 60
    assert "no room for:" in out


def test_wide_shortens_nothing(columns, capsys):
    columns(60)
    print_frame(named(LONG).kernels(), table="kernels", wide=True)
    out = capsys.readouterr().out
    assert LONG in out
    assert "no room for" not in out
    for column in ("GPU median", "launch rows"):
        assert column.split()[-1] in out


def test_a_narrow_terminal_has_readable_names_and_a_wide_table_the_keys():
    key = "e272145ec3b011fb-forward-0"
    name = "[BMM]-[aten_ops.bmm.default]-[/attention/bmm] [layer_0020_delegate]"
    frame = pd.DataFrame({"engine": [key], "name": [name], "total_ns": [5]})
    narrow, wide = (fitted(frame, width, table="layers") for width in (80, None))
    assert narrow.rows[0].split() == ["forward-0", "attention/bmm", "#20", "5", "ns"]
    assert key in wide.rows[0]
    assert name in wide.rows[0]


def test_columns_says_how_wide_a_pipe_is(columns, capsys):
    widths = {}
    for width in (50, 90, 140):
        columns(width)
        print_frame(named(LONG).operators(), table="operators")
        widths[width] = max(map(len, capsys.readouterr().out.splitlines()))
        print_text("word " * 60)
        assert width - 5 <= max(map(len, capsys.readouterr().out.splitlines())) <= width
    assert widths[50] <= 50 < widths[90] <= 90 < widths[140] <= 140


def test_what_was_not_collected_is_said_once_and_is_no_column():
    lines = fitted(named("gemm").kernels(), 200, table="kernels")
    assert lines.empty == ["GPU std"]
    assert "GPU std" not in " ".join(lines.head)


def test_names_cannot_steer_the_terminal(columns, capsys):
    columns(120)
    print_frame(named("\x1b[2J\x1b]0;owned\x07[red]x[/red]\u202egnp").kernels(), table="kernels")
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\x07" not in out
    assert "\u202e" not in out
    assert "[red]x[/red]" in out


def test_clipping_keeps_both_ends():
    assert clipped("abcdefghijkl", 12) == "abcdefghijkl"
    assert clipped("abcdefghijkl", 9) == "abcde…jkl"
    assert clipped("abcdefghijkl", 1) == "…"


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [
        ("utf-8", "3 µs … – █ 中 é"),
        ("latin-1", "3 µs ~ - # \\u4e2d é"),
        ("cp1252", "3 µs … – # \\u4e2d é"),
        ("ascii", "3 us ~ - # \\u4e2d \\xe9"),
        ("no such encoding", "3 us ~ - # \\u4e2d \\xe9"),
    ],
)
def test_an_encoding_gets_near_characters_one_for_one(encoding, shown):
    assert shown_in_encoding("3 µs … – █ 中 é", encoding) == shown


def test_a_name_of_a_file_that_is_no_text_is_shown():
    name = b"caf\xe9.json".decode("utf-8", "surrogateescape")
    assert name.encode("utf-8", NEAR_CHARACTERS) == b"caf\\xe9.json"


@pytest.mark.parametrize("encoding", ["latin-1", "ascii", "cp1252", "utf-8"])
def test_show_works_in_any_encoding(encoding, root, tmp_path, monkeypatch, columns):
    path = tmp_path / "größe.json"
    path.write_bytes(
        b'[{"ph":"X","name":"caf\xe9 \xe4\xb8\xad","cat":"cpu_op","ts":1,"dur":5,"pid":1,"tid":1}]'
    )
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding=encoding))
    columns(80)
    with pytest.raises(SystemExit) as ended:
        main(["show", str(path), "--table", "operators", "--timeline"])
    assert ended.value.code == 0
    text = raw.getvalue().decode(encoding)
    assert "5 µs" in text or "5 us" in text
    assert ("█" in text) == (encoding == "utf-8")


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return int(ended.value.code or 0)


@pytest.fixture
def trace_file(tmp_path):
    path = tmp_path / "run.json"
    path.write_text('[{"ph":"X","name":"f","cat":"cpu_op","ts":1,"dur":5,"pid":1,"tid":1}]')
    return path


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ["--to", "xlsx", "-o", "l.csv"],
            "--to xlsx and l.csv do not agree: .xlsx is for xlsx, .csv for csv",
        ),
        (["--to", "html", "-o", "x"], "x has no ending"),
        (["--to", "csv", "-o", "x"], "x has no ending"),
        (["-o", "x.doc"], "x.doc has the ending .doc"),
        ([], "--to says what to write"),
        (["-o", "-"], "--to says what to write"),
    ],
)
def test_ending_and_option_agree_or_it_is_an_error(options, said, trace_file, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run("export", trace_file, *options) == 2
    assert said in " ".join(capsys.readouterr().err.split())
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_the_ending_alone_says_what_to_write(trace_file, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run("export", trace_file, "-o", "t.md") == 0
    assert (tmp_path / "t.md").read_text().startswith("| name")
    assert run("export", trace_file, "-o", "t.json") == 0
    assert "traceEvents" in (tmp_path / "t.json").read_text()
    assert run("report", trace_file, "-o", "t.csv") == 2
    assert not (tmp_path / "t.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "begin"),
    [
        (["export", "--to", "csv"], b"name,calls,"),
        (["export", "--to", "parquet", "--table", "spans"], b"PAR1"),
        (["export", "--to", "html"], b"<!doctype html>"),
        (["report"], b"<!doctype html>"),
    ],
)
def test_dash_is_standard_output_and_nothing_else_is_on_it(
    arguments, begin, trace_file, tmp_path, capfdbinary
):
    command, *options = arguments
    assert run(command, trace_file, *options, "-o", "-") == 0
    out = capfdbinary.readouterr().out
    assert out.startswith(begin)
    assert b"wrote" not in out
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_the_statuses_are_documented(capsys):
    from torchtrt_viz.cli import EXIT_STATUSES

    assert run("--help") == 0
    out = capsys.readouterr().out
    for status in EXIT_STATUSES:
        assert f"\n  {status} " in out
