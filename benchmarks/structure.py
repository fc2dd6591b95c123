"""Two runs of a transformer, as on two vendors' devices, compared by their structure.

    python benchmarks/structure.py [--spans 1000000] [--rounds 3] [--trace A --trace B]

Writes two Kineto traces of about ``--spans`` spans each (modules, operators, launches, kernels; names of
kernels and some operators differ, every fourth layer of the second run has a fused activation), loads them,
and times the comparison in a process that has loaded both: CPU seconds, medians over the rounds. *steps* has
ten iterations, which are merged; *one run* has the same spans in one iteration, every call a node of its own:
the worst case. ``--trace`` twice takes two files instead.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any, TextIO

import torchtrt_viz as tv

_EVENTS_A_LAYER = 44


class _Writer:
    def __init__(self, file: TextIO, vendor: str) -> None:
        self.file, self.vendor = file, vendor
        self.now, self.free, self.correlation = 0.0, 0.0, 0
        self.count = 0
        file.write('{"traceEvents":[{"ph":"M","name":"process_name","pid":1,"args":{"name":"python"}}')

    def event(self, name: str, cat: str, start: float, dur: float, **rest: Any) -> None:
        place = '"pid":0,"tid":7' if cat == "kernel" else '"pid":1,"tid":1'
        args = f',"args":{{"correlation":{rest["correlation"]},"device":0,"stream":7}}' if rest else ""
        self.file.write(
            f',\n{{"ph":"X","name":"{name}","cat":"{cat}","ts":{start:.3f},"dur":{dur:.3f},{place}{args}}}'
        )
        self.count += 1

    def call(self, name: str, inner: Any = None, cat: str = "cpu_op") -> None:
        start = self.now
        self.now += 1.0
        if inner is not None:
            inner()
        self.now += 1.0
        self.event(name, cat, start, self.now - start)

    def kernel(self, cuda: str, hip: str) -> Any:
        def launch() -> None:
            self.correlation += 1
            call = "cudaLaunchKernel" if self.vendor == "cuda" else "hipLaunchKernel"
            self.event(call, "cuda_runtime", self.now, 0.5, correlation=self.correlation)
            self.free = max(self.free, self.now + 2.0)
            name = cuda if self.vendor == "cuda" else hip
            self.event(name, "kernel", self.free, 3.0, correlation=self.correlation)
            self.now += 1.0
            self.free += 3.5

        return launch

    def linear(self) -> None:
        product = self.kernel("sm90_xmma_gemm_bf16_tn", "Cijk_Alik_Bljk_BBS_MT256x192")

        def inner() -> None:
            self.call("aten::t", lambda: self.call("aten::transpose"))
            self.call("aten::addmm", product)

        self.call("aten::linear", inner)

    def layer(self, number: int) -> None:
        add = self.kernel(
            "vectorized_elementwise_kernel<4, CUDAFunctor_add>", "elementwise_kernel<CUDAFunctor_add>"
        )
        norm = self.kernel("vectorized_layer_norm_kernel", "vectorized_layer_norm_kernel")
        attention = self.kernel("flash_fwd_kernel<64>", "attn_fwd")
        relu = self.kernel("relu_kernel", "relu_kernel")

        def block() -> None:
            for _ in range(4):
                self.call("nn.Module: Linear_0", self.linear, "python_function")
            self.call("aten::_flash_attention_forward", attention)
            if self.vendor != "cuda" and number % 4 == 0:
                self.call("custom::add_relu", add)
            else:
                self.call("aten::add", add)
                self.call("aten::relu", relu)
            self.call("aten::layer_norm", lambda: self.call("aten::native_layer_norm", norm))

        self.call(f"nn.Module: Layer_{number}", block, "python_function")

    def close(self) -> None:
        self.file.write("\n]}\n")


def write(path: Path, vendor: str, spans: int, steps: int) -> int:
    """Write a trace of about so many spans; return how many there are."""
    with path.open("w") as file:
        writer = _Writer(file, vendor)
        layers = max(1, spans // steps // _EVENTS_A_LAYER)
        for step in range(steps):
            begin = writer.now
            for number in range(layers):
                writer.layer(number)
            writer.now += 1.0
            if steps > 1:
                writer.event(f"ProfilerStep#{step}", "user_annotation", begin - 0.5, writer.now - begin)
            writer.now += 10.0
        writer.close()
        return writer.count


def measure(a: tv.Trace, b: tv.Trace, rounds: int) -> tuple[float, Any]:
    """Return the median CPU time of a comparison, and its table."""
    times = []
    for _ in range(rounds):
        begin = time.process_time()
        table = tv.compare_structure(a, b)
        times.append(time.process_time() - begin)
    return statistics.median(times), table


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--spans", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--trace", action="append", default=[])
    options = parser.parse_args()
    print(f"{platform.machine()}, Python {platform.python_version()}, torchtrt_viz {tv.__version__}")
    with tempfile.TemporaryDirectory() as folder:
        cases: dict[str, list[str]] = {}
        if options.trace:
            cases["files"] = options.trace
        else:
            for name, steps in (("steps", 10), ("one run", 1)):
                paths = [
                    Path(folder) / f"{name.replace(' ', '_')}_{vendor}.json" for vendor in ("cuda", "rocm")
                ]
                for path, vendor in zip(paths, ("cuda", "rocm"), strict=True):
                    write(path, vendor, options.spans, steps)
                cases[name] = [str(path) for path in paths]
        for name, (before, after) in cases.items():
            a, b = tv.load(before), tv.load(after)
            assert isinstance(a, tv.Trace)
            assert isinstance(b, tv.Trace)
            seconds, table = measure(a, b, options.rounds)
            changes = table["change"].value_counts()
            said = ", ".join(f"{changes[change]} {change}" for change in changes.index if changes[change])
            print(
                f"{name}: {len(a.spans):,} and {len(b.spans):,} spans in {seconds:.2f} s; "
                f"{table.attrs['coverage']}; rows: {said}"
            )


if __name__ == "__main__":
    main()
