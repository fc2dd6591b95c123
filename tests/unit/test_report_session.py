"""The report of a session: what is in it, what is told about gaps, and what is not in it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path

import pandas as pd
import pytest
from rank_traces import BASE_NS, event, simple_events, tar_gz, trace_json, write

import torchtrt_viz as tv
from torchtrt_viz.analysis.session.busy_strips import trace_strips
from torchtrt_viz.analysis.session.imbalance import collective_totals, step_imbalance
from torchtrt_viz.errors import OptionError
from torchtrt_viz.formats.session.manifest import CycleRecord, Manifest, RankRecord
from torchtrt_viz.report import session_html
from torchtrt_viz.report.session_facts import artifact_link, file_name, without_folders
from torchtrt_viz.report.session_html import session_page, write_session_html
from torchtrt_viz.report.static_session import session_static_html

HOSTILE = '<img src=x onerror="window.hacked=1">'
SECRET = "hf_topsecret"


def _archive(rank: int, role: str, host: str, events: list[dict], **header: object) -> bytes:
    meta = {
        "format": "torchtrt_viz.rank/1",
        "session_id": "s1",
        "rank": rank,
        "cycle": 0,
        "role": role,
        "host": host,
        "world_size": 5,
        "config": {"output_dir": f"/home/somebody/{SECRET}"},
    }
    raw = trace_json(events, rank=rank, world_size=5, HF_TOKEN=SECRET, environment={"KEY": SECRET}, **header)
    members = {"rank.json": json.dumps(meta).encode(), "raw/trace.json": raw}
    files = [
        {"name": n, "bytes": len(d), "sha256": hashlib.sha256(d).hexdigest()} for n, d in members.items()
    ]
    members["inventory.json"] = json.dumps({"format": "torchtrt_viz.inventory/1", "files": files}).encode()
    return tar_gz(members)


def _work(scale: float, phase: str) -> list[dict]:
    events = simple_events(scale)
    events.append(event(HOSTILE, 300, 50, "cpu_op"))
    events.append(event(f"{phase}[request=<b>r1</b> transfer=x1]", 5, 400))
    return events


def _folder(root: Path) -> Path:
    """Two whole ranks on two hosts, one missing, one damaged; a fifth is nowhere."""
    folder = root / "profiles" / "s1"
    hosts = {0: "node-a", 1: f"node-{HOSTILE}"}
    whole = {
        0: _archive(0, "prefill", hosts[0], _work(1.0, "prefill")),
        1: _archive(1, "decode", hosts[1], _work(1.5, "decode")),
    }
    for rank, data in whole.items():
        write(folder / f"rank-{rank:05d}" / "cycle-00000.tar.gz", data)
    write(
        folder / "rank-00003" / "cycle-00000.tar.gz",
        _archive(3, "decode", "node-a", _work(1, "decode"))[:-300],
    )
    ranks = [
        RankRecord(
            rank,
            role="prefill" if rank == 0 else "decode",
            host=hosts.get(rank, "node-a"),
            state="collected",
            cycles=[CycleRecord(0, "published", f"rank-{rank:05d}/cycle-00000.tar.gz")],
        )
        for rank in (0, 1, 3)
    ]
    ranks.append(RankRecord(2, role="decode", state="missing", error="no answer to the start in time"))
    write(folder / "manifest.json", Manifest("s1", "failed", ranks=ranks).to_json())
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return _folder(tmp_path_factory.mktemp("session"))


@pytest.fixture(scope="module")
def session(folder):
    return tv.load(folder)


@pytest.fixture(scope="module")
def page(session, folder):
    return session_page(session, path=folder / "report.html")


@pytest.fixture(scope="module")
def made(session, page):
    return session.computed["overview"]


@pytest.fixture
def tables_kept(session, made, monkeypatch):
    """Pages of the session that differ in what is around the tables need not compute these again."""
    compute = session_html.overview
    monkeypatch.setattr(
        session_html, "overview", lambda one, progress: made.copy() if one is session else compute(one)
    )


def _section(page: str, name: str) -> str:
    found = re.search(rf'<section id="{name}">.*?</section>', page, re.DOTALL)
    assert found, f"no section {name}"
    return found[0]


def _health(page: str) -> str:
    found = re.search(r'<div class="health bad">.*?</table></div></div>', page, re.DOTALL)
    assert found
    return found[0]


def test_what_is_not_whole_stands_at_the_top(page):
    health = _health(page)
    assert "2 of 4 recordings are not whole" in health
    assert "no answer to the start in time" in health
    assert ">missing<" in health
    assert ">damaged<" in health
    assert "Of the 5 ranks of the recordings&#x27; process group, 1 left nothing here: 4." in health
    assert page.index('class="health bad"') < page.index("<nav>") < page.index('id="ranks"')


def test_a_whole_session_says_so(tmp_path):
    for rank in (0, 1):
        write(tmp_path / f"rank{rank}.json", trace_json(simple_events(), rank=rank, world_size=2))
    page = session_page(tv.load(tmp_path))
    assert "All 2 recordings are here and whole." in page
    assert 'class="health bad"' not in page


def test_every_part_of_the_answer_is_there(page):
    for name in ("findings", "ranks", "timeline", "roles", "by_role", "operators", "requests"):
        assert f'id="{name}"' in page, name
    nav = re.search(r"<nav>(.*?)</nav>", page)[1]
    targets = re.findall(r'href="#(\w+)"', nav)
    assert len(targets) == len(set(targets)) >= 7
    for target in re.findall(r'href="#(\w+)"', page):
        assert f'id="{target}"' in page, target


def test_host_and_gpu_are_named_and_absent_gpu_figures_are_not_zero(page):
    ranks = _section(page, "ranks")
    assert ">host self in operators</th>" in ranks
    assert "Not collected: GPU span, GPU busy" in ranks
    assert "GPU busy</th>" not in ranks
    rows = re.findall(r"<tr>(.*?)</tr>", ranks, re.DOTALL)
    missing = next(row for row in rows if ">missing<" in row)
    assert missing.count('<td class="n">–</td>') >= 3, "a missing rank has no totals"


def test_names_and_hosts_from_files_are_text(page):
    assert HOSTILE not in page
    assert "<b>r1</b>" not in page
    assert "&lt;b&gt;r1&lt;/b&gt;" in _section(page, "requests")
    assert "&lt;img src=x onerror=&quot;window.hacked=1&quot;&gt;" in _section(page, "operators")
    assert page.count("<script") == 2


def test_only_known_metadata_goes_in(page, folder):
    data = re.search(r'<script type="text/plain" id="tv-data">(.*?)</script>', page, re.DOTALL)[1]
    import gzip

    for text in (page, gzip.decompress(base64.b64decode(data)).decode("latin-1")):
        assert SECRET not in text
        assert "HF_TOKEN" not in text
        assert str(folder.parent) not in text


def test_the_policy_lets_only_the_pages_own_script_run(page):
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[1]
    script = re.search(r'<script type="module">(.*?)</script>', page, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")


def test_recordings_are_linked_from_a_page_beside_them_only(page, session, folder, tmp_path, tables_kept):
    assert 'href="./rank-00000/cycle-00000.tar.gz"' in _section(page, "ranks")
    beside = _section(session_page(session, path=folder.parent / "report.html"), "ranks")
    assert 'href="./s1/rank-00001/cycle-00000.tar.gz"' in beside
    far = _section(session_page(session, path=tmp_path / "x" / "report.html"), "ranks")
    assert "href" not in far
    assert "The page lies apart from them" in far
    assert artifact_link('/a/"><script>/r 1.json', "/a/report.html") == "./%22%3E%3Cscript%3E/r%201.json"
    assert artifact_link("/a/x.zip!rank0.json", "/a/report.html") == "./x.zip"
    assert artifact_link("/a/x.zip", "/b/c/report.html") is None


def test_clocks_of_two_hosts_are_aligned_only_when_the_user_says_how(session, page, tables_kept):
    assert "Each recording begins at 0: clocks of different hosts are not aligned" in page
    assert "not corrected" in session_page(session, align="clock")
    hosts = {str(host): 0 for host in session.ranks["host"].dropna()}
    assert "corrected as you gave it" in session_page(session, align=hosts)
    with pytest.raises(OptionError, match=r"an entry for each host; none for node-"):
        session_page(session, align={"elsewhere": 5})
    one = session_page(session.select(host="node-a"), timelines=4)
    assert "not aligned" not in one


def test_the_timeline_shows_whom_the_user_chose(session, tables_kept):
    text = _section(session_page(session, ranks=[1]), "timeline")
    assert "Shows 1 of 4 recordings." in text
    assert 'id="timeline"' not in session_page(session, timelines=0)
    with pytest.raises(OptionError, match=r"\[7\].*ranks of the session: 0, 1, 2, 3"):
        session_page(session, ranks=[7])
    with pytest.raises(OptionError, match="timelines"):
        session_page(session, timelines=65)


def test_a_session_of_nothing_but_damage_has_a_page(tmp_path):
    for rank in (0, 1):
        path = write(tmp_path / f"rank{rank}.pt.trace.json", trace_json(simple_events(), rank=rank))
        path.write_bytes(b"")
    session = tv.load(tmp_path)
    target = write_session_html(session, tmp_path / "out.html")
    assert "2 of 2 recordings are not whole: 2 damaged" in target.read_text()
    session.to_html(tmp_path / "again.html", title="T & T")
    assert "<title>T &amp; T</title>" in (tmp_path / "again.html").read_text()


def test_progress_counts_ranks(session, tmp_path):
    seen = []
    session.to_html(tmp_path / "r.html", progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_the_static_summary_survives_sanitisers_and_shows_gaps(session):
    bundle = session._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}
    text = bundle["text/html"]
    assert not re.search(r"<(script|style|svg|iframe|img|link|button|input)\b", text)
    assert not re.search(r"\son\w+=(?!&)", re.sub(r">[^<]*<", "><", text))
    assert "2 of 4 recordings are not whole" in text
    assert "no answer to the start in time" in text
    assert "HOST" in text
    assert "Roles side by side" in text
    assert HOSTILE not in text


def test_a_large_or_spread_session_is_not_read_to_be_shown(folder, monkeypatch):
    def fail(*args, **kwargs):
        raise AssertionError("read")

    monkeypatch.setattr("torchtrt_viz.session._READ_TO_SHOW", 10)
    large = tv.load(folder)
    monkeypatch.setattr(type(large), "overview", fail)
    assert "session.overview() reads the ranks" in large._repr_html_()
    assert "node-a" in session_static_html(large, None)


def test_changing_the_tables_does_not_change_what_is_shown(folder):
    session = tv.load(folder)
    made = session.overview()
    before = session._repr_html_()
    made.operators["name"] = "changed"
    assert session._repr_html_() == before


def test_steps_over_ranks_by_hand():
    steps = pd.DataFrame(
        {
            "session": "s",
            "role": None,
            "cycle": pd.array([0, 0, 0, 0], dtype="Int32"),
            "rank": pd.array([0, 1, 2, 0], dtype="Int32"),
            "step": [5, 5, 5, 6],
            "dur_ns": [100, 110, 165, 7],
        }
    )
    table = step_imbalance(steps)
    assert len(table) == 1, "a step of one rank is compared with none"
    row = table.iloc[0]
    assert (row["ranks"], row["min_ns"], row["median_ns"], row["max_ns"]) == (3, 100, 110, 165)
    assert row["over_pct"] == pytest.approx(50)
    assert row["slowest_rank"] == 2
    assert step_imbalance(steps.head(0)).empty


def test_collectives_together_by_hand():
    collectives = pd.DataFrame(
        {
            "session": "s",
            "role": None,
            "name": "all_reduce",
            "domain": "gpu",
            "group": ["a", "a", "b"],
            "last_rank": pd.array([1, 0, 1], dtype="Int32"),
            "wait_ns": [30, 10, 60],
        }
    )
    row = collective_totals(collectives).iloc[0]
    assert (row["collectives"], row["groups"], row["wait_ns"], row["max_wait_ns"]) == (3, 2, 100, 60)
    assert (row["last_rank"], row["last_pct"]) == (1, 90)


def test_collectives_of_two_groups_are_not_compared(tmp_path):
    """Ranks 0 and 1 meet, and 2 and 3 do: the second pair's longer kernels are nobody's waiting."""
    durations = {0: 30.0, 1: 20.0, 2: 90.0, 3: 50.0}
    for rank, dur in durations.items():
        first = rank // 2 * 2
        kernel = event(
            "ncclDevKernel_AllReduce",
            100.0,
            dur,
            "kernel",
            9,
            stream=9,
            device=0,
            **{
                "Collective name": "allreduce",
                "Process Group Name": "tp",
                "Process Group Ranks": str([first, first + 1]),
                "Group size": 2,
            },
        )
        write(tmp_path / f"rank{rank}.json", trace_json([kernel, *simple_events()], rank=rank, world_size=4))
    session = tv.load(tmp_path)
    table = session.collectives()
    assert table["group"].tolist() == ["tp [0, 1]", "tp [2, 3]"]
    assert table["domain"].tolist() == ["gpu", "gpu"]
    assert table["wait_ns"].tolist() == [10_000, 40_000]
    assert table["last_rank"].tolist() == [1, 3]
    late = session.stragglers().set_index("rank")["waited_for_ns"]
    assert late.to_dict() == {0: 0, 1: 10_000, 2: 0, 3: 40_000}


def test_strips_cover_the_length_and_lose_nothing_short(tmp_path):
    events = [
        event("ProfilerStep#0", 0, 960),
        event("aten::a", 0, 240, "cpu_op"),
        event("aten::b", 955, 0.5, "cpu_op"),
    ]
    path = write(tmp_path / "rank0.json", trace_json(events, rank=0))
    strips = trace_strips(tv.load(path), bins=96)
    assert strips["domain"].tolist() == ["host"]
    assert strips["length_ns"].iloc[0] == 960_000
    assert strips["busy_ns"].iloc[0] == 240_500
    shares = list(strips["shares"].iloc[0])
    assert shares[:24] == [255] * 24
    assert set(shares[24:95]) == {0}
    assert shares[95] == 13, "half a µs of ten, rounded up"


def test_paths_in_messages_lose_their_folders():
    told = without_folders(
        "/home/a/s1/rank-00001/cycle-00000.tar.gz is short",
        ["/home/a/s1/rank-00001/cycle-00000.tar.gz", "/home/a"],
    )
    assert told == "rank-00001/cycle-00000.tar.gz is short"
    assert file_name("/x/run.zip!a/rank0.json") == "run.zip!a/rank0.json"
    assert BASE_NS > 0
