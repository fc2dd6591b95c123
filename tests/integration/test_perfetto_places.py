"""Host or GPU in Perfetto traces of other writers: told by categories, by names of tracks, or not at all."""

from __future__ import annotations

import pytest
from perfetto_messages import BEGIN, END, annotation, event, mark, message, packet, process, thread, track

from torchtrt_viz.files import load
from torchtrt_viz.formats.perfetto.writer import write_perfetto
from torchtrt_viz.formats.producers.rules import GPU, place_of
from torchtrt_viz.model.schema import KINDS
from torchtrt_viz.trace import Trace


def codes(trace: Trace) -> dict[str, int]:
    return {w.code: w.count for w in trace.meta["warnings"]}


def slice_on(uuid: int, ts: int, name: str, category: str | None = None, *, dur: int = 5) -> bytes:
    return mark(ts, event(BEGIN, name, track=uuid, category=category)) + mark(
        ts + dur, event(END, track=uuid)
    )


def told(trace: Trace) -> dict[str, tuple[str, str, str]]:
    spans = trace.spans
    return dict(
        zip(spans["name"], zip(spans["kind"], spans["domain"], spans["timing"], strict=True), strict=True)
    )


def test_the_case_of_rocprofv3(cases):
    trace = load(cases / "outside/perfetto_unread_packets_silent/rocprofv3.pftrace")
    spans = trace.spans
    sums = {
        kind: (len(rows), int(rows["dur_ns"].sum()), set(rows["domain"]))
        for kind, rows in spans.groupby("kind", observed=True)
    }
    assert sums == {
        "kernel": (4, 1200, {"gpu"}),
        "memcpy": (4, 400, {"gpu"}),
        "runtime": (4, 200, {"host"}),
    }
    kernels = spans[spans["kind"] == "kernel"]
    assert list(kernels["correlation"]) == [100, 101, 102, 103]  # corr_id
    assert list(spans.loc[spans["kind"] == "runtime", "correlation"]) == [100, 101, 102, 103]
    assert set(trace.tracks["device"].iloc[kernels["track"].unique()]) == {0}
    assert codes(trace) == {}


def test_categories_of_rocm_tools(read):
    """perfetto_category.hpp of rocprofiler-sdk; rocprofiler-systems puts rocm_ before the names."""
    expected = {
        "hip_api": ("runtime", "host"),
        "hsa_api": ("runtime", "host"),
        "rccl_api": ("runtime", "host"),
        "rocdecode_api": ("runtime", "host"),
        "marker_api": ("annotation", "host"),
        "memory_allocation": ("memory", "host"),
        "kernel_dispatch": ("kernel", "gpu"),
        "memory_copy": ("memcpy", "gpu"),
        "rocm_hip_api": ("runtime", "host"),
        "rocm_kernel_dispatch": ("kernel", "gpu"),
        "rocm_memory_copy": ("memcpy", "gpu"),
    }
    data = b"".join(slice_on(1, 10 * i, category, category) for i, category in enumerate(expected))
    found = {name: row[:2] for name, row in told(read(track(1, "lane") + data)).items()}
    assert found == expected


@pytest.mark.parametrize(
    ("name", "kind", "device", "stream"),
    [
        # rocprofiler-sdk, source/lib/output/generatePerfetto.cpp, as of versions 0.5 to 1.0
        ("COMPUTE [0] QUEUE [3] (GPU)", "kernel", 0, "3"),
        ("COMPUTE AGENT [4] STREAM [2] (GPU)", "kernel", 4, "2"),
        ("COMPUTE GPU [1] QUEUE [0] GPU", "kernel", 1, "0"),
        ("COPY to [0] THREAD [0] (GPU)", "memcpy", 0, None),
        ("COPY to AGENT [4] STREAM [2] (GPU)", "memcpy", 4, "2"),
        ("COPY to AGENT [0] THREAD [1] (CPU)", "memcpy", None, None),
        ('STREAM [" 567 "] ', "kernel", None, "567"),  # as of ROCm 7
    ],
)
def test_rows_of_rocprofv3(name, kind, device, stream):
    place = place_of("app", name)
    assert place is not None
    assert (place.domain, KINDS[place.kind or 0], place.device, place.stream) == (GPU, kind, device, stream)


def test_names_of_processes_threads_and_tracks_above(read):
    """Rows as XLA names them, as threads of a process and as tracks below a track."""
    trace = read(
        process(1, 7, "/device:GPU:0")
        + thread(2, 1, 7, 13, "Stream #13(compute)")
        + thread(3, 1, 7, 14, "XLA Ops")
        + track(4, "/device:GPU:1")
        + track(5, "Stream #2", parent=4)
        + process(6, 8, "/host:CPU")
        + thread(7, 6, 8, 21, "python3")
        + slice_on(2, 10, "fusion_1")
        + slice_on(2, 20, "MemcpyD2D")
        + slice_on(3, 10, "fusion.1")
        + slice_on(5, 30, "ncclDevKernel_AllReduce")
        + slice_on(7, 0, "PjitFunction")
        + slice_on(7, 6, "cuLaunchKernel")
    )
    assert told(trace) == {
        "fusion_1": ("kernel", "gpu", "measured"),
        "MemcpyD2D": ("memcpy", "gpu", "measured"),
        "fusion.1": ("annotation", "gpu", "modeled"),
        "ncclDevKernel_AllReduce": ("communication", "gpu", "measured"),
        "PjitFunction": ("other", "host", "measured"),
        "cuLaunchKernel": ("runtime", "host", "measured"),
    }
    by_label = trace.tracks.set_index("label")
    assert by_label.loc["Stream #2", ["type", "domain", "device"]].tolist() == ["stream", "gpu", 1]
    assert by_label.loc["python3 21", "domain"] == "host"
    assert trace.meta["producers"] == {"rows": {"xla": 4}, "placed_by_name": 5, "derived": 1} or (
        trace.meta["producers"]["derived"] == 1
    )
    assert codes(trace) == {}


def test_where_nothing_says_a_domain_it_is_said(read):
    trace = read(
        process(1, 7, "app") + thread(2, 1, 7, 7, "main") + slice_on(2, 1, "a") + slice_on(2, 10, "b")
    )
    assert set(trace.spans["domain"]) == {"host"}
    assert codes(trace) == {"domain_unsaid": 2}
    # threads are threads where something else in the file tells what ran on a device; other tracks may be all
    trace = read(
        process(1, 7, "app")
        + thread(2, 1, 7, 7, "main")
        + track(3, "lane", parent=1)
        + track(4, "device", parent=1)
        + slice_on(2, 1, "a")
        + slice_on(3, 1, "b")
        + slice_on(4, 1, "c", "kernel")
    )
    assert codes(trace) == {"domain_unsaid": 1}


def test_names_of_the_whole_system(read):
    """A ProcessTree names the processes and threads whose descriptors have only numbers."""
    tree = packet(
        {
            2: message(
                {
                    1: [message({1: 7, 2: 1, 3: ["/device:GPU:0", "-v"]})],
                    2: [message({1: 13, 2: "Stream #13", 3: 7})],
                }
            )
        }
    )
    descriptor = packet({60: message({1: 2, 4: message({1: 7, 2: 13})})})
    trace = read(tree + descriptor + slice_on(2, 1, "fusion"))
    assert told(trace) == {"fusion": ("kernel", "gpu", "measured")}
    assert trace.meta["accounting"]["packets"]["process_tree"] == 1


def test_what_this_package_wrote_stays_what_it_was(read, tmp_path):
    """Names that would tell a device, and an argument that ROCm's tools take for a correlation."""
    first = read(
        process(1, 7, "/device:GPU:0")
        + thread(2, 1, 7, 13, "python3")
        + mark(1, event(BEGIN, "Memcpy", track=2, category="user_annotation", extra=annotation("corr_id", 5)))
        + mark(9, event(END, track=2))
    )
    again = load(write_perfetto(first, tmp_path / "again.pftrace", args=True))
    assert again.args[0]["corr_id"] == 5
    for name in ("kind", "domain", "timing"):
        assert list(again.spans[name]) == list(first.spans[name])
    host = first.spans.assign(correlation=-1)
    assert (host["correlation"] == again.spans["correlation"]).all() or list(
        again.spans["correlation"]
    ) == list(first.spans["correlation"])
