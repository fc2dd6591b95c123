"""Searches find what the same filter over the frames finds, in the kernel and on a page."""

from __future__ import annotations

import json
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest

import torchtrt_viz as tv
from torchtrt_viz.errors import QueryError
from torchtrt_viz.report.payload import payload
from torchtrt_viz.scene import assets
from torchtrt_viz.scene.scene import Scene
from torchtrt_viz.scene.service import Service

US = 1_000


def lower(column):
    return column.astype(object).map(
        lambda text: "" if text is None or text is pd.NA or text != text else str(text).lower()
    )


def has(trace, key, word):
    """Events with an argument of this key that holds the word, read one by one."""
    found = [str(args.get(key, "")) if key in args else None for args in trace.args.read()]
    return pd.Series([text is not None and word in text for text in found], index=trace.spans.index)


# a search, and the filter of trace.spans that it stands for
FILTERS = {
    "gemm": lambda s, t: lower(s["name"]).str.contains("gemm", regex=False),
    "name~gemm|conv|aten::.*add": lambda s, t: lower(s["name"]).str.contains("gemm|conv|aten::.*add"),
    "kind:kernel dur>50us": lambda s, t: (s["kind"] == "kernel") & (s["dur_ns"] > 50 * US),
    "not (kind:kernel or kind:runtime)": lambda s, t: ~s["kind"].isin(["kernel", "runtime"]),
    "kind:memcpy,memset dur:1us..3us": lambda s, t: (
        s["kind"].isin(["memcpy", "memset"]) & s["dur_ns"].between(1 * US, 3 * US)
    ),
    "domain:gpu start<200ms": lambda s, t: (s["domain"] == "gpu") & (s["t_ns"] < 200_000 * US),
    "end>=300ms depth:0": lambda s, t: (s["t_ns"] + s["dur_ns"] >= 300_000 * US) & (s["depth"] == 0),
    "self>100us kind:operator": lambda s, t: (s["self_ns"] > 100 * US) & (s["kind"] == "operator"),
    "stream:7": lambda s, t: lower(s["stream"]).isin(["7", "stream 7"]),
    "stream!=7 kind:kernel": lambda s, t: (
        ~lower(s["stream"]).isin(["7", "stream 7"]) & (s["kind"] == "kernel")
    ),
    "device:0 rank:0": lambda s, t: ((s["device"] == 0) & (s["rank"] == 0)).fillna(False),
    "correlation:2000..9000": lambda s, t: s["correlation"].between(2000, 9000).fillna(False),
    "iteration>=0": lambda s, t: (s["iteration"] >= 0).fillna(False),
    "timing:measured track:stream": lambda s, t: (
        (s["timing"] == "measured")
        & lower(t.tracks["label"]).str.contains("stream", regex=False).to_numpy()[s["track"].to_numpy()]
    ),
    "process~python": lambda s, t: lower(s["process"]).str.contains("python"),
    "name=cudaLaunchKernel": lambda s, t: lower(s["name"]) == "cudalaunchkernel",
    'kind:kernel args."registers per thread"=32': lambda s, t: (
        (s["kind"] == "kernel") & has_number(t, "registers per thread", lambda value: value == 32)
    ),
    'args."registers per thread">64': lambda s, t: has_number(t, "registers per thread", lambda v: v > 64),
    'kind:operator args."Input Dims":512': lambda s, t: (
        (s["kind"] == "operator") & has(t, "Input Dims", "512")
    ),
}


def has_number(trace, key, test):
    found = [args.get(key) for args in trace.args.read()]
    return pd.Series([value is not None and test(value) for value in found], index=trace.spans.index)


@pytest.fixture(
    scope="module", params=["a100_alexnet_cuda_sync", "multirank_sampled_rank-0", "a100_ddp_nccl_fwdbwd"]
)
def trace(request, corpus):
    return tv.load(corpus / "kineto" / f"{request.param}.json.gz")


@pytest.fixture(scope="module")
def scene(trace):
    return Scene.of(trace)


def expected(trace, scene, text):
    wanted = FILTERS[text](trace.spans, trace).to_numpy(dtype=bool)
    return set(scene.scene_rows(np.flatnonzero(wanted)).tolist())


@pytest.fixture(scope="module")
def found(scene):
    """Per search the rows that the kernel finds; instants apart, which FILTERS does not speak of."""
    service = Service(scene)
    out = {}
    for text in FILTERS:
        service.mark()
        count = service.mark(text=text)
        names, rows = service.marks
        if rows is None:
            _, _, code, row = scene.index.whole()
            rows = np.zeros(scene.blocks[-1].end, np.uint8)
            rows[row[(code >= 0) & (names[code] != 0)]] = 1
        assert count == rows.sum()
        out[text] = set(np.flatnonzero(rows).tolist())
    return out


def spans_of(scene, rows):
    return {row for row in rows if scene.block_of(row).frame == "spans"}


def test_the_kernel_finds_what_the_filter_finds(trace, scene, found):
    some = 0
    for text in FILTERS:
        assert spans_of(scene, found[text]) == expected(trace, scene, text), text
        some += bool(found[text])
    assert some >= 12


def test_a_page_finds_the_same(scene, found, tmp_path):
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    text = payload(scene).text
    (tmp_path / "data.txt").write_text(text)
    module, data = (assets.STATIC / "page.js").as_uri(), str(tmp_path / "data.txt")
    program = f"""
      const context = {{ measureText: () => ({{ width: 5 }}) }};
      globalThis.document = {{ createElement: () => ({{ getContext: () => context }}) }};
      const {{ decode, PageSource }} = await import({json.dumps(module)});
      const {{ readFileSync }} = await import("fs");
      const {{ head, columns }} = await decode(readFileSync({json.dumps(data)}, "utf8"));
      const source = new PageSource(head, columns);
      const out = JSON.parse(readFileSync(0)).map((text) => {{
        const {{ count, wrong }} = source.search(text);
        const rows = source.index.marked(source.drawnLanes);
        if (wrong || count !== rows.length) throw new Error(text);
        return rows;
      }});
      console.log(JSON.stringify(out));"""
    done = subprocess.run(
        [node, "--input-type=module", "-e", program],
        input=json.dumps(list(FILTERS)), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    args = set(map(int, json_args(scene)))
    for query, rows in zip(FILTERS, json.loads(done.stdout), strict=True):
        want = found[query]
        if "args" in query:  # a page holds those of the longest events, a few of the keys
            want = want & args
        assert set(rows) == want, query


def json_args(scene):
    from torchtrt_viz.report.payload import _args

    start, dur, _, row = scene.index.whole()
    assert len(start) == len(dur)
    return _args(scene, row.astype(np.int64), dur)


def test_arguments_of_too_many_events_are_not_read(scene, monkeypatch):
    monkeypatch.setattr("torchtrt_viz.scene.matching._MOST_ARGUMENTS", 10)
    service = Service(scene)
    with pytest.raises(QueryError, match="a further term beside this one"):
        service.mark(text="args:512")
    assert service.marks == (None, None)


def test_every_match_is_stepped_to_and_numbered(scene):
    """Also those that start together, in one lane: instants do."""
    service = Service(scene)
    lanes = np.flatnonzero(~scene.lane_is_cover).tolist()
    count = service.mark(text="dur<2us or event:instant or name~cuda")
    assert count > 20
    seen = []
    place = {"start": -1e15, "lane": -1, "row": -1}
    for number in range(1, min(count, 400) + 1):
        request = {
            "op": "step",
            "lanes": lanes,
            "t": place["start"],
            "lane": place["lane"],
            "row": place["row"],
        }
        answer, _ = service.answer({**request, "forward": True})
        place = answer["place"]
        assert answer["number"] == number
        seen.append(place["row"])
    assert len(set(seen)) == len(seen)
