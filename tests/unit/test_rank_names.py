"""Names of per-rank traces, as the engines and trainers write them."""

from __future__ import annotations

import pytest

from torchtrt_viz.formats.session.rank_names import looks_like_host, read_rank_name, role_of_word

NS = 1796036029605142630


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("s/rank-00003/cycle-00001.tar.gz", {"writer": "torchtrt_viz", "rank": 3, "cycle": 1}),
        ("s/20261130-101500_rank-3/cycle-00002.tar.gz", {"rank": 3, "cycle": 2}),
        ("s/20261130-101500/rank3/trace.json.gz", {"writer": "other", "rank": 3}),
        (
            f"dp0_pp0_tp1_dcp0_ep1_rank5.{NS}.pt.trace.json.gz",
            {
                "writer": "vllm",
                "rank": 5,
                "dims": {"dp": 0, "pp": 0, "tp": 1, "dcp": 0, "ep": 1},
                "stamp": NS,
            },
        ),
        (
            f"prefill_dp1_pp0_tp0_dcp0_ep0_rank0.{NS}.pt.trace.json.gz",
            {"role": "prefill", "rank": 0, "run": None},
        ),
        (f"warm.up_dp0_pp0_tp0_dcp0_ep0_rank0.{NS}.pt.trace.json.gz", {"role": None, "run": "warm.up"}),
        (f"node7_4711.async_llm.{NS}.pt.trace.json.gz", {"what": "frontend", "host": "node7", "pid": 4711}),
        (
            f"capture_traces/graph_capture_rank_2.{NS}.pt.trace.json.gz",
            {"what": "capture", "local_rank": 2, "rank": None},
        ),
        (f"3f9c1-rank-2.{NS}.pt.trace.json.gz", {"writer": "vllm", "rank": 2, "run": "3f9c1"}),
        ("profiler_out_0.txt", {"what": "table", "rank": 0}),
        ("dp0_pp0_tp1_dcp0_ep1_rank1.profiler_out.txt", {"what": "table", "rank": 1}),
        (
            "proton_dp0_pp0_tp0_dcp0_ep0_rank4_pid77_0123456789abcdef0123456789abcdef_run1.chrome_trace",
            {"writer": "proton", "rank": 4, "pid": 77, "cycle": 1},
        ),
        (
            "1769071195.6634595-TP-0.trace.json.gz",
            {"writer": "sglang", "rank": 0, "run": "1769071195.6634595"},
        ),
        ("1769071195.6634595-TP-1-DECODE.trace.json.gz", {"rank": 1, "stage": "DECODE"}),
        # Python 3.11 and later print an IntEnum as its number, earlier ones as its name.
        ("1769071195.66-TP-1-2.trace.json.gz", {"rank": 1, "stage": "DECODE"}),
        ("1769071195.66-TP-1-ForwardMode.EXTEND.trace.json.gz", {"rank": 1, "stage": "EXTEND"}),
        # With several dimensions the index in one of them is no rank.
        (
            "1759255941.7-TP-3-DP-1-PP-0-EP-3-EXTEND.trace.json.gz",
            {"rank": None, "dims": {"tp": 3, "dp": 1, "pp": 0, "ep": 3}, "stage": "EXTEND"},
        ),
        ("merged-1769071195.66.trace.json.gz", {"what": "merged"}),
        ("rpd-1769071195.66-TP-2.trace.json.gz", {"what": "trace", "rank": 2}),
        ("pfx-1769071195.66-TP-2-memory-DECODE.pickle", {"what": "memory", "rank": 2}),
        ("cuda_graph_capture-DecodeCudaGraphRunner-TP-0.json.gz", {"what": "capture"}),
        ("capture_traces/bs_32_rank3.json.gz", {"what": "capture", "rank": 3}),
        ("capture_trace_rank_0.json.gz", {"what": "capture", "local_rank": 0, "rank": None}),
        ("capture_rank_1.json", {"what": "capture", "local_rank": 1}),
        ("encoder-rank1-1769071195.66.trace.json", {"writer": "sglang", "rank": 1}),
        ("req42-5_steps-global-rank6.trace.json.gz", {"rank": 6, "run": "req42-5_steps"}),
        ("profile_batch16_input1024_output8_decode.trace.json.gz", {"stage": "decode", "rank": None}),
        ("1736745600.123.trace.json.gz", {"writer": "sglang", "rank": None, "run": "1736745600.123"}),
        (
            "trtllm-trace-1779000000-0a1b2c3d-rank-1.json",
            {"writer": "tensorrt_llm", "rank": 1, "run": "1779000000-0a1b2c3d"},
        ),
        ("trace-rank-3.json", {"writer": "tensorrt_llm", "rank": 3}),
        ("libkineto_activities_151419.json", {"writer": "kineto", "pid": 151419, "rank": None}),
        ("libkineto_trace_machine1773_151419.json", {"host": "machine1773", "pid": 151419}),
        ("iteration_20/rank1_trace.json.gz", {"rank": 1, "cycle": 20}),
        ("rank0.1234.pt.trace.json.gz", {"writer": "composer", "rank": 0, "cycle": 1234, "stamp": None}),
        (f"rank0.{NS}.pt.trace.json.gz", {"writer": "torch", "rank": 0, "cycle": None, "stamp": NS}),
        ("ep0-ba3-rank1.json", {"writer": "composer", "rank": 1, "cycle": 3}),
        (
            "primus-megatron-exp[llama2]-rank[3].1762345678901.pt.trace.json.gz",
            {"writer": "primus", "rank": 3},
        ),
        (
            "fit-pl-2-optimizer_step.1762345678.pt.trace.json",
            {"writer": "lightning", "local_rank": 2, "rank": None},
        ),
        ("rank-12.json.gz", {"rank": 12}),
        ("rank0_trace_no_pyfn.json.gz", {"rank": 0}),
        ("trace_rank_3.json", {"rank": 3}),
        (
            "jean-zay-iam03_1189107.1679565807616.pt.trace.json",
            {"host": "jean-zay-iam03", "pid": 1189107, "rank": None},
        ),
        # A host name with a number in it is not Lightning's local rank.
        (
            "node-3-gpu_4711.1679565807616.pt.trace.json",
            {"writer": "torch", "host": "node-3-gpu", "local_rank": None},
        ),
        ("worker0.1619499959628.pt.trace.json", {"run": "worker0", "rank": None}),
        ("rank0.1.pt.trace.json.tmp", {"what": "partial", "rank": 0}),
        ("enospc.pt.trace.json.tmp.gz", {"what": "partial"}),
        ("P/rank0.json", {"role": "prefill", "rank": 0}),
        ("decode-1/rank3.json", {"role": "decode", "rank": 3}),
        (r"prefill\rank2.json", {"role": "prefill", "rank": 2}),
        # HolisticTraceAnalysis's samples: a date is no host, and what follows it no process
        ("rank-0.Apr_03_18_51_38.1100.pt.trace.json", {"rank": 0, "host": None, "pid": None, "run": None}),
        (f"r3-2025-1-2-13-4.{NS}.pt.trace.json.gz", {"writer": "torchtune", "rank": 3, "stamp": NS}),
        ("prof_rank0.pt.trace.json.gz", {"rank": 0, "run": None}),
        (f"host_worker_rank1.{NS}.pt.trace.json", {"rank": 1, "host": None, "stamp": NS}),
        ("rank=2/trace.json", {"rank": 2}),
        ("rank_1/pytorch_profile.json", {"rank": 1}),
        ("worker_0/trace.json", {"rank": 0}),
        (f"worker_3.{NS}.pt.trace.json", {"rank": 3, "host": None, "pid": None}),
        ("worker_2_7.pt.trace.json", {"rank": 2, "cycle": 7}),
        ("RANK_0.json", {"rank": 0}),
        ("ProfileRank4.json", {"rank": 4}),
        ("rank[7].json", {"rank": 7}),
        ("global_rank_5.json", {"rank": 5, "run": None}),
        ("local_rank_2.json", {"rank": None, "local_rank": 2}),
        ("trace_3.json", {"rank": None, "number": 3, "series": "trace_#.json"}),
        ("run/profile_12.json.gz", {"rank": None, "number": 12, "series": "run/profile_#.json.gz"}),
        ("trace_gpu0.json", {"rank": None, "number": 0}),
        ("x/tp1/trace.json", {"rank": None, "number": 1, "series": "x/tp#/trace.json"}),
        ("x/dp0/tp1/trace.json", {"rank": None, "dims": {"dp": 0, "tp": 1}}),
        ("node1/rank0.json", {"rank": 0, "node": "node1", "host": None}),
        ("node1_rank0.json", {"rank": 0, "node": "node1", "run": None}),
        (
            "n122-197-168_1333345_20241105122131111_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json",
            {"writer": "torch_npu", "host": "n122-197-168", "pid": 1333345, "rank": None},
        ),
        ("log/plugins/profile/2026_01_02/vm-3.trace.json.gz", {"writer": "jax", "host": "vm-3"}),
        ("rank_2/plugins/profile/2026_04_18_00_17_19/perfetto_trace.json.gz", {"rank": 2, "host": None}),
        ("traces/iteration_20/rank3_trace.json", {"rank": 3, "cycle": 20}),
        ("llama_tp4/rank1.json", {"rank": 1, "dims": {}}),
        (f"exp_42_train.{NS}.pt.trace.json", {"host": None, "pid": None, "rank": None}),
        (f"trace_20260403_185138.{NS}.pt.trace.json", {"host": None, "pid": None}),
        (f"2026-04-03_123.{NS}.pt.trace.json", {"host": None, "pid": None}),
        (f"ip-10-0-0-1.ec2.internal_83.{NS}.pt.trace.json", {"host": "ip-10-0-0-1.ec2.internal", "pid": 83}),
        (f"llama-train-worker-0_83.{NS}.pt.trace.json", {"host": "llama-train-worker-0", "pid": 83}),
        ("merged.json", {"what": "merged"}),
        ("combined_trace.pt.trace.json", {"what": "merged", "rank": None}),
        ("rank0_merged.json", {"what": "trace", "rank": 0}),
    ],
)
def test_name(name, expected):
    found = read_rank_name(name)
    assert found is not None
    assert {key: getattr(found, key) for key in expected} == expected
    assert found.what == expected.get("what", "trace")


@pytest.mark.parametrize(
    "name",
    ["notes.txt", "frank1.json", "manifest.json", "model.pt2", "", "/", "x" * 600 + "-rank-1.json", "a.rank"],
)
def test_other_names_say_nothing(name):
    assert read_rank_name(name) is None


def test_numbers_beyond_reason_are_not_ranks():
    found = read_rank_name("x-rank-99999999999999999999.json")
    assert found is None or found.rank is None


@pytest.mark.parametrize(
    "name", ["gpu-a", "node7", "a.b.example.org", "ip-10-0-0-1", "DESKTOP-1A2B3C", "dgx_01"]
)
def test_hosts(name):
    assert looks_like_host(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "rank-0.Apr_03_18_51",
        "2026-04-03",
        "20260403_185138",
        "17",
        "worker",
        "gpu0",
        "train",
        "a b",
        "x" * 300,
        "my_trace",
        "rank0",
        "global_rank",
        "-a",
        "01_02_2026",
    ],
)
def test_what_is_no_host(name):
    assert not looks_like_host(name)


def test_roles():
    assert role_of_word("Prefill") == "prefill"
    assert role_of_word("D3") == "decode"
    assert role_of_word("decoder_0") == "decode"
    assert role_of_word("data") is None
