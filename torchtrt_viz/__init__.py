"""Capture and analyse profiles of Torch-TensorRT, AOTInductor and ExecuTorch deployments.

Start with one of these::

    import torchtrt_viz as tv

    trace = tv.load("run.etdp")          # any trace that the field writes
    trace.operators()                    # a pandas frame
    trace.timeline()                     # an interactive timeline, in a notebook

    with tv.profile(level="layers") as capture:
        program.run(x)
    capture.trace.questions()

In a notebook: ``%load_ext torchtrt_viz``, then ``%%trtprofile`` at the top of a cell.
Public names are loaded on first use: importing the package imports no torch, plotly or IPython.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
