"""The capture extension: programs, the delegate, the process-wide configuration, clocks, writers.

Importing the module registers the delegate ``TensorRTBackend`` with the executorch runtime that it was
built against (once per process). It needs no torch.

Errors: ``torchtrt_viz.errors.CaptureError`` (with ``error_name`` such as ``"InvalidArgument"`` and ``code``)
for everything that the runtime refuses, ``OptionError`` (key, value, choices) for options that cannot be.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NotRequired, TypedDict, final

import numpy as np
from numpy.typing import NDArray

OptionValue = bool | int | str
Level = Literal["off", "delegate", "phases", "layers"]
Format = Literal["etdump", "perfetto", "trex"]

class ClockAnchor(TypedDict):
    """Clocks read together. ``ticks * numerator / denominator`` is ns since an origin of the process."""

    what: str  # "session", "etdump", "now"
    ticks_before: int
    ticks_after: int
    monotonic_ns: int  # CLOCK_MONOTONIC, as time.perf_counter_ns()
    unix_ns: int
    tick_numerator: int
    tick_denominator: int

class ValueMeta(TypedDict):
    """An input or output of a method."""

    tag: str  # "tensor", "int", "double", "bool", "string", "none", "list_..."
    name: NotRequired[str]
    dtype: NotRequired[str]  # numpy name, or "bfloat16"
    sizes: NotRequired[list[int]]  # upper bounds where the program is dynamic
    dim_order: NotRequired[list[int]]
    nbytes: NotRequired[int]

class MethodMeta(TypedDict):
    name: str
    inputs: list[ValueMeta]
    outputs: list[ValueMeta]
    backends: list[str]  # ids of the backends that the method's delegates use
    instructions: int

class EngineInfo(TypedDict):
    """An engine instance: one delegate of one loaded method, or one engine of an opaque package."""

    engine_id: str  # stable: content hash, method, delegate index
    name: str
    method: str
    delegate_index: int
    instance: int  # 0, 1, ... for engines with one engine_id alive or once alive in the process
    runtime: str  # "host", "tensorrt", or the id of a wrapped backend
    owner: Literal["executorch", "torch"]
    level: Level
    level_source: Literal["load_option", "process", "compile_spec", "default"]
    format: Format
    path_prefix: str
    calls: int
    failed_calls: int
    attachments: int  # times that a layer profiler was attached to an execution context
    contexts: int  # execution contexts made
    layers: list[str]  # ids of the layers seen, in first-seen order
    files: list[str]  # sidecars written
    alive: bool
    last_error: str

class BlockInfo(TypedDict):
    """One block (run data) of the ETDump, in the file's order: what the file itself cannot say."""

    name: str  # "Default" (loading) or "Execute"
    method: str  # "" when not known
    start_ticks: int
    end_ticks: int
    thread: int
    status: Literal["ok", "failed", "unfinished"]
    error: str
    events: int

@final
class Session:
    """A loaded ``.pte``: the module, its tracer and its engines live and die together.

    Parameters
    ----------
    pte_path
        The program.
    options
        Load-time options by backend id and key.
    trace
        Attach an event tracer.
    method_only
        Have the runtime record methods and delegates' events only, no operators.
    load_methods
        Load every method now, so that wrong options fail here; False: at first use.
    mmap
        Map the file instead of reading it.
    """

    def __init__(
        self,
        pte_path: str,
        options: Mapping[str, Mapping[str, OptionValue]] = ...,
        *,
        trace: bool = True,
        method_only: bool = False,
        load_methods: bool = True,
        mmap: bool = True,
        share_memory: bool = False,
    ) -> None: ...
    @property
    def path(self) -> str: ...
    @property
    def traced(self) -> bool: ...
    def methods(self) -> list[str]: ...
    def method_meta(self, method: str) -> MethodMeta: ...
    def load_method(self, method: str) -> None: ...
    def is_loaded(self, method: str) -> bool: ...
    def run(self, method: str, inputs: Sequence[object] = ()) -> list[Any]:
        """Run a method; the GIL is released while it executes, and runs of one session wait for one another.

        Inputs are numpy arrays, any DLPack tensors on the CPU (by pointer where dense in the order that the
        program expects, else copied), int, float or bool. Outputs are numpy arrays that own their data
        (bfloat16: a DLPack object for ``torch.from_dlpack``), int, float, bool, str, None or lists of them.
        """
    @property
    def recording(self) -> bool:
        """Whether runs are kept; off, the tracer stays and keeps nothing. Changes count from the next run."""
    @recording.setter
    def recording(self, on: bool) -> None: ...
    def etdump(self, first_block: int = 0) -> bytes:
        """Return an ETDump file of the blocks from ``first_block`` on, as ``blocks()`` counts them."""
    def blocks(self) -> list[BlockInfo]: ...
    def clear(self) -> None:
        """Forget the blocks collected so far."""
    def event_count(self) -> int: ...
    def engines(self) -> list[EngineInfo]: ...
    def anchors(self) -> list[ClockAnchor]:
        """Return the anchors taken when the session was made and at each ``etdump()``."""
    def close(self) -> None:
        """Release the program. Blocks collected stay readable."""
    def __enter__(self) -> Session: ...
    def __exit__(self, *exc: object) -> None: ...

class Columns(TypedDict):
    """Recorded spans of engine calls, one row each."""

    engine: NDArray[np.int32]  # row of `engines`
    call: NDArray[np.int64]
    kind: NDArray[np.int8]  # row of `kinds`
    name: NDArray[np.int32]  # row of `names` and `labels`
    start_ns: NDArray[np.int64]  # CLOCK_MONOTONIC
    end_ns: NDArray[np.int64]
    thread: NDArray[np.int64]  # the kernel's thread id, as torch.profiler reports it
    timing: NDArray[np.int8]  # row of `timings`: how the times were got
    on_device: NDArray[np.int8]  # 1: GPU time
    names: list[str]  # events' names and layers' ids; a layer's row belongs to one engine
    labels: list[str]  # what people read
    kinds: list[str]
    timings: list[str]
    engines: list[EngineInfo]
    dropped: int  # spans that did not fit

@final
class Recording:
    """Collects the spans of every engine in the process, whoever calls it, until stopped."""

    def __init__(self, capacity: int = ...) -> None: ...
    def stop(self) -> Columns: ...

class ProfileConfig(TypedDict):
    """The process-wide configuration. ``execution`` off: engines follow their own options."""

    execution: bool
    level: Level
    format: Format
    path_prefix: str
    generation: int

def clock_anchor() -> ClockAnchor: ...
def registered_backends() -> list[str]: ...
def built_with() -> dict[str, str]:
    """Return versions that the extension was built with: executorch, simdjson, compiler."""

def event_cost_ns(events: int = ...) -> float:
    """Measure what recording one event of a session costs in this process, in ns."""

def delegate_status() -> dict[str, str]:
    """Return whether ``TensorRTBackend`` of this process is ours: ``{"status": ..., "detail": ...}``.

    ``status``: ``"registered"``, or ``"taken"`` by another library, which ``detail`` names.
    """

def engines() -> list[EngineInfo]:
    """Return every engine instance that this process has made and that still lives or left files."""

def get_profile() -> ProfileConfig: ...
def set_profile(
    *,
    execution: bool | None = None,
    level: str | None = None,
    format: str | None = None,
    path_prefix: str | None = None,
) -> int:
    """Change the process-wide configuration, all or nothing; return the new generation.

    Engines notice at their next call. A level given when a program was loaded wins over it; it wins over
    compile specs. Switching ``execution`` off writes the sidecars that are behind.
    """

def reset_profile() -> int:
    """Return the configuration to what a new process has."""

def set_rank(rank: int | None) -> None:
    """Say which rank this process is: it becomes part of the sidecars' names (else from ``RANK``)."""

def apply_profile() -> None:
    """Have every living engine take over the configuration now, instead of at its next call."""

def flush_sidecars() -> None:
    """Write every engine's sidecars that are behind."""

class Proxy(TypedDict):
    """A proxy delegate: calls of ``backend`` timed under the id ``wrapper``."""

    wrapper: str
    backend: str

def wrap_backend(backend: str, wrapper: str) -> None:
    """Register a proxy delegate ``wrapper`` that passes everything on to ``backend`` and times its calls.

    The two ids have the same length. Registering the same pair again does nothing.
    """

def proxies() -> list[Proxy]: ...
def rename_backends(program: bytes, names: Mapping[str, str]) -> tuple[bytes, dict[str, int]]:
    """Return a copy of a ``.pte`` whose delegates have other ids of the same length, and how many each."""

def load_library(path: str) -> None:
    """Load a library that registers kernels or backends with the runtime."""

def trex_profile(
    calls: int,
    names: Sequence[str],
    total_ns: NDArray[np.int64],
    median_ns: NDArray[np.int64] | None = None,
) -> bytes:
    """Return a TREX profile (trtexec's shape): count, then total, average, median and percentage by layer."""

def write_spans(
    format: Literal["json", "protobuf"],
    *,
    names: Sequence[str],
    name: NDArray[np.int32],
    tracks: Sequence[tuple[int, str, str]],
    track: NDArray[np.int32],
    start_ns: NDArray[np.int64],
    dur_ns: NDArray[np.int64],
    categories: Sequence[str] = ...,
    category: NDArray[np.int32] | None = None,
    args: Sequence[str] = ...,
    metadata: str = "",
    unix_base_ns: int | None = None,
) -> bytes:
    """Return spans as Chrome trace-event JSON, or as a Perfetto protobuf trace.

    Parameters
    ----------
    names, name
        Names, and for each span its row among them.
    tracks, track
        ``(process id, process, thread)``, and for each span its row among them.
    start_ns, dur_ns
        Start on any base, and duration (0 or more), in ns.
    categories, category
        As names; no category column: none has one.
    args
        A JSON object for each span, ``""`` for none.
    metadata
        A JSON object for ``otherData`` of the JSON form.
    unix_base_ns
        Wall clock at ``start_ns == 0``, for the protobuf form.
    """

class BlobInfo(TypedDict):
    """A parsed TR01/TR02 blob."""

    magic: str
    kind: Literal["host", "tensorrt"]
    engine_name: str
    content_hash: str
    payload_size: int
    metadata: str
    stateful: bool
    bindings: list[dict[str, Any]]
    aliases: list[tuple[int, int, str]]
    layers: list[str]

class Binding(TypedDict):
    name: str
    dtype: str
    shape: list[int]

Memory = tuple[int, str, Sequence[int], bool, int]
"""Address, dtype, shape, whether it is on the device, bytes that there is room for."""

class Engine:
    """One engine without a program; ``torchtrt_viz.capture.Engine`` wraps it."""

    def __init__(self, blob: bytes, *, name: str = "", options: Mapping[str, str] = ...) -> None: ...
    def run(self, inputs: Sequence[Memory], outputs: Sequence[Memory | None], stream: int = 0) -> list[Any]:
        """Run once; return for each output its shape, or, where no memory was given, an array."""

    def info(self) -> EngineInfo: ...
    @property
    def inputs(self) -> list[Binding]: ...
    @property
    def outputs(self) -> list[Binding]: ...
    def close(self) -> None: ...

def parse_blob(blob: bytes) -> BlobInfo:
    """Parse a blob; raise CaptureError where it is damaged."""

def tensorrt_problem() -> str:
    """Return why this process cannot run plans of TensorRT, "" when it can; opens the libraries."""

TENSORRT_ENGINE: Final[bool]
"""Whether the TensorRT engine was built in."""
