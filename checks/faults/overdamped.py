"""Planted bugs of SGLD: scale of the noise, drift, temperature, and what is done with the data."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.checks.faults.fault import Defect, Kill, planted
from sgmcmc_verification.samplers.interface.claims import Diffusion, StationaryMoments
from sgmcmc_verification.samplers.interface.estimates import covariance_of
from sgmcmc_verification.samplers.numerics.noise import correlated_like, normal_like
from sgmcmc_verification.samplers.overdamped.sgld import SGLD, SGLDState
from sgmcmc_verification.targets.target import DataTerms, Target

Update = Callable[[SGLD, Any, Any, Any, Any], Any]
"""(sampler, position, gradient, white noise, step size) -> position, leaf by leaf."""


def sgld(update: Update) -> Callable[..., SGLD]:
    """A builder of SGLD with another update rule."""

    @dataclass(frozen=True)
    class Planted(SGLD):
        def step(self, key, state, step_size, estimator):
            gradient_key, noise_key = jax.random.split(key)
            estimate, estate = estimator.estimate(gradient_key, state.estate, state.position)
            noise = normal_like(noise_key, state.position)
            move = lambda x, g, n: update(self, x, g, n, step_size)
            return SGLDState(jax.tree.map(move, state.position, estimate.gradient, noise), estate)

    return lambda target, **options: Planted(**options)


def sgld_on(update: Callable[[Target], Update]) -> Callable[..., SGLD]:
    """A builder of SGLD with an update rule that knows the target."""
    return lambda target, **options: sgld(update(target))(target, **options)


class RememberedNoise(NamedTuple):
    """Position, the estimator's state and the noise of the last step."""

    position: Any
    estate: Any
    noise: Any


@dataclass(frozen=True)
class CarriesNoise(SGLD):
    """The noise of a step is (xi_t + xi_(t-1)) / sqrt 2: of the right variance, correlated with that of the next."""

    def init(self, key, position, estimator) -> Any:
        start = super().init(key, position, estimator)
        return RememberedNoise(start.position, start.estate, jax.tree.map(jnp.zeros_like, position))

    def step(self, key, state: Any, step_size, estimator) -> Any:
        gradient_key, noise_key = jax.random.split(key)
        estimate, estate = estimator.estimate(gradient_key, state.estate, state.position)
        fresh = normal_like(noise_key, state.position)
        scale = jnp.sqrt(self.temperature * step_size)
        move = lambda x, g, new, old: x - step_size * g + scale * (new + old)
        position = jax.tree.map(move, state.position, estimate.gradient, fresh, state.noise)
        return RememberedNoise(position, estate, fresh)


def exact_gradient(target: Target):
    """SGLD that differentiates the potential itself, whatever the estimator says."""

    @dataclass(frozen=True)
    class Planted(SGLD):
        def step(self, key, state, step_size, estimator):
            noise = normal_like(key, state.position)
            scale = jnp.sqrt(2 * self.temperature * step_size)
            move = lambda x, g, n: x - step_size * g + scale * n
            gradient = jax.grad(target.potential)(state.position)
            return SGLDState(jax.tree.map(move, state.position, gradient, noise), state.estate)

    return Planted


def own_minibatch(gradient_of: Callable[[Target, Any, Any], Any]):
    """A builder of SGLD that draws two data itself: `gradient_of(target, position, indices)`."""

    def build(target: Target, **options):
        size = data_of(target).size

        @dataclass(frozen=True)
        class Planted(SGLD):
            def step(self, key, state, step_size, estimator):
                data_key, noise_key = jax.random.split(key)
                indices = jax.random.randint(data_key, (2,), 0, size)
                noise = normal_like(noise_key, state.position)
                scale = jnp.sqrt(2 * self.temperature * step_size)
                gradient = gradient_of(target, state.position, indices)
                return SGLDState(state.position - step_size * gradient + scale * noise, state.estate)

        return Planted(**options)

    return build


def data_of(target: Target) -> DataTerms:
    """The sum over data of a target. Raises ValueError if there is none."""
    if target.terms is None:
        raise ValueError(f"target: {target.name} is not a sum over data")
    return target.terms


def data_gradient(scale: Callable[[int], float]):
    """grad U_0 + scale(N) sum_{i in S} grad U_i."""

    def gradient(target, x, indices):
        batch = jax.tree.map(lambda a: jnp.asarray(a)[indices], target.terms.data)
        rows = jax.vmap(jax.grad(target.terms.datum), (None, 0))(x, batch)
        return jax.grad(target.terms.prior)(x) + scale(target.terms.size) * jnp.sum(rows, axis=0)

    return gradient


def always_first(target, x, indices):
    """grad U_0 + (N/n) sum over the first n data, whatever was drawn."""
    fixed = data_gradient(lambda n: n / 2)
    return fixed(target, x, 0 * indices + jnp.arange(2))


def compensated(covariance: Callable[[SGLD, Any, Any, Any], Any]):
    """A builder of compensated SGLD with another covariance(sampler, identity, V, h) of the injected noise."""

    @dataclass(frozen=True)
    class Planted(SGLD):
        compensate: bool = True

        def step(self, key, state, step_size, estimator):
            gradient_key, noise_key = jax.random.split(key)
            estimate, estate = estimator.estimate(gradient_key, state.estate, state.position)
            eye = jnp.eye(covariance_of(estimate).shape[0])
            noise = correlated_like(noise_key, state.position, covariance(self, eye, estimate.covariance, step_size))
            move = lambda x, g, n: x - step_size * g + n
            return SGLDState(jax.tree.map(move, state.position, estimate.gradient, noise), estate)

    return Planted


def clip(target: Target) -> Update:
    """The gradient is clipped to the range of a unit normal's, |g| <= 3, scaled by the curvature."""
    bound = 3.0 * target.curvature**0.5
    return lambda s, x, g, n, h: x - h * jnp.clip(g, -bound, bound) + jnp.sqrt(2 * s.temperature * h) * n


def curvature_preconditioned(target: Target, **options):
    """SGLD preconditioned with G^-1 = (1 + U''^2)^-1/2 at the position, without Gamma; it declares no dynamics."""
    curvature = jax.hessian(target.flat_potential)

    @dataclass(frozen=True)
    class Planted(SGLD):
        @property
        def claims(self):
            return super().claims.amended(without=(Diffusion, StationaryMoments))

        def step(self, key, state, step_size, estimator):
            gradient_key, noise_key = jax.random.split(key)
            estimate, estate = estimator.estimate(gradient_key, state.estate, state.position)
            x, unravel = ravel_pytree(state.position)
            gradient, noise = ravel_pytree(estimate.gradient)[0], normal_like(noise_key, x)
            inverse = 1 / jnp.sqrt(1 + jnp.diag(curvature(x)) ** 2)
            scale = jnp.sqrt(2 * self.temperature * step_size * inverse)
            return SGLDState(unravel(x - step_size * inverse * gradient + scale * noise), estate)

    return Planted(**options)


def root(s: SGLD, h):
    """sqrt(2 T h)."""
    return jnp.sqrt(2 * s.temperature * h)


def slow_at_zero(s: SGLD, x, g, n, h):
    """D(x) = 1 - 0.95 exp(-5 x^2) for D = 1, with the drift -D grad U + T D'."""
    bump = 0.95 * jnp.exp(-5 * x**2)
    drift = -(1 - bump) * g + s.temperature * 10 * x * bump
    return x + h * drift + root(s, h) * jnp.sqrt(1 - bump) * n


LIMIT = "pi_h -> pi as h -> 0"
EULER_LAW = "Var x = (T / lambda) / (1 - h lambda / 2)"
LINE = ("gaussian-1d-scaled", "double-well")

DEFECTS: tuple[Defect, ...] = (
    planted(
        "sgld-noise-scale-linear",
        "sgld",
        sgld(lambda s, x, g, n, h: x - h * g + jnp.sqrt(2 * s.temperature) * h * n),
        "noise sqrt(2 T) h R for sqrt(2 T h) R",
        Kill("gaussian_limit", "gaussian-1d-scaled", LIMIT),
        "variance",
        "limit",
        source="blei-lab/edward#722",
        targets=LINE,
        diagnosis=r"variance of the noise goes like h\^2",
    ),
    planted(
        "sgld-noise-mean-one",
        "sgld",
        sgld(lambda s, x, g, n, h: x - h * g + root(s, h) * (1 + n)),
        "noise N(1, 1) for N(0, 1): the drift gains sqrt(2 T / h)",
        Kill("local_weak_order", "gaussian-1d-scaled", "E phi(z_h) = phi + h L phi + O(h^2)"),
        "limit",
        source="tensorflow/probability#50",
        targets=LINE,
        diagnosis=r"mean move .* h\^(0\.50|\(1/2\))",
    ),
    planted(
        "sgld-noise-in-loss",
        "sgld",
        sgld(lambda s, x, g, n, h: x - h * (g - root(s, h) * n)),
        "noise added to the loss and then multiplied by the step size: variance 2 T h^3",
        Kill("generator_of_code", "gaussian-1d-scaled", "Cov(z') / h -> 2 D"),
        "variance",
        source="ruqizhang/csgmcmc#1",
        targets=LINE,
        diagnosis=r"variance of the noise goes like h\^3",
    ),
    planted(
        "sgld-noise-scaled-by-variance",
        "sgld",
        sgld(lambda s, x, g, n, h: x - h * g + 2 * s.temperature * h * n),
        "noise multiplied by its variance 2 T h for its standard deviation",
        Kill("defect", "double-well", "c_1 = 0"),
        "variance",
        source="henripal/sgld#1",
        targets=LINE,
        diagnosis=r"variance of the noise goes like h\^2",
    ),
    planted(
        "sgld-noise-halved",
        "sgld",
        sgld(lambda s, x, g, n, h: x - h * g + jnp.sqrt(s.temperature * h) * n),
        "the convention x - (e/2) grad U + N(0, e) mixed up: noise N(0, h) with a drift h grad U",
        Kill("transfer_operator", "double-well", LIMIT),
        "variance",
        targets=LINE,
        diagnosis=r"noise has the factor 0\.5\b",
    ),
    planted(
        "sgld-noise-over-data-size",
        "sgld",
        sgld_on(
            lambda target: lambda s, x, g, n, h: x - h * g + root(s, h) / (target.terms.size if target.terms else 1) * n
        ),
        "noise divided by the number of data",
        Kill("minibatch_limit", "tiny-gaussian-data", LIMIT),
        "variance",
        "data",
        source="ChunyuanLI/pSGLD#2",
        diagnosis=r"noise has the factor (0\.04\b|1/N\^2)",
    ),
    planted(
        "sgld-noise-of-one-coordinate",
        "sgld",
        sgld(lambda s, x, g, n, h: x - h * g + root(s, h) * jnp.ravel(n)[0]),
        "one scalar draw broadcast to all coordinates of a leaf",
        Kill("gaussian_limit", "gaussian-correlated-2d", LIMIT),
        "dimension",
        "streams",
        diagnosis=r"noise has rank 1",
    ),
    planted(
        "sgld-half-gradient",
        "sgld",
        sgld(lambda s, x, g, n, h: x - 0.5 * h * g + root(s, h) * n),
        "drift -(h/2) grad U with noise N(0, 2 T h): temperature 2 T",
        Kill("defect", "anharmonic", "c_1 = 0"),
        "variance",
        targets=("anharmonic", "gaussian-1d-scaled"),
        diagnosis=r"drift has the factor 0\.5\b",
    ),
    planted(
        "sgld-gradient-ascent",
        "sgld",
        sgld(lambda s, x, g, n, h: x + h * g + root(s, h) * n),
        "x + h grad U: the gradient of U taken for that of log pi",
        Kill("stability", "gaussian-1d-scaled", "spectral radius of the step below 1"),
        "limit",
        diagnosis=r"(drift|gradient) .*(wrong sign|factor -1)",
    ),
    planted(
        "sgld-gradient-ignored",
        "sgld",
        lambda target, **options: exact_gradient(target)(**options),
        "the estimate of the gradient is ignored, the exact one used",
        Kill("gradient_noise_limit", "gaussian-1d-scaled", "pi_h depends on the gradient noise N(0, V)"),
        "state",
        "gradient-noise",
        source="blei-lab/edward#886",
    ),
    planted(
        "sgld-target-over-data-size",
        "sgld",
        sgld_on(lambda target: lambda s, x, g, n, h: x - h * g / data_of(target).size + root(s, h) * n),
        "the potential divided by the number of data",
        Kill("minibatch_limit", "tiny-gaussian-data", LIMIT),
        "data",
        source="cornellius-gp/gpytorch#1571",
        diagnosis=r"drift has the factor .*1/N",
    ),
    planted(
        "sgld-minibatch-not-rescaled",
        "sgld",
        own_minibatch(data_gradient(lambda size: 1.0)),
        "the sum over the minibatch for (N/n) times it",
        Kill("minibatch_limit", "tiny-gaussian-data", LIMIT),
        "data",
        "gradient-noise",
        source="broadinstitute/gatk#5575",
        diagnosis=r"likelihood has the factor (0\.4 .*2|n)/N",
    ),
    planted(
        "sgld-minibatch-mean",
        "sgld",
        own_minibatch(data_gradient(lambda size: 0.5)),
        "the mean over the minibatch for N times it",
        Kill("minibatch_limit", "tiny-gaussian-data", LIMIT),
        "data",
        "gradient-noise",
        diagnosis=r"likelihood has the factor .*1/N",
    ),
    planted(
        "sgld-minibatch-fixed",
        "sgld",
        own_minibatch(always_first),
        "every step uses the same n data",
        Kill("minibatch_limit", "tiny-gaussian-data", LIMIT),
        "data",
        "gradient-noise",
        source="blei-lab/edward#886",
        diagnosis=r"constant is added to the drift",
    ),
    planted(
        "sgld-compensation-first-order",
        "sgld-compensated",
        compensated(lambda s, eye, V, h: 2 * s.temperature * h * eye - h * V),
        "injected covariance 2 T h I - h V^ for 2 T h I - h^2 V^",
        Kill("generator_of_code", "gaussian-correlated-2d", "Cov(z') / h -> 2 D"),
        "gradient-noise",
        targets=("gaussian-1d-scaled", "gaussian-correlated-2d"),
        diagnosis=r"variance of the noise",
    ),
    planted(
        "sgld-compensation-sign",
        "sgld-compensated",
        compensated(lambda s, eye, V, h: 2 * s.temperature * h * eye + h**2 * V),
        "h^2 V^ added for subtracted: the gradient noise is counted twice, a bias of the claimed order",
        Kill("stationary_covariance", "gaussian-1d-scaled", EULER_LAW),
        "order",
        "gradient-noise",
        diagnosis=r"leading bias .* times the published",
    ),
    planted(
        "sgld-second-order-term",
        "sgld",
        sgld(lambda s, x, g, n, h: x - h * (1 - 0.5 * h) * g + root(s, h) * n),
        "drift -h (1 - h/2) grad U: right at first order, another leading coefficient of the bias",
        Kill("stationary_covariance", "gaussian-1d-scaled", EULER_LAW),
        "order",
        diagnosis=r"leading bias .* times the published",
    ),
    planted(
        "sgld-temperature-ignored",
        "sgld",
        sgld(lambda s, x, g, n, h: x - h * g + jnp.sqrt(2 * h) * n),
        "noise N(0, 2 h) at every temperature",
        Kill("gaussian_limit", "gaussian-1d-scaled", LIMIT, {"temperature": 0.5}),
        "options",
        variants=({"temperature": 0.5}, {"temperature": 2.0}),
        diagnosis=r"noise has the factor 2 .*1/T.*temperature of 1 for 0\.5",
    ),
    planted(
        "sgld-temperature-inverted",
        "sgld",
        sgld(lambda s, x, g, n, h: x - h * g + jnp.sqrt(2 * h / s.temperature) * n),
        "noise N(0, 2 h / T)",
        Kill(
            "stationary_covariance",
            "gaussian-1d-scaled",
            EULER_LAW,
            {"temperature": 2.0},
        ),
        "options",
        source="ClementiGroup/mlcg#70",
        diagnosis=r"noise .*temperature of 0\.5 for 2",
    ),
    planted(
        "sgld-temperature-as-deviation",
        "sgld",
        sgld(lambda s, x, g, n, h: x - h * g + s.temperature * jnp.sqrt(2 * h) * n),
        "noise sqrt(2 h) T R: temperature T^2",
        Kill("generator_of_code", "anharmonic", "Cov(z') / h -> 2 D", {"temperature": 2.0}),
        "options",
        diagnosis=r"noise has the factor 2 .*T.*temperature of 4 for 2",
    ),
    planted(
        "sgld-gradient-clipped",
        "sgld",
        sgld_on(clip),
        "the gradient is clipped, which biases the law where clipping is active",
        Kill("defect", "double-well", "c_1 = 0"),
        "non-gaussian",
        targets=LINE,
    ),
    planted(
        "sgld-curvature-preconditioned-without-gamma",
        "sgld",
        curvature_preconditioned,
        "preconditioner that depends on the position through U'', without div G^-1: right wherever U'' is constant",
        Kill("transfer_operator", "double-well", LIMIT),
        "non-gaussian",
        "metric",
        targets=LINE,
        diagnosis=r"Gamma",
    ),
    planted(
        "sgld-half-speed",
        "sgld",
        sgld(lambda s, x, g, n, h: x - 0.5 * h * g + jnp.sqrt(s.temperature * h) * n),
        "a step of h/2 for one of h: the law is right, the chain half as fast as declared",
        Kill("bad_start", "gaussian-correlated-2d", "E f(z_n) from a point = E f(Z_T) of the declared dynamics"),
        "claims",
        targets=("gaussian-correlated-2d", "double-well"),
        diagnosis=r"time.* 0\.5 h",
    ),
    planted(
        "sgld-carries-noise",
        "sgld",
        CarriesNoise,
        "half of the noise is that of the step before",
        Kill("noise_of_successive_steps", "double-well", "a step from z alone, at the same draws"),
        "streams",
        targets=("double-well",),
        diagnosis=r"holds more than unpack shows",
    ),
    planted(
        "sgld-slow-at-the-barrier",
        "sgld",
        sgld(slow_at_zero),
        "a diffusion that nearly vanishes at 0, with its correction: the law is right, the wells are hardly connected",
        Kill("separated_modes", "double-well", "the weight of each mode after n steps is that of the dynamics"),
        "non-gaussian",
        "claims",
    ),
)
