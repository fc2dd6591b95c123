"""What a reader of an engine's numbers should know, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchtrt_viz.formats.engine.info import EngineInfo
    from torchtrt_viz.formats.engine.join import Join

__all__ = ["notes_of"]

_DETAILED = (
    "build the engine with profilingVerbosity=detailed to see types, shapes, tactics and fused operators"
)


def notes_of(engine: EngineInfo, join: Join | None, timed: int | None) -> list[str]:
    """Return the notes on an engine whose layers and times have been joined."""
    layers = engine.layers
    notes = []
    if engine.verbosity == "layer_names_only":
        notes.append(f"the layer information is names only: {_DETAILED}")
    elif engine.verbosity is not None and not layers["in_graph"].any():
        notes.append(f"the layer information lists no layers: {_DETAILED}")
    if timed == 0 and engine.verbosity is not None:
        notes.append("no layer was reported to the profiler: there are no layer times")
    if join is not None and engine.verbosity not in (None, "none"):
        notes += _join_notes(engine, join, timed or 0)
    if int(layers["profile"].nunique()) > 1:
        notes.append(
            "the layer information lists several optimisation profiles (column profile); the times are those "
            "of the profile that ran"
        )
    if int(layers["stream"].nunique()) > 1:
        notes.append("layers run on several streams and may overlap: their sum exceeds the time that passed")
    shares = layers.loc[layers["role"] == "region", "percentage"]
    if shares.notna().any() and float(shares.sum()) > 0:
        notes.append(
            f"{float(shares.sum()):.1f} % of the layer time is spent in {len(shares)} regions whose inside "
            "this file does not show"
        )
    return notes


def _join_notes(engine: EngineInfo, join: Join, timed: int) -> list[str]:
    layers = engine.layers
    notes = []
    if join.how == "position":
        notes.append("the times name layers by number: they are joined by position")
    if join.left:
        without = int((layers["in_graph"] & ~layers["in_profile"]).sum())
        notes.append(
            f"{len(join.left)} of {timed} timed layers are not in the layer information, and {without} of "
            "its layers have no time: the two are of different builds, or of builds with different verbosity"
        )
    repeated = layers.loc[layers["occurrence"] > 0, "name"].nunique()
    if repeated:
        notes.append(
            f"{repeated} layer names occur more than once: the nth layer has the nth time of its name"
        )
    return notes
