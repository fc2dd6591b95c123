"""Session folders of simulated ranks, for measuring sessions that no machine at hand can run.

A tensor-parallel group is eight ranks of one host; every fourth group prefills, the others decode what it
hands over. A rank records profiler steps, each with a range that names its requests, layers of operators
that launch kernels, and an all-reduce after every layer in which the group waits for its last rank. Every
fiftieth rank computes a fifth slower than its peers: what an analysis has to find is known.

The recordings say that they are synthetic. They take the way of real ones into the folder: staged, parsed,
packed, read back and published by the steps of the package's own pipeline, and listed in a manifest.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from pathlib import Path

from torchtrt_viz.formats.io.source import Source
from torchtrt_viz.formats.session.health import archive_damage
from torchtrt_viz.formats.session.manifest import MANIFEST, CycleRecord, Manifest, RankRecord
from torchtrt_viz.serving import ProfileConfig, RankIdentity
from torchtrt_viz.serving.artifacts.pack import pack, publish
from torchtrt_viz.serving.artifacts.parse_tables import parse_job_folder
from torchtrt_viz.serving.artifacts.pipeline import write_rank_meta
from torchtrt_viz.serving.artifacts.staging import Job

GROUP = 8
STEPS = 10
LAYERS = 6
TRANSFER_US = 40.0
SLOW = 1.2
BASE_NS = 1_790_000_000_000_000_000
SESSION = "simulated"

# operator, inner operator, kernel, and the kernel's share of the layer
_OPERATORS = (
    ("aten::layer_norm", "aten::native_layer_norm", "vectorized_layer_norm_kernel<float>", 0.05),
    ("aten::linear", "aten::addmm", "sm90_xmma_gemm_f32f32_tn_n", 0.30),
    (
        "aten::scaled_dot_product_attention",
        "aten::_scaled_dot_product_flash_attention",
        "flash_fwd_kernel",
        0.20,
    ),
    ("aten::linear", "aten::addmm", "sm90_xmma_gemm_f32f32_tn_n", 0.30),
    ("aten::gelu", "aten::gelu", "gelu_kernel<float>", 0.05),
    ("aten::add", "aten::add", "elementwise_kernel<add>", 0.10),
)


def is_slow(rank: int) -> bool:
    """Whether this rank is one of those that keep the others waiting."""
    return rank % 50 == 13


def role_of(rank: int) -> str:
    return "prefill" if rank // GROUP % 4 == 0 else "decode"


def _layers(rank: int) -> list[float]:
    """Time that the rank computes in each layer of each step, µs."""
    noise = random.Random(rank)
    base = 400.0 if role_of(rank) == "prefill" else 150.0
    factor = SLOW if is_slow(rank) else 1.0
    return [base * factor * noise.uniform(0.97, 1.03) for _ in range(STEPS * LAYERS)]


class _Writer:
    """Trace events as text."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.events: list[str] = []
        self.correlation = 0

    def add(self, category: str, name: str, start: float, dur: float, tid: int, args: str = "") -> None:
        self.events.append(
            f'{{"ph":"X","cat":"{category}","name":"{name}","pid":{self.pid},"tid":{tid},'
            f'"ts":{start:.3f},"dur":{dur:.3f},"args":{{{args}}}}}'
        )

    def launch(self, name: str, host: float, start: float, dur: float, stream: int, args: str = "") -> None:
        """Launch a kernel: the host's call, the work on the stream, and the arrow between them."""
        self.correlation += 1
        link = f'"correlation":{self.correlation}'
        self.add("cuda_runtime", "cudaLaunchKernel", host, 3.0, 1, link)
        where = f'"device":0,"stream":{stream},{link}{"," if args else ""}{args}'
        self.add("kernel", name, start, dur, stream, where)
        ends = (("s", 1, host), ("f", stream, start))
        self.events += [
            f'{{"ph":"{phase}","id":{self.correlation},"pid":{self.pid},"tid":{tid},"ts":{ts:.3f},'
            f'"cat":"ac2g","name":"ac2g","bp":"e"}}'
            for phase, tid, ts in ends
        ]


def _decoded(rank: int) -> list[str]:
    """Requests that a decoding rank works on: those of a third of the steps of the group that prefills."""
    group = rank // GROUP
    owner = group - group % 4
    return [f"g{owner}-r{r}" for r in range(STEPS) if r % 3 == group % 4 - 1]


def _range(rank: int, step: int) -> str:
    """Name of the range around a step's work: a prefill of one request, or a decode of a batch."""
    group = rank // GROUP
    owner = group - group % 4  # the group that prefills for this one
    if role_of(rank) == "prefill":
        return f"prefill[request=g{owner}-r{step} transfer=g{owner}-x{step} tokens=512]"
    return f"decode[request={','.join(_decoded(rank))}]"


def recording(rank: int, world: int) -> bytes:
    """Return the trace of one rank as Kineto writes it."""
    first = rank - rank % GROUP
    members = [r for r in range(first, first + GROUP) if r < world]
    ours = _layers(rank)
    arrivals = [max(layers) for layers in zip(*(_layers(r) for r in members), strict=True)]
    out = _Writer(1000 + rank)
    ranks = f"[{', '.join(map(str, members))}]"
    group = (
        f'"Collective name":"allreduce","Process Group Name":"tp{first // GROUP}",'
        f'"Process Group Ranks":"{ranks}","Group size":{len(members)},"In msg nelems":65536,'
        f'"Out msg nelems":65536,"dtype":"Float"'
    )
    now = 100.0
    for step in range(STEPS):
        begin = now
        out.add("user_annotation", "schedule", begin, 20.0, 1)
        now += 25.0
        work = now
        for layer in range(LAYERS):
            compute = ours[step * LAYERS + layer]
            at = now
            for outer, inner, kernel, share in _OPERATORS:
                dur = compute * share
                out.add("cpu_op", outer, at, dur * 0.9, 1, '"Input Dims":[[8,512],[512,512]]')
                out.add("cpu_op", inner, at + 0.5, dur * 0.9 - 1.0, 1)
                out.launch(kernel, at + 1.0, at + 4.0, dur * 0.95, 7)
                at += dur
            whole = arrivals[step * LAYERS + layer] + TRANSFER_US
            out.launch(
                "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
                at - 1.0,
                now + compute,
                whole - compute,
                9,
                group,
            )
            now += whole
        if role_of(rank) == "decode" and step == 0:
            for request in _decoded(rank):
                transfer = request.replace("-r", "-x")
                arrived = begin - 40.0 + 2.0 * int(request.split("-r")[1])
                out.add("user_annotation", f"kv_recv[transfer={transfer}]", arrived, 1.5, 1)
        out.add("user_annotation", _range(rank, step), work, now - work, 1)
        if role_of(rank) == "prefill":
            owner = rank // GROUP
            out.add("user_annotation", f"kv_send[transfer=g{owner}-x{step}]", now + 1, 30.0, 1)
            now += 35.0
        out.add("user_annotation", f"ProfilerStep#{step}", begin, now - begin, 1)
        now += 50.0
    header = (
        f'{{"schemaVersion":1,"synthetic":true,"host_name":"node-{rank // GROUP:03d}","displayTimeUnit":"ms",'
        f'"distributedInfo":{{"backend":"nccl","rank":{rank},"world_size":{world}}},'
        f'"baseTimeNanoseconds":{BASE_NS},"traceEvents":[\n'
    )
    return (header + ",\n".join(out.events) + "\n]}").encode()


def publish_rank(folder: Path, rank: int, world: int) -> RankRecord:
    """Take one rank's recording through the pipeline's steps into the session's folder."""
    group = rank // GROUP
    role = role_of(rank)
    identity = RankIdentity(
        rank=rank,
        role=role,
        instance=f"{role}-{group}",
        host=f"node-{group:03d}",
        pid=1000 + rank,
        device="cuda:0",
        world_size=world,
    )
    config = ProfileConfig(output_dir=folder.parent, activities=("cpu",), record_shapes=True)
    job = Job.create(folder / ".staging", folder, SESSION, identity, 0, "steps", config, BASE_NS)
    job.collection = {"start_unix_ns": BASE_NS, "stop_unix_ns": BASE_NS + 10**9}
    job.raw.write_bytes(recording(rank, world))
    write_rank_meta(job)
    parse_job_folder(str(job.folder))
    packed = pack(job, 1)
    damage = archive_damage(Source(job.unpublished))
    if damage is not None:
        raise RuntimeError(f"rank {rank}: {damage}")
    publish(job)
    cycle = CycleRecord(0, "published", job.archive_name, packed.bytes, packed.sha256)
    job.delete()
    job.release()
    return RankRecord(
        rank,
        role=role,
        instance=identity.instance,
        host=identity.host,
        pid=identity.pid,
        state="collected",
        start_unix_ns=BASE_NS,
        stop_unix_ns=BASE_NS + 10**9,
        cycles=[cycle],
    )


def write_manifest(folder: Path, records: Iterable[RankRecord]) -> None:
    manifest = Manifest(SESSION, "complete", ranks=list(records), created_unix_ns=BASE_NS)
    (folder / MANIFEST).write_bytes(manifest.to_json())


def write_session(folder: Path, ranks: int) -> list[RankRecord]:
    """Make a session folder of so many ranks."""
    folder.mkdir(parents=True)
    records = [publish_rank(folder, rank, ranks) for rank in range(ranks)]
    write_manifest(folder, records)
    return records


def part_of_session(whole: Path, records: list[RankRecord], folder: Path, ranks: int) -> None:
    """Make a session folder of the first ranks of another one, sharing its archives."""
    for record in records[:ranks]:
        for cycle in record.cycles:
            assert cycle.archive is not None
            target = folder / cycle.archive
            target.parent.mkdir(parents=True)
            os.link(whole / cycle.archive, target)
    write_manifest(folder, records[:ranks])
