"""Planted bugs of preconditioned samplers: pSGLD and stochastic gradient Fisher scoring."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.checks.faults.fault import Defect, Kill, planted
from sgmcmc_verification.samplers.interface.estimates import covariance_of
from sgmcmc_verification.samplers.interface.from_step import PositionState
from sgmcmc_verification.samplers.numerics.noise import normal_like
from sgmcmc_verification.samplers.overdamped.psgld import PSGLD, PSGLDState, RMSpropMetric
from sgmcmc_verification.samplers.overdamped.sgfs import SGFS
from sgmcmc_verification.samplers.registry import sampler_row
from sgmcmc_verification.samplers.riemannian.sgrld import SGRLD

LIMIT = "pi_h -> pi as h -> 0"
CLOSED = "A S A^T + N = S has the closed form as its solution"
HISTORY = "M_t = (B / h + (1 + n/N) / 2 mean(V_1 .. V_t))^-1"
PUBLISHED = "G = diag 1 / (lambda + sqrt V)"
GENERATOR = "Cov(z') / h -> 2 D as h -> 0"
PLANE, LINE, DATA = "gaussian-correlated-2d", "gaussian-1d-scaled", "tiny-gaussian-data"


@dataclass(frozen=True, eq=False)
class _Rescaled(PSGLD):
    """pSGLD with another matrix in front of its noise."""

    def factor(self, g):
        """Factor of the white noise without sqrt(2 h T); sqrt(G) is right."""
        raise NotImplementedError

    def step(self, key, state, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        theta, unravel = ravel_pytree(state.position)
        estimate, estate = estimator.estimate(gradient_key, state.estate, state.position)
        g = self.preconditioner(self._start(theta))
        noise = jnp.sqrt(2 * self.temperature * step_size) * self.factor(g) * normal_like(noise_key, theta)
        theta = theta - step_size * g * ravel_pytree(estimate.gradient)[0] + noise
        return PSGLDState(unravel(theta), (), estate)


class NoiseNotPreconditioned(_Rescaled):
    """The noise of SGLD."""

    def factor(self, g):
        return jnp.ones_like(g)


class NoiseWithoutRoot(_Rescaled):
    """G in place of sqrt(G)."""

    def factor(self, g):
        return g


class NoiseOverData(_Rescaled):
    """The noise divided by N."""

    def factor(self, g):
        return jnp.sqrt(g) / self.data_size


class InsideRoot(PSGLD):
    """1 / sqrt(V + lambda), the convention of other optimisers."""

    def step(self, key, state, step_size, estimator):
        other = Inside(**vars(self))
        return other.step(key, state, step_size, estimator)


class Inside(PSGLD):
    """The preconditioner of `InsideRoot`, which declares the right one."""

    def preconditioner(self, second_moment):
        return 1 / jnp.sqrt(second_moment + self.regularisation)


class DecayIgnored(PSGLD):
    """V is the square of the newest gradient."""

    def step(self, key, state, step_size, estimator):
        # adaptive, so that V is used; with a decay of zero
        newest = PSGLD(**{**vars(self), "decay": 0.0})
        started = state._replace(second_moment=self._start(ravel_pytree(state.position)[0]))
        return newest.step(key, started, step_size, estimator)._replace(second_moment=())


class WithoutGamma(SGRLD):
    """pSGLD as it is used, at one step: G depends on the position, and Gamma is dropped."""

    def step(self, key, state, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        theta, unravel = ravel_pytree(state.position)
        estimate, estate = estimator.estimate(gradient_key, state.estate, state.position)
        noise = self.metric.inverse_sqrt(theta) @ normal_like(noise_key, theta)
        drift = self.metric.inverse(theta) @ ravel_pytree(estimate.gradient)[0]
        theta = theta - step_size * drift + jnp.sqrt(2 * self.temperature * step_size) * noise
        return PositionState(unravel(theta), estate)


class GammaOfData(SGFS):
    """gamma = N / n: what the gradients bring along is allowed for, what the drift takes away is not."""

    def fisher(self, covariance):
        return super().fisher(covariance) / (1 + self.batch_fraction)


class FisherNotHalved(SGFS):
    """(gamma N I + 2 B / h)^-1 without the factor 2 before the bracket, as far as F is concerned."""

    def fisher(self, covariance):
        return 2 * super().fisher(covariance)


class NoiseNotAllowedFor(SGFS):
    """The noise of the gradients is not in the bracket: preconditioned SGLD."""

    def fisher(self, covariance):
        return jnp.zeros_like(covariance)


class FisherOfMean(SGFS):
    """The covariance of the mean gradient of the batch in place of that of the sum over data: n/N of it."""

    def fisher(self, covariance):
        return self.batch_fraction * super().fisher(covariance)


class NoiseWithoutB(SGFS):
    """N(0, 2 I / h) for N(0, 2 B / h)."""

    def step(self, key, state, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        theta, unravel = ravel_pytree(state.position)
        estimate, estate = estimator.estimate(gradient_key, state.estate, state.position)
        force = step_size * ravel_pytree(estimate.gradient)[0]
        force = force + jnp.sqrt(2 * step_size) * normal_like(noise_key, theta)
        bracket = jnp.asarray(self.matrix(theta.shape[0]), theta.dtype) + step_size / 2 * self.fisher(
            covariance_of(estimate)
        )
        moved = theta - jnp.linalg.solve(bracket, force)
        return state._replace(
            position=unravel(moved), covariance=estimate.covariance, count=state.count + 1, estate=estate
        )


class RootOfBForgotten(SGFS):
    """sqrt(2 / h) B xi for sqrt(2 / h) B^(1/2) xi."""

    def step(self, key, state, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        theta, unravel = ravel_pytree(state.position)
        estimate, estate = estimator.estimate(gradient_key, state.estate, state.position)
        B = jnp.asarray(self.matrix(theta.shape[0]), theta.dtype)
        force = step_size * ravel_pytree(estimate.gradient)[0]
        force = force + jnp.sqrt(2 * step_size) * (B @ normal_like(noise_key, theta))
        moved = theta - jnp.linalg.solve(B + step_size / 2 * self.fisher(covariance_of(estimate)), force)
        return state._replace(
            position=unravel(moved), covariance=estimate.covariance, count=state.count + 1, estate=estate
        )


class NewestCovariance(SGFS):
    """The covariance of the newest batch in place of the mean of all so far."""

    def step(self, key, state, step_size, estimator):
        started = state._replace(covariance=jnp.zeros_like(state.covariance), count=jnp.zeros_like(state.count))
        return super().step(key, started, step_size, estimator)


class WholeFisher(SGFS):
    """The whole of F beside the diagonal of B."""

    def fisher(self, covariance):
        return (1 + self.batch_fraction) * covariance


class InsideRootMetric(RMSpropMetric):
    """1 / sqrt(V + lambda), in the step and in what is declared."""

    def _diagonal(self, theta):
        gradient = jax.grad(self.target.flat_potential)(theta) / self.data_size
        moment = self.decay * self.second_moment + (1 - self.decay) * gradient**2
        return 1 / jnp.sqrt(moment + self.regularisation)


def _inside_root(metric: RMSpropMetric, temperature: float) -> SGRLD:
    """SGRLD with the other metric of the same arguments."""
    return SGRLD(InsideRootMetric(**vars(metric)), temperature)


def _of(base: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """The builder of a row with another method."""
    return partial(sampler_row(base).build, method=method)


def _bug(
    name: str,
    base: str,
    method: Callable[..., Any],
    error: str,
    kill: Kill,
    *classes: str,
    source: str = "",
    diagnosis: str = "",
) -> Defect:
    return planted(name, base, _of(base, method), error, kill, *classes, source=source, diagnosis=diagnosis)


DEFECTS: tuple[Defect, ...] = (
    _bug(
        "psgld-noise-not-preconditioned",
        "psgld-frozen",
        NoiseNotPreconditioned,
        "N(0, 2 h T) for N(0, 2 h T G)",
        Kill("gaussian_limit", PLANE, LIMIT),
        "variance",
        diagnosis=r"noise .*without the metric",
    ),
    _bug(
        "psgld-noise-without-root",
        "psgld-frozen",
        NoiseWithoutRoot,
        "G sqrt(2 h T) xi for sqrt(2 h T G) xi",
        Kill("gaussian_limit", PLANE, LIMIT),
        "variance",
        diagnosis=r"noise has the variance 2 h D\^2",
    ),
    _bug(
        "psgld-noise-over-data",
        "psgld-frozen",
        NoiseOverData,
        "the noise is divided by N",
        Kill("gaussian_limit", DATA, LIMIT),
        "variance",
        "data",
        source="ChunyuanLI/pSGLD, issue 2",
        diagnosis=r"noise has the factor (0\.04\b|1/N\^2)",
    ),
    _bug(
        "psgld-regularisation-inside-root",
        "psgld-frozen",
        InsideRoot,
        "G = 1 / sqrt(V + lambda) for 1 / (lambda + sqrt V)",
        Kill("stationary_covariance", LINE, CLOSED),
        "order",
        diagnosis=r"time",
    ),
    _bug(
        "psgld-decay-ignored",
        "psgld-frozen",
        DecayIgnored,
        "V = g^2 for alpha V + (1 - alpha) g^2",
        Kill("generator_of_code", "anharmonic", GENERATOR),
        "metric",
        diagnosis=r"noise in theta.*drift of theta",
    ),
    _bug(
        "psgld-without-gamma",
        "psgld-gamma",
        WithoutGamma,
        "no Gamma_i = d_i G_ii, as is usual: the law is exp(-U / T) / G in one dimension",
        Kill("transfer_operator", "double-well", LIMIT),
        "metric",
        "limit",
        source="li2016preconditioned, section 4, which drops it",
        diagnosis=r"Gamma .*is missing",
    ),
    _bug(
        "sgfs-gamma-of-data",
        "sgfs",
        GammaOfData,
        "gamma = N / n for (n + N) / n",
        Kill("stationary_covariance", LINE, CLOSED),
        "order",
    ),
    _bug(
        "sgfs-fisher-not-halved",
        "sgfs",
        FisherNotHalved,
        "(B / h + F)^-1 for (B / h + F / 2)^-1",
        Kill("stationary_covariance", LINE, CLOSED),
        "order",
    ),
    _bug(
        "sgfs-noise-not-allowed-for",
        "sgfs",
        NoiseNotAllowedFor,
        "F = 0: the noise of the gradients adds to the injected noise",
        Kill("stationary_covariance", LINE, CLOSED),
        "gradient-noise",
        "order",
    ),
    _bug(
        "sgfs-fisher-of-mean",
        "sgfs-diagonal",
        FisherOfMean,
        "F n/N for F: the scale of one datum in place of that of the sum",
        Kill("stationary_covariance", LINE, CLOSED),
        "data",
    ),
    _bug(
        "sgfs-noise-without-b",
        "sgfs",
        NoiseWithoutB,
        "N(0, 2 I / h) for N(0, 2 B / h)",
        Kill("gaussian_limit", PLANE, LIMIT),
        "variance",
        diagnosis=r"noise has the variance 2 h D\^2",
    ),
    _bug(
        "sgfs-noise-without-root",
        "sgfs-diagonal",
        RootOfBForgotten,
        "B xi for B^(1/2) xi",
        Kill("gaussian_limit", PLANE, LIMIT),
        "variance",
        diagnosis=r"noise .*without the metric",
    ),
    _bug(
        "sgfs-newest-covariance",
        "sgfs",
        NewestCovariance,
        "F of the newest covariance for that of the mean of all so far",
        Kill("preconditioner_by_definition", PLANE, HISTORY),
        "state",
    ),
    _bug(
        "sgfs-diagonal-whole-fisher",
        "sgfs-diagonal",
        WholeFisher,
        "the whole of F beside the diagonal of B",
        Kill("preconditioner_by_definition", PLANE, HISTORY),
        "options",
        "dimension",
    ),
    _bug(
        "psgld-metric-inside-root",
        "psgld-gamma",
        _inside_root,
        "G = 1 / sqrt(V + lambda) for 1 / (lambda + sqrt V), in the step and in what is declared",
        Kill("published_diffusion", "anharmonic", PUBLISHED),
        "claims",
        "metric",
    ),
)
