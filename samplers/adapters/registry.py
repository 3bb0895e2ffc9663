"""Samplers of other libraries, one row each, named `library/name`. Building one imports its library."""

from collections.abc import Callable
from typing import Any

from samplers.adapters import blackjax
from samplers.adapters.bridge.rows import BRIDGED
from samplers.row import Row

_COMPOSITE = {
    "recipe": "the state is the position alone: the momentum is drawn afresh in every step",
    "generator": "a step of several inner iterations with a full refresh has no generator; its limit h -> 0 counts",
    "order": "a step of several inner iterations with a full refresh has no local expansion in the step size",
}
_FLATTENED = "with zeta > 0 the positions follow an adaptively flattened law; the target is had only by reweighting"
_ADAPTIVE: dict[str, str] = dict.fromkeys(("recipe", "generator", "order", "law"), _FLATTENED)
_PARTICLES = {
    "recipe": "a particle method: no diffusion is declared",
    "generator": "a particle method: no diffusion is declared",
    "order": "a particle method: no invariant law for finitely many particles",
}


def _plain(adapter: Callable[..., Any]) -> Callable[..., Any]:
    """A builder for an adapter that does not depend on the target."""
    return lambda target, **options: adapter(**options)


def _on(adapter: Callable[..., Any], **fixed: Any) -> Callable[..., Any]:
    """A builder for an adapter that needs the exact gradient of the target."""
    return lambda target, **options: adapter(target, **fixed, **options)


ADAPTERS: tuple[Row, ...] = (
    Row(
        "blackjax/sgld",
        _plain(blackjax.SGLD),
        variants=({"temperature": 0.5}, {"temperature": 2.0}),
    ),
    Row(
        "blackjax/sghmc",
        _on(blackjax.SGHMC),
        tiers=("contract", "law"),
        unsupported=_COMPOSITE,
        variants=(
            {"num_integration_steps": 1, "alpha": 1.0, "beta": 0.2},
            {"num_integration_steps": 5, "alpha": 0.5, "beta": 0.1, "temperature": 2.0},
            {"temperature": 0.5},
        ),
        step_power=0.5,
    ),
    Row(
        "blackjax/sgnht",
        _plain(blackjax.SGNHT),
        variants=(
            {"alpha": 1.0, "beta": 0.2, "temperature": 0.5, "init_xi": 0.3},
            {"alpha": 0.5, "beta": 0.1, "temperature": 2.0, "init_xi": 0.7},
        ),
        step_power=0.5,
    ),
    Row(
        "blackjax/csgld",
        _on(blackjax.ContourSGLD),
        tiers=("contract",),
        unsupported=_ADAPTIVE,
        # each value has to show beside the other defaults too: min_energy by at least one energy_gap of 100
        variants=(
            {
                "zeta": 0.75,
                "num_partitions": 50,
                "energy_gap": 50.0,
                "min_energy": -150.0,
                "step_size_stoch": 0.01,
                "temperature": 0.5,
            },
            {
                "zeta": 0.5,
                "num_partitions": 20,
                "energy_gap": 20.0,
                "min_energy": -250.0,
                "step_size_stoch": 0.02,
                "temperature": 2.0,
            },
        ),
    ),
    # its docs: "If `zeta=0` the function reduces to the SGLD step function"
    Row(
        "blackjax/csgld-without-contour",
        _on(blackjax.ContourSGLD, zeta=0.0),
        variants=({"temperature": 0.5}, {"temperature": 2.0}),
    ),
    Row(
        "blackjax/svgd",
        _on(blackjax.SVGD),
        tiers=("contract", "law"),
        unsupported=_PARTICLES,
        variants=({"length_scale": 0.5, "optimizer": "adagrad"}, {"length_scale": 2.0}),
    ),
    *BRIDGED,
)
"""The rows, in the order in which they are run."""
