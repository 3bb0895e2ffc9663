"""JaxSGMC 0.1.5 across the bridge: the solvers of its module `alias`, held to what their documentation says they are.

The release needs an older jax, so it runs in an environment of its own:
`python -m sgmcmc_verification.samplers.adapters.isolated build jax-sgmc`.

What all of them share: the library differentiates a potential itself, - log-prior - N mean_S log-likelihood, summed
over the data; its `step_size` is the h of SDE time, and its schedules of step size, burn-in and thinning are left out
(constant h, every sample kept). Data are handed over without its host callbacks; gradient noise enters as data.
Noise adaption (`adapt_noise_model`), masses and adaptive step sizes are not exercised.
"""

import math
from functools import partial
from typing import NamedTuple

from sgmcmc_verification.samplers.adapters.common import composite_claims, preconditioned_claims
from sgmcmc_verification.samplers.adapters.isolated.entry import (
    PRECONDITIONED,
    bridged_row,
    composite_row,
    momentum_row,
    sampled_row,
)
from sgmcmc_verification.samplers.adapters.isolated.sampler import Bridged, bridged
from sgmcmc_verification.samplers.adapters.sgmcmcjax import PreconditionedPoint
from sgmcmc_verification.samplers.dynamics.underdamped import PhasePoint, langevin_dynamics
from sgmcmc_verification.samplers.entry import TEMPERATURES, Row
from sgmcmc_verification.samplers.interface.aliases import Position
from sgmcmc_verification.samplers.interface.claims import (
    Claims,
    Composite,
    Diffusion,
    ExactLaw,
    Exchange,
    Source,
    StationaryLaw,
    StationaryMoments,
)
from sgmcmc_verification.samplers.overdamped.replica_exchange import ReplicaExchangeSGLD
from sgmcmc_verification.samplers.overdamped.sgld import SGLD
from sgmcmc_verification.samplers.underdamped.splitting import OBABO
from sgmcmc_verification.samplers.validation import require
from sgmcmc_verification.targets.target import Target


class ReplicaPoint(NamedTuple):
    """Positions of the cold and of the hot chain."""

    position: Position
    hot: Position


_bridged = partial(bridged, "jax-sgmc")


def _require_steps(integration_steps: int, friction: float) -> None:
    require(integration_steps >= 1, "integration_steps: must be positive", integration_steps)
    require(friction > 0, "friction: must be positive", friction)


def _exact(source: Source, friction: float, temperature: float = 1.0) -> Claims:
    """Claims of a Metropolis kernel whose momentum is kept from step to step: the law of both is claimed."""
    dynamics = lambda target: langevin_dynamics(target, friction, temperature)
    return Claims(source, ExactLaw(temperature=temperature), Diffusion(dynamics), Composite())


def sgld(target: Target, temperature: float = 1.0) -> Bridged:
    """`alias.sgld`: theta' = theta - h grad U + sqrt(2 T h) xi."""
    require(temperature > 0, "temperature: must be positive", temperature)
    return _bridged("sgld", target, SGLD(temperature).claims, temperature=temperature)


def sgld_rms(target: Target, alpha: float = 0.9, lmbd: float = 1e-5, temperature: float = 1.0) -> Bridged:
    """`alias.sgld(rms_prop=True)`: with v' = alpha v + (1 - alpha) g^2 and G = 1 / (lmbd + sqrt(v')),

        theta' = theta - h G grad U + sqrt(2 T h G) xi

    without Gamma = div G, the term that li2016preconditioned drops too.
    """
    require(0 <= alpha < 1, "alpha: must lie in [0, 1)", alpha)
    require(lmbd > 0, "lmbd: must be positive", lmbd)
    require(temperature > 0, "temperature: must be positive", temperature)
    claims = preconditioned_claims(Source("li2016preconditioned", "Algorithm 1"), temperature)
    return _bridged("sgld_rms", target, claims, PreconditionedPoint, alpha=alpha, lmbd=lmbd, temperature=temperature)


def re_sgld(target: Target, hot_temperature: float = 4.0) -> Bridged:
    """`alias.re_sgld`: SGLD at temperatures 1 and tau, and after each step a swap of the two states.

    A swap is tried in every step. The library leaves tau to the user; its examples have 1000, at which Euler steps of a
    usual size leave every target that grows faster than a parabola.
    """
    require(hot_temperature > 1, "hot_temperature: must exceed 1", hot_temperature)
    claims = Claims(
        Source("deng2020nonconvex", "Algorithm 1"),
        StationaryLaw(order=1),
        Diffusion(ReplicaExchangeSGLD(ratio=hot_temperature).dynamics),
        Composite(),
        Exchange(hot_temperature, rate=math.inf),
        conditions=("exact gradient",),
    )
    return _bridged("re_sgld", target, claims, ReplicaPoint, hot_temperature=hot_temperature)


def sghmc(target: Target, integration_steps: int = 10, friction: float = 1.0) -> Bridged:
    """`alias.sghmc`: momentum r ~ N(0, I), then L times, with the gradient at the *new* theta,

    theta' = theta + h r,   r' = (1 - friction h) r - h grad U(theta') + friction sqrt(2 h) xi.
    """
    _require_steps(integration_steps, friction)
    claims = composite_claims(Source("chen2014stochastic", "Algorithm 2"))
    return _bridged("sghmc", target, claims, integration_steps=integration_steps, friction=friction)


def obabo(target: Target, integration_steps: int = 1, friction: float = 1.0, temperature: float = 1.0) -> Bridged:
    """`alias.obabo`: OBABO, `integration_steps` of them per step (the library's default is 10; 1 has a generator)."""
    _require_steps(integration_steps, friction)
    require(temperature > 0, "temperature: must be positive", temperature)
    one = OBABO(friction=friction, temperature=temperature).claims
    many = Claims(
        one.source,
        StationaryLaw(order=2, temperature=temperature),
        one[StationaryMoments],
        Composite(),
        conditions=one.conditions,
    )
    claims = one if integration_steps == 1 else many
    options = {"integration_steps": integration_steps, "friction": friction, "temperature": temperature}
    return _bridged("obabo", target, claims, PhasePoint, **options)


def amagold(target: Target, integration_steps: int = 10, friction: float = 0.25) -> Bridged:
    """`alias.amagold`: L steps of the reversible leapfrog, one Metropolis test, the momentum flipped on rejection."""
    _require_steps(integration_steps, friction)
    claims = _exact(Source("zhang2020amagold", "Algorithm 1"), friction)
    return _bridged("amagold", target, claims, PhasePoint, integration_steps=integration_steps, friction=friction)


def sggmc(target: Target, integration_steps: int = 10, friction: float = 1.0, temperature: float = 1.0) -> Bridged:
    """`alias.sggmc`: L steps of OBABO and one Metropolis test."""
    _require_steps(integration_steps, friction)
    require(temperature > 0, "temperature: must be positive", temperature)
    claims = _exact(Source("garrigaalonso2021exact", "GGMC"), friction, temperature)
    options = {"integration_steps": integration_steps, "friction": friction, "temperature": temperature}
    return _bridged("sggmc", target, claims, PhasePoint, **options)


_SWAPPED: dict[str, str] = dict.fromkeys(
    ("recipe", "generator", "order", "law"),
    "a step swaps two chains at random: no generator, and not affine; its exact law is in reports/findings",
)
_METROPOLIS = {
    "recipe": "a Metropolis kernel: no diffusion is declared",
    "generator": "a Metropolis kernel has no generator",
    "order": "its accept step has kinks in momentum and position together; its exact defect is in reports/findings",
    "law": "its accept step is not affine; its exact law is in reports/findings",
}

ENTRIES: tuple[Row, ...] = (
    bridged_row("jax-sgmc", "sgld", sgld, variants=TEMPERATURES),
    sampled_row(
        "jax-sgmc",
        "sgld-rms_prop",
        sgld_rms,
        PRECONDITIONED,
        variants=(
            {"alpha": 0.99, "lmbd": 0.1, "temperature": 0.5},
            {"alpha": 0.5, "lmbd": 1.0, "temperature": 2.0},
        ),
    ),
    sampled_row(
        "jax-sgmc",
        "re_sgld",
        re_sgld,
        _SWAPPED,
        variants=({"hot_temperature": 2.0}, {"hot_temperature": 10.0}),
    ),
    composite_row(
        "jax-sgmc",
        "sghmc",
        sghmc,
        variants=(
            {"integration_steps": 3, "friction": 0.5},
            {"integration_steps": 5, "friction": 2.0},
            {"integration_steps": 1},
        ),
    ),
    momentum_row(
        "jax-sgmc",
        "obabo",
        obabo,
        variants=(
            {"friction": 0.5, "temperature": 0.5},
            {"friction": 2.0, "temperature": 2.0},
            {"integration_steps": 3},
            {"integration_steps": 10},
        ),
    ),
    # steps that are rejected now and then: without rejections there is nothing to see of a Metropolis test
    sampled_row(
        "jax-sgmc",
        "amagold",
        amagold,
        _METROPOLIS,
        variants=({"integration_steps": 3, "friction": 1.0}, {"integration_steps": 1, "friction": 0.1}),
        step_power=0.5,
        step_size=1.0,
    ),
    sampled_row(
        "jax-sgmc",
        "sggmc",
        sggmc,
        _METROPOLIS,
        variants=(
            {"integration_steps": 3, "friction": 0.5, "temperature": 0.5},
            {"integration_steps": 1, "friction": 0.1, "temperature": 2.0},
        ),
        step_power=0.5,
        step_size=1.0,
    ),
)
