"""Planted bugs of samplers on positive and simplex spaces: the CIR transition, its counts, the parameterisations."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.faults.fault import Defect, Kill, planted
from sgmcmc_verification.checks.faults.riemannian import PlantedSGRLD
from sgmcmc_verification.samplers.estimators.host import estimator_key
from sgmcmc_verification.samplers.interface.from_step import PositionState
from sgmcmc_verification.samplers.numerics.noise import normal_like
from sgmcmc_verification.samplers.positive.cir_euler import CIREuler
from sgmcmc_verification.samplers.positive.cir_transition import cir_transition
from sgmcmc_verification.samplers.positive.exponential_ou import ExponentialOU
from sgmcmc_verification.samplers.positive.scir import SCIR, SCIRState
from sgmcmc_verification.samplers.riemannian.metrics import (
    ExpandedNaturalMetric,
    ReducedMeanMetric,
    ReducedNaturalMetric,
)
from sgmcmc_verification.targets.simplex.parameterisations import REDUCED


@dataclass(frozen=True, eq=False)
class PlantedSCIR(SCIR):
    """SCIR whose transition is `moved(generator, log theta, a^, h)`."""

    moved: Callable[..., Any] = cir_transition

    def step(self, key, state, step_size, estimator):
        estimate, estate = estimator.estimate(estimator_key(key, estimator), state.estate, self.position(state))
        shape = self.alpha + np.asarray(estimate.statistics)
        return SCIRState(self.moved(key, state.log_position, shape, float(step_size)), estate)


@dataclass(frozen=True, eq=False)
class StaleCounts(SCIR):
    """The counts of one minibatch, drawn at the start, are used in every step."""

    def init(self, key, position, estimator):
        state = super().init(key, position, estimator)
        estimate, _ = estimator.estimate(estimator_key(key, estimator), state.estate, self.position(state))
        return SCIRState(state.log_position, np.asarray(estimate.statistics))

    def step(self, key, state, step_size, estimator):
        log_theta = cir_transition(key, state.log_position, self.alpha + state.estate, float(step_size))
        return SCIRState(log_theta, state.estate)


@dataclass(frozen=True, eq=False)
class RescaledCounts(SCIR):
    """The counts of a minibatch without N / n, here a third."""

    def step(self, key, state, step_size, estimator):
        estimate, estate = estimator.estimate(estimator_key(key, estimator), state.estate, self.position(state))
        shape = np.asarray(self.alpha + np.asarray(estimate.statistics) / 3)
        return SCIRState(cir_transition(key, state.log_position, shape, float(step_size)), estate)


@dataclass(frozen=True, eq=False)
class NotMirrored(CIREuler):
    """Without the absolute value, and the root of a negative number taken as zero."""

    def step(self, key, state, step_size, estimator):
        theta = np.asarray(state.position, np.float64)
        estimate, estate = estimator.estimate(estimator_key(key, estimator), state.estate, theta)
        noise = np.sqrt(2 * step_size * np.maximum(theta, 0)) * key.standard_normal(theta.shape)
        drift = self.alpha + np.asarray(estimate.statistics) - theta
        return PositionState(theta + step_size * drift + noise, estate)


@dataclass(frozen=True, eq=False)
class GeometricBrownianMotion(ExponentialOU):
    """log theta' = log theta + h (mu^ - sigma^2 / 2) + sigma sqrt(h) Z: without a stationary law."""

    def step(self, key, state, step_size, estimator):
        estimate_key, noise_key = jax.random.split(key)
        estimate, estate = estimator.estimate(estimate_key, state.estate, state.position)
        y = jnp.log(state.position)
        noise = self.scale * jnp.sqrt(step_size) * normal_like(noise_key, y)
        return PositionState(jnp.exp(y + step_size * (estimate.statistics - self.scale**2 / 2) + noise), estate)


def _scir(moved: Callable[..., Any]) -> Callable[..., Any]:
    return lambda target: PlantedSCIR(alpha=1.5, moved=moved)


def _no_gamma(metric: Callable[[], Any]) -> Callable[..., Any]:
    return lambda target: PlantedSGRLD(metric(), correction=lambda metric, theta: jnp.zeros_like(theta))


LAPLACE = "E exp(-s theta') = (1 + s c)^-a exp(-s theta e^-h / (1 + s c)), c = 1 - e^-h"
MOMENTS = "V' = e^-2h V + c^2 Var a^ + 2 E c e^-h + c^2 E a^ with minibatches, and E' = e^-h E + c E a^"
DRIFT = "(E z' - z) / h -> f and Cov(z') / h -> 2 D as h -> 0"

DEFECTS: tuple[Defect, ...] = (
    planted(
        "scir-half-the-degrees-of-freedom",
        "scir",
        _scir(lambda generator, y, a, h: cir_transition(generator, y, a / 2, h)),
        "noncentral chi-square with a degrees of freedom instead of 2 a",
        Kill("laplace_of_step", "gamma", LAPLACE),
        "limit",
    ),
    planted(
        "scir-rate-not-decayed",
        "scir",
        _scir(lambda generator, y, a, h: cir_transition(generator, y + h, a, h)),
        "Poisson rate theta / (1 - e^-h) instead of theta / (e^h - 1)",
        Kill("laplace_of_step", "gamma", LAPLACE),
        "limit",
    ),
    planted(
        "scir-half-the-scale",
        "scir",
        _scir(lambda generator, y, a, h: cir_transition(generator, y, a, h) - np.log(2)),
        "factor (1 - e^-h) / 2, which belongs to the chi-square, on the Gamma variate",
        Kill("defect", "gamma", "E_{z ~ pi} f(z_h) - pi(f) = c_1 h + c_2 h^2 + .., c_1 = .. = c_p = 0"),
        "limit",
    ),
    planted(
        "scir-stale-counts",
        "scir",
        lambda target: StaleCounts(alpha=1.5),
        "the first minibatch is kept: the errors of its counts add up over the steps",
        Kill("finite_time_moments", "gamma", MOMENTS),
        "gradient-noise",
        "stages",
    ),
    planted(
        "scir-counts-not-rescaled",
        "scir",
        lambda target: RescaledCounts(alpha=1.5),
        "counts of a minibatch without the factor N / n",
        Kill("finite_time_moments", "gamma", MOMENTS),
        "data",
    ),
    planted(
        "cir-euler-not-mirrored",
        "cir-euler",
        lambda target: NotMirrored(alpha=1.5),
        "no absolute value: chains leave the positive numbers",
        Kill("stays_on_the_manifold", "gamma", "c(x_n) = 0 and P(x_n) v_n = v_n up to round-off"),
        "manifold",
        step_size=4.0,  # long steps meet the boundary within the steps that the check takes
    ),
    planted(
        "sgrld-reduced-mean-no-gamma",
        "sgrld-reduced-mean",
        _no_gamma(lambda: ReducedMeanMetric(sum(REDUCED))),
        "Gamma = (1 - K theta) / N is missing",
        Kill("generator_of_code", "simplex-reduced-mean", DRIFT),
        "metric",
        diagnosis=r"Gamma .*is missing",
    ),
    planted(
        "sgrld-reduced-natural-no-gamma",
        "sgrld-reduced-natural",
        _no_gamma(lambda: ReducedNaturalMetric(sum(REDUCED))),
        "Gamma = ((1 - pi_K) / pi_K - (1 - pi) / pi) / N is missing",
        Kill("generator_of_code", "simplex-reduced-natural", DRIFT),
        "metric",
        diagnosis=r"Gamma .*is missing",
    ),
    planted(
        "sgrld-expanded-natural-no-gamma",
        "sgrld-expanded-natural",
        _no_gamma(ExpandedNaturalMetric),
        "Gamma = -e^-theta is missing",
        Kill("generator_of_code", "simplex-expanded-natural", DRIFT),
        "metric",
        diagnosis=r"Gamma .*is missing",
    ),
    planted(
        "exponential-ou-is-brownian",
        "exponential-ou",
        lambda target: GeometricBrownianMotion(scale=0.5),
        "geometric Brownian motion, which has no stationary law",
        Kill("defect", "log-normal", "E_{z ~ pi} f(z_h) - pi(f) = c_1 h + c_2 h^2 + .., c_1 = .. = c_p = 0"),
        "limit",
        source="baker2018large, section 2.3",
    ),
)
