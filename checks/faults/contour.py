"""Planted bugs of CSGLD: the multiplier of the gradient, the number of the bin, and how the weights are learned."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from sgmcmc_verification.checks.faults.fault import Defect, Kill, planted
from sgmcmc_verification.samplers.overdamped.contour_sgld import ContourSGLD, contour, learning_contour


@dataclass(frozen=True)
class Multiplier(ContourSGLD):
    """The multiplier with one of its factors changed."""

    power: float = 1.0
    flat: bool = False
    sign: float = 1.0

    def multiplier(self, log_weights, bin_index):
        rise = log_weights[bin_index] - log_weights[jnp.maximum(bin_index - 1, 0)]
        zeta = 1.0 if self.flat else self.zeta
        return 1 + self.sign * zeta * self.temperature**self.power * rise / self.width


@dataclass(frozen=True)
class NextBin(ContourSGLD):
    """J is the number of the bin above."""

    def index(self, potential):
        return jnp.minimum(super().index(potential) + 1, len(self.log_weights) - 1)


@dataclass(frozen=True)
class Forward(ContourSGLD):
    """log w_(J+1) - log w_J in the place of log w_J - log w_(J-1)."""

    def multiplier(self, log_weights, bin_index):
        last = len(self.log_weights) - 1
        rise = log_weights[jnp.minimum(bin_index + 1, last)] - log_weights[bin_index]
        return 1 + self.zeta * self.temperature * rise / self.width


@dataclass(frozen=True)
class Learned(ContourSGLD):
    """The update of the weights without normalisation, or without the factor w_J^zeta."""

    normalised: bool = True
    weighted: bool = True

    def learned(self, log_weights, bin_index, omega):
        weights = jnp.exp(log_weights)
        pull = omega * (weights[bin_index] ** self.zeta if self.weighted else 1.0)
        visit = jax.nn.one_hot(bin_index, len(weights), dtype=weights.dtype)
        return jnp.log(weights + pull * (visit - weights if self.normalised else visit))


FORCE = "theta' - theta = -h tau grad [U / tau + zeta log Psi(U)]"
DRIFT = "E [w' - w] = omega E w_J^zeta (e_J - w)"
WELL = ("double-well",)


def of(method, **how):
    """A builder of the learning sampler with a bug."""
    return learning_contour(lambda **options: method(**how, **options))


DEFECTS: tuple[Defect, ...] = (
    planted(
        "csgld-multiplier-without-temperature",
        "csgld-kept",
        contour(lambda **options: Multiplier(power=0.0, **options)),
        "the multiplier lacks tau",
        Kill("gaussian_limit", "gaussian-1d-scaled", "pi_h -> N(m, T P^-1), 1 / T = 1 / tau + zeta s"),
        "variance",
        targets=("gaussian-1d-scaled",),
        diagnosis=r"drift has the factor",
    ),
    planted(
        "csgld-ignores-zeta",
        "csgld",
        of(Multiplier, flat=True),
        "zeta is taken for 1 in the force",
        Kill("contour_force", "double-well", FORCE),
        "options",
        targets=WELL,
    ),
    planted(
        "csgld-sign-of-multiplier",
        "csgld",
        of(Multiplier, sign=-1.0),
        "the flattened density is sharpened: 1 - zeta tau (log w_J - log w_(J-1)) / width",
        Kill("contour_force", "double-well", FORCE),
        "variance",
        targets=WELL,
    ),
    planted(
        "csgld-bin-off-by-one",
        "csgld",
        of(NextBin),
        "the bin is the next one",
        Kill("contour_force", "double-well", FORCE),
        "non-gaussian",
        targets=WELL,
    ),
    planted(
        "csgld-forward-difference",
        "csgld",
        of(Forward),
        "the weights of the bin above and this one for those of this one and the one below",
        Kill("contour_force", "double-well", FORCE),
        "non-gaussian",
        targets=WELL,
    ),
    planted(
        "csgld-weights-not-normalised",
        "csgld",
        of(Learned, normalised=False),
        "the update of the weights lacks - w: their sum grows",
        Kill("contour_weights", "double-well", "sum_i w_i = 1"),
        "state",
        targets=WELL,
    ),
    planted(
        "csgld-update-not-weighted",
        "csgld",
        of(Learned, weighted=False),
        "the update lacks w_J^zeta: the weights settle at the flattened law, not at the bins' probabilities",
        Kill("contour_weights", "double-well", DRIFT),
        "state",
        targets=WELL,
    ),
)
