"""Models that torch runs on the CPU, changed in a known way, and what the comparison by structure says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import torchtrt_viz as tv
from torchtrt_viz.trace import Trace

torch = pytest.importorskip("torch", reason="needs torch")
nn = torch.nn

ITERATIONS = 4


def _record(run: Callable[..., object], path: Path, modules: bool = True) -> Trace:
    from torch.profiler import ProfilerActivity, profile, schedule

    x = torch.randn(16, 32)
    plan = schedule(wait=0, warmup=1, active=ITERATIONS, repeat=1)

    def write(found: object) -> None:
        found.export_chrome_trace(str(path))  # type: ignore[attr-defined]

    with torch.no_grad():
        run(x)
        with profile(
            activities=[ProfilerActivity.CPU],
            schedule=plan,
            on_trace_ready=write,
            with_stack=modules,
            with_modules=modules,
        ) as profiler:
            for _ in range(1 + ITERATIONS):
                run(x)
                profiler.step()
    trace = tv.load(path)
    assert isinstance(trace, Trace)
    return trace


def _model(*layers: object) -> object:
    return nn.Sequential(*layers).eval()


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    model = _model(nn.Linear(32, 32), nn.ReLU(), nn.LayerNorm(32), nn.Linear(32, 32))
    return _record(model, tmp_path_factory.mktemp("base") / "base.json")


def _changed(table: pd.DataFrame, kind: str = "module") -> list[tuple[str, str | None, str | None]]:
    """Return what changed among modules or operators that compute something."""
    rows = table[(table["change"] != "same") & (table["kind"] == kind)]
    return [
        (
            str(row.change),
            None if pd.isna(row.a_name) else row.a_name,
            None if pd.isna(row.b_name) else row.b_name,
        )
        for row in rows.itertuples()
    ]


def test_the_same_model_recorded_twice(base: Trace, tmp_path: Path) -> None:
    again = _record(
        _model(nn.Linear(32, 32), nn.ReLU(), nn.LayerNorm(32), nn.Linear(32, 32)), tmp_path / "again.json"
    )
    table = tv.compare_structure(base, again)
    assert set(table["change"]) == {"same"}
    assert table.attrs["host_aligned_pct"] == 100.0
    assert table.attrs["outcome"] == "same structure"
    products = table[table["a_name"] == "aten::addmm"]
    assert products["a_calls"].tolist() == products["b_calls"].tolist() == [ITERATIONS]
    assert products["places"].tolist() == [2]


@pytest.mark.parametrize("modules", [True, False])
def test_a_layer_added_removed_and_swapped(tmp_path: Path, modules: bool) -> None:
    """With modules recorded, and from operators alone."""

    def record(name: str, *layers: object) -> Trace:
        return _record(_model(*layers), tmp_path / f"{name}.json", modules)

    def layers() -> tuple[object, object, object]:
        return nn.Linear(32, 32), nn.ReLU(), nn.LayerNorm(32)

    first, activation, normal = layers()
    plain = record("plain", first, activation, normal)
    longer = record("longer", first, activation, normal, nn.Sigmoid())
    swapped = record("swapped", first, normal, activation)
    kind = "module" if modules else "operator"
    extra = "Sigmoid" if modules else "aten::sigmoid"
    added = tv.compare_structure(plain, longer)
    assert _changed(added, kind) == [("added", None, extra)]
    assert _changed(tv.compare_structure(longer, plain), kind) == [("lost", extra, None)]
    moved = _changed(tv.compare_structure(plain, swapped), kind)
    assert {change for change, *_ in moved} == {"moved"}
    names = {a for _, a, _ in moved}
    assert names & ({"ReLU", "LayerNorm"} if modules else {"aten::relu", "aten::layer_norm"})


def test_a_folded_normalisation(tmp_path: Path) -> None:
    class Net(nn.Module):  # type: ignore[misc]  # torch is not followed
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4)

        def forward(self, x: object) -> object:
            return torch.relu(self.norm(self.conv(x.reshape(16, 1, 4, 8))))  # type: ignore[attr-defined]

    net = Net().eval()
    before = _record(net, tmp_path / "before.json")
    net.conv = torch.nn.utils.fusion.fuse_conv_bn_eval(net.conv, net.norm)
    net.norm = nn.Identity()
    after = _record(net, tmp_path / "after.json")
    table = tv.compare_structure(before, after)
    assert ("lost", "aten::batch_norm", None) in _changed(table, "operator") or (
        "lost",
        "BatchNorm2d",
        None,
    ) in _changed(table)
    convolution = table[table["a_name"] == "aten::conv2d"].iloc[0]
    assert convolution["change"] == "same"


@pytest.mark.slow
def test_eager_and_compiled(tmp_path: Path) -> None:
    """Inductor on the CPU: what its kernels' names list was eager's relu and layer_norm, and gelu."""
    from torch._inductor import config

    model = _model(nn.Linear(32, 32), nn.ReLU(), nn.LayerNorm(32), nn.Linear(32, 32), nn.GELU())
    eager = _record(model, tmp_path / "eager.json")
    with config.patch({"cpp.enable_kernel_profile": True}):
        try:
            compiled = torch.compile(model)
            compiled(torch.randn(16, 32))
        except Exception as error:  # whatever a compiler that is absent or broken raises
            pytest.skip(f"torch.compile does not work here: {type(error).__name__}")
        table = tv.compare_structure(eager, _record(compiled, tmp_path / "compiled.json"))
    assert table.attrs["outcome"] == "changed"
    assert table.attrs["host_aligned_pct"] > 90
    fused = table[table["change"] == "fused"]
    assert set(fused["a_name"]) == {"aten::relu, aten::layer_norm"}
    assert fused["b_name"].str.contains("fused_native_layer_norm_relu").all()
    renamed = table[(table["change"] == "renamed") & (table["kind"] == "operator")]
    assert set(renamed["a_name"]) == {"aten::gelu"}
    products = table[table["a_name"] == "aten::addmm"]
    assert set(products["change"]) == {"moved"}
    assert products["places"].sum() == 2
