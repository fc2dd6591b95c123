"""The example engine with real prefill and decode workers: captures, faults, and what is loaded."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from eventually import eventually
from staged_jobs import quick

import torchtrt_viz as tv

pytest.importorskip("torch")

from torchtrt_viz.examples.serving_pd.engine import PDEngine
from torchtrt_viz.serving import ProfileConfig, Settings, recover

#: where child processes find the package that is being tested, installed or not
PACKAGE = Path(tv.__file__).parents[1]


def settings(**more) -> Settings:
    return quick(**{"annotations": True, "control_timeout_s": 60, **more})


def prompts(count: int, length: int = 12) -> list[list[int]]:
    return [[(i * 7 + j) % 256 for j in range(length)] for i in range(count)]


@pytest.fixture(scope="module")
def engine() -> Iterator[PDEngine]:
    with PDEngine(2, 2, settings=settings()) as made:
        for prompt in prompts(4):
            made.submit(prompt, 2)
        made.finish()
        yield made


def test_answers_are_those_of_the_model_run_in_one_place(engine):
    import torch

    from torchtrt_viz.examples.serving_pd.model import KVCache, ModelSize, TinyTransformer

    size = ModelSize()
    model, cache = TinyTransformer(size), KVCache(size)
    prompt = prompts(1, 20)[0]
    logits, kv = model.prefill(torch.tensor(prompt))
    cache.put(3, kv)
    expected = [int(logits.argmax())]
    for _ in range(5):
        logits = model.decode(torch.tensor([expected[-1]]), torch.tensor([3]), cache)
        expected.append(int(logits.argmax()))
    # the whole sequence at once gives the same next token, so the cache is right
    whole, _ = model.prefill(torch.tensor(prompt + expected[:-1]))
    assert int(whole.argmax()) == expected[-1]
    request = engine.submit(prompt, 6)
    engine.finish()
    assert request.tokens == expected


def test_window_covers_the_same_requests_on_every_rank(engine, tmp_path):
    config = ProfileConfig(tmp_path, record_shapes=True)
    started = engine.coordinator.start_profile(config, window=True)
    jobs = [engine.submit(p, 4) for p in prompts(6)]
    engine.finish()
    served = [j.request for j in jobs]
    stopped = engine.coordinator.stop_profile()
    assert (stopped.collection.state, stopped.collection.error) == ("idle", None)
    artifacts = engine.coordinator.wait_for_profile_artifacts(120)
    assert [(a.rank, a.role, a.state) for a in artifacts] == [
        (0, "prefill", "published"),
        (1, "prefill", "published"),
        (2, "decode", "published"),
        (3, "decode", "published"),
    ]
    folder = tmp_path / started.collection.session_id
    manifest = json.loads((folder / "manifest.json").read_text())
    assert (manifest["state"], manifest["mode"]) == ("complete", "window")
    assert manifest["incomplete_ranks"] == manifest["failed_ranks"] == []
    assert len({r["pid"] for r in manifest["ranks"]}) == 4
    session = tv.load(folder)
    assert session.ranks["state"].tolist() == ["ok"] * 4
    assert session.check()["state"].tolist() == ["ok"] * 4
    requests = session.requests().set_index("request")
    assert sorted(requests.index) == sorted(served)
    assert requests["joined"].all()
    assert not requests["cut"].any()
    for job in jobs:
        row = requests.loc[job.request]
        assert row["transfer"] == job.transfer
        assert (row["prefill_rank"], row["decode_rank"]) == (int(job.prefill[1]), 2 + int(job.decode[1]))
        assert row["decode_steps"] == 3
        assert row["kv_send_ns"] > 0
        assert row["kv_recv_ns"] > 0
        assert row["handoff_ns"] > 0  # one host, one clock
    names = {
        p: set(session.trace(r).spans["name"].astype(str).str.split("[").str[0])
        for p, r in (("P", 0), ("D", 2))
    }
    assert {"schedule", "prefill", "sampling", "kv_send"} <= names["P"]
    assert {"schedule", "kv_recv", "activate", "decode", "sampling"} <= names["D"]
    assert set(session.operators()["role"]) == {"prefill", "decode"}


def test_schedule_counts_each_ranks_own_steps(engine, tmp_path):
    started = engine.coordinator.start_profile(ProfileConfig(tmp_path, warmup=1, active=2))
    for _ in range(30):  # nothing to do: nothing is counted
        engine.pump(0.005)
    assert engine.coordinator.profile_status().collection.state == "recording"
    for prompt in prompts(8):
        engine.submit(prompt, 4)
    engine.finish()
    artifacts = engine.coordinator.wait_for_profile_artifacts(120)
    status = engine.coordinator.profile_status()
    assert (status.collection.state, status.collection.ended_by) == ("idle", "schedule")
    assert [(a.rank, a.cycle, a.state) for a in artifacts] == [(r, 0, "published") for r in range(4)]
    session = tv.load(tmp_path / started.collection.session_id)
    steps = session.steps()
    roles = ["prefill", "prefill", "decode", "decode"]
    assert steps.groupby("rank")["name"].apply(list).to_dict() == {
        r: [f"engine_step[step={n} kind={role}]" for n in (1, 2)] for r, role in enumerate(roles)
    }
    # every counted step did work: it holds a prefill on P ranks, a decode or a transfer on D ranks
    for rank in range(4):
        spans = session.trace(rank).spans
        step_rows = spans.index[spans["name"].astype(str).str.startswith("engine_step[")]
        inside = spans[spans["parent"].isin(step_rows)]
        worked = inside[inside["name"].astype(str).str.match(r"prefill\[|decode\[|kv_recv\[")]
        assert set(worked["parent"]) == set(step_rows)


def test_busy_service_marks_the_requests_that_the_boundaries_cut(engine, tmp_path):
    first = engine.submit(prompts(1)[0], 60)
    while first.state != "decoding":
        engine.pump(0.005)
    started = engine.coordinator.start_profile(ProfileConfig(tmp_path), window=True)
    while first.state != "finished":
        engine.pump(0.005)
    second = engine.submit(prompts(1)[0], 100)
    while second.state != "decoding":
        engine.pump(0.005)
    engine.coordinator.stop_profile()
    engine.finish()
    engine.coordinator.wait_for_profile_artifacts(60)
    session = tv.load(tmp_path / started.collection.session_id)
    cut_start = {r for c in session.ranks["cut_at_start"] for r in c}
    cut_stop = {r for c in session.ranks["cut_at_stop"] for r in c}
    assert cut_start == {first.request}
    assert cut_stop == {second.request}
    requests = session.requests().set_index("request")
    assert requests.loc[[first.request, second.request], "cut"].all()


def test_failed_archive_is_made_when_told_to_try_again(engine, tmp_path):
    started = engine.coordinator.start_profile(ProfileConfig(tmp_path), window=True)
    engine.submit(prompts(1)[0], 2)
    engine.finish()
    folder = tmp_path / started.collection.session_id
    (folder / "rank-00002").write_text("in the way of the archive's folder")
    engine.coordinator.stop_profile()
    found = {a.rank: a for a in engine.coordinator.wait_for_profile_artifacts(120)}
    assert [found[r].state for r in range(4)] == ["published", "published", "failed", "published"]
    assert found[2].stage == "pack"
    assert json.loads((folder / "manifest.json").read_text())["failed_ranks"] == [2]
    staged = tv.load(folder).ranks.set_index("rank").loc[2]
    assert staged["state"] == "staged"
    (folder / "rank-00002").unlink()
    engine.coordinator.retry_profile_artifacts()
    found = {a.rank: a for a in engine.coordinator.wait_for_profile_artifacts(120)}
    assert found[2].state == "published"
    assert json.loads((folder / "manifest.json").read_text())["state"] == "complete"
    assert tv.load(folder).ranks["state"].tolist() == ["ok"] * 4


def test_worker_killed_while_collecting_costs_only_its_own_recording(tmp_path):
    with PDEngine(1, 2, settings=settings()) as engine:
        started = engine.coordinator.start_profile(ProfileConfig(tmp_path), window=True)
        for prompt in prompts(4):
            engine.submit(prompt, 3)
        engine.finish()
        victim = engine.processes["D1"]
        os.kill(victim.pid, signal.SIGKILL)
        while "D1" in engine.hub.alive:
            engine.pump(0.02)
        status = engine.coordinator.stop_profile()
        assert "D1" in status.collection.error
        artifacts = engine.coordinator.wait_for_profile_artifacts(60)
        assert [(a.rank, a.state) for a in artifacts] == [(0, "published"), (1, "published")]
        folder = tmp_path / started.collection.session_id
        manifest = json.loads((folder / "manifest.json").read_text())
        assert (manifest["state"], manifest["failed_ranks"]) == ("failed", [2])
        session = tv.load(folder)
        table = session.ranks.set_index("rank")
        assert table["state"].to_dict() == {0: "ok", 1: "ok", 2: "missing"}
        assert "process has ended" in table.loc[2, "error"]
        # its staging folder is there and says what it was
        found = recover(folder, settings=settings())
        assert [(s.rank, s.state) for s in found] == [(2, "interrupted")]


def test_exception_in_a_workers_step_keeps_what_it_recorded(tmp_path):
    with PDEngine(1, 1, settings=settings()) as engine:
        engine.submit(prompts(1)[0], 2)
        engine.finish()
        started = engine.coordinator.start_profile(ProfileConfig(tmp_path), window=True)
        engine.submit(prompts(1)[0], 3)
        engine.finish()
        engine.hub.send("P0", {"type": "fail", "text": "out of memory"})
        engine.submit(prompts(1)[0], 3)
        while "P0" in engine.hub.alive:
            engine.pump(0.02)
        engine.coordinator.stop_profile()
        engine.coordinator.wait_for_profile_artifacts(60)
    assert engine.processes["P0"].exitcode == 1
    session = tv.load(tmp_path / started.collection.session_id)
    table = session.ranks.set_index("rank")
    assert table["state"].to_dict() == {0: "ok", 1: "ok"}
    spans = session.trace(0).spans
    assert spans["name"].astype(str).str.startswith("prefill[request=req-1 ").any()


def test_killed_coordinator_leaves_every_ranks_archive(tmp_path):
    """Workers notice that they are alone, stop, pack and end; the session loads without its coordinator."""
    script = tmp_path / "victim.py"
    script.write_text(
        textwrap.dedent(
            f"""
            import os, signal, sys
            sys.path.insert(0, {str(PACKAGE)!r})
            from torchtrt_viz.examples.serving_pd.engine import PDEngine
            from torchtrt_viz.serving import ProfileConfig, Settings

            if __name__ == "__main__":
                engine = PDEngine(1, 1, settings=Settings(annotations=True, spare_staging=(), niceness=0))
                engine.__enter__()
                engine.coordinator.start_profile(ProfileConfig({str(tmp_path / "profiles")!r}), window=True)
                engine.submit([1, 2, 3], 4)
                engine.finish()
                print(*[p.pid for p in engine.processes.values()], flush=True)
                os.kill(os.getpid(), signal.SIGKILL)
            """
        )
    )
    done = subprocess.run([sys.executable, str(script)], stdout=subprocess.PIPE, text=True, timeout=120)
    assert done.returncode == -signal.SIGKILL
    pids = [int(p) for p in done.stdout.split()]
    assert len(pids) == 2
    (folder,) = (tmp_path / "profiles").iterdir()
    eventually(lambda: len(list(folder.glob("rank-*/cycle-*.tar.gz"))) == 2)
    eventually(lambda: not any(_alive(p) for p in pids))
    assert json.loads((folder / "manifest.json").read_text())["state"] == "collecting"
    session = tv.load(folder)
    assert session.ranks[["rank", "state"]].values.tolist() == [[0, "ok"], [1, "ok"]]
    assert session.requests()["joined"].tolist() == [True]
    assert recover(folder, settings=settings()) == []
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["state"] == "complete"
    assert [r["state"] for r in manifest["ranks"]] == ["collected", "collected"]


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in ("Z", "X")
    except OSError:
        return False


def test_demo_records_and_says_where(tmp_path):
    from torchtrt_viz.examples.serving_pd import run_demo

    said: list[str] = []
    folder = run_demo(
        tmp_path, prefill=1, decode=1, requests=2, max_tokens=3, echo=said.append, settings=settings()
    )
    assert folder.parent == tmp_path
    assert len(tv.load(folder).requests()) == 2
    assert any("rank-00001/cycle-00000.tar.gz" in line for line in said)
