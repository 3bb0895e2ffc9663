"""NumPyro (0.22): its kernels of one chain that take a potential, HMC, NUTS and Barker's, without adaptation.

They keep exp(-U) at every step size. A step is one call of the library's `sample`, and the library's own state is
carried from step to step, with what it caches; its random key is the one of the step.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers.adapters.common import Foreign, PeerState, kernel_row, load, on_target
from sgmcmc_verification.samplers.dynamics.overdamped import overdamped_dynamics
from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.samplers.interface.aliases import Estimator, Position, Scalar
from sgmcmc_verification.samplers.interface.claims import Claims, Composite, ExactLaw, HamiltonianProposal, Source
from sgmcmc_verification.samplers.interface.from_step import PositionVariable
from sgmcmc_verification.samplers.validation import require
from sgmcmc_verification.targets.target import Target

Name = Literal["HMC", "NUTS", "BarkerMH"]
SITE = "x"
STEPS = 3
"""Leapfrog steps of HMC."""
DOUBLINGS = 4
"""Doublings of NUTS at most."""


@dataclass(frozen=True, eq=False)
class Exported(PositionVariable):
    """A kernel of `numpyro.infer` by the name that the library exports.

    Conventions: unit mass, no adaptation; h is the leapfrog step, or that of Barker's proposal, whose increments have
    the scale sqrt(2 h) here.

    Source: the modules `numpyro.infer.hmc` and `numpyro.infer.barker`.

    Args:
        target: gives the potential.
        name: `HMC`, `NUTS` or `BarkerMH`.
    """

    target: Target
    name: Name

    backend = "jax"
    needs = frozenset()

    def __post_init__(self) -> None:
        require(self.name in ("HMC", "NUTS", "BarkerMH"), "name: must be HMC, NUTS or BarkerMH", self.name)
        _ = self._kernel  # built here, outside of any trace

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        conditions = ("exact potential and gradient",)
        if self.name == "BarkerMH":
            return Claims(Source("livingstone2022barker", "algorithm 2"), ExactLaw(), conditions=conditions)
        source = (
            Source("neal2011mcmc", "section 5.3.2") if self.name == "HMC" else Source("hoffman2014nuts", "algorithm 3")
        )
        proposal = HamiltonianProposal(STEPS, overdamped_dynamics) if self.name == "HMC" else None
        return Claims(source, ExactLaw(), Composite(), proposal, conditions=conditions)

    @cached_property
    def _kernel(self) -> tuple[Foreign, Foreign]:
        """The library's kernel, which keeps what it saw when it was initialised, and a state."""
        infer = load("numpyro.infer")
        potential = lambda z: self.target.potential(self.target.unravel(z[SITE]))
        fixed = {"potential_fn": potential, "step_size": 1.0, "adapt_step_size": False, "adapt_mass_matrix": False}
        if self.name == "HMC":
            fixed |= {"num_steps": STEPS, "trajectory_length": None}
        if self.name == "NUTS":
            fixed |= {"max_tree_depth": DOUBLINGS}
        kernel = getattr(infer, self.name)(**fixed)
        return kernel, kernel.init(jax.random.key(0), 0, {SITE: self.target.ravel(self.target.example)}, (), {})

    def init(self, key: jax.Array, position: Position, estimator: Estimator) -> PeerState:
        """Start a chain at a position."""
        _, state = self._kernel
        flat = ravel_pytree(position)[0]
        value, gradient = jax.value_and_grad(self.target.flat_potential)(flat)
        kind = state.potential_energy.dtype
        adapted = state.adapt_state._replace(step_size=jnp.ones((), flat.dtype))
        state = state._replace(
            z={SITE: flat}, z_grad={SITE: gradient}, potential_energy=value.astype(kind), adapt_state=adapted
        )
        return PeerState(state, estimator.init(key, position))

    def step(self, key: jax.Array, state: PeerState, step_size: Scalar, estimator: Estimator) -> PeerState:
        """Take one step."""
        del estimator
        inner = state.inner
        move_key, adapt_key = jax.random.split(key)
        kind = inner.z[SITE].dtype
        scale = jnp.sqrt(2 * step_size) if self.name == "BarkerMH" else step_size
        adapted = inner.adapt_state._replace(step_size=jnp.asarray(scale, kind))
        if adapted.rng_key is not None:  # nothing is adapted, but HMC carries a key for it
            adapted = adapted._replace(rng_key=adapt_key)
        moved = self._kernel[0].sample(inner._replace(rng_key=move_key, adapt_state=adapted), (), {})
        return state._replace(inner=moved)

    def position(self, state: PeerState) -> Position:
        """Position of a state."""
        return self.target.unravel(state.inner.z[SITE])


ENTRIES: tuple[Row, ...] = tuple(
    kernel_row(f"numpyro/{name}", on_target(Exported, name=exported), composite)
    for name, exported, composite in (("hmc", "HMC", True), ("nuts", "NUTS", True), ("barker", "BarkerMH", False))
)
