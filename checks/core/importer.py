"""Objects of a stranger by module or file; what cannot be imported is one `BadInput` that names the place.

A file that was written for the earlier names of the suite (`samplers.simple` for `sgmcmc_verification.samplers.simple`)
is given the very modules of the new names, so that there is one `Claims` and one `Estimate`; a package of the same name
that belongs to the author of a sampler comes first.
"""

import importlib
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from sgmcmc_verification.checks.core.bad_input import BadInput
from sgmcmc_verification.checks.core.catalogue import closest
from sgmcmc_verification.checks.core.error_origin import RAISED, one_line, place

PACKAGE = __name__.partition(".")[0]
NAMES = frozenset({"checks", "reports", "samplers", "targets"})
SUITE = Path(__file__).resolve().parents[2]


def load_object(path: str, reference: str = "") -> Any:
    """The object of `package.module:object` or `path/to/file.py:object`.

    Args:
        path: of the object.
        reference: value of `--sampler` for messages; that path by default.

    Raises:
        BadInput: if there is none.
    """
    allow_earlier_names()
    reference = reference or path
    location, _, attribute = path.rpartition(":")
    if location.endswith(".py") or os.sep in location:
        module = _load_file(reference, Path(location))
    else:
        module = _load_module(reference, location)
    value = module
    for part in attribute.split("."):
        if not hasattr(value, part):
            public = tuple(n for n in vars(module) if not n.startswith("_"))
            raise BadInput(f"--sampler {reference}: {location} has no attribute {attribute!r}; {closest(part, public)}")
        value = getattr(value, part)
    return value


def _load_file(reference: str, path: Path):
    if not path.is_file():
        raise BadInput(f"--sampler {reference}: there is no file {path} (looked in {Path.cwd()})")
    name = "sampler_under_test_" + "".join(c if c.isalnum() else "_" for c in str(path.resolve()))
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise BadInput(f"--sampler {reference}: {path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up by name
    # files beside it can be imported, as they can be when the file is run
    if str(path.resolve().parent) not in sys.path:
        sys.path.append(str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except RAISED as error:
        del sys.modules[name]
        raise BadInput(f"--sampler {reference}: cannot import it ({one_line(error)}{place(error)})") from error
    return module


def _load_module(reference: str, name: str):
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise BadInput(
            f"--sampler {reference}: no module named {error.name!r}; install it, or run from the folder that holds it"
        ) from error
    except RAISED as error:
        raise BadInput(f"--sampler {reference}: cannot import {name} ({one_line(error)}{place(error)})") from error


class _Existing(importlib.machinery.SourceFileLoader):
    """A loader that finds its module loaded."""

    def __init__(self, name: str, module: ModuleType) -> None:
        super().__init__(name, module.__file__ or "")
        self._module, self._spec = module, module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module under its other name."""
        del spec
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        """Give the module its own specification back."""
        module.__spec__ = self._spec


class EarlierNames:
    """A finder for `sys.meta_path`."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The specification of an earlier name; None for all others, and where another package has it."""
        del path, target
        first, _, rest = name.partition(".")
        if first not in NAMES or (not rest and _of_others(name)):
            return None
        known = sys.modules.get(first)
        if rest and known is not sys.modules.get(f"{PACKAGE}.{first}"):
            return None
        try:
            module = importlib.import_module(f"{PACKAGE}.{name}")
        except ModuleNotFoundError:
            return None
        return importlib.util.spec_from_loader(name, _Existing(name, module), is_package=hasattr(module, "__path__"))


def _of_others(name: str) -> bool:
    """True if a package of this name that is not ours can be imported."""
    found = importlib.machinery.PathFinder.find_spec(name)
    if found is None:
        return False
    places = [found.origin] if found.origin else list(found.submodule_search_locations or ())
    return not any(Path(place).resolve().is_relative_to(SUITE / name) for place in places)


def allow_earlier_names() -> None:
    """Have imports by earlier names find the modules of the suite, from now on in this process."""
    if EarlierNames not in sys.meta_path:
        sys.meta_path.insert(0, EarlierNames)
