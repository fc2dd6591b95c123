"""Options, help, the line form, binding, saving, completion, loading and unloading."""

from __future__ import annotations

import json
from typing import Any

import pytest

from torchtrt_viz.capture.options import options_table
from torchtrt_viz.magic.options import help_text, parse, split


@pytest.mark.parametrize("flag", ["-h", "--help"])
@pytest.mark.parametrize("cell", [True, False])
def test_help_prints_the_manual_and_runs_nothing(notebook: Any, flag: str, cell: bool) -> None:
    code = f"%%trtprofile {flag}\nran = True" if cell else f"%trtprofile {flag} ran = True"
    done = notebook.run(code)
    assert done.status == "ok"
    assert "--level {off,delegate,phases,layers}" in done.stream()
    assert done.reports == []
    assert notebook.value("'ran' in globals()") == "False"


def test_help_names_every_option_of_a_capture() -> None:
    manual = help_text()
    for option in options_table():
        assert option.flag in manual
    for flag in ("--out", "--view", "--quiet", "--compare", "--save", "--force", "--keep", "--return"):
        assert flag in manual
    assert max(map(len, manual.splitlines())) <= 110


@pytest.mark.parametrize("code", ["%%trtprofile?", "%trtprofile?", "?%%trtprofile"])
def test_question_mark_shows_the_manual(notebook: Any, code: str) -> None:
    import jupyter_client  # noqa: F401 - the pager's payload comes with the reply

    done = notebook.run(code)
    assert done.status == "ok"
    doc = notebook.value("get_ipython().find_cell_magic('trtprofile').__doc__")
    assert "what to capture:" in doc
    assert "examples:" in doc


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--lavel layers", "unrecognized arguments: --lavel"),
        ("--level everything", "invalid choice: 'everything'"),
        ("--level", "expected one argument"),
        ("--activities gpu", "option 'activities' cannot be 'gpu'"),
        ("--format trex --level layers", "option 'path_prefix'"),
        ("-o not-a-name", "-o needs a name that can be bound"),
        ("-o class", "-o needs a name that can be bound"),
        ("--view all", "invalid choice: 'all'"),
        ("--force", "--force is for --save"),
        ("-r", "-r is for the line form"),
        ("--save 'unclosed", "a quote is not closed"),
        ("x = 1", "takes only options on its line, found 'x = 1'"),
        ("--compare nothing_here", "option 'compare' cannot be 'nothing_here'"),
        ("--compare os", "found a module"),
    ],
)
def test_a_wrong_line_is_one_message_and_runs_nothing(notebook: Any, line: str, message: str) -> None:
    notebook.run("import os")
    cell = notebook.run(f"%%trtprofile {line}\nran = True")
    assert (cell.status, cell.ename) == ("error", "UsageError")
    assert message in cell.stream("stderr")
    assert "-h lists the options" in cell.stream("stderr") or "compare" in line
    assert cell.errors == []
    assert notebook.value("'ran' in globals()") == "False"


@pytest.mark.parametrize(
    ("line", "options", "statement"),
    [
        ("f(x)", [], "f(x)"),
        ("-q f(-1, '--level')", ["-q"], "f(-1, '--level')"),
        ("--level layers  y = f( 'a  b' )  ", ["--level", "layers"], "y = f( 'a  b' )  "),
        ("--level=layers f()", ["--level=layers"], "f()"),
        ("--save 'a b' f()", ["--save", "a b"], "f()"),
        ('--save "a b"/c f()', ["--save", "a b/c"], "f()"),
        ("-- -x", [], "-x"),
        ("-q -- --y", ["-q"], "--y"),
        ("-o run {'a': 1}['a']", ["-o", "run"], "{'a': 1}['a']"),
        ('print("it\'s")', [], 'print("it\'s")'),
        ("", [], ""),
        ("--save", ["--save"], ""),
    ],
)
def test_a_statement_is_cut_off_untouched(line: str, options: list[str], statement: str) -> None:
    assert split(line) == (options, statement)


def test_options_of_a_capture_arrive() -> None:
    found = parse("--level layers --with-flops --activities cpu -o run --view table", cell=True)
    assert found.capture.level == "layers"
    assert found.capture.record_shapes
    assert found.capture.activities == ("cpu",)
    assert (found.out, found.view, found.force, found.keep) == ("run", "table", False, False)


def test_variables_are_expanded_in_values_only(notebook: Any) -> None:
    notebook.run("target = 'bound'\nd = {'target': 1}")
    cell = notebook.run("%trtprofile -q -o {target} z = '{target}' + str({'target': 2}['target'])")
    assert cell.status == "ok", cell
    assert notebook.value("(z, bound.state)") == "('{target}2', 'stopped')"


def test_line_form(notebook: Any) -> None:
    cell = notebook.run("%trtprofile y = '%d' % 3 + \"it's\"")
    assert cell.status == "ok"
    assert cell.kinds == ["report"]
    assert notebook.value("y") == repr("3it's")
    cell = notebook.run("%trtprofile 1 + 1")
    assert cell.kinds == ["report"]
    cell = notebook.run("%trtprofile -q -r 1 + 1")
    assert cell.result is not None
    assert cell.result.startswith("<Capture")
    cell = notebook.run("for i in range(2):\n    %trtprofile -q last_i = i\nlast_i")
    assert cell.result == "1"


def test_line_form_that_fails(notebook: Any) -> None:
    cell = notebook.run("%trtprofile -o run 1 / 0")
    assert (cell.status, cell.ename) == ("error", "ZeroDivisionError")
    assert cell.kinds == ["report", "error"]
    assert notebook.value("type(run.error).__name__") == "'ZeroDivisionError'"
    for line, message in (
        ("", "needs a statement"),
        ("await f()", "cannot await"),
        ("--level nope f()", "invalid choice"),
    ):
        cell = notebook.run(f"%trtprofile {line}")
        assert cell.ename == "UsageError"
        assert message in cell.stream("stderr")
    cell = notebook.run("%trtprofile x = (")
    assert cell.ename in ("SyntaxError", "_IncompleteInputError")


def test_out_binds_the_capture_and_nothing_else_is_bound(notebook: Any) -> None:
    notebook.run("import torchtrt_viz as tv\nrun = None")
    names = "set(n for n in globals() if not n.startswith('_'))"
    before = notebook.value(f"sorted({names})")
    cell = notebook.run("%%trtprofile -o run -q\n1 + 1")
    assert cell.kinds == ["execute_result"]
    after = notebook.value(f"sorted({names})")
    assert after == before
    assert notebook.value("run is tv.last()") == "True"
    assert notebook.value("(run.state, len(run.trace.spans) >= 0)") == "('stopped', True)"


def test_out_is_bound_when_the_cell_raises(notebook: Any) -> None:
    notebook.run("%%trtprofile -o failed -q\nraise KeyError('x')")
    assert notebook.value("(failed.state, repr(failed.error))") == "('stopped', \"KeyError('x')\")"


def test_quiet_shows_nothing(notebook: Any) -> None:
    assert notebook.run("%%trtprofile -q\nNone").outputs == []
    assert notebook.run("%%trtprofile --view none\nNone").outputs == []


def test_level_off_captures_nothing(notebook: Any) -> None:
    cell = notebook.run("%%trtprofile --level off\n5")
    assert cell.result == "5"
    assert cell.stream() == "trtprofile: level off, nothing was captured\n"


def test_saving(notebook: Any) -> None:
    cell = notebook.run("%%trtprofile --save kept/here\n1")
    assert "saved to kept/here" in cell.reports[0]["text/plain"]
    document = json.loads((notebook.folder / "kept" / "here" / "capture.json").read_text())
    assert document["options"]["level"] == "phases"
    cell = notebook.run("%%trtprofile --save kept/here\nran = True")
    assert cell.ename == "UsageError"
    assert "exists already" in cell.stream("stderr")
    assert "--force" in cell.stream("stderr")
    assert notebook.value("'ran' in globals()") == "False"
    assert notebook.run("%%trtprofile --save kept/here --force -q\n1").stream() == "saved to kept/here\n"


def test_keeping_the_raw_files(notebook: Any) -> None:
    cell = notebook.run("%%trtprofile --keep -q\nNone")
    text = cell.stream()
    assert text.startswith("raw files kept in ")
    folder = text.removeprefix("raw files kept in ").strip()
    assert notebook.value(f"sorted(__import__('os').listdir({folder!r}))") == "['capture.json']"
    notebook.run(f"__import__('shutil').rmtree({folder!r})")


def complete(notebook: Any, text: str) -> list[str]:
    code = (
        "from IPython.core.completer import provisionalcompleter\n"
        "with provisionalcompleter():\n"
        f"    print(sorted({{c.text for c in get_ipython().Completer.completions({text!r}, {len(text)})}}))"
    )
    cell = notebook.run(code)
    assert cell.status == "ok", cell
    found: list[str] = json.loads(cell.stream().replace("'", '"'))
    return found


def test_completion(notebook: Any) -> None:
    notebook.run("%trtprofile -q -o a_capture 1")
    assert set(complete(notebook, "%%trtprofile --le")) == {"--level"}
    assert {"--save", "--force", "--level", "--out"} <= set(complete(notebook, "%%trtprofile -"))
    assert set(complete(notebook, "%%trtprofile --level ")) >= {"off", "delegate", "phases", "layers"}
    assert set(complete(notebook, "%trtprofile --level la")) == {"layers"}
    assert set(complete(notebook, "%%trtprofile --view t")) == {"table", "timeline"}
    assert {"a_capture", "last"} <= set(complete(notebook, "%%trtprofile --compare "))


def test_unloading_removes_everything_and_loading_brings_it_back(notebook: Any) -> None:
    state = (
        "(lambda ip: (len(ip.input_transformers_cleanup), len(ip.ast_transformers), "
        "len(ip.events.callbacks['post_execute']), 'trtprofile' in ip.magics_manager.magics['cell'], "
        "'trtprofile' in ip.magics_manager.magics['line'], len(ip.Completer.custom_matchers)))(get_ipython())"
    )
    loaded = eval(notebook.value(state))
    assert notebook.run("%unload_ext torchtrt_viz").outputs == []
    unloaded = eval(notebook.value(state))
    assert unloaded == (loaded[0] - 1, loaded[1] - 1, loaded[2], False, False, loaded[5] - 1)
    assert "not found" in notebook.run("%%trtprofile\n1").stream("stderr")
    notebook.run("%load_ext torchtrt_viz")
    assert eval(notebook.value(state)) == loaded
    assert notebook.run("%%trtprofile\n2").result == "2"


def test_loading_is_light(notebook: Any) -> None:
    code = (
        "import subprocess, sys\n"
        "program = '''\n"
        "import sys\n"
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\n"
        "before = set(sys.modules)\n"
        "shell.run_line_magic('load_ext', 'torchtrt_viz')\n"
        "new = {m.partition('.')[0] for m in set(sys.modules) - before}\n"
        "heavy = {'torch', 'plotly', 'pandas', 'numpy', 'anywidget', 'ipywidgets', 'executorch'}\n"
        "print(sorted(new & heavy))\n"
        "'''\n"
        "print(subprocess.run([sys.executable, '-c', program], capture_output=True, text=True).stdout)"
    )
    assert notebook.run(code).stream().strip() == "[]"


def test_a_terminal_gets_text(notebook: Any) -> None:
    code = (
        "import subprocess, sys\n"
        "program = '''\n"
        "from IPython.terminal.interactiveshell import TerminalInteractiveShell\n"
        "shell = TerminalInteractiveShell.instance(simple_prompt=True, colors='NoColor')\n"
        "shell.run_line_magic('load_ext', 'torchtrt_viz')\n"
        'result = shell.run_cell("%%trtprofile\\\\n40 + 2")\n'
        "print(result.success, result.result)\n"
        "print(shell.check_complete('%%trtprofile'), shell.check_complete('%%trtprofile\\\\n1'))\n"
        "'''\n"
        "print(subprocess.run([sys.executable, '-c', program], capture_output=True, text=True).stdout)"
    )
    lines = notebook.run(code).stream().splitlines()
    assert any(line.startswith("Out[") and line.endswith("]: 42") for line in lines)
    assert any(line.startswith("trtprofile: level phases, block") for line in lines)
    assert "True 42" in lines
    assert any(line.startswith("('incomplete', '') ('incomplete', '')") for line in lines)
