"""SGHMC as a deterministic flow of particles: pSGHMC-det and pSGHMC-fGH."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics, coordinate_names
from sgmcmc_verification.samplers.entry import Row, plain
from sgmcmc_verification.samplers.interface.claims import (
    Claims,
    DensityEstimate,
    KernelWidth,
    MarginalFlow,
    ParticleLaw,
    ParticleVelocity,
    Source,
)
from sgmcmc_verification.samplers.particles.common import BANDWIDTHS, PARTICLE_FLAT, particle_row
from sgmcmc_verification.samplers.particles.density_gradients import RIDGE, Density
from sgmcmc_verification.samplers.particles.kernels import Bandwidth, carried_width
from sgmcmc_verification.samplers.particles.particle_flow import FlowMixin, Form, as_flow, require_flow
from sgmcmc_verification.samplers.validation import require_positive
from sgmcmc_verification.targets.target import Target


@dataclass(frozen=True)
class PSGHMC(FlowMixin):
    """Particles with momenta r that have the marginals of SGHMC, p(theta, r) = exp(-U - |r|^2 / (2 S)).

        det:  dtheta/dt = r / S,                     dr/dt = -grad U~ - C r / S - C grad_r log q
        fgh:  dtheta/dt = r / S + grad_r log q,      dr/dt = -grad U~ - grad_theta log q - C r / S - C grad_r log q

    by Euler's method from the old values; momenta start from N(0, S).

    Source: liu2019understanding, the section "Simulation as ParVIs" of the poster (its lemma 1 and theorem 5).

    Args:
        friction: C > 0.
        mass: S > 0, the variance of a momentum (Sigma of the source, times the identity).
        form: `"det"` or `"fgh"`.
        density: estimate of grad log q (`samplers.particles.density_gradients`).
        bandwidth: of the estimates, a squared length, `"median"` or `"he"`, these for position and momentum apart.
        joint: one estimate in (theta, r) rather than one for each.
        ridge: of `"gfsf"`.

    Error: the target is a fixed point as M -> infinity and then h -> 0 for the bandwidth h; O(step size).

    Raises:
        ValueError: if an argument is out of range.
    """

    friction: float = 1.0
    mass: float = 1.0
    form: Form = "det"
    density: Density = "blob"
    bandwidth: Bandwidth = "median"
    joint: bool = False
    ridge: float = RIDGE

    def __post_init__(self) -> None:
        require_positive(self, "friction", "mass")
        require_flow(self.form, self.density, self.bandwidth, self.ridge)

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return Claims(
            Source("liu2019understanding", "lemma 1" if self.form == "det" else "theorem 5"),
            ParticleLaw(),
            carried_width(self.bandwidth),
            ParticleVelocity(self.velocity),
            DensityEstimate(self, self.form, self.joint),
            KernelWidth(self, "bandwidth"),
            MarginalFlow(self.dynamics),
            conditions=("infinitely many particles", "bandwidth to zero"),
        )

    def dynamics(self, target: Target) -> Dynamics:
        """H = U + |r|^2 / (2 S), D = diag(0, C), Q = [[0, -I], [I, 0]]."""
        n = target.size

        def constant(upper: float, lower: float) -> Callable[[jax.Array], jax.Array]:
            zero, one = jnp.zeros((n, n)), jnp.eye(n)
            return lambda z: jnp.block([[zero, upper * one], [-upper * one, lower * one]]).astype(z.dtype)

        return Dynamics(
            lambda z: target.flat_potential(z[:n]) + 0.5 * z[n:] @ z[n:] / self.mass,
            constant(0.0, self.friction),
            constant(-1.0, 0.0),
            coordinate_names(n, "r"),
            n,
        )

    def draw(self, key: jax.Array, count: int, size: int, dtype: jax.typing.DTypeLike) -> jax.Array:
        """Momenta (M, d) from N(0, S)."""
        return jnp.sqrt(self.mass) * jax.random.normal(key, (count, size), dtype)

    def field(self, z: jax.Array, gradients: jax.Array, score: jax.Array) -> jax.Array:
        """dz/dt (M, 2 d)."""
        n = gradients.shape[1]
        pull = z[:, n:] / self.mass  # -grad_r log p
        brake = -self.friction * (pull + score[:, n:])
        if self.form == "det":
            return jnp.concatenate([pull, brake - gradients], axis=1)
        return jnp.concatenate([pull + score[:, n:], brake - gradients - score[:, :n]], axis=1)


ENTRIES: tuple[Row, ...] = (
    particle_row(
        "psghmc-det",
        plain(PSGHMC),
        PARTICLE_FLAT,
        {"friction": 2.0, "mass": 0.5, "bandwidth": 0.5, "density": "gfsd"},
        {"friction": 0.4, "mass": 3.0, "bandwidth": "he", "density": "gfsf", "joint": True},
    ),
    particle_row(
        "psghmc-fgh",
        plain(PSGHMC, form="fgh"),
        PARTICLE_FLAT,
        {"friction": 2.0, "mass": 0.5, "bandwidth": 0.5, "density": "gfsd"},
        {"friction": 0.4, "mass": 3.0, "bandwidth": "he", "density": "gfsf", "joint": True},
    ),
)


def hamiltonian(target: Target) -> Dynamics:
    """H = U + r^2 / 2, D = 0 and the canonical Q: no friction, no noise."""
    return dataclasses.replace(
        PSGHMC().dynamics(target), D=lambda z: jnp.zeros((2 * target.size, 2 * target.size), z.dtype)
    )


HAMILTONIAN: tuple[Row, ...] = (
    particle_row("flow-hamiltonian", as_flow(hamiltonian, form="fgh", joint=True), PARTICLE_FLAT[:2], *BANDWIDTHS),
)
