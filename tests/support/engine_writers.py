"""One small engine as its several writers write it: the same two layers and times in every dialect.

``conv`` reads x (1x8, FP32: 32 bytes) and writes h (1x4, FP16: 8 bytes), with 32 FP16 weights (64 bytes);
``act`` reads h and writes y (1x4, FP32: 16 bytes). In ten calls ``conv`` took 5 ms and ``act`` 3 ms.
"""

from __future__ import annotations

import json
from typing import Any

CALLS = 10
TOTALS_MS = {"conv": 5.0, "act": 3.0}

_TENSORS = {"x": ([1, 8], "FP32"), "h": ([1, 4], "FP16"), "y": ([1, 4], "FP32")}
_ENDS = {"conv": ("x", "h"), "act": ("h", "y")}
_WORDS = {"FP32": ("Row major linear FP32", "Float"), "FP16": ("Row major linear FP16 format", "Half")}


def dumps(document: object) -> bytes:
    return json.dumps(document).encode()


# -- layer information -------------------------------------------------------------------------------------


def _tensor(name: str, *, split: bool) -> dict[str, Any]:
    sizes, dtype = _TENSORS[name]
    prose, word = _WORDS[dtype]
    how = {"Format": "Linear", "Datatype": word} if split else {"Format/Datatype": prose}
    return {"Name": name, "Location": "Device", "Dimensions": sizes, **how}


def _layers(*, split: bool = False, metadata: bool = True) -> list[dict[str, Any]]:
    out = []
    for name, (read, written) in _ENDS.items():
        layer: dict[str, Any] = {
            "Name": name,
            "LayerType": "CaskConvolution" if name == "conv" else "PointWiseV2",
            "Inputs": [_tensor(read, split=split)],
            "Outputs": [_tensor(written, split=split)],
            "TacticName": f"sm80_{name}",
        }
        if name == "conv":
            layer["Weights"] = {"Type": "Half", "Count": 32}
        if metadata:
            layer |= {"StreamId": 0, "Metadata": f"[ONNX Layer: /net/{name}]"}
        out.append(layer)
    return out


def _io_tensor(name: str, mode: str) -> dict[str, Any]:
    sizes, dtype = _TENSORS[name]
    ranges = {"MinShape": [1, sizes[1]], "OptShape": [4, sizes[1]], "MaxShape": [8, sizes[1]]}
    return {
        "Name": name,
        "IOMode": mode,
        "DataType": _WORDS[dtype][1],
        "Dimensions": [-1, sizes[1]] if mode == "Input" else sizes,
        "Location": "Device",
        "ProfileInfo": [{**(ranges if mode == "Input" else {}), "Format": "Linear"}],
    }


GRAPHS: dict[str, bytes] = {
    "TensorRT 8.2": dumps({"Layers": _layers(metadata=False)}),
    "TensorRT 10": dumps({"Layers": _layers(), "Bindings": ["x", "y"]}),
    "TensorRT 11": dumps(
        {
            "ProfilingVerbosity": "Detailed",
            "Layers": _layers(split=True),
            "I/O Tensors": [_io_tensor("x", "Input"), _io_tensor("y", "Output")],
        }
    ),
}


# -- layer times -------------------------------------------------------------------------------------------


def _times(*, middle: bool) -> list[dict[str, Any]]:
    whole = sum(TOTALS_MS.values())
    return [
        {
            "name": name,
            "timeMs": total,
            "averageMs": total / CALLS,
            **({"medianMs": total / CALLS - 0.01} if middle else {}),
            "percentage": 100 * total / whole,
        }
        for name, total in TOTALS_MS.items()
    ]


def _engine_events(**args: object) -> list[dict[str, Any]]:
    """``ts`` is a running sum, and ``dur`` the total in microseconds."""
    events, at = [], 0.0
    for name, total in TOTALS_MS.items():
        events.append(
            {"name": name, "ph": "X", "ts": at, "dur": 1000 * total, "tid": 1,
             "pid": "net Engine Execution", "args": args}
        )  # fmt: skip
        at += 1000 * total
    return events


PROFILES: dict[str, tuple[str, bytes]] = {
    "trtexec": ("net.profile.json", dumps([{"count": CALLS}, *_times(middle=True)])),
    "trtexec before 8.5": ("net.profile.json", dumps([{"count": CALLS}, *_times(middle=False)])),
    "Torch-TensorRT, trex": ("net_engine_execution_profile.trace", dumps(_times(middle=False))),
    "Torch-TensorRT, perfetto": ("net_engine_execution_profile.trace", dumps(_engine_events())),
    "with counts": ("net_engine_execution_profile.trace", dumps(_engine_events(count=CALLS))),
    "readings": (
        "net_layer_latency.json",
        dumps({name: [total / CALLS] * CALLS for name, total in TOTALS_MS.items()}),
    ),
    "dated readings": (
        "any.json",
        dumps(
            {
                name: [[total / CALLS, f"20260101-00:00:{second:02}"] for second in range(CALLS)]
                for name, total in TOTALS_MS.items()
            }
        ),
    ),
}


# -- timed inferences --------------------------------------------------------------------------------------


def timing(*, old: bool = False) -> bytes:
    """Two inferences: copy in 0.1 ms, compute 0.6 and 0.8 ms, copy out 0.2 ms, enqueue 0.05 ms."""
    rows = []
    for begin, compute in ((0.0, 0.6), (2.0, 0.8)):
        at = begin + 0.1
        rows.append(
            {
                "startEnqMs": begin, "endEnqMs": begin + 0.05,
                "startInMs" if old else "startH2dMs": begin, "endInMs" if old else "endH2dMs": at,
                "startComputeMs": at, "endComputeMs": at + compute,
                "startOutMs" if old else "startD2hMs": at + compute,
                "endOutMs" if old else "endD2hMs": at + compute + 0.2,
                "inMs" if old else "h2dMs": 0.1, "computeMs": compute, "outMs" if old else "d2hMs": 0.2,
                "latencyMs": 0.3 + compute,
            }
        )  # fmt: skip
    return dumps(rows)


# -- metadata ----------------------------------------------------------------------------------------------

FIGURES = {
    "Latency": 1.0,
    "Enqueue Time": 0.05,
    "H2D Latency": 0.1,
    "GPU Compute Time": 0.7,
    "D2H Latency": 0.2,
}

PROFILE_METADATA = {
    "performance_summary": {
        "Throughput": 800.0,
        # min, max, mean, median, and the percentiles 90, 95 and 99
        **{
            name: [mean - 0.01, mean + 0.02, mean, mean, *[mean + 0.01] * 3] for name, mean in FIGURES.items()
        },
        "Total Host Walltime": 3.0,
        "Total GPU Compute Time": 2.5,
        "Something new": "as it is",
    },
    "inference_options": {"Batch": "Explicit", "Streams": "1"},
    "device_information": {"Selected Device": "NVIDIA A100", "SMs": "108"},
    "remark": "no section",
}
BUILD_METADATA = {
    "build_options": {"Precision": "FP32+FP16", "Refit": "Disabled"},
    "model_options": {"Format": "ONNX"},
}
DEVICES = [
    {"Name": "NVIDIA A100", "ComputeCapability": "8.0"},
    {"Name": "NVIDIA T4", "ComputeCapability": "7.5"},
]


# -- logs --------------------------------------------------------------------------------------------------

STAMP = "[07/07/2026-02:11:40] [I] "


def log(*lines: str, prefix: str = STAMP) -> bytes:
    return "".join(f"{prefix}{line}\n" for line in lines).encode()


MODERN_LOG = b"&&&& RUNNING TensorRT.trtexec [TensorRT v101601]\n" + log(
    "=== Model Options ===",
    "Format: ONNX",
    "",
    "=== Inference Options ===",
    "Batch: Explicit",
    "",
    "=== Reporting Options ===",
    "Percentiles: 90,99",
    "",
    "=== Device Information ===",
    "Selected Device: NVIDIA A100",
    "",
    "SMs: 108",
    "",
    "TensorRT version: 10.16.1",
    "",
    "=== Performance summary ===",
    "Throughput: 800.5 qps",
    "Latency: min = 0.9 ms, max = 1.2 ms, mean = 1 ms, median = 0.98 ms, "
    "percentile(90%) = 1.1 ms, percentile(99%) = 1.15 ms",
    "GPU Compute Time: min = 0.6 ms, max = 0.8 ms, mean = 0.7 ms, median = 0.7 ms, "
    "percentile(90%) = 0.75 ms, percentile(99%) = 0.79 ms",
    "Total Host Walltime: 3.001 s",
    "",
    "=== Profile (10 iterations ) ===",
    "   Time(ms)     Avg.(ms)   Median(ms)   Time(%)   Layer",
    "       5.00       0.5000       0.4900      62.5   conv",
    "       3.00       0.3000       0.2900      37.5   act",
    "       8.00       0.8000       0.7800     100.0   Total",
    "",
)

OLD_LOG = log(
    "=== Performance summary ===",
    "Host Latency",
    "min: 0.9 ms (end to end 1 ms)",
    "max: 1.2 ms (end to end 1.3 ms)",
    "mean: 1 ms (end to end 1.1 ms)",
    "median: 0.98 ms (end to end 1 ms)",
    "percentile: 1.15 ms at 99% (end to end 1.2 ms at 99%)",
    "throughput: 0 qps",
    "GPU Compute",
    "min: 0.6 ms",
    "max: 0.8 ms",
    "mean: 0.7 ms",
    "median: 0.7 ms",
    "percentile: 0.79 ms at 99%",
    "=== Profile (10 iterations) ===",
    "   Layer   Time (ms)   Avg. Time (ms)   Time %",
    "    conv        5.00           0.5000     62.5",
    "     act        3.00           0.3000     37.5",
    "   Total        8.00           0.8000    100.0",
    "",
    prefix="[I] ",
)


def _inspector_line(name: str, *, metadata: str) -> str:
    read, written = _ENDS[name]

    def one(tensor: str) -> str:
        sizes, dtype = _TENSORS[tensor]
        return (
            f"{{ Name: {tensor}, Location: Device, Dimensions: [{','.join(map(str, sizes))}], "
            f"Format/Datatype: {_WORDS[dtype][0]} }}"
        )

    kind = "CaskConvolution" if name == "conv" else "PointWiseV2"
    weights = 'Kernel: [1,1], Weights: {"Type": "Half", "Count": 32}, HasBias: 0, ' if name == "conv" else ""
    return (
        f"Name: {name}, LayerType: {kind}, Inputs: [ {one(read)}], Outputs: [ {one(written)}], "
        f"{weights}TacticName: sm80_{name}, StreamId: 0, Metadata: {metadata}"
    )


INSPECTOR_LOG = "\n".join(
    [
        "[07/07/2026-06:11:36] [TRT] [W] a warning between",
        _inspector_line("conv", metadata="[ONNX Layer: /net/conv]"),
        _inspector_line("act", metadata="[ONNX Layer: /net/act]"),
        "Name: s, LayerType: signal, Inputs: [], Outputs: []",
        "Name: w, LayerType: wait",
        "Name: cut off, LayerType: kgen, Inputs: [ { Name: x",
        "",
        "Bindings:",
        "x",
        "y",
        "",
        "anything else",
    ]
).encode()

PROFILER_LOG = "\n".join(
    [
        "Start",
        *("Timing:   500.000us -> conv", "Timing:   300.000us -> act") * CALLS,
        "End",
        "Timing:   700.000us -> conv",
        "Timing:   100.000us -> act",
    ]
).encode()
