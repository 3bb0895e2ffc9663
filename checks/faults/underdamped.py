"""Planted bugs of SGHMC: friction, injected noise, the momentum, what is claimed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from sgmcmc_verification.checks.faults.fault import Defect, Kill, planted
from sgmcmc_verification.samplers.dynamics.underdamped import MomentumState
from sgmcmc_verification.samplers.entry import known_noise
from sgmcmc_verification.samplers.estimators.altered import Altered
from sgmcmc_verification.samplers.interface.claims import Diffusion, StationaryLaw, StationaryMoments
from sgmcmc_verification.samplers.numerics.noise import normal_like
from sgmcmc_verification.samplers.underdamped.sghmc import SGHMC

Kick = Callable[[SGHMC, Any, Any, Any, Any], Any]
"""(sampler, momentum, gradient, white noise, step size) -> momentum, leaf by leaf."""


def sghmc(kick: Kick, moves: bool = True) -> type[SGHMC]:
    """Semi-implicit SGHMC with another update of the momentum; the position stays if not `moves`."""

    @dataclass(frozen=True)
    class Planted(SGHMC):
        def step(self, key, state, step_size, estimator):
            gradient_key, noise_key = jax.random.split(key)
            estimate, estate = estimator.estimate(gradient_key, state.estate, state.position)
            noise = normal_like(noise_key, state.momentum)
            update = lambda r, g, n: kick(self, r, g, n, step_size)
            r = jax.tree.map(update, state.momentum, estimate.gradient, noise)
            x = jax.tree.map(lambda a, b: a + step_size * b, state.position, r) if moves else state.position
            return MomentumState(x, r, estate)

    return Planted


def root(s: SGHMC, h):
    """sqrt(2 C T h)."""
    return jnp.sqrt(2 * s.friction * s.temperature * h)


right: Kick = lambda s, r, g, n, h: r - h * g - h * s.friction * r + root(s, h) * n


@dataclass(frozen=True)
class MomentumReset(SGHMC):
    """The momentum is drawn anew at the start of every step."""

    def step(self, key, state, step_size, estimator):
        momentum_key, step_key = jax.random.split(key)
        scale = jnp.sqrt(self.temperature)
        momentum = jax.tree.map(lambda n: scale * n, normal_like(momentum_key, state.position))
        return super().step(step_key, state._replace(momentum=momentum), step_size, estimator)


@dataclass(frozen=True)
class PackRefreshes(SGHMC):
    """`pack` draws a momentum instead of taking the one that it is given."""

    def pack(self, key, z, estimator):
        return self.init(key, z.position, estimator)


@dataclass(frozen=True)
class ClaimsTwo(SGHMC):
    """Semi-implicit Euler under the claim of order 2."""

    @property
    def claims(self):
        return super().claims.amended(
            Diffusion(self.dynamics, weak_order=2),
            StationaryLaw(order=2, temperature=self.temperature),
            without=(StationaryMoments,),
        )


@dataclass(frozen=True)
class CompensatedTwice(SGHMC):
    """Injected noise 2 C T h - 2 h^2 V, the factor 1/2 of B = h V / 2 dropped."""

    compensate: bool = True

    def step(self, key, state, step_size, estimator):
        doubled = lambda e, _: e._replace(covariance=jax.tree.map(lambda v: 2 * v, e.covariance))
        return super().step(key, state, step_size, Altered(estimator, doubled))


LINE = ("gaussian-1d-scaled", "double-well")
LIMIT = "pi_h -> pi as h -> 0"

DEFECTS: tuple[Defect, ...] = (
    planted(
        "sghmc-friction-per-step",
        "sghmc",
        sghmc(lambda s, r, g, n, h: r - h * g - s.friction * r + root(s, h) * n),
        "friction alpha r for h alpha r, with noise for the latter",
        Kill("gaussian_limit", "gaussian-1d-scaled", LIMIT, {"friction": 0.4}),
        "limit",
        source="automl/pybnn#4",
        targets=LINE,
        diagnosis=r"mean move of r.* h\^-?0\.00",
    ),
    planted(
        "sghmc-friction-without-noise",
        "sghmc",
        sghmc(lambda s, r, g, n, h: r - h * g - h * s.friction * r + 0 * n),
        "friction without injected noise: the chain falls into the mode",
        Kill("gaussian_limit", "gaussian-1d-scaled", LIMIT),
        "variance",
        source="TurboFreeze/sghmc#2",
        targets=LINE,
        diagnosis=r"no noise",
    ),
    planted(
        "sghmc-noise-without-friction",
        "sghmc",
        sghmc(lambda s, r, g, n, h: r - h * g + root(s, h) * n),
        "injected noise without friction: the energy grows without bound",
        Kill("stability", "gaussian-1d-scaled", "spectral radius of the step below 1"),
        "limit",
        diagnosis=r"friction .*is missing",
    ),
    planted(
        "sghmc-naive",
        "sghmc",
        sghmc(lambda s, r, g, n, h: r - h * g + 0 * n),
        "naive SGHMC: neither friction nor injected noise, gradient noise of variance h^2 V a step heats forever",
        Kill("stability", "gaussian-1d-scaled", "spectral radius of the step below 1"),
        "gradient-noise",
        "limit",
        source="chen2014stochastic, section 3.1",
        estimator=known_noise,
        targets=LINE,
        diagnosis=r"variance of the noise goes like h\^2|no noise",
    ),
    planted(
        "sghmc-anti-friction",
        "sghmc",
        sghmc(lambda s, r, g, n, h: r - h * g + h * s.friction * r + root(s, h) * n),
        "+ h C r for - h C r",
        Kill("generator_of_code", "gaussian-1d-scaled", "f_r = -grad U - C r"),
        "limit",
        source="ma2015complete, equation (17) as printed",
        targets=LINE,
        diagnosis=r"friction .*wrong sign",
    ),
    planted(
        "sghmc-noise-times-friction",
        "sghmc",
        sghmc(lambda s, r, g, n, h: r - h * g - h * s.friction * r + s.friction * jnp.sqrt(2 * s.temperature * h) * n),
        "noise C sqrt(2 T h) R for sqrt(2 C T h) R: temperature C T",
        Kill("gaussian_limit", "gaussian-1d-scaled", LIMIT, {"friction": 2.0}),
        "options",
        source="a released baseline of stochastic gradient Hamiltonian Monte Carlo",
        variants=({"friction": 2.0}, {"friction": 0.4}),
        targets=LINE,
        diagnosis=r"noise has the factor 2 .*friction",
    ),
    planted(
        "sghmc-friction-ignored",
        "sghmc",
        sghmc(lambda s, r, g, n, h: r - h * g - h * r + jnp.sqrt(2 * s.temperature * h) * n),
        "friction 1 whatever the option says: the law is right, the dynamics is another",
        Kill("generator_of_code", "double-well", "f_r = -grad U - C r", {"friction": 2.0}),
        "options",
        "state",
        variants=({"friction": 2.0}, {"friction": 0.4}),
        targets=LINE,
        diagnosis=r"noise has the factor 0\.5 .*friction term .* is halved",
    ),
    planted(
        "sghmc-friction-half",
        "sghmc",
        sghmc(lambda s, r, g, n, h: r - h * g - 0.5 * h * s.friction * r + root(s, h) * n),
        "friction C / 2 with noise for C: temperature 2 T",
        Kill("defect", "double-well", "c_1 = 0"),
        "variance",
        targets=LINE,
        diagnosis=r"friction term .* is halved",
    ),
    planted(
        "sghmc-frozen",
        "sghmc",
        sghmc(right, moves=False),
        "the first stage is run where the second belongs: the momentum is kicked, the position never moves",
        Kill("movement", "gaussian-pytree", "the position moves in every coordinate"),
        "stages",
        "state",
        source="jeremiecoullon/SGMCMCJax#69",
        targets=LINE,
    ),
    planted(
        "sghmc-momentum-reset",
        "sghmc",
        MomentumReset,
        "the momentum is drawn anew every step, without the half kick that this needs",
        Kill("every_input_matters", "gaussian-pytree", "step depends on each part of the state"),
        "state",
        targets=LINE,
    ),
    planted(
        "sghmc-pack-refreshes",
        "sghmc",
        PackRefreshes,
        "the momentum that is given to `pack` is replaced by a new one",
        Kill("pack_unpack_inverse", "gaussian-pytree", "unpack(pack(z)) = z"),
        "state",
        "reported",
        targets=("gaussian-1d-scaled",),
    ),
    planted(
        "sghmc-claims-order-two",
        "sghmc",
        ClaimsTwo,
        "semi-implicit Euler, of order 1, claimed to be of order 2",
        Kill("weak_order_for_every_potential", LINE[0], "A_2 = L^2 / 2 for every smooth U"),
        "order",
        "claims",
        targets=LINE,
        diagnosis=r"of order 1",
    ),
    planted(
        "sghmc-compensation-twice",
        "sghmc",
        CompensatedTwice,
        "injected covariance 2 C T h - 2 h^2 V^, a bias of the claimed order",
        Kill("stationary_covariance", "gaussian-1d-scaled", "Lyapunov equation of the semi-implicit scheme"),
        "order",
        "gradient-noise",
        estimator=known_noise,
        diagnosis=r"leading bias of the variance",
    ),
)
