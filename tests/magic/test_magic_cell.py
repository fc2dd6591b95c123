"""A cell under %%trtprofile behaves as if its first line were not there."""

from __future__ import annotations

import re
from typing import Any

import pytest


def test_last_expression_is_shown_and_remembered(notebook: Any) -> None:
    cell = notebook.run("%%trtprofile\nx = 20\nx + 1")
    assert cell.status == "ok"
    assert cell.result == "21"
    assert notebook.value("(_, Out[max(Out)])") == "(21, 21)"
    assert cell.kinds == ["execute_result", "report"]


def test_a_semicolon_hides_the_result(notebook: Any) -> None:
    cell = notebook.run("%%trtprofile\n3 + 4;")
    assert cell.kinds == ["report"]


def test_none_is_not_shown(notebook: Any) -> None:
    assert notebook.run("%%trtprofile\nNone").kinds == ["report"]


def test_an_exception_makes_the_cell_fail_once(notebook: Any) -> None:
    cell = notebook.run("%%trtprofile\na = 1\n\nraise ValueError('boom')")
    assert cell.status == "error"
    assert (cell.ename, cell.evalue) == ("ValueError", "boom")
    assert cell.kinds == ["report", "error"]
    assert "the cell raised ValueError; the trace ends there" in cell.reports[0]["text/plain"]
    assert notebook.value("a") == "1"


def test_a_traceback_leads_to_the_line_of_the_cell(notebook: Any) -> None:
    """The magic's line is line 1, as the notebook counts them."""
    cell = notebook.run("%%trtprofile\nx = 1\n\nx / 0\ny = 2")
    text = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(cell.errors[0]["traceback"]))
    assert re.search(r"line:? ?4|, line 4|\[\d+\], line 4", text), text
    assert re.search(r"-+> ?4 ", text), text
    assert "torchtrt_viz" not in text
    assert "__import__" not in text


def test_the_last_expression_may_raise(notebook: Any) -> None:
    cell = notebook.run("%%trtprofile\nx = 1\n[][x]")
    text = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(cell.errors[0]["traceback"]))
    assert cell.ename == "IndexError"
    assert re.search(r"-+> ?3 ", text), text


def test_top_level_await_runs_in_the_kernels_loop(notebook: Any) -> None:
    notebook.run("import asyncio\nbefore = id(asyncio.get_running_loop())")
    cell = notebook.run(
        "%%trtprofile\nawait asyncio.sleep(0.01)\nafter = id(asyncio.get_running_loop())\n"
        "await asyncio.sleep(0, 'awaited')"
    )
    assert cell.status == "ok", cell
    assert cell.result == "'awaited'"
    assert notebook.value("before == after") == "True"


def test_async_with_and_for(notebook: Any) -> None:
    cell = notebook.run(
        "%%trtprofile\nasync def numbers():\n    for i in range(3):\n        yield i\n"
        "found = [i async for i in numbers()]\nasync for i in numbers():\n    last = i\nfound, last"
    )
    assert cell.result == "([0, 1, 2], 2)"


def test_text_in_the_body_is_left_alone(notebook: Any) -> None:
    cell = notebook.run("%%trtprofile\ns = '''x\ny\n  z'''\ns")
    assert cell.result == repr("x\ny\n  z")


@pytest.mark.parametrize("first", ["", "'a docstring'\n"])
def test_future_imports(notebook: Any, first: str) -> None:
    body = "from __future__ import annotations\ndef f(x: nowhere): ...\nf.__annotations__"
    cell = notebook.run(f"%%trtprofile\n{first}{body}")
    assert cell.status == "ok"
    assert cell.result == "{'x': 'nowhere'}"


@pytest.mark.parametrize("gap", ["", "\n", "\n  \n"])
def test_another_cell_magic_on_the_second_line(notebook: Any, gap: str) -> None:
    cell = notebook.run(f"%%trtprofile\n{gap}%%time\nx = 6\nx * 7")
    assert cell.status == "ok"
    assert "Wall time" in cell.stream()
    assert cell.result == "42"
    assert len(cell.reports) == 1


def test_a_cell_magic_that_is_not_python(notebook: Any) -> None:
    cell = notebook.run("%%trtprofile\n%%bash\nif true; then echo from bash; fi")
    assert cell.stream() == "from bash\n"
    assert len(cell.reports) == 1


def test_line_magics_and_shell_commands_in_the_body(notebook: Any) -> None:
    cell = notebook.run("%%trtprofile\n%timeit -n 1 -r 1 pass\n!echo hello\nfiles = !echo a b\nfiles.s")
    assert cell.status == "ok", cell
    assert "hello" in cell.stream()
    assert "per loop" in cell.stream()
    assert cell.result == "'a b'"


def test_a_syntax_error_is_pythons_own(notebook: Any) -> None:
    cell = notebook.run("%%trtprofile\nx = (\n")
    assert cell.status == "error"
    assert cell.ename in ("SyntaxError", "_IncompleteInputError")
    assert cell.reports == []


def test_no_names_are_left(notebook: Any) -> None:
    names = "sorted(n for n in globals() if not n.startswith('_'))"
    before = notebook.value(names)
    notebook.run("%%trtprofile --level layers\n1 + 1")
    assert notebook.value(names) == before
    hidden = notebook.value("[n for n in globals() if 'trt' in n or 'trtprofile' in n]")
    assert hidden == "[]"
    assert notebook.value("[n for n in dir(__import__('builtins')) if 'trt' in n]") == "[]"


def test_no_files_are_left(notebook: Any) -> None:
    here = "sorted(os.listdir('.'))"
    notebook.run("import os, glob, tempfile")
    before = notebook.value(here)
    notebook.run("%%trtprofile\n1 + 1")
    assert notebook.value(here) == before


def test_interrupting_ends_the_capture_and_the_cell(notebook: Any) -> None:
    cell = notebook.run_and_interrupt("%%trtprofile -o broken\nimport time\ntime.sleep(30)", 1.0)
    assert cell.status == "error"
    assert cell.ename == "KeyboardInterrupt"
    assert len(cell.errors) == 1
    assert len(cell.reports) == 1
    assert notebook.value("(broken.state, type(broken.error).__name__)") == "('stopped', 'KeyboardInterrupt')"
    assert notebook.run("%%trtprofile\n'the next cell'").result == "'the next cell'"


def test_interrupting_an_await(notebook: Any) -> None:
    cell = notebook.run_and_interrupt("%%trtprofile\nimport asyncio\nawait asyncio.sleep(30)", 1.0)
    assert cell.status == "error"
    assert notebook.run("%%trtprofile\n'again'").result == "'again'"


def test_nested_in_itself(notebook: Any) -> None:
    cell = notebook.run("%%trtprofile\n%%trtprofile --level layers\nran = True")
    assert cell.status == "error"
    assert cell.ename == "UsageError"
    assert "UsageError: %%trtprofile: a cell can be captured once" in cell.stream("stderr")
    assert cell.errors == []
    assert notebook.value("'ran' in globals()") == "False"


def test_a_second_capture_names_the_one_that_is_running(notebook: Any) -> None:
    notebook.run("import torchtrt_viz as tv\nouter = tv.profile().start()")
    cell = notebook.run("%%trtprofile\nran = True")
    assert (cell.status, cell.ename) == ("error", "UsageError")
    assert "a capture is running already (started at" in cell.stream("stderr")
    assert "torchtrt_viz.last().stop()" in cell.stream("stderr")
    assert notebook.value("('ran' in globals(), outer.state)") == "(False, 'running')"
    notebook.run("outer.stop()")
    cell = notebook.run("%%trtprofile\nwith tv.profile() as inner:\n    pass")
    assert (cell.status, cell.ename) == ("error", "CaptureActiveError")
    assert "%%trtprofile in cell [" in cell.evalue


def test_an_orphaned_capture_is_ended_by_the_next(notebook: Any) -> None:
    """As an interrupt leaves it that strikes while the capture is being ended."""
    notebook.run(
        "from torchtrt_viz.magic.cell_capture import CaptureSession, _active\n"
        "orphan = CaptureSession(get_ipython(), '', is_cell=True).__enter__()\n_active.clear()"
    )
    assert notebook.value("orphan.capture.state") == "'running'"
    assert notebook.run("%%trtprofile\n'fine'").result == "'fine'"
    assert notebook.value("orphan.capture.state") == "'stopped'"


@pytest.mark.parametrize(
    ("mode", "body", "shown"),
    [
        ("all", "1\n2\nx = 3", ["1", "2"]),
        ("last_expr_or_assign", "1\ny = 5", ["5"]),
        ("last_expr_or_assign", "y = 5\ny += 1", ["6"]),
        ("last_expr_or_assign", "6 + 1", ["7"]),
        ("last", "1\n8", ["8"]),
        ("none", "9", []),
    ],
)
def test_other_ways_to_show_results(notebook: Any, mode: str, body: str, shown: list[str]) -> None:
    notebook.run(f"get_ipython().ast_node_interactivity = {mode!r}")
    try:
        cell = notebook.run(f"%%trtprofile\n{body}")
    finally:
        notebook.run("get_ipython().ast_node_interactivity = 'last_expr'")
    found = [o["data"]["text/plain"] for o in cell.outputs if o["output_type"] == "execute_result"]
    assert found == shown
    assert len(cell.reports) == 1


def test_prints_and_displays_come_in_their_order(notebook: Any) -> None:
    cell = notebook.run("%%trtprofile\nprint('a')\ndisplay('b')\nprint('c')\n'd'")
    assert cell.kinds == ["stream", "display_data", "stream", "execute_result", "report"]


@pytest.mark.parametrize("body", ["", "\n\n", "# only a comment"])
def test_an_empty_cell(notebook: Any, body: str) -> None:
    cell = notebook.run(f"%%trtprofile\n{body}")
    assert cell.status == "ok"
    assert cell.kinds == ["report"]


def test_an_indented_body(notebook: Any) -> None:
    assert notebook.run("%%trtprofile\n    x = 4\n    x * 2").result == "8"


def test_run_cell_magic_by_other_code(notebook: Any) -> None:
    cell = notebook.run("get_ipython().run_cell_magic('trtprofile', '', 'z = 8\\nz + 1')")
    assert cell.status == "ok"
    assert len(cell.reports) == 1
    assert notebook.value("z") == "8"
    cell = notebook.run("get_ipython().run_cell_magic('trtprofile', '', '1 / 0')")
    assert (cell.status, cell.ename) == ("error", "ZeroDivisionError")
    assert len([e for e in cell.errors if e["traceback"]]) == 1


def test_under_another_cell_magic(notebook: Any) -> None:
    cell = notebook.run("%%capture out\n%%trtprofile\nprint('inside')\n11")
    assert cell.outputs == []
    assert notebook.value("out.stdout") == r"'inside\n'"
    assert notebook.value("any('trtprofile:' in str(o.data) for o in out.outputs)") == "True"


def test_loading_twice_shows_once(notebook: Any) -> None:
    notebook.run("%load_ext torchtrt_viz\n%reload_ext torchtrt_viz")
    notebook.run("import torchtrt_viz\ntorchtrt_viz.load_ipython_extension(get_ipython())")
    assert len(notebook.run("%%trtprofile\n1").reports) == 1
