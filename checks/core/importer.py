"""Objects of a stranger by module or file; what cannot be imported is one `BadInput` that names the place."""

import importlib
import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

from sgmcmc_verification.checks.core.bad_input import BadInput
from sgmcmc_verification.checks.core.catalogue import closest
from sgmcmc_verification.checks.core.error_origin import RAISED, one_line, place


def load_object(path: str, reference: str = "") -> Any:
    """The object of `package.module:object` or `path/to/file.py:object`.

    Args:
        path: of the object.
        reference: value of `--sampler` for messages; that path by default.

    Raises:
        BadInput: if there is none.
    """
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
