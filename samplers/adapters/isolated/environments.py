"""The environments of the bridge: pinned packages, the file that knows the library, and the folder where each lies."""

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

from sgmcmc_verification.samplers.adapters.isolated.errors import BridgeMissing
from sgmcmc_verification.targets.datasets.files import cache_directory

FAR = Path(__file__).parent / "remote"


@dataclass(frozen=True)
class Environment:
    """An environment under a name.

    Attributes:
        name: what the command line and the rows call it.
        requirements: pinned; installed together, in a fresh virtual environment.
        alone: pinned; installed after them without what they ask for themselves.
        far: the file that the worker loads there.
        python: versions of Python that the pins have wheels for, (first, last).
    """

    name: str
    requirements: tuple[str, ...]
    far: Path
    python: tuple[tuple[int, int], tuple[int, int]] = ((3, 10), (3, 13))
    alone: tuple[str, ...] = ()


def _jax(numpy: str = "2.2.6") -> tuple[str, ...]:
    """An older jax, and what the suite's targets import."""
    return (
        *("jax==0.4.35", "jaxlib==0.4.35", f"numpy=={numpy}", "scipy==1.15.3", "ml_dtypes==0.5.1", "mpmath==1.3.0"),
        *("jaxtyping==0.3.2", "wadler_lindig==0.1.7", "lazy_loader==0.4", "packaging==25.0"),
    )


ENVIRONMENTS: tuple[Environment, ...] = (
    Environment(
        "sgmcmcjax",
        ("SGMCMCJax==0.2.13", *_jax(), "tqdm==4.67.1", "optax==0.2.4", "chex==0.1.88", "opt_einsum==3.4.0"),
        FAR / "sgmcmcjax.py",
    ),
    Environment("jax-sgmc", ("jax-sgmc==0.1.5", *_jax(), "opt_einsum==3.4.0"), FAR / "jax_sgmc.py"),
    Environment(
        "fortuna",
        # it asks for numpy < 2, flax 0.8.5 and optax 0.1; newer releases of orbax-checkpoint do not import beside them
        (
            *_jax("1.26.4"),
            *("opt_einsum==3.4.0", "flax==0.8.5", "optax==0.1.9", "chex==0.1.88", "orbax-checkpoint==0.6.4"),
            *("tqdm==4.67.1", "tensorstore==0.1.86", "etils==1.15.0", "protobuf==7.36.2"),
        ),
        FAR / "fortuna.py",
        # its own upper bound, and the lower one of the suite
        python=((3, 11), (3, 11)),
        # it asks for TensorFlow and matplotlib too, which its samplers do not import
        alone=("aws-fortuna==0.2.0",),
    ),
)
"""All of them."""


def environment(name: str) -> Environment:
    """The environment of that name. Raises ValueError with the known names."""
    for candidate in ENVIRONMENTS:
        if candidate.name == name:
            return candidate
    known = ", ".join(e.name for e in ENVIRONMENTS)
    raise ValueError(f"environment {name}: there is none of that name; known: {known}")


STAMP = "suite-bridge.json"
"""Written last, so that an environment is there whole or not at all."""


def command(name: str) -> str:
    """The command that builds an environment."""
    return f"python -m sgmcmc_verification.samplers.adapters.isolated build {name}"


def home(name: str) -> Path:
    """Folder of an environment."""
    return cache_directory() / "bridges" / name


def fingerprint(env: Environment) -> str:
    """Hash of the pins of an environment."""
    return hashlib.sha256("\n".join((*env.requirements, *env.alone)).encode()).hexdigest()


def interpreter(folder: Path) -> Path:
    """The Python of the environment in a folder."""
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def is_built(name: str) -> bool:
    """True if the environment is there with the pins of this version of the suite."""
    folder = home(name)
    try:
        stamp = json.loads((folder / STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return stamp.get("requirements") == fingerprint(environment(name)) and interpreter(folder).exists()


def python_of(name: str) -> Path:
    """The Python of an environment.

    Raises:
        BridgeMissing: if it is not built, or was built with other pins; the message has the command.
    """
    if not is_built(name):
        raise BridgeMissing(f"{name} runs in an environment of its own, which is not built yet: {command(name)}")
    return interpreter(home(name))
