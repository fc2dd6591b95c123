"""Export: from a torch module to a program whose regions run in the ``TensorRTBackend`` delegate.

``export_program`` does it in one call; ``export_package`` makes an AOTInductor package whose regions run
behind an operator (``load_package`` loads it). Who has a pipeline of his own takes
:class:`TensorRTPartitioner` and hands it to ``executorch.exir.to_edge_transform_and_lower``.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
