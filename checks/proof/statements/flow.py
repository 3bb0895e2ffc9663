"""Particles with an estimate of their own density follow the declared SDE: see `marginal_flow` for the equations."""

import itertools
from collections.abc import Iterator
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.proof.errors import Unreadable
from sgmcmc_verification.checks.proof.statements.closure import finite_step
from sgmcmc_verification.checks.proof.statements.cloud import DIRECTION, Cloud
from sgmcmc_verification.checks.proof.statements.marginal_flow import (
    ESTIMATES,
    SETTLED,
    estimate_of,
    flow_of,
    residuals_of,
)
from sgmcmc_verification.checks.proof.statements.orders import MARGINAL, RECIPE
from sgmcmc_verification.checks.proof.statements.result import Result
from sgmcmc_verification.checks.proof.traced import evaluated
from sgmcmc_verification.checks.proof.zero import POINTS, points_with
from sgmcmc_verification.samplers.interface.aliases import Scalar
from sgmcmc_verification.samplers.interface.claims import DensityEstimate, MarginalFlow
from sgmcmc_verification.samplers.particles.common import flatten
from sgmcmc_verification.samplers.particles.kernels import Bandwidth, bandwidths_of, first_bandwidth

FLOW, MULTIPLIERS = "flow of the recipe", "multipliers of the transport"
SOLVED = "u_j sum_i u_i E(z_i, z_j) = M"


def width_of(rule: Bandwidth, particles: jax.Array) -> Scalar:
    """The width of the kernel that a rule makes of particles (M, n)."""
    (width,), _ = bandwidths_of(rule, particles, first_bandwidth(rule, particles))
    return width


class Flow(Cloud):
    """Particles with an estimate of their density."""

    def results(self) -> Iterator[Result]:
        """Decide that particles with an estimate of their density follow the declared SDE."""
        h, claims = finite_step(self.reader.space), self.sampler.claims
        estimate, dynamics = claims[DensityEstimate], claims[MarginalFlow].dynamics(self.target)
        density, rule = estimate.sampler.density, estimate.sampler.bandwidth
        if density not in ESTIMATES:
            raise Unreadable(f"the estimate {density} of a density, which is no derivative of a sum of kernels")
        after = [a.constant_term for a in self.traced.moved(self.reader, self.state, h)]
        yield self.closed(after)

        ridge = estimate.sampler.ridge if density == "gfsf" else 0.0

        def score(block: jax.Array) -> jax.Array:
            return estimate_of(density, block, width_of(rule, block), ridge)

        def velocity(flat: jax.Array) -> jax.Array:
            rows, size = flatten(self.traced.unravel(flat)), self.target.size
            whole = estimate.joint or rows.shape[1] == size
            blocks = (rows,) if whole else (rows[:, :size], rows[:, size:])
            return jax.vmap(flow_of(dynamics, estimate.form))(rows, jnp.concatenate([score(b) for b in blocks], axis=1))

        if density == "jko":
            yield self._settled(rule)
        gap = self.rows(after) - self.x - evaluated(self.reader, velocity, self.z) * h.constant_term
        yield self.vanishes(FLOW, "z_j' - z_j = h v_j of the declared H, D, Q and estimate", gap, "the move of")
        place = list(self.x[0])
        Q, D = (evaluated(self.reader, matrix, place) for matrix in (dynamics.Q, dynamics.D))
        yield self.vanishes(RECIPE, "Q + Q^T = 0, D - D^T = 0", np.stack([Q + Q.T, D - D.T]), "the entry")

        yield self.positive("D >= 0", [D]) if D.any() else Result(DIRECTION, "D = 0", "proved")
        size = self.target.size
        beside = jax.grad(lambda z: dynamics.H(z) - self.target.flat_potential(z[:size]))
        slopes = evaluated(self.reader, beside, place)[:size]
        found = self.vanishes(
            MARGINAL, "H(z) - U(x) is a function of the auxiliary variables alone", slopes, "the slope"
        )
        yield found if found.holds else replace(found, outcome="undecided")

    def _settled(self, rule: Bandwidth) -> Result:
        """Decide if the multipliers of a transport solve their equations, at a few points of this region."""

        def residuals(flat: jax.Array) -> jax.Array:
            rows = flatten(self.traced.unravel(flat))
            return residuals_of(rows, width_of(rule, rows))

        values = evaluated(self.reader, residuals, self.z)
        points = itertools.islice(points_with(self.ring, self.reader.path.assumed), POINTS)
        sizes = [max(abs(value(p)) for p in values) for value in points]
        if not sizes:
            return Result(MULTIPLIERS, SOLVED, "undecided", "no point of the region was found")
        if max(sizes) > SETTLED:
            return Result(MULTIPLIERS, SOLVED, "violated", f"off by {float(max(sizes)):.2g}")
        return Result(MULTIPLIERS, SOLVED, "verified", f"to {SETTLED:.0e}")
