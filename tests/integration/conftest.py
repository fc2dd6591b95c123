"""What several integration tests need: programs, exported once because an export takes seconds; readers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def capture_module():
    """The compiled capture module; a test without it is skipped, with the reason."""
    pytest.importorskip("torch", reason="needs torch")
    pytest.importorskip("executorch", reason="needs executorch")
    from torchtrt_viz.errors import TorchTrtVizError
    from torchtrt_viz.runtime.modules import capture_module

    try:
        return capture_module()
    except TorchTrtVizError as error:
        pytest.skip(f"the capture extension is not built: {error}")


@pytest.fixture(scope="session")
def demo(capture_module, tmp_path_factory):
    """The demo network: its export, the eager module, an input, and eager's outputs."""
    from types import SimpleNamespace

    import torch

    from torchtrt_viz.examples.demo import demo_module, export_demo

    module, inputs = demo_module()
    exported = export_demo(tmp_path_factory.mktemp("demo") / "demo.pte")
    with torch.no_grad():
        expected = module(*inputs)
    return SimpleNamespace(
        exported=exported, path=exported.path, module=module, inputs=inputs, expected=expected
    )


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., Any]:
    """Load bytes as one Perfetto file."""
    import torchtrt_viz as tv
    from torchtrt_viz.trace import Trace

    def read_bytes(data: bytes, **options: Any) -> Trace:
        path = tmp_path / "t.pftrace"
        path.write_bytes(data)
        trace = tv.load(path, **options)
        assert isinstance(trace, Trace)
        return trace

    return read_bytes
