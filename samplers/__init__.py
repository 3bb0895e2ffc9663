"""Samplers by family, their claims, gradient estimators, the runner and adapters of other libraries.

A user may import the names of `__all__`, those of `samplers.types` and `samplers.simple`, and `samplers.run.run`;
every other name may move. A name is loaded when it is first used. The package imports `targets` and nothing else of
the suite.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
