"""vLLM's profiling commands, connected with sessions of this package.

The first tests use a stand-in for vLLM's classes; the last one a real vLLM, where
``TORCHTRT_VIZ_VLLM_PYTHON`` names the Python of an environment that has it (`benchmarks/vllm_profile.py` says
how it is made).
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace

import pytest
import vllm_like

import torchtrt_viz as tv

torch = pytest.importorskip("torch")

from torchtrt_viz.serving.engines import vllm_plugin, vllm_profiler  # noqa: E402


@pytest.fixture
def engine(monkeypatch, tmp_path):
    monkeypatch.setenv("TORCHTRT_VIZ_VLLM", "1")
    monkeypatch.setattr(vllm_profiler, "_profiler", None)
    modules = vllm_like.install(monkeypatch)
    vllm_plugin.register()
    vllm_plugin.register()  # vLLM may call it more than once in a process

    def made(**options) -> SimpleNamespace:
        wrapper = modules["vllm.profiler.wrapper"].TorchProfilerWrapper(
            vllm_like.config(tmp_path, **options), "rank0"
        )
        return SimpleNamespace(
            llm=modules["vllm.v1.engine.llm_engine"].LLMEngine(wrapper),
            served=modules["vllm.v1.engine.async_llm"].AsyncLLM(wrapper),
            wrapper=wrapper,
        )

    yield made
    if vllm_profiler._profiler is not None:
        assert vllm_profiler._profiler.close(60)


def work(wrapper, context: int, generation: int) -> None:
    """One turn of a worker, in vLLM's order."""
    wrapper.step()
    with wrapper.annotate_context_manager(
        f"execute_context_{context}({9 * context})_generation_{generation}({generation})"
    ):
        torch.ones(8) + 1


def finished(folder: Path) -> tv.Session:
    vllm_profiler._profiler.wait_for_profile_artifacts(60)
    session = tv.load(folder)
    assert isinstance(session, tv.Session)
    return session


def test_start_and_stop_make_a_session(engine, tmp_path):
    made = engine()
    made.llm.start_profile()
    for context, generation in ((2, 0), (1, 3), (0, 0), (0, 4)):
        work(made.wrapper, context, generation)
    made.llm.stop_profile()
    session = finished(tmp_path)
    (row,) = session.ranks.to_dict("records")
    assert (row["rank"], row["instance"], row["state"], row["pid"]) == (
        0,
        "dp0_pp0_tp0_dcp0_ep0",
        "ok",
        os.getpid(),
    )
    steps = session.steps()
    assert list(steps["step_kind"]) == ["prefill", "mixed", "decode"]
    names = set(session.trace(0).spans["name"].astype(str))
    assert {"execute_context_2(18)_generation_0(0)", "execute_context_0(0)_generation_0(0)"} <= names
    status = vllm_profiler._profiler.profile_status().collection
    assert any("Python stacks" in warning for warning in status.warnings)
    assert not list(tmp_path.glob("*.json*"))


def test_prefixes_and_servers_and_a_second_profile(engine, tmp_path):
    made = engine()
    asyncio.run(made.served.start_profile("load-test"))
    work(made.wrapper, 1, 0)
    made.served.stop_profile()
    made.llm.start_profile("load-test")
    work(made.wrapper, 0, 1)
    made.llm.stop_profile()
    vllm_profiler._profiler.wait_for_profile_artifacts(60)
    folders = sorted(path.name for path in tmp_path.iterdir())
    assert len(folders) == 2
    assert all(re.fullmatch(r"load-test\.\d{8}-\d{6}-[0-9a-f]{8}", name) for name in folders)


def test_delay_limit_and_schedule_are_vllms(engine, tmp_path):
    made = engine(delay_iterations=2, max_iterations=3)
    made.llm.start_profile()
    assert not vllm_profiler._profiler
    for _ in range(8):
        work(made.wrapper, 0, 1)
    assert not made.wrapper._active
    # vLLM counts the turn in which it starts, and stops in the one that goes beyond the limit
    assert list(finished(tmp_path).steps()["step_kind"]) == ["decode"] * 3


def test_a_schedule_records_its_active_steps(engine, tmp_path):
    made = engine(warmup_iterations=1, active_iterations=2)
    made.llm.start_profile()
    for _ in range(6):
        work(made.wrapper, 0, 1)
    made.llm.stop_profile()
    (row,) = finished(tmp_path).ranks.to_dict("records")
    assert row["state"] == "ok"
    status = vllm_profiler._profiler.profile_status().collection
    assert (status.mode, status.ended_by, status.cycles) == ("steps", "schedule", 1)


def test_a_frontend_is_not_recorded(engine, tmp_path):
    made = engine()
    made.wrapper.set_output_name("host.async_llm")
    made.wrapper.start()
    made.wrapper.step()
    with made.wrapper.annotate_context_manager("x"):
        pass
    made.wrapper.stop()
    made.wrapper.shutdown()
    assert list(tmp_path.iterdir()) == []


def test_it_is_off_unless_it_is_asked_for(monkeypatch):
    modules = vllm_like.install(monkeypatch)
    before = dict(vars(modules["vllm.profiler.wrapper"].TorchProfilerWrapper))
    for value in ("", "0", "no", "off"):
        monkeypatch.setenv("TORCHTRT_VIZ_VLLM", value)
        vllm_plugin.register()
    monkeypatch.delenv("TORCHTRT_VIZ_VLLM")
    vllm_plugin.register()
    assert dict(vars(modules["vllm.profiler.wrapper"].TorchProfilerWrapper)) == before


def test_another_interface_leaves_vllm_as_it_is(monkeypatch, caplog):
    monkeypatch.setenv("TORCHTRT_VIZ_VLLM", "1")
    modules = vllm_like.install(monkeypatch)
    modules["vllm.profiler.wrapper"].TorchProfilerWrapper = type("TorchProfilerWrapper", (), {})
    vllm_plugin.register()
    assert "no _start, _stop" in caplog.text
    assert "vLLM's own profiler is used" in caplog.text


def test_what_is_switched_off_imports_nothing():
    code = (
        "import sys; from torchtrt_viz.serving.engines.vllm_plugin import register; register(); "
        "print(sorted({'torch', 'pandas', 'numpy', 'vllm'} & set(sys.modules)))"
    )
    clean = {k: v for k, v in os.environ.items() if k != "TORCHTRT_VIZ_VLLM"}
    # no finder of the test run's own, which may import things by itself
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**clean, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_the_entry_point_is_vllms(root):
    import tomllib

    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    ((name, value),) = project["entry-points"]["vllm.general_plugins"].items()
    assert EntryPoint(name, value, "vllm.general_plugins").load() is vllm_plugin.register


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_real_vllm(root, tmp_path):
    python = os.environ.get("TORCHTRT_VIZ_VLLM_PYTHON")
    if python is None:
        pytest.skip("TORCHTRT_VIZ_VLLM_PYTHON names no Python with vLLM: see benchmarks/vllm_profile.py")
    script = [sys.executable, str(root / "benchmarks" / "vllm_profile.py"), "--vllm", python]
    done = subprocess.run([*script, "--keep", str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "different: none" in done.stdout
    session = tv.load(tmp_path / "0-2" / "profiles")
    assert session.ranks["state"].tolist() == ["ok"]
    # a prompt of 100 tokens, then a token a step: the first comes out of the prompt's own step
    assert list(session.steps()["step_kind"]) == ["prefill"] + ["decode"] * 15
