"""Checks: functions of a case that return a `Finding`, joined by tier in `checks.registry`; the test_*.py are thin.

A user may import the names of `__all__`, and `checks.execute.run_check`; every other name may move. A name is loaded
when it is first used. The package imports `samplers` and `targets`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
