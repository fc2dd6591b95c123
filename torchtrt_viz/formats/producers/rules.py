"""Which rows of a trace are a device's, told by what their process and thread are called.

libkineto's categories say where time was spent. Many other writers give device work no category, or one of
their own, and tell by the names of processes and threads: this is the one table of those names, for JSON and
Perfetto alike. The first rule that fits a row decides. What no rule fits stays what its category says.

Sources of the names: XLA's and TensorFlow's trace viewer and TensorFlow 1's ``timeline.py``; Ascend's msprof
and torch_npu; rocprof v1's ``tblextr.py``, rocprofv3's ``generatePerfetto.cpp`` and rpd's ``rpd2tracing.py``;
nsys2json; nvprof2json; Paddle's profiler; Intel's unitrace; Triton's Proton; Ray; torch's profiler before
Kineto; libkineto.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.model.schema import DOMAINS, KINDS, TIMINGS

__all__ = ["RULES", "Place", "TrackRule", "place_of", "places_of", "rank_group"]

HOST, GPU = DOMAINS.index("host"), DOMAINS.index("gpu")
UNSAID = -1
MEASURED, MODELED = TIMINGS.index("measured"), TIMINGS.index("modeled")


@dataclass(frozen=True)
class Place:
    """What is known of the events of one row.

    Attributes
    ----------
    producer
        Who writes rows of such names.
    domain
        Position in ``schema.DOMAINS``; None: as the category says.
    kind
        Position in ``schema.KINDS`` of events whose category says nothing.
    timing
        Position in ``schema.TIMINGS``: derived rows are modeled, and in no sum.
    device, stream
        Where the names say them.
    """

    producer: str
    domain: int | None
    kind: int | None
    timing: int = MEASURED
    device: int | None = None
    stream: str | None = None


@dataclass(frozen=True)
class TrackRule:
    """Names of a process and a thread, and what the events of such a row are.

    ``process`` and ``thread`` are searched from their beginning; None fits every text. Groups ``device`` and
    ``stream`` give the numbers. ``labels`` is what the process's metadata says of it beside its name.
    ``uncategorised`` rules hold where no category of the file says anything.
    """

    producer: str
    process: str | None
    thread: str | None
    domain: str | None
    kind: str | None
    timing: str = "measured"
    labels: str | None = None
    uncategorised: bool = False


#: Names of rows that repeat or sum up what other rows hold.
_DERIVED = (
    r"(XLA Modules|XLA Ops|XLA TraceMe|Steps|Framework (Ops|Name Scope)|TensorFlow (Ops|Name Scope)"
    r"|Source code|Source Code|Launch Stats|Sparse Core (Steps|Modules|Syncs))"
)

_AGENT, _STREAM = r"(\w+ )?\[(?P<device>\d+)\]", r"\[(?P<stream>\d+)\]"
#: Copies are put under a stream, or under the thread that asked for them.
_COPIES = rf"(THREAD \[\d+\]|STREAM {_STREAM})"

RULES: tuple[TrackRule, ...] = (
    # libkineto: the profiler's own bookkeeping
    TrackRule("libkineto", r"(Spans|Traces)$", None, "host", None, "modeled"),
    # TensorFlow 1: what an executor did on the host for a device, and what the device did
    TrackRule("tensorflow", r"/job:.*[/:](GPU|TPU|gpu):\d+ ", None, "host", "operator"),
    TrackRule("tensorflow", r"/job:.*[/:](CPU|cpu):\d+ ", None, "host", "operator"),
    TrackRule("tensorflow", r"(/device:GPU:|/gpu:)(?P<device>\d+)/memcpy", None, "gpu", "memcpy"),
    TrackRule(
        "tensorflow", r"(/device:GPU:|/gpu:)(?P<device>\d+)/stream:(?P<stream>\w+)", None, "gpu", "kernel"
    ),
    # XLA and TensorFlow 2. On a GPU the streams hold the work and all other rows repeat it; a TPU has no
    # streams, and its operators are the work.
    TrackRule(
        "xla", r"/device:TPU:(?P<device>\d+)", r"(?P<stream>(Async )?XLA Ops)(?![\w])", "gpu", "kernel"
    ),
    TrackRule(
        "xla",
        r"/device:(GPU|ROCM|SYCL|XPU):(?P<device>\d+)",
        r"Stream #(?P<stream>\d+)",
        "gpu",
        "kernel",
    ),
    TrackRule("xla", r"/device:(\w+):(?P<device>\d+)", _DERIVED, "gpu", "annotation", "modeled"),
    TrackRule("xla", r"/device:(GPU|ROCM|SYCL|XPU|TPU):(?P<device>\d+)", None, "gpu", "kernel"),
    TrackRule("xla", r"#Chip", None, "gpu", "other"),
    TrackRule("xla", r"/host:(CUPTI|ROCTRACER|TPU-runtime)$", None, "host", "runtime"),
    TrackRule("xla", r"/(host|device):(CPU|metadata)|/host:|Host CPUs$|Syscalls$", None, "host", None),
    # Ascend
    TrackRule("ascend", r"Overlap Analysis$", None, "gpu", "annotation", "modeled", labels="NPU"),
    TrackRule("ascend", r"Overlap Analysis$", None, "gpu", "annotation", "modeled"),
    TrackRule("ascend", r"Ascend Hardware$", r"Stream (?P<stream>\d+)", "gpu", "kernel"),
    TrackRule("ascend", r"Ascend Hardware$", None, "gpu", "kernel"),
    TrackRule("ascend", r"(Communication|HCCL)$", r"Plane \d+", "gpu", "annotation", "modeled", labels="NPU"),
    TrackRule("ascend", r"(Communication|HCCL)$", r"(?P<stream>.*)", "gpu", "communication", labels="NPU"),
    TrackRule("ascend", r"(CANN|AscendCL|Runtime|GE|Acl)$", None, "host", "runtime", labels="CPU"),
    # nsys2json: the process is the device, the thread the stream
    TrackRule("nsys2json", r"Device (?P<device>\d+)$", r"Stream (?P<stream>\d+)$", "gpu", "kernel"),
    TrackRule("nsys2json", r"Device \d+$", r"CUDA API Thread", "host", "runtime"),
    # ranges of the host, and the same ranges projected onto the kernels launched in them
    TrackRule("nsys2json", r"Device \d+$", r"NVTX Thread", "host", "annotation"),
    TrackRule("nsys2json", r"Device \d+$", r"NVTX Kernel Thread", "gpu", "annotation", "modeled"),
    # nvprof2json: a process a device and context, rows by what they do, and once more by stream
    TrackRule("nvprof2json", r"\[(?P<device>\d+):\d+\] Overview$", r"MemCpy", "gpu", "memcpy"),
    TrackRule("nvprof2json", r"\[(?P<device>\d+):\d+\] Overview$", r"Memset", "gpu", "memset"),
    TrackRule("nvprof2json", r"\[(?P<device>\d+):\d+\] Overview$", r"Compute", "gpu", "kernel"),
    # torch.autograd.profiler before Kineto
    TrackRule("torch", r"CUDA functions$", None, "gpu", "kernel"),
    TrackRule("torch", r"CPU functions$", None, "host", "operator"),
    # Ray: a row a worker, with its tasks and what they consist of
    TrackRule("ray", None, r"(worker|driver):[0-9a-f]{16,}$", "host", "annotation"),
    # Paddle (older versions misspell the word)
    TrackRule("paddle", r"(Device|Deivce) (?P<device>\d+)\s*\(", r"stream (?P<stream>\d+)", "gpu", "kernel"),
    TrackRule("paddle", r"Process \d+ \((C\+\+|Python|python)", None, "host", None),
    # Intel's unitrace
    TrackRule("unitrace", r"DEVICE<", None, "gpu", "kernel"),
    TrackRule("unitrace", r"HOST<", None, "host", None),
    # Proton: streams, threads with the program's scopes, and scopes made anew for the kernels of graphs
    TrackRule("proton", None, r"Stream: (?P<stream>\d+)$", "gpu", "kernel"),
    TrackRule("proton", None, r"Graph: Stream (?P<stream>\d+)$", "gpu", "annotation", "modeled"),
    TrackRule("proton", None, r"cpu thread \d+$", "host", "annotation"),
    # Proton inside a kernel: scopes of warps, whose kernel is no row
    TrackRule("proton", r".* Core\d+ CTA\d+", r"warp (?P<stream>\d+)", "gpu", "annotation"),
    # rocprof v1 and rpd
    TrackRule("rocprof", r"CPU (HIP|HSA) API$", None, "host", "runtime"),
    TrackRule("rocprof", r"(CPU ROCTX|Markers and Ranges)", None, "host", "annotation"),
    TrackRule("rocprof", r"COPY$", None, "gpu", "memcpy"),
    TrackRule("rocprof", r"GPU ?(?P<device>\d+)$", r"(?P<stream>.*)", "gpu", "kernel"),
    # rocprofv3: what runs on an agent has the agent's number and sort in the name of its row
    TrackRule("rocprofv3", None, rf"COMPUTE {_AGENT} (QUEUE|STREAM) {_STREAM} \(?GPU", "gpu", "kernel"),
    TrackRule("rocprofv3", None, rf"COPY to {_AGENT} {_COPIES} \(?GPU", "gpu", "memcpy"),
    TrackRule("rocprofv3", None, rf"COPY to (\w+ )?\[\d+\] {_COPIES} \(?CPU", "gpu", "memcpy"),
    TrackRule("rocprofv3", None, r'STREAM \[" ?(?P<stream>\d+) ?"\]', "gpu", "kernel"),
    TrackRule("rocprofv3", None, r"THREAD \d+ \(", "host", None),
    # libkineto's metadata, where somebody's filter took the categories away
    TrackRule(
        "libkineto",
        None,
        r"stream (?P<stream>-?\d+)",
        "gpu",
        "kernel",
        labels="GPU",
        uncategorised=True,
    ),
)

_COMPILED = tuple(
    (
        rule,
        None if rule.process is None else re.compile(rule.process),
        None if rule.thread is None else re.compile(rule.thread),
    )
    for rule in RULES
)


def place_of(
    process: str | None, thread: str | None, labels: str = "", *, categorised: bool = False
) -> Place | None:
    """Return what the names of a row say; None where they say nothing.

    Parameters
    ----------
    process, thread
        Names; where there are none, the ids as the file writes them.
    labels
        What the process's metadata says of it beside its name ("GPU 0", "NPU").
    categorised
        Whether categories of the file are known.
    """
    if not process and not thread:
        return None
    for rule, of_process, of_thread in _COMPILED:
        if (rule.uncategorised and categorised) or (rule.labels is not None and rule.labels not in labels):
            continue
        found = None if of_process is None else of_process.match(process or "")
        if of_process is not None and found is None:
            continue
        within = None if of_thread is None else of_thread.match(thread or "")
        if of_thread is not None and within is None:
            continue
        named = {**(found.groupdict() if found else {}), **(within.groupdict() if within else {})}
        device = named.get("device")
        return Place(
            producer=rule.producer,
            domain=None if rule.domain is None else DOMAINS.index(rule.domain),
            kind=None if rule.kind is None else KINDS.index(rule.kind),
            timing=TIMINGS.index(rule.timing),
            device=int(device) if device is not None and len(device) < 10 else None,
            stream=named.get("stream") or None,
        )
    return None


def places_of(
    rows: Iterable[tuple[str | None, str | None, str]], *, categorised: bool = False
) -> list[Place | None]:
    """Return what the names of each row (process, thread, labels of the process) say.

    TensorFlow 1 writes every stream twice, by itself and in ``stream:all``: where both are there, the sum is
    derived.
    """
    listed = list(rows)
    out: list[Place | None] = [place_of(*row, categorised=categorised) for row in listed]
    single = {p.device for p in out if p is not None and p.producer == "tensorflow" and _numbered(p.stream)}
    for at, place in enumerate(out):
        sums_up = place is not None and place.producer == "tensorflow" and place.stream == "all"
        if place is not None and sums_up and place.device in single:
            out[at] = Place("tensorflow", GPU, KINDS.index("annotation"), MODELED, place.device, "all")
    return out


def columns_of(
    places: Sequence[Place | None],
) -> tuple[NDArray[np.int8], NDArray[np.int8], NDArray[np.int8]]:
    """Return domain, kind (`UNSAID` where the names do not say) and timing of each row."""
    return (
        np.array([UNSAID if p is None or p.domain is None else p.domain for p in places], np.int8),
        np.array([UNSAID if p is None or p.kind is None else p.kind for p in places], np.int8),
        np.array([MEASURED if p is None else p.timing for p in places], np.int8),
    )


def _numbered(stream: str | None) -> bool:
    return stream is not None and stream.isdigit()


_RANK = re.compile(r"\[(?P<group>[^\]]*?(?P<kind>rank|TP|DP|PP|EP)[^\]]*)\] ?", re.IGNORECASE)
#: "[rank 3] 4711", "rank3_4711", "Rank 3 - GPU Stream", "rank 3": a word and its number, before all else.
_PLAIN_RANK = re.compile(r"\[?rank[ _:=-]?(?P<rank>\d{1,9})(?![0-9A-Za-z])", re.IGNORECASE)
_PARTS = re.compile(r"(TP|DP|PP|EP)(\d+)")


def rank_group(process: str | None, name: str = "") -> str | None:
    """Return the rank that a merged recording gives a process; None where it gives none.

    Mergers put it before the process id ("[TP00-DP00-PP00-EP00] 83", "[rank 1] 83", "rank1_83") or, where ids
    are numbers, into the name of the process ("[rank 1] python", "Rank 1 - GPU Stream").

    Parameters
    ----------
    process, name
        The process id as the file writes it, and what the process is called.
    """
    for text in (process or "", name):
        plain = _PLAIN_RANK.match(text) or _PLAIN_RANK.match(text.replace("_", " "))
        if plain is not None:
            return f"rank {int(plain['rank'])}"
        found = _RANK.match(text)
        if found is not None:
            return found["group"]
    return None


def rank_numbers(groups: Sequence[str]) -> dict[str, int]:
    """Number the ranks of one merged recording: by a number in their marks, else in order.

    Ranks of tensor, data, pipeline and expert parallelism are told apart by all of their numbers; the one
    that differs between all of them is the rank's.
    """
    parts = {group: dict(_PARTS.findall(group)) for group in groups}
    for name in ("TP", "DP", "PP", "EP"):
        values = [parts[group].get(name) for group in groups]
        if None not in values and len(set(values)) == len(groups):
            return {group: int(parts[group][name]) for group in groups}
    plain = {group: re.findall(r"\d+", group) for group in groups}
    if all(len(numbers) == 1 for numbers in plain.values()):
        numbers = {group: int(found[0]) for group, found in plain.items()}
        if len(set(numbers.values())) == len(groups):
            return numbers
    return {group: number for number, group in enumerate(sorted(groups))}
