"""The report in one file: what is in it and, above all, what is not."""

from __future__ import annotations

import base64
import hashlib
import re

import pytest
from timeline_traces import HOSTILE, model_trace

from torchtrt_viz.errors import OptionError
from torchtrt_viz.report import html as report
from torchtrt_viz.report.static_html import static_html, static_text
from torchtrt_viz.trace import Repair


@pytest.fixture(scope="module")
def trace():
    made = model_trace(hostile=True)
    made.meta["sources"] = ["/home/somebody/secret/run <1>.json"]
    made.meta["versions"] = {"torch": "2.13.0", "HF_TOKEN": "hf_topsecret", "cuda": {"deep": "hf_topsecret"}}
    made.meta["environment"] = {"AWS_SECRET_ACCESS_KEY": "hf_topsecret"}
    made.meta["metadata"] = "hf_topsecret"
    made.meta["warnings"] = [
        Repair("truncated", "the last <event> is cut off", "/home/somebody/secret/run <1>.json", 12, 3)
    ]
    return made


@pytest.fixture(scope="module")
def page(trace):
    return report.page(trace)


def test_names_from_the_file_are_text_only(page):
    for name in HOSTILE[:2]:
        assert name not in page
    assert page.count("<script") == 2  # the data and the module
    assert "&lt;img src=x onerror=&quot;window.hacked=1&quot;&gt;" in page


def test_the_policy_lets_only_the_pages_own_script_run(page):
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[1]
    script = re.search(r'<script type="module">(.*?)</script>', page, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    assert "connect-src" not in policy  # falls back to 'none'


def test_nothing_points_outside(page):
    without_data = re.sub(r'<script type="text/plain".*?</script>', "", page, flags=re.DOTALL)
    assert not re.search(r"https?://", without_data)
    assert not re.search(r"\b(src|href)=\"(?!#)", without_data)


def test_only_known_metadata_goes_in(page):
    for secret in ("hf_topsecret", "HF_TOKEN", "AWS_SECRET", "/home/somebody", "environment"):
        assert secret not in page
    assert "torch 2.13.0" in page
    assert "run &lt;1&gt;.json" in page


def test_warnings_and_synthetic_data_are_told(page):
    assert "1 warning from loading" in page
    assert "the last &lt;event&gt; is cut off (byte 12) [3 times]" in page
    assert "SYNTHETIC DATA" in page


def test_the_tables_say_host_or_gpu(page):
    for heading in ("host self", "host total (with children)", "GPU sum", "GPU work launched"):
        assert f">{heading}</th>" in page
    for section in ("questions", "summary", "operators", "kernels", "delegates", "phases", "layers"):
        assert f'<section id="{section}">' in page


def test_options_choose_and_limit_tables(trace):
    page = report.page(trace, title="A & B", tables=["operators"], max_rows=2)
    assert "<title>A &amp; B</title>" in page
    assert '<section id="kernels">' not in page
    assert "more rows are not shown" in page
    with pytest.raises(OptionError, match="operators"):
        report.page(trace, tables=["nonsense"])
    with pytest.raises(OptionError, match="max_spans"):
        report.page(trace, max_spans=1)


def test_the_file_appears_whole_or_not_at_all(trace, tmp_path, monkeypatch):
    target = tmp_path / "report.html"
    assert report.write_html(trace, target) == target
    assert target.read_text().endswith("</html>\n")
    assert target.stat().st_mode & 0o044 == 0o044  # others may read it, as any new file
    before = target.read_bytes()

    def fail(*args, **kwargs):
        raise RuntimeError("disk")

    monkeypatch.setattr("pathlib.Path.replace", fail)
    with pytest.raises(RuntimeError, match="disk"):
        trace.to_html(target)
    assert target.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_a_missing_folder_is_an_error(trace, tmp_path):
    with pytest.raises(FileNotFoundError):
        report.write_html(trace, tmp_path / "no" / "report.html")


def test_the_static_form_survives_sanitisers(trace):
    text = static_html(trace)
    assert not re.search(r"<(script|style|svg|iframe|img|link|button|input)\b", text)
    assert not re.search(r"\son\w+=(?!&)", re.sub(r">[^<]*<", "><", text))
    assert "SYNTHETIC DATA" in text
    for side in ("HOST time", "GPU time"):
        assert side in text
    for name in HOSTILE[:2]:
        assert name not in text


def test_the_static_form_shows_the_busy_share(trace):
    text = static_text(trace)
    lines = [line for line in text.splitlines() if "stream 7" in line]
    assert len(lines) == 1
    assert re.search(r"\|[ ▁▂▃▄▅▆▇█]{64}\| [\d.]+ ms busy$", lines[0])
    assert "\u202e" not in text
    assert "a·b" in text


def test_a_trace_shows_itself_without_a_widget(trace):
    bundle = trace._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}
    assert bundle["text/html"] == static_html(trace)
