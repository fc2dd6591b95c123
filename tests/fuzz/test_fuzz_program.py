"""Mutated programs: each loads and runs, or is refused with an error; none ends the process."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.fuzz

# Each mutation runs in a child that is forked off: one that crashed would be seen by its signal.
SCRIPT = """
import collections, json, os, random, resource, sys
import numpy
from torchtrt_viz._native import native

capture = native("capture")
good = open(sys.argv[1], "rb").read()
blob = good.index(b"TR01")
places = [(0, blob), (blob, blob + 2000), (0, len(good)), (blob, len(good))]
seen = collections.Counter()
for seed in range(int(sys.argv[3])):
    chance = random.Random(seed)
    spoiled = bytearray(good)
    first, last = places[seed % len(places)]
    for _ in range(chance.choice([1, 2, 4, 16])):
        at = chance.randrange(first, min(last, len(good)))
        spoiled[at] = chance.randrange(256)
    if seed % 7 == 0:
        del spoiled[chance.randrange(len(good)) :]
    with open(sys.argv[2], "wb") as file:
        file.write(spoiled)
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        resource.setrlimit(resource.RLIMIT_CPU, (30, 30))
        try:
            options = {"TensorRTBackend": {"torchtrt_profile_level": "layers"}}
            session = capture.Session(sys.argv[2], options)
            session.run("forward", [numpy.ones((2, 8), "float32")])
            session.etdump()
        except Exception as error:
            os._exit(11 if type(error).__name__ in ("CaptureError", "OptionError") else 12)
        os._exit(10)
    _, status = os.waitpid(child, 0)
    outcome = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else str(os.WEXITSTATUS(status))
    seen[outcome if outcome in ("10", "11") else f"{outcome} at seed {seed}"] += 1
print(json.dumps(seen))
"""


def test_damaged_programs_never_end_the_process(tmp_path):
    torch = pytest.importorskip("torch", reason="needs torch to export a program")
    pytest.importorskip("executorch", reason="needs executorch")
    from torchtrt_viz.aot import export_program

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(8, 4)

        def forward(self, x):
            return torch.cumsum(torch.relu(self.linear(x)), 1)

    program = tmp_path / "net.pte"
    exported = export_program(Net().eval(), (torch.ones(2, 8),), program, etrecord=False)
    assert [region.backend for region in exported.regions] == ["TensorRTBackend"]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(program), str(tmp_path / "spoiled.pte"), "300"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    seen = json.loads(done.stdout)
    assert set(seen) == {"10", "11"}, seen
    assert sum(seen.values()) == 300
