"""Fortuna (aws-fortuna 0.2.0) across the bridge: its SG-MCMC integrators, held to what its documentation says they are.

The release asks for numpy < 2, jax < 0.5 and optax 0.1, so it runs in an environment of its own:
`python -m sgmcmc_verification.samplers.adapters.isolated build fortuna`.

What all of them share: the integrator ascends the gradient of the log joint density that it is handed, summed over the
data (the library multiplies the log-likelihood of a minibatch by N / n itself). With the step size s of its schedule
and `momentum_decay` a, the share of the momentum that a step *keeps*,

    m' = a m + sqrt(s) g + sqrt(2 (1 - a)) xi,   theta' = theta + sqrt(s) m'

so that s = h^2 and a = 1 - C h for a friction C, and s = h for a = 0. Momenta start from 0.
"""

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
from sgmcmc_verification.samplers.dynamics.underdamped import PhasePoint
from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.samplers.interface.aliases import Position, Tree
from sgmcmc_verification.samplers.interface.claims import AdaptiveLaw, Claims, Source
from sgmcmc_verification.samplers.overdamped.sgld import SGLD
from sgmcmc_verification.samplers.underdamped.sghmc import SGHMC
from sgmcmc_verification.samplers.validation import require
from sgmcmc_verification.targets.target import Target


class PreconditionedPhasePoint(NamedTuple):
    """(theta, r, v): v the moving average of squared gradients."""

    position: Position
    momentum: Tree
    second_moment: Tree


_bridged = partial(bridged, "fortuna")


def _require_friction(friction: float) -> None:
    require(friction > 0, "friction: must be positive", friction)


def sgld(target: Target) -> Bridged:
    """`sghmc_integrator` with `momentum_decay=0`: "recovers the overdamped Langevin dynamics"."""
    return _bridged("sgld", target, SGLD().claims)


def sghmc(target: Target, friction: float = 1.0) -> Bridged:
    """`sghmc_integrator`, as `SGHMCPosterior` builds it: the gradient at the old theta, the momentum moved first."""
    _require_friction(friction)
    return _bridged("sghmc", target, SGHMC(friction).claims, PhasePoint, friction=friction)


def sghmc_resampled(target: Target, integration_steps: int = 10, friction: float = 1.0) -> Bridged:
    """`sghmc_integrator` with `momentum_resample_steps`; one step is that many of the library's."""
    require(integration_steps >= 1, "integration_steps: must be positive", integration_steps)
    _require_friction(friction)
    claims = composite_claims(Source("chen2014stochastic", "Algorithm 2"))
    return _bridged("sghmc_resampled", target, claims, integration_steps=integration_steps, friction=friction)


def _require_average(alpha: float, eps: float) -> None:
    require(0 <= alpha < 1, "alpha: must lie in [0, 1)", alpha)
    require(eps > 0, "eps: must be positive", eps)


def sgld_rms(target: Target, alpha: float = 0.99, eps: float = 1e-7) -> Bridged:
    """`rmsprop_preconditioner`, `momentum_decay=0`: with v' = alpha v + (1 - alpha) g^2 and G = 1 / (eps + sqrt(v')),

        theta' = theta + h G g + sqrt(2 h G) xi

    without Gamma = div G, the term that li2016preconditioned drops too.
    """
    _require_average(alpha, eps)
    claims = preconditioned_claims(Source("li2016preconditioned", "Algorithm 1"))
    return _bridged("sgld_rms", target, claims, PreconditionedPoint, alpha=alpha, eps=eps)


def sghmc_rms(target: Target, friction: float = 1.0, alpha: float = 0.99, eps: float = 1e-7) -> Bridged:
    """`sghmc_integrator` and `rmsprop_preconditioner`: the mass is 1 / G, G as in `sgld_rms`.

    No law is claimed: that of a momentum whose mass remembers is not known, so that no chain can start from it.
    """
    _require_friction(friction)
    _require_average(alpha, eps)
    claims = Claims(
        Source("li2016preconditioned", "the preconditioner of Algorithm 1"),
        AdaptiveLaw(),
        conditions=("exact gradient", "Gamma dropped"),
    )
    return _bridged("sghmc_rms", target, claims, PreconditionedPhasePoint, friction=friction, alpha=alpha, eps=eps)


def cyclical_sgld(target: Target, cycle_length: int = 10, exploration_ratio: float = 0.25, count: int = 5) -> Bridged:
    """`cyclical_sgld_integrator` at step number `count` of its cycle, in its sampling stage, where it is SGLD.

    `step_size` is what the library's schedule makes of its `init_step_size` there.
    """
    require(cycle_length >= 1, "cycle_length: must be positive", cycle_length)
    require(0 <= exploration_ratio <= count / cycle_length < 1, "count: must be in the sampling stage", count)
    claims = SGLD().claims.amended(source=Source("zhang2020cyclical", "Algorithm 1"))
    options = {"cycle_length": cycle_length, "exploration_ratio": exploration_ratio, "count": count}
    return _bridged("cyclical_sgld", target, claims, **options)


ENTRIES: tuple[Row, ...] = (
    bridged_row("fortuna", "sgld", sgld),
    momentum_row("fortuna", "sghmc", sghmc, variants=({"friction": 0.5}, {"friction": 2.0})),
    composite_row(
        "fortuna",
        "sghmc-momentum_resample_steps",
        sghmc_resampled,
        variants=({"integration_steps": 3, "friction": 0.5}, {"integration_steps": 5, "friction": 2.0}),
    ),
    sampled_row(
        "fortuna",
        "sgld-rmsprop",
        sgld_rms,
        PRECONDITIONED,
        variants=({"alpha": 0.9, "eps": 0.1}, {"alpha": 0.5, "eps": 1.0}),
    ),
    bridged_row(
        "fortuna",
        "sghmc-rmsprop",
        sghmc_rms,
        tiers=("contract",),
        unsupported=PRECONDITIONED,
        variants=({"friction": 0.5, "alpha": 0.9, "eps": 0.1}, {"friction": 2.0, "alpha": 0.5, "eps": 1.0}),
        step_power=0.5,
    ),
    # its options choose which step of a cycle is looked at, and the step size is that of this step
    bridged_row("fortuna", "cyclical_sgld", cyclical_sgld),
)
