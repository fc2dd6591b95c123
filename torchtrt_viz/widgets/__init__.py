"""What an engineer sees and touches in a notebook: timeline, tables, charts.

The widgets need the extra ``lab``; each module says so when it is missing.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
