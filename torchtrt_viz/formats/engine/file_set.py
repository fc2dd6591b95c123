"""Files that describe one engine, joined: layer information, layer times, timed runs, metadata.

TensorRT's tools spread what they know of an engine over several files::

    x.graph.json  x.profile.json  x.timing.json
    x.profile.metadata.json  x.build.metadata.json  x.metadata.json
    E_engine_execution_profile.trace (old spelling: exectuion)  E_layer_information.json
    E_input_profile.trace  E_output_profile.trace  E_enqueue_profile.trace  E_device_config_profile.trace

and logs with tables. A set is all such files of one folder; it becomes one `Trace`:

- ``trace.meta["engines"]``: list of :class:`~torchtrt_viz.formats.engine.info.EngineInfo`, whose ``layers``
  frame (columns: :data:`~torchtrt_viz.formats.engine.info.LAYERS`) holds every layer with everything that is
  known of it; ``engine.sums()`` sets layer sum, GPU compute and host latency side by side, and
  ``engine.modules()`` rolls times up by module path;
- ``trace.spans``: each timed layer is a span of kind "layer", timing "aggregate", ``start_ns`` NA, ``dur_ns``
  the *total over all calls*, domain "gpu" (or "host" for an engine that ran on the CPU), ``run_id`` the
  engine's; ``trace.args[row]`` has count, average, median and percentage. Timed runs (``x.timing.json``)
  are measured spans: enqueue on the host, copies and compute on the GPU. Framework operators that
  Torch-TensorRT recorded inside its phases are spans of kind "operator" on a track per phase.

For folders and archives a caller asks `is_set_member` of each file, hands the members to `group_sets`, and
reads each group with `read_set`.
"""

from __future__ import annotations

from torchtrt_viz.formats.engine.files import group_sets, is_set_member
from torchtrt_viz.formats.engine.info import BINDINGS, LAYERS, EngineInfo, Tensor
from torchtrt_viz.formats.engine.trace import read_set

__all__ = ["BINDINGS", "LAYERS", "EngineInfo", "Tensor", "group_sets", "is_set_member", "read_set"]
