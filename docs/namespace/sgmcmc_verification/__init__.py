"""The suite as one package: `checks`, `samplers`, `targets`, `reports`, and the names of `__all__`.

In a clone the four are folders at its root, and links to them are beside this file; a wheel has them here. A module is
the file that the link leads to, so that its place is the same by whatever way it is imported.
"""

from pathlib import Path

import lazy_loader

__path__ = [str(Path(__file__).with_name("checks").resolve().parent)]

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
