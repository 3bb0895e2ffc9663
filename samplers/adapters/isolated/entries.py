"""The rows of the libraries behind the bridge; samplers/adapters/registry.py takes them up."""

from collections.abc import Callable
from typing import Any

from samplers.adapters import fortuna, jax_sgmc, sgmcmcjax
from samplers.entry import SAMPLED_TIERS, Row

_REFRESHED = {
    "recipe": "the state is the position alone: the momentum is drawn afresh in every step",
    "generator": "a step of several inner iterations with a full refresh has no generator; its limit h -> 0 counts",
    "order": "a step of several inner iterations with a full refresh has no local expansion in the step size",
}
_PRECONDITIONED: dict[str, str] = dict.fromkeys(
    ("recipe", "generator", "order", "law"),
    "the preconditioner is a moving average over the chain, without the term Gamma: no dynamics are declared; "
    "its exact limit is in reports/findings",
)
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

_FRICTIONS = (
    {"num_integration_steps": 3, "friction": 0.5},
    {"num_integration_steps": 5, "friction": 2.0},
    {"num_integration_steps": 1},
)


def _row(library: str, name: str, build: Callable[..., Any], **given: Any) -> Row:
    return Row(f"{library}/{name}", build, **given)


def _momentum(library: str, name: str, build: Callable[..., Any], **given: Any) -> Row:
    return _row(library, name, build, step_power=0.5, **given)


def _composite(library: str, name: str, build: Callable[..., Any], **given: Any) -> Row:
    return _momentum(library, name, build, tiers=("contract", "law", *SAMPLED_TIERS), unsupported=_REFRESHED, **given)


def _sampled(library: str, name: str, build: Callable[..., Any], why: dict[str, str], **given: Any) -> Row:
    """A row whose law independent chains decide alone."""
    return _row(library, name, build, tiers=("contract", *SAMPLED_TIERS), unsupported=why, **given)


BRIDGED: tuple[Row, ...] = (
    _row("sgmcmcjax", "sgld", sgmcmcjax.sgld),
    _row("sgmcmcjax", "sgldCV", sgmcmcjax.sgld_cv),
    _row("sgmcmcjax", "sgld_SVRG", sgmcmcjax.sgld_svrg),
    _sampled(
        "sgmcmcjax",
        "psgld",
        sgmcmcjax.psgld,
        _PRECONDITIONED,
        variants=({"alpha": 0.9, "eps": 0.1}, {"alpha": 0.5, "eps": 1.0}),
    ),
    _sampled(
        "sgmcmcjax",
        "sgldAdam",
        sgmcmcjax.sgld_adam,
        _PRECONDITIONED,
        variants=({"beta1": 0.5, "beta2": 0.99, "eps": 0.1}, {"beta1": 0.0, "beta2": 0.9, "eps": 1.0}),
    ),
    _composite("sgmcmcjax", "sghmc", sgmcmcjax.sghmc, variants=_FRICTIONS),
    _composite("sgmcmcjax", "sghmcCV", sgmcmcjax.sghmc_cv, variants=_FRICTIONS[:2]),
    _composite(
        "sgmcmcjax",
        "sghmc_SVRG",
        sgmcmcjax.sghmc_svrg,
        # few inner steps: each evaluates three gradients, and an old jax is slow to compile them
        variants=(
            {"num_integration_steps": 2, "friction": 2.0, "update_rate": 2},
            {"num_integration_steps": 3, "friction": 0.5, "update_rate": 3},
        ),
    ),
    _momentum("sgmcmcjax", "sgnht", sgmcmcjax.sgnht, variants=({"diffusion": 0.5}, {"diffusion": 2.0})),
    _momentum("sgmcmcjax", "sgnhtCV", sgmcmcjax.sgnht_cv, variants=({"diffusion": 0.5}, {"diffusion": 2.0})),
    _momentum("sgmcmcjax", "baoab", sgmcmcjax.baoab, variants=({"gamma": 0.5, "tau": 0.5}, {"gamma": 2.0, "tau": 2.0})),
    _momentum("sgmcmcjax", "badodab", sgmcmcjax.badodab, variants=({"a": 0.5}, {"a": 2.0})),
    _momentum("sgmcmcjax", "badodabCV", sgmcmcjax.badodab_cv, variants=({"a": 0.5}, {"a": 2.0})),
    # the splitting schemes themselves, which the kernels of the release do not run
    _momentum(
        "sgmcmcjax",
        "diffusions.baoab",
        sgmcmcjax.diffusions_baoab,
        variants=({"gamma": 0.5, "tau": 0.5}, {"gamma": 2.0, "tau": 2.0}),
    ),
    _momentum("sgmcmcjax", "diffusions.badodab", sgmcmcjax.diffusions_badodab, variants=({"a": 0.5}, {"a": 2.0})),
    _row("jax-sgmc", "sgld", jax_sgmc.sgld, variants=({"temperature": 0.5}, {"temperature": 2.0})),
    _sampled(
        "jax-sgmc",
        "sgld-rms_prop",
        jax_sgmc.sgld_rms,
        _PRECONDITIONED,
        variants=(
            {"alpha": 0.99, "lmbd": 0.1, "temperature": 0.5},
            {"alpha": 0.5, "lmbd": 1.0, "temperature": 2.0},
        ),
    ),
    _sampled(
        "jax-sgmc",
        "re_sgld",
        jax_sgmc.re_sgld,
        _SWAPPED,
        variants=({"hot_temperature": 2.0}, {"hot_temperature": 10.0}),
    ),
    _composite(
        "jax-sgmc",
        "sghmc",
        jax_sgmc.sghmc,
        variants=(
            {"integration_steps": 3, "friction": 0.5},
            {"integration_steps": 5, "friction": 2.0},
            {"integration_steps": 1},
        ),
    ),
    _momentum(
        "jax-sgmc",
        "obabo",
        jax_sgmc.obabo,
        variants=(
            {"friction": 0.5, "temperature": 0.5},
            {"friction": 2.0, "temperature": 2.0},
            {"integration_steps": 3},
            {"integration_steps": 10},
        ),
    ),
    # steps that are rejected now and then: without rejections there is nothing to see of a Metropolis test
    _sampled(
        "jax-sgmc",
        "amagold",
        jax_sgmc.amagold,
        _METROPOLIS,
        variants=({"integration_steps": 3, "friction": 1.0}, {"integration_steps": 1, "friction": 0.1}),
        step_power=0.5,
        step_size=1.0,
    ),
    _sampled(
        "jax-sgmc",
        "sggmc",
        jax_sgmc.sggmc,
        _METROPOLIS,
        variants=(
            {"integration_steps": 3, "friction": 0.5, "temperature": 0.5},
            {"integration_steps": 1, "friction": 0.1, "temperature": 2.0},
        ),
        step_power=0.5,
        step_size=1.0,
    ),
    _row("fortuna", "sgld", fortuna.sgld),
    _momentum("fortuna", "sghmc", fortuna.sghmc, variants=({"friction": 0.5}, {"friction": 2.0})),
    _composite(
        "fortuna",
        "sghmc-momentum_resample_steps",
        fortuna.sghmc_resampled,
        variants=({"integration_steps": 3, "friction": 0.5}, {"integration_steps": 5, "friction": 2.0}),
    ),
    _sampled(
        "fortuna",
        "sgld-rmsprop",
        fortuna.sgld_rms,
        _PRECONDITIONED,
        variants=({"alpha": 0.9, "eps": 0.1}, {"alpha": 0.5, "eps": 1.0}),
    ),
    _row(
        "fortuna",
        "sghmc-rmsprop",
        fortuna.sghmc_rms,
        tiers=("contract",),
        unsupported=_PRECONDITIONED,
        variants=({"friction": 0.5, "alpha": 0.9, "eps": 0.1}, {"friction": 2.0, "alpha": 0.5, "eps": 1.0}),
        step_power=0.5,
    ),
    # its options choose which step of a cycle is looked at, and the step size is that of this step
    _row("fortuna", "cyclical_sgld", fortuna.cyclical_sgld),
)
"""In the order in which they are run."""
