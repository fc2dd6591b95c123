"""What sort of layer a layer is, and what can and cannot be known of it, in words."""

from __future__ import annotations

from torchtrt_viz.loaders.layer_names import LayerName

__all__ = ["explain", "role_of"]

_ROLES: dict[str, str] = {
    "reformat": "reformat",
    "noop": "shape",
    "shape_call": "shape",
    "shapehosttodevice": "shape",
    "shapedevicetohost": "shape",
    "signal": "sync",
    "wait": "sync",
    "trainstation": "sync",
    "sync": "sync",
    "constant": "constant",
    "foreignnode": "region",
    "myelin": "region",
}
_SHOWN = 4


def role_of(layer_type: str | None, name: LayerName, text: str) -> str:
    """Return one of :data:`~torchtrt_viz.loaders.engine_info.ROLES`.

    The recorded type decides; where only a name is recorded, a wrapper in the name may tell.
    """
    if name.wrapper == "reformat":
        return "reformat"
    if layer_type is not None:
        role = _ROLES.get(layer_type.lower().replace(" ", ""))
        if role is not None:
            return role
        return "region" if name.wrapper == "region" else "compute"
    if name.wrapper in ("region", "cast", "helper"):
        return {"region": "region", "cast": "reformat", "helper": "shape"}[name.wrapper]
    if "__mye" in text:
        return "shape"
    if text.startswith("[trainStation"):
        return "sync"
    return "compute" if name.wrapper in ("pointwise", "myelin") else "unknown"


def explain(role: str, name: LayerName, operators: tuple[str, ...], layer_type: str | None) -> str | None:
    """Say what the file tells and does not tell about a fused or opaque layer; None for a plain one."""
    if role == "region":
        ends = " to ".join(part.text for part in name.parts) or "operators that it does not name"
        return (
            f"one region compiled as a whole, from {ends}: its time is that of everything inside, and this "
            "file does not say how it splits. An engine built with profilingVerbosity=detailed lists the "
            "kernels of a region (TensorRT 8.6 and later); kernels of a GPU trace match by tactic name"
        )
    if role == "reformat":
        return (
            f"converts layout or precision for {_list(operators)}: a cost of that layer's format"
            if operators
            else None
        )
    if role == "sync":
        return "waits for another stream, subgraph or device: its time is waiting, not work"
    if role == "shape" and name.wrapper == "myelin":
        return "computes shapes of a compiled region on the host or device"
    if name.wrapper == "myelin" or (layer_type or "").lower() in ("kgen", "fusion"):
        if operators:
            return f"one generated kernel made of {len(operators)} recorded operators: {_list(operators)}"
        made = f" (abbreviated {name.shorthand})" if name.shorthand else ""
        return f"one generated kernel{made}: the file records no operators for it"
    if len(operators) > 1:
        return f"{len(operators)} operators fused: their times cannot be told apart"
    return None


def _list(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"
