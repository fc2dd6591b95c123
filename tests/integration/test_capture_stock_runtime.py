"""Programs that executorch's own Python runtime runs reach our delegate, and the process-wide switch them."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import torchtrt_viz._native as package


@pytest.fixture
def runtime(capture_module):
    capture_module.reset_profile()
    portable = pytest.importorskip("executorch.extension.pybindings.portable_lib")
    yield portable
    capture_module.reset_profile()


def test_a_stock_program_is_recorded_by_the_process_switch(capture_module, runtime, demo):
    module = runtime._load_for_executorch(str(demo.path))
    before = module.forward(demo.inputs)
    recording = capture_module.Recording()
    capture_module.set_profile(execution=True, level="layers", format="etdump")
    during = module.forward(demo.inputs)
    capture_module.set_profile(execution=False)
    after = module.forward(demo.inputs)
    columns = recording.stop()
    for a, b, c in zip(before, during, after, strict=True):
        assert np.array_equal(a.numpy(), b.numpy())
        assert np.array_equal(a.numpy(), c.numpy())
    kinds = [columns["kinds"][k] for k in columns["kind"]]
    engines = len(columns["engines"])
    assert kinds.count("delegate") == engines > 0
    assert kinds.count("phase") == 6 * engines
    assert kinds.count("layer") > engines
    assert {engine["level_source"] for engine in columns["engines"]} == {"process"}


def test_stock_etdumps_hold_our_events(capture_module, runtime, demo, tmp_path):
    capture_module.set_profile(execution=True, level="layers", format="etdump")
    module = runtime._load_for_executorch(str(demo.path), enable_etdump=True)
    module.forward(demo.inputs)
    path = tmp_path / "stock.etdp"
    module.write_etdump_result_to_file(str(path))
    content = path.read_bytes()
    for event in (b"torchtrt.delegate", b"torchtrt.enqueue_host", b"layer_0000_", b'"engine_runtime":"host"'):
        assert event in content


def test_refused_process_settings_change_nothing(capture_module, runtime):
    from torchtrt_viz.errors import OptionError

    before = capture_module.get_profile()
    for wrong in ({"level": "all"}, {"format": "json"}, {"path_prefix": ""}, {"path_prefix": "x" * 5000}):
        with pytest.raises(OptionError) as caught:
            capture_module.set_profile(execution=True, **wrong)
        assert caught.value.choices
        assert capture_module.get_profile() == before
    assert capture_module.set_profile(level="phases") == before["generation"] + 1


def test_the_delegate_loads_without_our_module(demo):
    """By ctypes into executorch's runtime; a second copy of the library says that the name is taken."""
    library = Path(next(iter(package.__path__))) / "lib" / "libtorchtrt_viz_executorch.so"
    script = f"""
import ctypes, shutil, sys, tempfile, pathlib
from executorch.extension.pybindings import portable_lib
library = ctypes.CDLL({str(library)!r})
assert library.torchtrt_viz_delegate_status() == 0
import torch
module = portable_lib._load_for_executorch({str(demo.path)!r})
meta = module.method_meta("forward").input_tensor_meta(0)
outputs = module.forward([torch.ones(tuple(meta.sizes()))])
assert len(outputs) == 2
copy = pathlib.Path(tempfile.mkdtemp()) / "libcopy.so"
shutil.copy({str(library)!r}, copy)
for name in ("libtorchtrt_viz_core.so",):
    shutil.copy(pathlib.Path({str(library)!r}).with_name(name), copy.with_name(name))
second = ctypes.CDLL(str(copy))
assert second.torchtrt_viz_delegate_status() == 1
second.torchtrt_viz_delegate_detail.restype = ctypes.c_char_p
detail = second.torchtrt_viz_delegate_detail().decode()
assert "already registered" in detail and "libtorchtrt_viz_executorch.so" in detail, detail
assert not any(name.startswith("torchtrt_viz") for name in sys.modules)
print("done")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip().endswith("done")


def test_one_runtime_serves_both(capture_module, runtime):
    """Our module and executorch's use one library, hence one registry."""
    maps = Path("/proc/self/maps").read_text()
    copies = {line.split()[-1] for line in maps.splitlines() if line.endswith("/libexecutorch.so")}
    assert len(copies) == 1
    assert "TensorRTBackend" in capture_module.registered_backends()
    assert ctypes.CDLL(None) is not None
