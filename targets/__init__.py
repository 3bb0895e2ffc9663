"""Targets: manifolds, analytic laws with exact answers, posteriors of data, and access to data.

A user may import the names of `__all__`, and `targets.registry.target`; every other name may move. A name is loaded
when it is first used. The package imports nothing from `samplers`, `checks` or `reports`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
