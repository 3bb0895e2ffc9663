"""Every sampler that a release exports has a row or a reason: a new one in a new release makes this fail."""

import importlib
import inspect
import pkgutil
import re

import pytest

from sgmcmc_verification.samplers.adapters.registry import ADAPTERS, UNSUPPORTED

ROWS = {row.name for row in ADAPTERS}
ALIASES = {
    "blackjax": {"barker_proposal": "barker", "dynamic_hmc": "dhmc", "multinomial_hmc": "mhmc"},
    "numpyro": {"barker_mh": "barker"},
    "tfp": {
        "hamiltonian_monte_carlo": "hmc",
        "metropolis_adjusted_langevin_algorithm": "mala",
        "no_u_turn_sampler": "nuts",
        "random_walk_metropolis": "random_walk",
        "slice_sampler": "slice",
        "uncalibrated_hamiltonian_monte_carlo": "uncalibrated_hmc",
    },
    "posteriors": {},
    "ase": {"nvt_berendsen": "berendsen", "melchionna_npt": "melchionnanpt"},
}
"""Second names of a library, and names of rows that are shorter than the library's."""


def _words(name):
    """`NoUTurnSampler` -> `no_u_turn_sampler`; names without lower-case letters stay one word."""
    if name.isupper():
        return name.lower()
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def _blackjax():
    blackjax = pytest.importorskip("blackjax")
    kinds = (blackjax.GenerateSamplingAPI, blackjax.GenerateVariationalAPI, blackjax.GeneratePathfinderAPI)
    return [name for name, value in vars(blackjax).items() if isinstance(value, kinds)]


def _numpyro():
    infer = pytest.importorskip("numpyro.infer")
    from numpyro.contrib import einstein
    from numpyro.infer.mcmc import MCMCKernel

    kernels = [name for name in infer.__all__ if inspect.isclass(getattr(infer, name))]
    kernels = [name for name in kernels if issubclass(getattr(infer, name), MCMCKernel)]
    stein = [
        name for name in einstein.__all__ if name == "SteinVI" or issubclass(getattr(einstein, name), einstein.SteinVI)
    ]
    return [*kernels, *stein]


def _tfp():
    tfp = pytest.importorskip("tensorflow_probability.substrates.jax")
    classes = [(name, value) for name, value in vars(tfp.mcmc).items() if inspect.isclass(value)]
    return [name for name, value in classes if issubclass(value, tfp.mcmc.TransitionKernel)]


def _posteriors():
    from types import ModuleType

    sgmcmc = pytest.importorskip("posteriors.sgmcmc")
    return [name for name, value in vars(sgmcmc).items() if isinstance(value, ModuleType)]


def _ase():
    md = pytest.importorskip("ase.md")
    from ase.md.md import MolecularDynamics

    modules = [importlib.import_module(f"ase.md.{module.name}") for module in pkgutil.iter_modules(md.__path__)]
    classes = {value for module in modules for value in vars(module).values() if inspect.isclass(value)}
    return [c.__name__ for c in classes if issubclass(c, MolecularDynamics) and c is not MolecularDynamics]


@pytest.mark.parametrize(
    ("library", "exported"),
    [("blackjax", _blackjax), ("numpyro", _numpyro), ("tfp", _tfp), ("posteriors", _posteriors), ("ase", _ase)],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_exported_sampler_is_a_row_or_has_a_reason(library, exported):
    names = exported()
    assert names
    short = {ALIASES[library].get(word, word) for name in names for word in (_words(name),)}
    known = {name.partition("/")[2] for name in (*ROWS, *UNSUPPORTED) if name.startswith(f"{library}/")}
    fold = lambda name: name.replace("_", "").replace("-", "").lower()
    assert {name for name in short if fold(name) not in set(map(fold, known))} == set()
