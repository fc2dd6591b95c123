"""A loaded ``.pte``: run it, and take what its tracer recorded."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from torchtrt_viz.capture import registry
from torchtrt_viz.capture.artifacts import Recorded, keep_alive, load_program
from torchtrt_viz.capture.proxied import proxied_copy
from torchtrt_viz.capture.temporary_folder import TemporaryFolder
from torchtrt_viz.errors import CaptureError, OptionError
from torchtrt_viz.runtime.modules import capture_module, loaded_torch
from torchtrt_viz.runtime.profile_settings import FORMATS, LEVELS, check_choice, check_path_prefix

if TYPE_CHECKING:
    from torchtrt_viz._native.capture import Session
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["LoadedProgram"]

_BACKEND = "TensorRTBackend"


class LoadedProgram:
    """A loaded ExecuTorch program, its tracer and its engines, which live and die together.

    Parameters and errors are those of :class:`torchtrt_viz.Program`.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        level: str | None = None,
        format: str | None = None,
        path_prefix: str | PathLike[str] | None = None,
        options: Mapping[str, Mapping[str, bool | int | str]] | None = None,
        etrecord: str | PathLike[str] | bool | None = None,
        operators: bool = True,
        time_backends: Sequence[str] = (),
        share_memory: bool = False,
    ) -> None:
        self.path = Path(fspath(path))
        load_options = _load_options(level, format, path_prefix, options)
        self.level = load_options.get(_BACKEND, {}).get("torchtrt_profile_level")
        self.etrecord = _find_etrecord(self.path, etrecord)
        if not self.path.is_file():
            found = "is a folder" if self.path.is_dir() else "does not exist"
            raise CaptureError(f"{self.path} {found}: give the .pte file that export_program() wrote")
        native = capture_module()
        _check_delegate(native)
        loaded = self.path
        self._copy: TemporaryFolder | None = None
        if time_backends:
            self._copy, loaded, proxies = proxied_copy(native, self.path, time_backends)
            for backend, proxy in proxies.items():
                load_options[proxy] = {**load_options.get(_BACKEND, {}), **load_options.pop(backend, {})}
        try:
            self._session: Session = native.Session(
                str(loaded),
                load_options,
                trace=self.level != "off",
                method_only=not operators,
                share_memory=share_memory,
            )
        except CaptureError as error:
            raise CaptureError(_explain_load(self.path, error)) from error
        self._closed = False
        self._recorders = 0
        self._own = self.level not in (None, "off")
        self._session.recording = self._own
        registry.register(self)
        if not self._session.recording:
            # nobody asked for the loading's events
            self._session.clear()

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"{len(self.methods)} methods"
        return f"<Program {self.path.name}: {state}, level {self.level or 'not set'}>"

    # -- running -------------------------------------------------------------------------------------

    @property
    def methods(self) -> list[str]:
        """Names of the program's methods.

        Examples
        --------
        >>> program.methods
        ['forward']
        """
        self._check_open()
        return list(self._session.methods())

    def describe(self, method: str | None = None) -> dict[str, Any]:
        """Return inputs, outputs and backends of a method (``MethodMeta`` of the native module).

        Examples
        --------
        >>> program.describe()["instructions"]
        6
        """
        self._check_open()
        return dict(self._session.method_meta(self._method(method)))

    def run(self, *inputs: Any, method: str | None = None) -> list[Any]:
        """Run a method and return all its outputs.

        Parameters
        ----------
        inputs
            The method's inputs in order; tuples and lists are opened up as torch.export does. Tensors are
            torch tensors, numpy arrays or anything else with DLPack; what is dense in the program's own
            order is not copied, and what the program updates in place is the caller's memory.
        method
            Which method; None: ``forward``, or the only one.

        Returns
        -------
        list
            Outputs in order: torch tensors if an input was one, else numpy arrays; numbers as they are.

        Raises
        ------
        CaptureError
            When the program fails; the message names method and input at fault where it is known.

        Examples
        --------
        >>> [tuple(output.shape) for output in program.run(*inputs)]
        [(1, 5), (1, 5)]
        """
        self._check_open()
        name = self._method(method)
        flat, torch = _flatten(inputs)
        try:
            with _annotation(f"{self.path.stem}.{name}"):
                outputs = self._session.run(name, flat)
        except (CaptureError, TypeError) as error:
            raise CaptureError(
                f"{self.path}, method {name!r}: {error}{self._mismatch(name, flat)}"
            ) from error
        return outputs if torch is None else [_to_torch(torch, value) for value in outputs]

    def __call__(self, *inputs: Any, method: str | None = None) -> Any:
        """Run a method; return its output, or a tuple where there are several.

        Parameters
        ----------
        inputs, method
            As in :meth:`run`.

        Raises
        ------
        CaptureError
            When the program fails.
        """
        outputs = self.run(*inputs, method=method)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    # -- what was recorded ---------------------------------------------------------------------------

    def etdump(self) -> bytes:
        """Return what was recorded since the program was loaded or cleared, as an ETDump file.

        Examples
        --------
        >>> size = (folder / "run.etdp").write_bytes(program.etdump())
        >>> len(tv.load(folder / "run.etdp").spans) > 0
        True
        """
        return self._session.etdump()

    def recorded(self) -> TraceData:
        """Return what was recorded since the program was loaded or cleared.

        Raises
        ------
        CaptureError
            When the program records nothing: it was loaded without ``level``.
        """
        if not self._session.blocks():
            raise CaptureError(
                f"nothing was recorded of {self.path.name}: load it with level='phases' (or delegate, "
                "layers), run it, and ask again; or run it inside `with torchtrt_viz.profile():`"
            )
        folder = TemporaryFolder()
        recorded = Recorded.of(self, 0)
        return keep_alive(load_program(recorded, Path(folder.name)), folder)

    def clear(self) -> None:
        """Forget what was recorded so far.

        Examples
        --------
        >>> before = len(program.etdump())
        >>> program.clear()
        >>> len(program.etdump()) < before
        True
        """
        self._session.clear()

    def engines(self) -> list[dict[str, Any]]:
        """Return what is known of the program's ``TensorRTBackend`` engines (``EngineInfo``).

        Examples
        --------
        >>> [engine["runtime"] for engine in program.engines()]
        ['host', 'host']
        """
        return [dict(engine) for engine in self._session.engines()]

    # -- life ----------------------------------------------------------------------------------------

    def close(self) -> None:
        """Release the program; what was recorded stays readable. Closing twice is fine.

        Examples
        --------
        >>> other = tv.Program(path)
        >>> other.close()
        >>> other.closed
        True
        """
        if not self._closed:
            self._closed = True
            self._session.close()

    @property
    def closed(self) -> bool:
        """Whether the program was closed."""
        return self._closed

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- for captures --------------------------------------------------------------------------------

    def _record(self, on: bool) -> None:
        """Have a capture's recording begin or end; the program's own goes on."""
        with registry.lock:
            self._recorders += 1 if on else -1
            self._session.recording = self._own or self._recorders > 0

    def _check_open(self) -> None:
        if self._closed:
            raise CaptureError(f"{self.path} was closed: load it again with Program({str(self.path)!r})")

    def _method(self, method: str | None) -> str:
        names = self._session.methods()
        if method is None:
            if "forward" in names:
                return "forward"
            if len(names) == 1:
                return str(names[0])
        elif method in names:
            return method
        raise OptionError("method", method, f"one of {', '.join(names)}")

    def _mismatch(self, method: str, inputs: Sequence[Any]) -> str:
        """What is wrong with the inputs, if that is the reason; asked for only after a failure."""
        meta = self._session.method_meta(method)
        wanted = meta["inputs"]
        if len(inputs) != len(wanted):
            return f" (it takes {len(wanted)} inputs, {len(inputs)} were given)"
        for number, (value, expected) in enumerate(zip(inputs, wanted, strict=True)):
            shape = getattr(value, "shape", None)
            dtype = str(getattr(value, "dtype", type(value).__name__)).removeprefix("torch.")
            if expected["tag"] != "tensor":
                continue
            if shape is None:
                return f" (input {number} is a {dtype}, the program takes a tensor)"
            sizes = expected.get("sizes", [])
            if (
                dtype != expected.get("dtype")
                or len(shape) != len(sizes)
                or any(have > most for have, most in zip(shape, sizes, strict=True))
            ):
                return (
                    f" (input {number} is {dtype}{list(shape)}, the program takes "
                    f"{expected.get('dtype')}{sizes}, sizes at most)"
                )
        return ""


def _load_options(
    level: str | None,
    format: str | None,
    path_prefix: str | PathLike[str] | None,
    options: Mapping[str, Mapping[str, bool | int | str]] | None,
) -> dict[str, dict[str, bool | int | str]]:
    merged: dict[str, dict[str, bool | int | str]] = {}
    if options is not None and not isinstance(options, Mapping):
        raise OptionError("options", options, "{backend id: {key: value}}")
    for backend, values in (options or {}).items():
        if not isinstance(backend, str) or not isinstance(values, Mapping):
            raise OptionError("options", options, "{backend id: {key: value}}")
        merged[backend] = dict(values)
    ours = merged.get(_BACKEND, {})
    if level is not None:
        ours["torchtrt_profile_level"] = check_choice("level", level, LEVELS)
    if format is not None:
        ours["torchtrt_profile_format"] = check_choice("format", format, FORMATS)
    if path_prefix is not None:
        ours["torchtrt_profile_path_prefix"] = check_path_prefix("path_prefix", path_prefix)
    if ours:
        merged[_BACKEND] = ours
    return merged


def _find_etrecord(path: Path, given: str | PathLike[str] | bool | None) -> Path | None:
    if given is False:
        return None
    if given is None or given is True:
        beside = path.with_suffix(".etrecord")
        if beside.is_file():
            return beside
        if given is True:
            raise OptionError("etrecord", True, f"an ETRecord beside the program ({beside} does not exist)")
        return None
    named = Path(fspath(given))
    if not named.is_file():
        raise OptionError("etrecord", str(named), "an existing file")
    return named


def _check_delegate(native: Any) -> None:
    status = native.delegate_status()
    if status.get("status") != "registered":
        raise CaptureError(
            f"the delegate {_BACKEND} of this process is not the instrumented one "
            f"({status.get('detail', '')}): import torchtrt_viz.capture before the library that registers "
            "its own, or run in a process of its own"
        )


def _explain_load(path: Path, error: CaptureError) -> str:
    text = str(error)
    named = text if str(path) in text else f"{path} cannot be loaded: {text}"
    name = getattr(error, "error_name", "")
    hints = {
        "InvalidProgram": "the file is damaged, or no .pte of this executorch version: export it again",
        "OperatorMissing": "register the library that has the kernel, or export the operator into a delegate",
    }
    hint = hints.get(name)
    return f"{named}. {hint[0].upper()}{hint[1:]}" if hint and hint not in named else named


def _flatten(inputs: Sequence[Any]) -> tuple[list[Any], Any]:
    """Open up tuples and lists; return the flat inputs, and torch if one of them is its tensor."""
    torch = loaded_torch()
    found = None
    flat: list[Any] = []
    todo = list(reversed(inputs))
    while todo:
        value = todo.pop()
        if isinstance(value, (tuple, list)):
            todo.extend(reversed(value))
            continue
        if torch is not None and isinstance(value, torch.Tensor):
            found = torch
            if value.requires_grad:
                value = value.detach()
            if value.device.type != "cpu":
                raise CaptureError(
                    f"input {len(flat)} is on {value.device}: programs run on the CPU take CPU tensors"
                )
        flat.append(value)
    return flat, found


def _to_torch(torch: Any, value: Any) -> Any:
    import numpy as np

    if isinstance(value, np.ndarray):
        return torch.from_numpy(value)
    if isinstance(value, list):
        return [_to_torch(torch, item) for item in value]
    return torch.from_dlpack(value) if hasattr(value, "__dlpack__") else value


@contextlib.contextmanager
def _annotation(name: str) -> Iterator[None]:
    """Show the call to torch.profiler where that records; nothing otherwise."""
    torch = loaded_torch()
    if torch is None or not torch.autograd.profiler._is_profiler_enabled:
        yield
        return
    with torch.profiler.record_function(name):
        yield
