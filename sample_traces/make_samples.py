"""Make the sample traces: small real files, recorded on a CPU from the demo network.

    python sample_traces/make_samples.py [--folder sample_traces] [--no-package]

Everything is a recording of a run on the machine that calls this script; nothing is made up. Times differ
from machine to machine, so the files are made again only when a format changes. ``MANIFEST.json`` lists each
file with its size, checksum, number of spans and how it was made; ``--check`` compares the folder with it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

MAX_BYTES = 300_000
HOW = {
    "demo_capture": "torchtrt_viz.profile(level='layers') around five runs of the exported demo network, "
    "saved with capture.save(): ETDump with sidecar, ETRecord without weights, torch.profiler's trace",
    "eager.pt.trace.json": "torch.profiler with shapes around two runs of the same network in eager PyTorch, "
    "under torch.profiler.schedule(wait=1, warmup=1, active=2)",
    "trex": "the same program at level layers with format trex: profile and layer information per engine",
    "perfetto": "the same program at level layers with format perfetto: one trace per engine",
    "package": "the same network as an AOTInductor package with engines in it, switched on by "
    "torch.ops.tensorrt.set_profile_execution(True) for three runs: engine, input, enqueue, output traces "
    "and layer information of each engine, as Torch-TensorRT names them",
}


def make_capture(folder: Path, program: Path, inputs: tuple) -> None:
    import torchtrt_viz as tv

    with tv.Program(program) as loaded:
        loaded(*inputs)
        with tv.profile(level="layers") as capture:
            for _ in range(5):
                loaded(*inputs)
    capture.save(folder / "demo_capture", force=True)


def make_eager(folder: Path, module, inputs: tuple) -> None:
    import torch
    from torch.profiler import ProfilerActivity, profile, schedule

    path = folder / "eager.pt.trace.json"
    with (
        torch.no_grad(),
        profile(
            activities=[ProfilerActivity.CPU],
            record_shapes=True,
            schedule=schedule(wait=1, warmup=1, active=2),
            on_trace_ready=lambda p: p.export_chrome_trace(str(path)),
        ) as profiler,
    ):
        for _ in range(4):
            module(*inputs)
            profiler.step()


def make_sidecars(folder: Path, program: Path, inputs: tuple, format: str) -> None:
    import torchtrt_viz as tv

    target = fresh(folder / format)
    with tv.Program(program, level="layers", format=format, path_prefix=target) as loaded:
        for _ in range(5):
            loaded(*inputs)
    shorten(target)


def make_package(folder: Path, module, inputs: tuple, scratch: Path) -> None:
    import torch

    from torchtrt_viz._native import native
    from torchtrt_viz.aot import export_package, load_package
    from torchtrt_viz.examples.demo import EXCLUDED

    target = fresh(folder / "package")
    made = export_package(module, inputs, scratch / "demo.pt2", exclude=EXCLUDED)
    run = load_package(made.path)
    run(*inputs)
    torch.ops.tensorrt.set_profile_path_prefix(str(target))
    torch.ops.tensorrt.set_profile_format("perfetto")
    torch.ops.tensorrt.set_profile_execution(True)
    for _ in range(3):
        run(*inputs)
    torch.ops.tensorrt.set_profile_execution(False)
    native("capture").flush_sidecars()
    shorten(target)


def fresh(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def shorten(folder: Path) -> None:
    """Drop what tells runs apart (engine hash, process) from the files' names: here is one run only."""
    for path in sorted(folder.iterdir()):
        engine, _, rest = path.name.partition("-")
        end = rest[rest.rfind("-p") :].partition("_") if "_" in rest[rest.rfind("-p") :] else None
        suffix = f"_{end[2]}" if end else rest[rest.find(".") :]
        path.rename(folder / f"{engine}{suffix}")


def describe(folder: Path) -> dict:
    """Size, checksum and number of spans of every file."""
    import torchtrt_viz as tv
    from torchtrt_viz.errors import TraceFormatError

    files = {}
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder).as_posix()
        if (
            not path.is_file()
            or (path.parent == folder and path.suffix in (".py", ".md"))
            or path.name == "MANIFEST.json"
            or path.parent.name == "__pycache__"
        ):
            continue
        content = path.read_bytes()
        entry = {
            "bytes": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
            "made_by": HOW[relative.split("/")[0]],
        }
        try:
            loaded = tv.load(path)
            entry["spans"] = len(loaded.spans)
        except (TraceFormatError, AttributeError):
            # part of a set: a sidecar, an ETRecord, layer information
            entry["spans"] = None
        files[relative] = entry
    return files


def check(folder: Path) -> list[str]:
    """Return what differs from the manifest."""
    listed = json.loads((folder / "MANIFEST.json").read_text())["files"]
    found = describe(folder)
    wrong = [f"{name}: not in the manifest" for name in found if name not in listed]
    wrong += [f"{name}: missing" for name in listed if name not in found]
    wrong += [
        f"{name}: {key} is {found[name][key]}, the manifest says {listed[name][key]}"
        for name in found
        if name in listed
        for key in ("bytes", "sha256", "spans")
        if found[name][key] != listed[name][key]
    ]
    wrong += [
        f"{name}: {entry['bytes']} bytes" for name, entry in found.items() if entry["bytes"] >= MAX_BYTES
    ]
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=Path(__file__).resolve().parent)
    parser.add_argument(
        "--no-package", action="store_true", help="leave out the AOTInductor package (a minute)"
    )
    parser.add_argument("--check", action="store_true", help="only compare the folder with its manifest")
    arguments = parser.parse_args()
    folder: Path = arguments.folder
    if arguments.check:
        wrong = check(folder)
        print("\n".join(wrong) or "the samples are those of the manifest")
        return 1 if wrong else 0

    from torchtrt_viz.examples.demo import demo_module, export_demo
    from torchtrt_viz.runtime.modules import versions

    folder.mkdir(parents=True, exist_ok=True)
    module, inputs = demo_module()
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        program = export_demo(scratch / "demo.pte").path
        make_capture(folder, program, inputs)
        make_eager(folder, module, inputs)
        make_sidecars(folder, program, inputs, "trex")
        make_sidecars(folder, program, inputs, "perfetto")
        if not arguments.no_package:
            make_package(folder, module, inputs, scratch)
    replace_paths(folder, scratch)
    files = describe(folder)
    manifest = {"engine_runtime": "host", "versions": versions(), "files": files}
    (folder / "MANIFEST.json").write_text(json.dumps(manifest, indent=1) + "\n")
    for name, entry in files.items():
        print(
            f"{entry['bytes']:>8} {name}" + ("" if entry["spans"] is None else f"  ({entry['spans']} spans)")
        )
    large = [name for name, entry in files.items() if entry["bytes"] >= MAX_BYTES]
    if large:
        print(f"larger than {MAX_BYTES} bytes: {', '.join(large)}", file=sys.stderr)
    return 1 if large else 0


def replace_paths(folder: Path, scratch: Path) -> None:
    """Take this machine's paths and name out of the files that hold any."""
    import socket
    import sysconfig

    neutral = {
        str(scratch): ".",
        str(Path(__file__).resolve().parents[1]): ".",
        sysconfig.get_paths()["purelib"]: "site-packages",
        sysconfig.get_paths()["stdlib"]: "python",
        f'"{socket.gethostname()}"': '"host"',
        tempfile.gettempdir(): ".",
    }

    def clean(content: bytes) -> bytes:
        for here, there in neutral.items():
            content = content.replace(here.encode(), there.encode())
        return content

    for path in folder.rglob("*"):
        if path.suffix in (".json", ".trace"):
            path.write_bytes(clean(path.read_bytes()))
        elif path.suffix == ".etrecord":
            with zipfile.ZipFile(path) as record:
                members = {info: clean(record.read(info)) for info in record.infolist()}
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as record:
                for info, content in members.items():
                    record.writestr(info, content)


if __name__ == "__main__":
    sys.exit(main())
