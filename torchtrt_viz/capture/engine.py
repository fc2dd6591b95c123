"""One engine without a program: a TensorRT plan or a blob, run on arrays of the host or the device."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from torchtrt_viz.errors import CaptureError, OptionError
from torchtrt_viz.formats.engine.blob import pack_blob
from torchtrt_viz.runtime.modules import capture_module

__all__ = ["Engine"]

_MAGICS = (b"TR01", b"TR02")
_LEGACY_STREAM = 1  # cudaStreamLegacy: the default stream as a handle that is not null


class Engine:
    """An engine to call directly, with everything that a capture records of engines.

    >>> engine = torchtrt_viz.capture.Engine("model.plan")
    >>> with torchtrt_viz.profile(level="layers") as capture:
    ...     engine(x, out=[y], stream=torch.cuda.current_stream())

    Parameters
    ----------
    source
        A serialized TensorRT plan, a ``TR01``/``TR02`` blob as a delegate holds it, or the path of a file
        with either.
    name
        What its files and its rows are called after; by default the file's name, or the one in the blob.
    level, format, path_prefix
        Options of this engine, which win over the process-wide ones that a capture sets. A capture reaches
        engines that were given none.

    Attributes
    ----------
    inputs, outputs : list of dict
        ``name``, ``dtype`` and ``shape`` (-1: dynamic) of each binding, in the order of the call.

    Raises
    ------
    OptionError
        For an option that cannot be.
    CaptureError
        When the engine cannot be made: no TensorRT in this build, libraries that are not found, a plan of
        another TensorRT version or GPU.
    """

    def __init__(
        self,
        source: bytes | str | PathLike[str],
        *,
        name: str = "",
        level: str | None = None,
        format: str | None = None,
        path_prefix: str | PathLike[str] | None = None,
    ) -> None:
        module = capture_module()
        if not isinstance(source, bytes):
            path = Path(source)
            try:
                source = path.read_bytes()
            except OSError as error:
                raise CaptureError(f"{path} cannot be read: {error.strerror or error}") from error
            name = name or path.stem
        if source[:4] not in _MAGICS:
            source = pack_blob(source, io_bindings=[])
        given = {
            "torchtrt_profile_level": level,
            "torchtrt_profile_format": format,
            "torchtrt_profile_path_prefix": None if path_prefix is None else fspath(path_prefix),
        }
        options = {key: value for key, value in given.items() if value is not None}
        self._native = module.Engine(source, name=name, options=options)
        self._in_flight: tuple[Any, ...] = ()

    @property
    def inputs(self) -> list[dict[str, Any]]:
        """The inputs: ``name``, ``dtype``, ``shape``."""
        return list(self._native.inputs)

    @property
    def outputs(self) -> list[dict[str, Any]]:
        """The outputs, as ``inputs``."""
        return list(self._native.outputs)

    @property
    def info(self) -> dict[str, Any]:
        """What is known of the engine: ``engine_id``, ``runtime``, ``level``, ``calls``, ``files``, ..."""
        return dict(self._native.info())

    def __call__(self, *inputs: Any, out: Sequence[Any] | None = None, stream: Any = None) -> list[Any]:
        """Run the engine once.

        Parameters
        ----------
        inputs
            Arrays, in the order of ``self.inputs``: of the host (numpy, or what numpy takes), or of the
            device (anything with ``__cuda_array_interface__``: torch, cupy, numba), contiguous.
        out
            Memory for the outputs, arrays as the inputs; None, or an entry None: a new numpy array.
        stream
            CUDA stream to run on: a handle, or an object with ``cuda_stream`` or ``__cuda_stream__``; 0 is
            the default stream. With a stream and all memory on the device the call returns with its work in
            flight: the results are there when the stream says so, and the engine holds on to the arrays
            until its next call, which waits for that work. None: the call waits for its outputs.

        Returns
        -------
        list
            The outputs: the arrays of ``out``, or new ones.

        Raises
        ------
        CaptureError
            When the engine refuses or fails; the message says which array and why.
        """
        given: Sequence[Any] = [None] * len(self._native.outputs) if out is None else out
        taken = [_memory(array, f"input {i}") for i, array in enumerate(inputs)]
        room = [
            None if array is None else _memory(array, f"output {i}", writable=True)
            for i, array in enumerate(given)
        ]
        results = self._native.run(
            [memory for memory, _ in taken],
            [None if entry is None else entry[0] for entry in room],
            _stream(stream),
        )
        self._in_flight = (inputs, taken, given)
        return [made if array is None else array for made, array in zip(results, given, strict=True)]

    def close(self) -> None:
        """Wait for the work in flight, complete the engine's files, and release it."""
        self._native.close()
        self._in_flight = ()

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _memory(array: Any, what: str, *, writable: bool = False) -> tuple[tuple[Any, ...], Any]:
    """Describe an array as (address, dtype, shape, on the device, bytes), with what keeps it alive."""
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is None:
        host = np.asarray(array)
        if writable and (host is not array or not host.flags.c_contiguous or not host.flags.writeable):
            raise CaptureError(
                f"{what} has to be a contiguous, writable numpy array, or an array of the device"
            )
        host = np.ascontiguousarray(host).reshape(host.shape)
        return (host.ctypes.data, host.dtype.name, list(host.shape), False, host.nbytes), host
    dtype = np.dtype(interface["typestr"])
    shape = [int(size) for size in interface["shape"]]
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    strides = interface.get("strides")
    if strides is not None and size and list(strides) != _contiguous(shape, dtype.itemsize):
        raise CaptureError(f"{what} is not contiguous: pass a contiguous copy")
    address, read_only = interface["data"]
    if writable and read_only:
        raise CaptureError(f"{what} is read-only")
    return (int(address or 0), dtype.name, shape, True, size), array


def _contiguous(shape: list[int], itemsize: int) -> list[int]:
    strides = [itemsize] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    return strides


def _stream(stream: Any) -> int:
    """Return the handle that the native side takes: 0 for no stream."""
    if stream is None:
        return 0
    if hasattr(stream, "__cuda_stream__"):
        stream = stream.__cuda_stream__()[1]
    handle = getattr(stream, "cuda_stream", stream)
    if isinstance(handle, bool) or not isinstance(handle, int) or handle < 0:
        raise OptionError("stream", repr(stream), "choose a handle, or an object with cuda_stream, or None")
    return handle or _LEGACY_STREAM
