"""Small engines for the checks: a real TensorRT plan of a few layers, and one for the simulated device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from cuda_device import NoDevice


@dataclass
class Case:
    """An engine with an input and what it should give.

    Attributes
    ----------
    tolerance
        Largest difference from ``expected`` (computed by numpy), relative to its largest value.
    """

    plan: bytes
    x: np.ndarray
    expected: np.ndarray
    tolerance: float
    version: str


def simulated() -> Case:
    """0.3 ms of work in three layers; y = 2 x + 1."""
    plan = b"ftrt\ninput x float32 -1x4\noutput y float32 -1x4\n"
    plan += b"layer conv 150000\nlayer relu 100000\nlayer relu 50000\n"
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    return Case(plan, x, 2 * x + 1, 0.0, "stand-in")


def tensorrt_plan(width: int = 2048, depth: int = 4) -> Case:
    """A chain of ``depth`` matrix products with their activations, built by TensorRT here and now."""
    try:
        import tensorrt as trt
    except ImportError as error:
        raise NoDevice(f"TensorRT's Python package cannot be imported: {error}") from error
    logger = trt.Logger(trt.Logger.WARNING)
    builder = trt.Builder(logger)
    flags = trt.NetworkDefinitionCreationFlag
    explicit = getattr(flags, "EXPLICIT_BATCH", None)  # needed by TensorRT 8 and 9, gone in later ones
    network = builder.create_network(0 if explicit is None else 1 << int(explicit))
    random = np.random.default_rng(0)
    x = random.standard_normal((256, width), dtype=np.float32)
    # TensorRT reads them while it builds: they have to live until then
    weights = [
        random.standard_normal((width, width), dtype=np.float32) / np.float32(width) ** 0.5
        for _ in range(depth)
    ]
    tensor = network.add_input("x", trt.float32, x.shape)
    expected: Any = x
    for i, weight in enumerate(weights):
        constant = network.add_constant(weight.shape, trt.Weights(weight)).get_output(0)
        plain = trt.MatrixOperation.NONE
        product = network.add_matrix_multiply(tensor, plain, constant, plain)
        product.name = f"product_{i}"
        layer = network.add_activation(product.get_output(0), trt.ActivationType.RELU)
        layer.name = f"relu_{i}"
        tensor = layer.get_output(0)
        expected = np.maximum(expected @ weight, 0)
    tensor.name = "y"
    network.mark_output(tensor)
    config = builder.create_builder_config()
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    plan = builder.build_serialized_network(network, config)
    if plan is None:
        raise RuntimeError("TensorRT built no plan; its messages are above")
    # TF32 has ten bits of mantissa
    return Case(bytes(plan), x, expected, 2e-2, str(trt.__version__))
