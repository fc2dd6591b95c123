"""What a layer's name says: the operators fused into it, where they are in the model, and what wraps them.

TensorRT joins the names of fused layers with `` + `` and wraps them: ``PWN(...)`` around pointwise fusions,
``{ForeignNode[first...last]}`` around regions that another compiler took, ``Reformatting CopyNode for Input
Tensor 0 to X``, ``reshape_before_X``, ``X_myl5_2``. Torch-TensorRT names each layer
``[KIND]-[target]-[module path]``; exporters to ONNX write the module path itself (``/layer1/layer1.0/Conv``).

A name says which operators were recorded, never how the time of a fused layer splits among them.
"""

from __future__ import annotations

from typing import NamedTuple

from torchtrt_viz._native import native

__all__ = ["LayerName", "Part", "onnx_layers", "parse_name"]


class Part(NamedTuple):
    """One operator inside a layer.

    ``kind`` is TensorRT's kind of layer and ``target`` the operator it came from (Torch-TensorRT names
    only); ``path`` is the module path with the operator's own name last, and ``module`` the path without it
    ("/" is the model itself).
    """

    text: str
    kind: str | None = None
    target: str | None = None
    path: str | None = None
    module: str | None = None


class LayerName(NamedTuple):
    """A name taken apart.

    Attributes
    ----------
    wrapper
        "reformat", "cast", "helper" (a reshape or copy around the named layer), "pointwise", "region",
        "myelin" (one kernel of a compiled region), or None.
    parts
        Operators that the name records, in order. Of a region only the first and the last are recorded.
    profile
        Optimisation profile that the name carries, None without one.
    myelin_graph
        Number of the compiled region that a Myelin kernel belongs to.
    module
        Module path that the recorded parts have in common; None when no part records one. Of a region only
        its ends are recorded, so both have to have a path.
    """

    wrapper: str | None
    parts: tuple[Part, ...]
    profile: int | None
    myelin_graph: int | None
    module: str | None

    @property
    def operators(self) -> tuple[str, ...]:
        """Operators of the parts: the target where it is recorded, else the part's own text."""
        return tuple(part.target or part.text for part in self.parts)


def parse_name(name: str) -> LayerName:
    """Take a layer's name apart; any text is accepted."""
    # a generated kernel's abbreviation is for the descriptions that the reader itself makes
    wrapper, parts, profile, region, _, module = native("trex").parse_name(name.encode("utf-8", "replace"))
    return LayerName(wrapper, tuple(Part(*part) for part in parts), profile, region, module)


def onnx_layers(metadata: str) -> tuple[str, ...]:
    """Return the ONNX nodes that a layer's Metadata lists, in order and each once.

    TensorRT separates them by 0x1E (fused layers) and 0x1F (inside Myelin kernels); logs drop both.
    """
    found: tuple[str, ...] = native("trex").onnx_layers(metadata.encode("utf-8", "replace"))
    return found
