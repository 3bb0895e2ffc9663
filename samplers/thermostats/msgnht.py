"""Multivariate stochastic gradient Nose-Hoover thermostat (mSGNHT): a thermostat for every coordinate."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.dynamics import published
from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics
from sgmcmc_verification.samplers.entry import DIFFUSIONS, Row, momentum_row, plain
from sgmcmc_verification.samplers.interface.aliases import Position, Tree
from sgmcmc_verification.samplers.interface.claims import Source
from sgmcmc_verification.samplers.thermostats.common import elementwise_thermostat_dynamics
from sgmcmc_verification.samplers.thermostats.sgnht import SGNHT
from sgmcmc_verification.targets.target import Target


@dataclass(frozen=True)
class MSGNHT(SGNHT):
    """`SGNHT` with xi in R^d, which adapts to gradient noise of different size in different coordinates:

        d theta = r dt,  dr = -grad U dt - xi * r dt + sqrt(2 A T) dW,  d xi = (r * r - T) dt   (* elementwise)

    Source: chen2015convergence, mSGNHT with the Euler integrator and the symmetric splitting integrator (`scheme`, the
    steps of `SGNHT` read elementwise). Differs from the source in:
        1. those of `SGNHT`; at temperature T the law of each xi_i is N(A, T).

    Args:
        diffusion: A > 0.
        temperature: T > 0; the law of positions is exp(-U / T).
        scheme: which discretisation.

    Error, for exact gradients: order 1 (euler), order 2 (splitting), weakly and in the invariant law.

    Raises:
        ValueError: if `diffusion` or `temperature` is not positive, or `scheme` is unknown.
    """

    def _source(self) -> Source:
        where = "Euler integrator" if self.scheme == "euler" else "symmetric splitting integrator"
        return Source("chen2015convergence", f"mSGNHT, {where}")

    def dynamics(self, target: Target) -> Dynamics:
        """H = (U + |r|^2 / 2 + |xi - A|^2 / 2) / T, D = diag(0, A T I, 0); see `elementwise_thermostat_dynamics`."""
        return elementwise_thermostat_dynamics(target, self.diffusion, self.temperature)

    def initial_thermostat(self, position: Position) -> Tree:
        """xi_i = A, the mean of its law."""
        return jax.tree.map(lambda x: jnp.full(jnp.shape(x), self.diffusion, jnp.result_type(x)), position)

    def drive(self, momentum: Tree) -> Tree:
        """d xi / dt = r * r - T."""
        return jax.tree.map(lambda r: r * r - self.temperature, momentum)

    def spread(self, thermostat: Tree, momentum: Tree) -> Tree:
        """xi is already like the momentum."""
        del momentum
        return thermostat


ENTRIES: tuple[Row, ...] = (
    momentum_row("msgnht", plain(MSGNHT), DIFFUSIONS, diffusion=published.THERMOSTAT),
    momentum_row("msgnht-splitting", plain(MSGNHT, scheme="splitting"), DIFFUSIONS, diffusion=published.THERMOSTAT),
)
