"""Capture: load and run programs, profile them, keep what was recorded.

``profile`` and ``Program`` are what most users need; both are public names of the package as well. The
options that they, the notebook magics and the command line share are in :mod:`torchtrt_viz.capture.options`.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
