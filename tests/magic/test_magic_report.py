"""What the magic shows of real captures: torch operators, a program with delegates."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")

HOSTILE = "<script>alert(1)</script>&\"'"


class Tags(HTMLParser):
    """Collects tags, attributes and text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.fixture(scope="module")
def torch_kernel(kernel: Any) -> Any:
    cell = kernel.run("import torch\nimport torchtrt_viz as tv\nx = torch.ones(64, 64)")
    assert cell.status == "ok", cell
    return kernel


@pytest.fixture
def torch_notebook(torch_kernel: Any, notebook: Any) -> Any:
    return notebook


@pytest.fixture
def program(torch_notebook: Any, corpus: Path) -> Any:
    """A program of two XNNPACK delegates and two operators, as `program`."""
    if find_spec("executorch") is None:
        pytest.skip("executorch is not installed")
    cell = torch_notebook.run(f"program = tv.Program({str(corpus / 'etdump' / 'cnn_xnnpack.pte')!r})")
    if cell.status == "error" and "compiled module" in cell.evalue:
        pytest.skip("the capture extension is not built")
    assert cell.status == "ok", cell
    return torch_notebook


def test_operators_as_text_and_markup(torch_notebook: Any) -> None:
    cell = torch_notebook.run("%%trtprofile\ny = torch.relu(x @ x)\ny.sum()")
    assert cell.result == "tensor(262144.)"
    (report,) = cell.reports
    assert set(report) == {"text/plain", "text/html"}
    for text in (report["text/plain"], "".join(Tags(report["text/html"]).text)):
        assert "aten::relu" in text
        assert "aten::mm" in text
        assert re.search(r"block [\d.]+ (ms|µs)", text)
        assert "cost of recording, estimated" in text


def test_showing_the_result_is_not_captured(torch_notebook: Any) -> None:
    """Formatting a tensor runs a dozen operators."""
    cell = torch_notebook.run("%%trtprofile -o run\ntorch.relu(x)")
    assert cell.result is not None
    names = torch_notebook.value("sorted(set(run.trace.operators()['name']))")
    assert names == "['aten::clamp_min', 'aten::relu']"


def test_the_widget_is_an_output_of_its_own(torch_notebook: Any) -> None:
    cell = torch_notebook.run("%%trtprofile\ntorch.relu(x);")
    assert [set(data) for data in cell.displays] == [
        {"text/plain", "text/html"},
        {"text/plain", "application/vnd.jupyter.widget-view+json"},
    ]
    assert cell.displays[1]["text/plain"].startswith("<Explorer of")


@pytest.mark.parametrize(
    ("view", "kinds"),
    [("summary", ["report"]), ("table", ["report"]), ("timeline", ["report", "display_data"]), ("none", [])],
)
def test_views(torch_notebook: Any, view: str, kinds: list[str]) -> None:
    cell = torch_notebook.run(f"%%trtprofile --view {view}\ntorch.relu(x);")
    assert cell.kinds == kinds
    if view == "table":
        assert "HOST time" not in cell.reports[0]["text/plain"]
        assert "aten::relu" in cell.reports[0]["text/plain"]


def test_without_widgets_one_line_names_the_extra(torch_notebook: Any) -> None:
    torch_notebook.run(
        "import sys\nhidden = sys.modules.pop('ipywidgets', None)\nsys.modules['ipywidgets'] = None"
    )
    try:
        cell = torch_notebook.run("%%trtprofile\ntorch.relu(x);")
    finally:
        torch_notebook.run("sys.modules.pop('ipywidgets')\nif hidden: sys.modules['ipywidgets'] = hidden")
    assert cell.status == "ok"
    assert cell.kinds == ["report", "stream"]
    assert "torchtrt-viz[lab]" in cell.stream("stderr")


def test_hostile_names_are_text(torch_notebook: Any) -> None:
    cell = torch_notebook.run(
        f"%%trtprofile\nwith torch.profiler.record_function({HOSTILE!r}):\n    torch.relu(x)\n"
        f"class Loud(Exception): pass\nLoud.__name__ = {HOSTILE!r}\nraise Loud"
    )
    assert cell.status == "error"
    html = cell.reports[0]["text/html"]
    parsed = Tags(html)
    assert parsed.tags <= {
        "div", "b", "table", "thead", "tbody", "tr", "th", "td", "span", "details", "summary", "ul", "li",
    }  # fmt: skip
    assert parsed.attributes <= {
        "style",
        "title",
        "class",
    }  # the class is that of the live form, which hides it
    assert HOSTILE in "".join(parsed.text)


def test_memory_and_shapes(torch_notebook: Any) -> None:
    torch_notebook.run("%%trtprofile -q -o run --record-shapes --profile-memory\ntorch.relu(x)")
    shapes = torch_notebook.value("run.trace.operators(by='shape')['shape'].dropna().tolist()")
    assert "[[64,64]]" in shapes
    assert int(torch_notebook.value("len(run.trace.memory())")) > 0


def test_stacks_are_the_cells_own(torch_notebook: Any) -> None:
    torch_notebook.run("def work():\n    return torch.relu(x)")
    torch_notebook.run("%%trtprofile -q -o run --with-stack\ny = work()")
    names = torch_notebook.value(
        "[n for n in run.trace.spans.loc[run.trace.spans['kind'] == 'python', 'name'].astype(object)]"
    )
    assert "work" in names
    for own in ("ipykernel/", "IPython/", "tornado/", "torchtrt_viz/", "torch/profiler", "runpy"):
        assert own not in names
    code = (
        "spans = run.trace.spans\n"
        "row = spans.index[spans['name'] == 'aten::relu'][0]\n"
        "path = []\n"
        "while row >= 0:\n"
        "    path.append(str(spans['name'][row])); row = spans['parent'][row]\n"
        "len(path) == spans['depth'][spans.index[spans['name'] == 'aten::relu'][0]] + 1, path[2], path[-1]"
    )
    result = torch_notebook.run(code).result
    assert result is not None
    assert re.search(r"True_?,\s+'.*work',\s+'.*: <module>'", result), result


def test_a_program_with_delegates(program: Any) -> None:
    cell = program.run(
        "%%trtprofile --level layers -o run\nfor _ in range(3):\n    y = program(torch.ones(1, 3, 32, 32))\n"
        "round(float(y[0, -1]), 4)"
    )
    assert cell.status == "ok", cell
    assert cell.result == "1.0"
    text = cell.reports[0]["text/plain"]
    assert "trtprofile: level layers" in text
    assert "3 program runs" in text
    assert "Delegates (host time)" in text
    assert "Layers of engines" in text
    assert "native_call_cumsum.out" in text
    assert program.value("run.trace.spans['iteration'].max()") in ("2", "np.int32(2)")


def test_a_failing_program_is_shown_to_the_point_where_it_failed(program: Any) -> None:
    cell = program.run("%%trtprofile\nprogram(torch.ones(1, 3, 32, 32))\nprogram(torch.ones(2, 2))")
    assert cell.status == "error"
    assert cell.kinds[0] == "report"
    assert "the trace ends there" in cell.reports[0]["text/plain"]
    assert "native_call_mean.out" in cell.reports[0]["text/plain"]


def test_comparing_with_an_earlier_capture(torch_notebook: Any) -> None:
    torch_notebook.run("%%trtprofile -q -o before\nfor _ in range(5): torch.relu(x)")
    cell = torch_notebook.run("%%trtprofile --compare before\nfor _ in range(5): torch.sigmoid(x)")
    text = cell.reports[0]["text/plain"]
    assert "Compared:" in text
    assert "added" in text
    assert "removed" in text
    assert "aten::sigmoid" in text
    cell = torch_notebook.run("%%trtprofile --compare last --view summary\ntorch.sigmoid(x);")
    assert "Compared:" in cell.reports[0]["text/plain"]


def test_saving_a_page_and_reading_a_saved_capture(torch_notebook: Any) -> None:
    cell = torch_notebook.run("%%trtprofile -q --save page.html\ntorch.relu(x);")
    assert cell.stream() == "saved to page.html\n"
    assert "aten::relu" in (torch_notebook.folder / "page.html").read_text()
    torch_notebook.run("%%trtprofile -q --save raw\ntorch.relu(x);")
    names = torch_notebook.value("sorted(set(tv.load('raw').operators()['name']))")
    assert names == "['aten::clamp_min', 'aten::relu']"


def test_the_panel_captures_what_runs_between_its_buttons(program: Any) -> None:
    run = program.run
    assert run("panel = tv.CapturePanel()\npanel.fields['level'].value = 'layers'\npanel").status == "ok"
    assert run("panel.start_button.click()").status == "ok"
    assert program.value("(panel.start_button.disabled, panel.stop_button.disabled)") == "(True, False)"
    for _ in range(2):
        assert run("y = program(torch.ones(1, 3, 32, 32))").status == "ok"
    assert run("panel.stop_button.click()").status == "ok"
    assert program.value("(panel.start_button.disabled, panel.stop_button.disabled)") == "(False, True)"
    kinds = "panel.trace.spans['kind'].astype(str).value_counts()"
    assert program.value(f"(int({kinds}['method']), int({kinds}['delegate']))") == "(2, 4)"
    assert program.value("[type(view).__name__ for view in panel.result.children]") == "['Explorer']"
    assert "spans" in program.value("panel.status.value")
    # nothing runs between: said, not shown as an empty table
    quiet = "panel.fields['activities'].value = 'none'\n"
    assert run(quiet + "panel.start_button.click()\npanel.stop_button.click()").status == "ok"
    assert "Nothing was recorded" in program.value("panel.result.children[0].value")
