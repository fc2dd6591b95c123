"""Every frame that the package returns: each column with its dtype, its unit and its meaning."""

from torchtrt_viz.model.schema import *  # noqa: F403
