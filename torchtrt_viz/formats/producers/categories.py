"""What the categories and names of trace events mean: the kind of work, and where its time is spent.

One table for JSON and Perfetto alike. Categories are those of libkineto's activity types (and of its ports to
other devices), of the exporters before it (PyTorch 1.8 to 1.11: Operator, Runtime, Kernel, ...), of AMD's and
Intel's tools, of ONNX Runtime (Session, Node, Kernel, Api), Paddle and VizTracer (FEE), of rocprofv3
(``perfetto_category.hpp`` of rocprofiler-sdk) and of ROCm Systems Profiler, which puts ``rocm_`` before the
same names (``categories.h`` of rocprofiler-systems). A category that is not listed says nothing: its events
are ``other``, on the host unless their arguments or the names of their row name a device.
"""

from __future__ import annotations

from torchtrt_viz.model.schema import KINDS

__all__ = ["CATEGORIES", "NAME_RULES", "OTHER", "STEP"]

HOST, GPU, UNSAID = 0, 1, -1


def _kind(name: str) -> int:
    return KINDS.index(name)


def _table(kind: str, domain: int, categories: str) -> dict[str, tuple[int, int]]:
    return {category: (_kind(kind), domain) for category in categories.split()}


#: Category -> (code of the kind, 0 host, 1 GPU, -1 not said).
CATEGORIES: dict[str, tuple[int, int]] = {
    **_table("operator", HOST, "cpu_op Operator operator OperatorInner PythonOp Node"),
    **_table(
        "annotation", HOST, "user_annotation Session ProfileStep Dataloader PythonUserDefined UserDefined"
    ),
    **_table(
        "annotation", GPU, "gpu_user_annotation mlu_user_annotation gcu_user_annotation GCU_USER_ANNOTATION"
    ),
    **_table("kernel", GPU, "kernel Kernel concurrent_kernel mtia_ccp_events hpu_op gpu_op"),
    **_table("memcpy", GPU, "gpu_memcpy Memcpy memcpy mlu_memcpy gcu_memcpy GCU_MEMCPY"),
    **_table("memset", GPU, "gpu_memset Memset memset mlu_memset gcu_memset GCU_MEMSET"),
    **_table(
        "runtime",
        HOST,
        "cuda_runtime cuda_driver hip_runtime Runtime runtime driver xpu_runtime xpu_driver mtia_runtime "
        "glow_runtime mlu_runtime gcu_runtime gcu_driver privateuse1_runtime privateuse1_driver "
        "musa_runtime musa_driver Api CudaRuntime",
    ),
    **_table("kernel", GPU, "kernel_dispatch rocm_kernel_dispatch"),
    **_table("memcpy", GPU, "memory_copy rocm_memory_copy"),
    **_table(
        "runtime",
        HOST,
        "hip_api hsa_api rccl_api rocdecode_api rocjpeg_api rocm_hip_api rocm_hsa_api rocm_rccl_api "
        "rocm_rocdecode_api rocm_rocjpeg_api",
    ),
    **_table("annotation", HOST, "marker_api rocm_marker_api"),
    **_table("memory", HOST, "memory_allocation rocm_memory_allocation"),
    **_table("python", HOST, "python_function FEE fee"),  # VizTracer's, before and since its version 1.0
    **_table("communication", UNSAID, "collective_comm"),
    # CUPTI's synchronisation records last as long as the host call that waits, whatever lane they are put on.
    **_table(
        "other", HOST, "cuda_sync xpu_sync gcu_sync cpu_instant_event overhead external_correlation Trace"
    ),
    **_table("other", GPU, "xpu_scope_profiler gpu_pm_counter mtia_counters"),
    **_table("other", UNSAID, "cuda_event cuda_profiler_range mlu_profiler_range mlu_notifier mtia_insight"),
}

OTHER: tuple[int, int] = (_kind("other"), UNSAID)
STEP: int = _kind("step")


def _rules(how: str, before: str, after: str, texts: str) -> list[tuple[str, str, int, int]]:
    return [(how, text, _kind(before), _kind(after)) for text in texts.split()]


#: (equals, starts or contains; text; code of the kind that the rule applies to; code of the kind it gives).
#: Kernels are looked at up to the bracket of their parameters.
NAME_RULES: list[tuple[str, str, int, int]] = [
    *_rules("starts", "annotation", "step", "ProfilerStep#"),
    # Gloo, MPI and UCC do the transfer in the annotated call; NCCL's annotation is only its launch.
    *_rules("starts", "annotation", "communication", "gloo: mpi: ucc:"),
    *_rules("equals", "other", "memory", "[memory]"),
    *_rules(
        "contains",
        "kernel",
        "communication",
        "nccl rccl mscclpp msccl hccl cncl eccl oneccl nvshmem deep_ep:: cross_device_reduce AllReduce "
        "allreduce all_reduce AllGather allgather all_gather ReduceScatter reduce_scatter AllToAll "
        "all_to_all alltoall",
    ),
]
