"""SGMCMCJax 0.2.13 across the bridge: its kernels, held to what their documentation says they are.

The release needs an older jax (it imports jax.experimental.host_callback), so it runs in an environment of its own:
`python -m sgmcmc_verification.samplers.adapters.isolated build sgmcmcjax`.

What all of them share: the library differentiates a log-likelihood and a log-prior itself and sums over the data,
grad log-prior + N mean_S grad log-likelihood, so that N enters once; gradient noise enters as data. A kernel carries
the gradient at the last position from step to step. In the units of the library: `sgld` has drift dt grad log pi and
noise variance 2 dt, so dt = h; `psgld` and `sgldAdam` have dt / 2 and dt, so dt = 2 h; `sghmc` and `sgnht` have a
velocity v = h r with dt = h^2, and lose the share alpha = C h of it in a step; `baoab` and `badodab` take dt = h.
`*CV` are centred at the example position of the target. Momenta start from 0; `sgnht` draws one in its first step.
"""

from functools import partial
from typing import Any, NamedTuple

from sgmcmc_verification.samplers.adapters.common import composite_claims, preconditioned_claims
from sgmcmc_verification.samplers.adapters.isolated.entry import (
    PRECONDITIONED,
    bridged_row,
    composite_row,
    momentum_row,
    sampled_row,
)
from sgmcmc_verification.samplers.adapters.isolated.sampler import Bridged, bridged
from sgmcmc_verification.samplers.dynamics.underdamped import PhasePoint
from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.samplers.interface.aliases import Position, Tree
from sgmcmc_verification.samplers.interface.claims import Source
from sgmcmc_verification.samplers.overdamped.sgld import SGLD
from sgmcmc_verification.samplers.thermostats.badodab import BADODAB
from sgmcmc_verification.samplers.thermostats.common import ThermostatPoint
from sgmcmc_verification.samplers.thermostats.sgnht import SGNHT
from sgmcmc_verification.samplers.underdamped.splitting import BAOAB
from sgmcmc_verification.samplers.validation import require
from sgmcmc_verification.targets.target import Target


class PreconditionedPoint(NamedTuple):
    """(theta, v): v the moving average of squared gradients."""

    position: Position
    second_moment: Tree


class AdamPoint(NamedTuple):
    """(theta, m, v): moving averages of the gradient and of its square."""

    position: Position
    first_moment: Tree
    second_moment: Tree


_bridged = partial(bridged, "sgmcmcjax")


def sgld(target: Target) -> Bridged:
    """`build_sgld_kernel`: theta' = theta + dt g + sqrt(2 dt) xi."""
    return _bridged("sgld", target, SGLD().claims)


def sgld_cv(target: Target) -> Bridged:
    """`build_sgldCV_kernel`: SGLD, the gradient g(theta) + G(c) - g(c) with the full gradient G at a centre c."""
    return _bridged("sgldCV", target, SGLD().claims)


def sgld_svrg(target: Target, update_rate: int = 10) -> Bridged:
    """`build_sgld_SVRG_kernel`: SGLD with the centre moved to theta every `update_rate` steps."""
    require(update_rate >= 1, "update_rate: must be positive", update_rate)
    return _bridged("sgld_SVRG", target, SGLD().claims, update_rate=update_rate)


def psgld(target: Target, alpha: float = 0.99, eps: float = 1e-5) -> Bridged:
    """`build_psgld_kernel`: with v' = alpha v + (1 - alpha) g^2 and G = 1 / (sqrt(v') + eps),

        theta' = theta + (dt / 2) G g + sqrt(dt G) xi

    without Gamma = div G, the term that li2016preconditioned drops too.
    """
    require(0 <= alpha < 1, "alpha: must lie in [0, 1)", alpha)
    require(eps > 0, "eps: must be positive", eps)
    claims = preconditioned_claims(Source("li2016preconditioned", "Algorithm 1"))
    return _bridged("psgld", target, claims, PreconditionedPoint, alpha=alpha, eps=eps)


def sgld_adam(target: Target, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8) -> Bridged:
    """`build_sgldAdam_kernel`: psgld with the averages and the bias correction of Adam, and m in place of g."""
    require(0 <= beta1 < 1, "beta1: must lie in [0, 1)", beta1)
    require(0 <= beta2 < 1, "beta2: must lie in [0, 1)", beta2)
    require(eps > 0, "eps: must be positive", eps)
    claims = preconditioned_claims(Source("coullon2023efficient", "appendix, SGLD-Adam"))
    return _bridged("sgldAdam", target, claims, AdamPoint, beta1=beta1, beta2=beta2, eps=eps)


def _sghmc(kernel: str, target: Target, num_integration_steps: int, friction: float, **options: Any) -> Bridged:
    require(num_integration_steps >= 1, "num_integration_steps: must be positive", num_integration_steps)
    require(friction > 0, "friction: must be positive", friction)
    claims = composite_claims(Source("chen2014stochastic", "appendix G"))
    return _bridged(kernel, target, claims, L=num_integration_steps, friction=friction, **options)


def sghmc(target: Target, num_integration_steps: int = 10, friction: float = 1.0) -> Bridged:
    """`build_sghmc_kernel`: velocity v ~ N(0, dt), then L times, with g at the *old* theta,

    theta' = theta + v,   v' = (1 - alpha) v + dt g + sqrt(2 alpha dt) xi,   alpha = friction h, dt = h^2.
    """
    return _sghmc("sghmc", target, num_integration_steps, friction)


def sghmc_cv(target: Target, num_integration_steps: int = 10, friction: float = 1.0) -> Bridged:
    """`build_sghmcCV_kernel`: `sghmc` with control variates."""
    return _sghmc("sghmcCV", target, num_integration_steps, friction)


def sghmc_svrg(
    target: Target, num_integration_steps: int = 10, friction: float = 1.0, update_rate: int = 10
) -> Bridged:
    """`build_sghmc_SVRG_kernel`: `sghmc` with a centre that moves every `update_rate` steps."""
    require(update_rate >= 1, "update_rate: must be positive", update_rate)
    return _sghmc("sghmc_SVRG", target, num_integration_steps, friction, update_rate=update_rate)


def sgnht(target: Target, diffusion: float = 1.0) -> Bridged:
    """`build_sgnht_kernel`: with a = A h, dt = h^2, and the thermostat h xi,

    v' = (1 - h xi) v + dt g + sqrt(2 a dt) noise,   theta' = theta + v',   h xi' = h xi + |v'|^2 / d - dt;

    one thermostat a leaf of theta.
    """
    return _bridged("sgnht", target, SGNHT(diffusion).claims, ThermostatPoint, a=diffusion)


def sgnht_cv(target: Target, diffusion: float = 1.0) -> Bridged:
    """`build_sgnhtCV_kernel`: `sgnht` with control variates."""
    return _bridged("sgnhtCV", target, SGNHT(diffusion).claims, ThermostatPoint, a=diffusion)


def baoab(target: Target, gamma: float = 1.0, tau: float = 1.0) -> Bridged:
    """`build_baoab_kernel`: BAOAB of leimkuhler2013rational; `tau` is documented as the temperature."""
    return _bridged("baoab", target, BAOAB(friction=gamma, temperature=tau).claims, PhasePoint, gamma=gamma, tau=tau)


def diffusions_baoab(target: Target, gamma: float = 1.0, tau: float = 1.0) -> Bridged:
    """`diffusions.baoab`: as `baoab`, its two halves called one after the other, as the documentation has it."""
    claims = BAOAB(friction=gamma, temperature=tau).claims
    return _bridged("diffusions.baoab", target, claims, PhasePoint, gamma=gamma, tau=tau)


def _badodab(kernel: str, target: Target, a: float) -> Bridged:
    # the library fixes sigma = 1, that is A = sigma^2 / 2, and the thermal mass mu = 1
    claims = BADODAB(diffusion=0.5, thermal_mass=1.0).claims
    return _bridged(kernel, target, claims, ThermostatPoint, a=a)


def badodab(target: Target, a: float = 0.01) -> Bridged:
    """`build_badodab_kernel`: BADODAB of leimkuhler2016adaptive with sigma = mu = 1; `a` is the first thermostat."""
    return _badodab("badodab", target, a)


def badodab_cv(target: Target, a: float = 0.01) -> Bridged:
    """`build_badodabCV_kernel`: `badodab` with control variates."""
    return _badodab("badodabCV", target, a)


def diffusions_badodab(target: Target, a: float = 0.01) -> Bridged:
    """`diffusions.badodab`: as `badodab`, its two halves called one after the other."""
    return _badodab("diffusions.badodab", target, a)


_FRICTIONS = (
    {"num_integration_steps": 3, "friction": 0.5},
    {"num_integration_steps": 5, "friction": 2.0},
    {"num_integration_steps": 1},
)

ENTRIES: tuple[Row, ...] = (
    bridged_row("sgmcmcjax", "sgld", sgld),
    bridged_row("sgmcmcjax", "sgldCV", sgld_cv),
    bridged_row("sgmcmcjax", "sgld_SVRG", sgld_svrg),
    sampled_row(
        "sgmcmcjax",
        "psgld",
        psgld,
        PRECONDITIONED,
        variants=({"alpha": 0.9, "eps": 0.1}, {"alpha": 0.5, "eps": 1.0}),
    ),
    sampled_row(
        "sgmcmcjax",
        "sgldAdam",
        sgld_adam,
        PRECONDITIONED,
        variants=({"beta1": 0.5, "beta2": 0.99, "eps": 0.1}, {"beta1": 0.0, "beta2": 0.9, "eps": 1.0}),
    ),
    composite_row("sgmcmcjax", "sghmc", sghmc, variants=_FRICTIONS),
    composite_row("sgmcmcjax", "sghmcCV", sghmc_cv, variants=_FRICTIONS[:2]),
    composite_row(
        "sgmcmcjax",
        "sghmc_SVRG",
        sghmc_svrg,
        # few inner steps: each evaluates three gradients, and an old jax is slow to compile them
        variants=(
            {"num_integration_steps": 2, "friction": 2.0, "update_rate": 2},
            {"num_integration_steps": 3, "friction": 0.5, "update_rate": 3},
        ),
    ),
    momentum_row("sgmcmcjax", "sgnht", sgnht, variants=({"diffusion": 0.5}, {"diffusion": 2.0})),
    momentum_row("sgmcmcjax", "sgnhtCV", sgnht_cv, variants=({"diffusion": 0.5}, {"diffusion": 2.0})),
    momentum_row("sgmcmcjax", "baoab", baoab, variants=({"gamma": 0.5, "tau": 0.5}, {"gamma": 2.0, "tau": 2.0})),
    momentum_row("sgmcmcjax", "badodab", badodab, variants=({"a": 0.5}, {"a": 2.0})),
    momentum_row("sgmcmcjax", "badodabCV", badodab_cv, variants=({"a": 0.5}, {"a": 2.0})),
    # the splitting schemes themselves, which the kernels of the release do not run
    momentum_row(
        "sgmcmcjax",
        "diffusions.baoab",
        diffusions_baoab,
        variants=({"gamma": 0.5, "tau": 0.5}, {"gamma": 2.0, "tau": 2.0}),
    ),
    momentum_row("sgmcmcjax", "diffusions.badodab", diffusions_badodab, variants=({"a": 0.5}, {"a": 2.0})),
)
