"""Two runs compared by their structure: programs of which it is known what was changed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from model_runs import Op, Run, linear, module, norm, relu, run
from plain_sums import Recorded, union
from trace_builder import Builder

from torchtrt_viz.analysis import compare_structure, structure_summary
from torchtrt_viz.analysis.columns.structure import COMPARE_STRUCTURE, STRUCTURE_SUMMARY
from torchtrt_viz.errors import OptionError
from torchtrt_viz.trace import Trace

MODEL = [module("Net_0", linear(0), relu(), norm(0), linear(1))]
SWAP = {"fused": "split", "split": "fused", "added": "lost", "lost": "added"}


def _whole(table: pd.DataFrame, a: Trace, b: Trace) -> None:
    """Check that the rows of each side are the whole run, by plain loops over its spans."""
    for side, trace in zip("ab", (a, b), strict=True):
        recorded = Recorded(trace)
        assert table[f"{side}_gpu_ns"].sum() == recorded.work_ns
        assert table[f"{side}_host_ns"].sum() == sum(map(union, recorded.host.values()))


def _compared(a: Trace, b: Trace, **options: object) -> pd.DataFrame:
    """Compare, and check what holds for all: sums, and that the swapped comparison is the mirrored one."""
    table = compare_structure(a, b, **options)  # type: ignore[arg-type]
    _whole(table, a, b)
    assert _said(table) == _said(compare_structure(b, a, **options), mirrored=True)  # type: ignore[arg-type]
    assert list(table.columns) == COMPARE_STRUCTURE.names
    return table


def _said(table: pd.DataFrame, mirrored: bool = False) -> list[tuple[str, ...]]:
    columns = ("name", "path", "host_ns", "gpu_ns", "calls", "nodes", "gpu_total_ns", "host_total_ns")
    out = []
    for row in table.to_dict("records"):
        change = SWAP.get(row["change"], row["change"]) if mirrored else row["change"]
        sides = "ba" if mirrored else "ab"
        out.append(
            (change, row["match"], *(str(row[f"{side}_{name}"]) for side in sides for name in columns))
        )
    return sorted(out)


def _changes(table: pd.DataFrame) -> list[tuple[str, str | None, str | None]]:
    """Return what changed: kind of change, and names."""
    rows = table[table["change"] != "same"]
    missing = rows[["a_name", "b_name"]].astype(object).where(rows[["a_name", "b_name"]].notna(), None)
    return sorted(zip(rows["change"].astype(str), missing["a_name"], missing["b_name"], strict=True), key=str)


def test_a_run_has_the_structure_of_itself() -> None:
    trace = run(MODEL, 3)
    table = _compared(trace, trace)
    assert set(table["change"]) == {"same"}
    assert table.attrs["outcome"] == "same structure"
    assert table.attrs["gpu_aligned_pct"] == table.attrs["host_aligned_pct"] == 100.0
    assert (table["a_calls"] == table["b_calls"]).all()
    kernel = table[table["a_name"] == "sm90_xmma_gemm_bf16"].iloc[0]
    assert (kernel["places"], kernel["a_calls"], kernel["a_gpu_ns"]) == (2, 3, 2 * 3 * 5_000)
    assert kernel["a_path"] == "Net > Linear > aten::linear > aten::addmm"
    net = table[table["a_name"] == "Net"].iloc[0]
    assert net["a_gpu_total_ns"] == 3 * (2 * 5_000 + 1_000 + 2_000)
    assert net["a_gpu_ns"] is pd.NA
    assert net["a_host_ns"] == 3 * 100


def test_a_layer_that_was_added() -> None:
    longer = [
        module("Net_0", linear(0), relu(), norm(0), linear(1), module("Dropout_0", Op("aten::dropout")))
    ]
    table = _compared(run(MODEL), run(longer))
    assert _changes(table) == [("added", None, "Dropout")]
    row = table[table["change"] == "added"].iloc[0]
    assert (row["b_nodes"], row["b_host_ns"], row["b_path"]) == (2, 200, "Net")
    assert row["host_verdict"] == "added"
    assert table.attrs["outcome"] == "changed"


def test_a_layer_among_equal_ones_that_was_removed() -> None:
    blocks = [module(f"Block_{number}", linear(number), relu()) for number in range(12)]
    table = _compared(run([module("Net_0", *blocks)]), run([module("Net_0", *blocks[:11])]))
    assert _changes(table) == [("lost", "Block[11]", None)]
    assert table.set_index("change").loc["lost", "a_gpu_ns"] == 6_000
    assert table.attrs["gpu_aligned_pct"] == pytest.approx(100 * 11 / 12)
    relus = table[table["a_name"] == "relu_kernel"].iloc[0]
    assert relus["places"] == 11


def test_two_layers_that_changed_places() -> None:
    swapped = [module("Net_0", linear(0), norm(0), relu(), linear(1))]
    table = _compared(run(MODEL), run(swapped))
    assert set(table["change"]) == {"same", "moved"}
    assert table.attrs["gpu_aligned_pct"] == 100.0
    moved = table[table["change"] == "moved"]
    assert set(moved["a_name"]) in (
        {"LayerNorm", "aten::layer_norm", "aten::native_layer_norm", "vectorized_layer_norm_kernel"},
        {"aten::relu", "aten::clamp_min", "relu_kernel"},
    )
    assert (moved["match"] == "order").all()


def test_a_fused_operator_whose_name_lists_its_parts() -> None:
    first = linear(0).inner[0].inner
    apart = [Op("aten::linear", first), relu(), norm()]
    fused = [Op("custom::linear_relu", kernels=[("gemm_relu", 4_500)]), norm()]
    table = _compared(run(apart), run(fused))
    assert _changes(table) == [("fused", "aten::linear, aten::relu", "custom::linear_relu")]
    row = table[table["change"] == "fused"].iloc[0]
    assert (row["a_gpu_ns"], row["b_gpu_ns"]) == (6_000, 4_500)
    assert (row["a_nodes"], row["b_nodes"]) == (8, 2)
    assert row["match"] == "listed"


def test_generated_kernels_list_what_they_fuse() -> None:
    """An eager run against one whose pointwise operators a compiler fused, below its own ranges."""
    eager = [
        module(
            "Norm_0",
            Op("aten::pow", kernels=[("pow", 10)]),
            Op("aten::mean", kernels=[("mean", 11)]),
            Op("aten::add", kernels=[("add", 12)]),
            Op("aten::rsqrt", kernels=[("rsqrt", 13)]),
            Op("aten::mul", kernels=[("mul", 14)]),
        ),
        module("Linear_0", Op("aten::linear", [Op("aten::addmm", kernels=[("gemm_a", 500)])])),
        module("SiLU_0", Op("aten::silu", kernels=[("silu", 20)])),
    ]
    graph = Op(
        "## Call CompiledFxGraph fal4xpiah2v6blbfmwwonu52dvevbsmlh743q5tkclrt4gcqpzea ##",
        [
            Op(
                "triton_red_fused_add_mean_mul_pow_rsqrt_0",
                kernels=[("triton_red_fused_add_mean_mul_pow_rsqrt_0", 30)],
            ),
            Op("aten::addmm", kernels=[("gemm_a", 450)]),
            Op("triton_poi_fused_silu_1", kernels=[("triton_poi_fused_silu_1", 19)]),
        ],
    )
    compiled = [Op("Torch-Compiled Region: 0/0", [graph])]
    table = _compared(run(eager), run(compiled))
    rows = {
        row["b_name"]: row
        for row in table[table["change"].isin(["fused", "moved", "renamed"])].to_dict("records")
    }
    norm_row = rows["triton_red_fused_add_mean_mul_pow_rsqrt"]
    assert (norm_row["change"], norm_row["a_gpu_ns"], norm_row["b_gpu_ns"]) == ("fused", 60, 30)
    assert norm_row["a_name"] == "aten::pow, aten::mean, aten::add, aten::rsqrt, aten::mul"
    assert rows["aten::addmm"]["change"] == "moved"
    assert (rows["gemm_a"]["a_gpu_ns"], rows["gemm_a"]["b_gpu_ns"]) == (500, 450)
    assert (rows["triton_poi_fused_silu"]["change"], rows["triton_poi_fused_silu"]["match"]) == (
        "renamed",
        "listed",
    )
    assert table.attrs["gpu_aligned_pct"] == 100.0


def test_attention_that_was_written_out() -> None:
    written = [
        Op("aten::matmul", [Op("aten::bmm", kernels=[("gemm_1", 50)])]),
        Op("aten::div", kernels=[("div", 5)]),
        Op("aten::softmax", [Op("aten::_softmax", kernels=[("softmax", 9)])]),
        Op("aten::matmul", [Op("aten::bmm", kernels=[("gemm_2", 50)])]),
    ]
    flash = Op("aten::_flash_attention_forward", kernels=[("flash_fwd_kernel", 40)])
    one = [
        Op("aten::scaled_dot_product_attention", [Op("aten::_scaled_dot_product_flash_attention", [flash])])
    ]
    table = _compared(run([module("Attention_0", *written)]), run([module("Attention_0", *one)]))
    row = table[table["change"] == "fused"].iloc[0]
    assert (row["match"], row["a_gpu_ns"], row["b_gpu_ns"]) == ("composed", 114, 40)
    assert _changes(table) == [
        (
            "fused",
            "aten::matmul[0], aten::div, aten::softmax, aten::matmul[1]",
            "aten::scaled_dot_product_attention",
        )
    ]


def test_a_normalisation_folded_into_the_layer_before_it_is_lost() -> None:
    conv = Op(
        "aten::conv2d", [Op("aten::cudnn_convolution", kernels=[("sm80_xmma_fprop_implicit_gemm", 70)])]
    )
    after = Op("aten::batch_norm", [Op("aten::cudnn_batch_norm", kernels=[("bn_fw_inf_1C11_kernel", 7)])])
    table = _compared(run([conv, after, relu()]), run([conv, relu()]))
    assert _changes(table) == [("lost", "aten::batch_norm", None)]
    assert table.set_index("change").loc["lost", "a_gpu_ns"] == 7


def test_kernels_of_another_maker_do_the_same_work() -> None:
    """CUDA and ROCm: operators and kernels of other names at the same places."""

    def model(convolution: str, product: str, attention: str, add: str) -> list[Op]:
        return [
            module("Net_0",
                Op("aten::conv2d", [Op(f"aten::{convolution}", kernels=[("fprop" + convolution, 90)])]),
                linear(0, product),
                Op("aten::_flash_attention_forward", kernels=[(attention, 40)]),
                Op("aten::add", kernels=[(add, 8)]),
            )
        ]  # fmt: skip

    table = _compared(
        run(
            model(
                "cudnn_convolution",
                "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm>(Params)",
                "void flash_fwd_kernel<64>(Params)",
                "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)",
            )
        ),
        run(
            model(
                "miopen_convolution",
                "Cijk_Alik_Bljk_BBS_BH_MT256x192x64",
                "attn_fwd",
                "void at::native::vectorized_elementwise_kernel<8, at::native::CUDAFunctor_add<float>>(int)",
            )
        ),
    )
    renamed = table[table["change"] == "renamed"]
    assert len(renamed) == 5
    assert (renamed["match"] == "family").all()
    assert set(renamed["why"]) == {
        "same place, operators of one family: convolution",
        *(
            f"same place, kernels of one family: {family}"
            for family in ("convolution", "matrix product", "attention", "elementwise add")
        ),
    }
    assert table.attrs["gpu_aligned_pct"] == 100.0
    assert set(table["change"]) == {"same", "renamed"}


def test_an_operator_of_more_kernels() -> None:
    one = [Op("aten::sum", kernels=[("whole_reduce", 30)])]
    two = [Op("aten::sum", kernels=[("part_one", 12), ("part_two", 9)])]
    table = _compared(run(one), run(two))
    row = table[table["change"] == "split"].iloc[0]
    assert (row["a_name"], row["b_name"]) == ("whole_reduce", "part_one, part_two")
    assert (row["a_gpu_ns"], row["b_gpu_ns"], row["match"]) == (30, 21, "position")
    assert row["why"] == "the same operator's work: 1 pieces in the first run, 2 in the second"


def test_what_was_wrapped_in_another_module_moved() -> None:
    wrapped = [module("Net_0", module("Checkpoint_0", linear(0)), relu(), norm(0), linear(1))]
    table = _compared(run(MODEL), run(wrapped))
    changes = _changes(table)
    assert ("added", None, "Checkpoint") in changes
    assert {change for change, *_ in changes} == {"added", "moved"}
    assert table.attrs["gpu_aligned_pct"] == 100.0
    row = table[(table["change"] == "moved") & (table["kind"] == "module")].iloc[0]
    assert (row["a_name"], row["a_path"], row["b_path"]) == ("Linear[0]", "Net", "Net > Checkpoint")
    assert table.set_index("b_name").loc["Checkpoint", "b_host_ns"] == 100


def test_threads_streams_and_the_order_of_iterations_are_no_matter() -> None:
    a = Run(threads=(11, 12, 13), streams=(7, 20)).write(MODEL, (0, 1, 2))
    b = Run(threads=(13, 11, 12), streams=(20, 7)).write(MODEL, (2, 0, 1))
    table = _compared(a, b)
    assert set(table["change"]) == {"same"}
    assert {"aten::on_0", "aten::on_1"} <= set(table["a_name"])
    assert table.attrs["gpu_aligned_pct"] == 100.0

    shuffled = _compared(run(MODEL, 3), Run().write(MODEL, (2, 0, 1)))
    assert set(shuffled["change"]) == {"same"}


def test_iterations_are_merged_and_counted() -> None:
    table = _compared(run(MODEL, 5), run(MODEL, 2), skip_warmup=False)
    assert set(table["change"]) == {"same"}
    kernel = table[table["a_name"] == "relu_kernel"].iloc[0]
    assert (kernel["a_calls"], kernel["b_calls"]) == (5, 2)
    assert (kernel["a_gpu_ns"], kernel["b_gpu_ns"]) == (5_000, 2_000)
    assert (kernel["a_gpu_mean_ns"], kernel["b_gpu_mean_ns"], kernel["gpu_delta_ns"]) == (
        1_000.0,
        1_000.0,
        0.0,
    )
    assert (kernel["a_samples"], kernel["b_samples"]) == (5, 2)


def test_without_iterations_the_whole_runs_are_compared() -> None:
    a, b = Run().write(MODEL, (0,), steps=False), Run().write(MODEL, (0, 1), steps=False)
    table = _compared(a, b)
    assert table.attrs["basis"] == "run"
    assert table.attrs["a_iterations"] == 0
    assert structure_summary(table).set_index("change")["rows"].to_dict()["added"] == 1
    assert (
        table["gpu_verdict"]
        .isin(["same", "added", "removed", "unclear"])
        .where(table["gpu_verdict"].notna(), True)
        .all()
    )


def _noisy(seed: int, **factors: float) -> Trace:
    rng = np.random.default_rng(seed)
    return Run(scale=lambda _, name: factors.get(name, 1.0) * float(np.exp(rng.normal(0, 0.02)))).write(
        [module("Net_0", linear(0), relu(), norm(0))], range(20)
    )


def test_a_planted_slow_down_is_found_and_noise_is_not() -> None:
    table = _compared(_noisy(1), _noisy(2, relu_kernel=1.2)).set_index("a_name")
    assert table.loc["relu_kernel", "gpu_verdict"] == "slower"
    assert table.loc["relu_kernel", "gpu_low_pct"] < 20 < table.loc["relu_kernel", "gpu_high_pct"]
    others = table.drop("relu_kernel")
    assert not others["gpu_verdict"].isin(["slower", "faster"]).any()
    false = 0
    for seed in range(10, 20, 2):
        verdicts = compare_structure(_noisy(seed), _noisy(seed + 1))["gpu_verdict"]
        false += int(verdicts.isin(["slower", "faster"]).sum())
    assert false == 0


def test_one_iteration_is_never_more_than_unclear() -> None:
    slow = Run(scale=lambda _, name: 3.0).write(MODEL, (0,))
    table = _compared(run(MODEL), slow)
    assert set(table["gpu_verdict"].dropna()) == {"unclear"}
    assert table["gpu_change_pct"].dropna().unique().tolist() == pytest.approx([200.0])


def test_other_programs_are_called_so() -> None:
    other = [
        Op("aten::sort", kernels=[("radix_sort", 900)]),
        Op("aten::cumsum", kernels=[("scan_kernel", 50)]),
    ]
    table = _compared(run(MODEL), run(other))
    assert table.attrs["outcome"] == "different programs"
    assert table.attrs["gpu_aligned_pct"] == 0.0
    empty = Builder()
    empty.track("main")
    nothing = empty.build()
    assert _compared(nothing, nothing).attrs["outcome"] == "nothing to align"
    one_sided = _compared(run(MODEL), nothing)
    assert one_sided.attrs["outcome"] == "nothing to align"
    assert set(one_sided["change"]) == {"same", "lost"}


def test_the_rows_of_every_place_and_of_all_places_have_the_same_sums() -> None:
    blocks = [module(f"Block_{number}", linear(number), relu()) for number in range(6)]
    a, b = run([module("Net_0", *blocks)], 2), run([module("Net_0", *blocks[1:])], 2)
    merged, single = _compared(a, b), _compared(a, b, merge=False)
    assert len(merged) < len(single)
    assert (single["places"] == 1).all()
    assert merged["places"].sum() == len(single)
    summaries = [structure_summary(table) for table in (merged, single)]
    pd.testing.assert_frame_equal(summaries[0].drop(columns="rows"), summaries[1].drop(columns="rows"))
    assert list(summaries[0].columns) == STRUCTURE_SUMMARY.names
    assert "Block[5]" in set(single["a_name"])
    assert merged["a_gpu_total_ns"].max() == single["a_gpu_total_ns"].max() == 2 * 6 * 6_000


def test_order_and_options() -> None:
    a, b = run(MODEL), run([module("Net_0", linear(0, "Cijk_Alik"), relu())])
    table = compare_structure(a, b)
    size = table["gpu_delta_ns"].abs().fillna(-1).tolist()
    assert size == sorted(size, reverse=True)
    tree = compare_structure(a, b, sort=None)
    assert tree["kind"].tolist()[:3] == ["run", "thread", "module"]
    assert compare_structure(a, b, sort="b_gpu_ns", top=1)["b_name"].tolist() == ["Cijk_Alik"]
    for bad in ({"alpha": 2.0}, {"min_change_pct": -1.0}, {"confidence": 0.0}, {"sort": "no"}, {"top": 0}):
        with pytest.raises(OptionError):
            compare_structure(a, b, **bad)  # type: ignore[arg-type]


def test_calls_nested_deeper_than_any_program_keep_their_time() -> None:
    op = Op("leaf", kernels=[("deep_kernel", 7)])
    for level in range(900):
        op = Op(f"level{level % 3}", [op])
    a = run([op])
    table = _compared(a, a)
    assert set(table["change"]) == {"same"}
    assert table["depth"].max() < 500
    assert _compared(a, run(MODEL)).attrs["outcome"] == "different programs"


def test_the_chart_draws_the_largest_differences_of_either_run() -> None:
    pytest.importorskip("plotly", reason="needs plotly")
    from torchtrt_viz.widgets import charts

    hostile = module("Net_0", linear(0, "<b>gemm</b>"), Op("aten::sum", kernels=[("sum", 3_000_000)]))
    table = compare_structure(run(MODEL), run([hostile]))
    figure = charts.structure(table, top=2)
    second, first = figure.data
    assert (first.name, second.name) == ("first run", "second run")
    assert list(first.y) == list(second.y)
    assert second.y[-1] == "+ aten::sum"
    assert second.x[-1] == 3.0
    assert np.isnan(first.x[-1])
    assert figure.layout.xaxis.title.text == "time [ms]"
    assert "<b>" not in str(charts.structure(table).to_dict())
    assert (
        charts.structure(compare_structure(run(MODEL), run(MODEL))).layout.annotations[0].text
        == "nothing differs"
    )
    with pytest.raises(OptionError):
        charts.structure(table, domain="both")
