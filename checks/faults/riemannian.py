"""Planted bugs of samplers with a metric that depends on the position: Gamma, noise, the metric itself."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.checks.faults.fault import Defect, Kill, planted
from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics, row_divergence
from sgmcmc_verification.samplers.dynamics.published import RECIPE_OFFSET
from sgmcmc_verification.samplers.dynamics.underdamped import MomentumState
from sgmcmc_verification.samplers.interface.claims import Diffusion
from sgmcmc_verification.samplers.interface.from_step import PositionState
from sgmcmc_verification.samplers.numerics.noise import normal_like
from sgmcmc_verification.samplers.riemannian.euler import Recipe
from sgmcmc_verification.samplers.riemannian.metrics import NonHessian2D, PositiveMetric, RecipeMetric, dense
from sgmcmc_verification.samplers.riemannian.sgrhmc import SGRHMC
from sgmcmc_verification.samplers.riemannian.sgrld import SGRLD
from sgmcmc_verification.targets.target import Target


@dataclass(frozen=True)
class PlantedSGRLD(SGRLD):
    """theta' = theta - h (G^-1)^power grad U~ + h T Gamma + sqrt(2 T h) N R."""

    correction: Callable[[Any, jax.Array], jax.Array] = lambda metric, theta: row_divergence(metric.inverse, theta)
    noise: Callable[[Any, jax.Array], jax.Array] = lambda metric, theta: metric.inverse_sqrt(theta)
    power: int = 1

    def step(self, key, state, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        h, T = step_size, self.temperature
        theta, unravel = ravel_pytree(state.position)
        estimate, estate = estimator.estimate(gradient_key, state.estate, state.position)
        inverse = jnp.linalg.matrix_power(dense(self.metric.inverse(theta)), self.power)
        kick = inverse @ ravel_pytree(estimate.gradient)[0] - T * self.correction(self.metric, theta)
        noise = jnp.sqrt(2 * T * h) * (self.noise(self.metric, theta) @ normal_like(noise_key, theta))
        theta = theta - h * kick + noise
        return PositionState(unravel(jnp.abs(theta) if self.reflect else theta), estate)


@dataclass(frozen=True)
class PlantedSGRHMC(SGRHMC):
    """r' = r + h [-B grad U~ + gamma T div B - drag G^-1 r] + N(0, 2hT G^-1 - h^2 B V^ B), theta' = theta + h B r'."""

    gamma: float = 1.0
    drag: float = 1.0

    def step(self, key, state, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        h, T = step_size, self.temperature
        theta, unravel = ravel_pytree(state.position)
        r = ravel_pytree(state.momentum)[0]
        estimate, estate = estimator.estimate(gradient_key, state.estate, state.position)
        inverse, root = self.metric.inverse(theta), self.metric.inverse_sqrt(theta)
        divergence = row_divergence(self.metric.inverse_sqrt, theta)
        force = self.gamma * T * divergence - root @ ravel_pytree(estimate.gradient)[0] - self.drag * (inverse @ r)
        r = r + h * force + self.injected(noise_key, theta, estimate, h)
        return MomentumState(unravel(theta + h * (root @ r)), unravel(r), estate)


@dataclass(frozen=True)
class ClippedSGRLD(SGRLD):
    """max(theta, 0) for |theta|."""

    def step(self, key, state, step_size, estimator):
        new = dataclasses.replace(self, reflect=False)
        free = SGRLD.step(new, key, state, step_size, estimator)
        return (
            free._replace(position=jax.tree.map(lambda x: jnp.maximum(x, 0), free.position)) if self.reflect else free
        )


@dataclass(frozen=True)
class OneWaySGRHMC(SGRHMC):
    """|theta| as `reflect` asks for, and the momentum as it was."""

    def step(self, key, state, step_size, estimator):
        free = SGRHMC.step(dataclasses.replace(self, reflect=False), key, state, step_size, estimator)
        return free._replace(position=jnp.abs(free.position)) if self.reflect else free


@dataclass(frozen=True)
class Uncompensated(SGRHMC):
    """The injected noise of exact gradients, whatever the covariance of the gradient."""

    def injected(self, key, theta, estimate, step_size):
        white = normal_like(key, theta)
        return jnp.sqrt(2 * self.temperature * step_size) * (self.metric.inverse_sqrt(theta) @ white)


def signed_dynamics(factor: float):
    """`Dynamics` whose Gamma is multiplied by `factor`, in what is declared and in what is run."""

    @dataclass(frozen=True, eq=False)
    class Signed(Dynamics):
        def gamma(self, z):
            return factor * super().gamma(z)

    return lambda d: Signed(d.H, d.D, d.Q, d.names, d.size)


def recipe(dynamics_of: Callable[[Target, float], Dynamics]) -> Callable[..., Recipe]:
    """Euler's method on a declared dynamics."""

    def build(target: Target, temperature: float = 1.0):
        momentum = lambda key: jnp.sqrt(temperature) * jax.random.normal(key, (target.size,))
        return Recipe(lambda t: dynamics_of(t, temperature), target, temperature, auxiliary=momentum)

    return build


def sgrhmc_on_plane(target: Target, temperature: float) -> Dynamics:
    """The dynamics of SGRHMC with a metric that is not a Hessian."""
    return SGRHMC(NonHessian2D(), temperature=temperature).dynamics(target)


class CodeWithoutGamma(Recipe):
    """The declared dynamics is right; the step leaves Gamma out."""

    def drift(self, z, gradient, target=None):
        return super().drift(z, gradient, target) - self.dynamics(target or self.target).gamma(z)


def code_without_gamma(target: Target, temperature: float = 1.0) -> Recipe:
    """`recipe` without Gamma in the code."""
    built = recipe(sgrhmc_on_plane)(target, temperature)
    return CodeWithoutGamma(built.dynamics, target, temperature, auxiliary=built.auxiliary)


def declared_without_gamma(target: Target, temperature: float = 1.0):
    """Naive SGRHMC that declares what it does: the drift without Gamma."""

    @dataclass(frozen=True)
    class Declared(PlantedSGRHMC):
        @property
        def claims(self):
            right = super().claims
            wrong = lambda t: signed_dynamics(0.0)(self.dynamics(t))
            return right.amended(dataclasses.replace(right[Diffusion], dynamics=wrong))

    return Declared(_recipe_metric(target), temperature=temperature, gamma=0.0)


def symmetric_q(target: Target, temperature: float) -> Dynamics:
    """SGRHMC with Q = [[0, B], [B, 0]]."""
    right = sgrhmc_on_plane(target, temperature)
    return dataclasses.replace(right, Q=lambda z: jnp.abs(right.Q(z)))


def root_as_friction(target: Target, temperature: float) -> Dynamics:
    """SGRHMC with D = T diag(0, G^-1/2): another friction, with the same law."""
    right, n = sgrhmc_on_plane(target, temperature), target.size
    root = lambda z: temperature * NonHessian2D().inverse_sqrt(z[:n])
    return dataclasses.replace(right, D=lambda z: jnp.zeros((2 * n, 2 * n), z.dtype).at[n:, n:].set(root(z)))


def old_correction(metric, theta: jax.Array) -> jax.Array:
    """Gamma + |G|^-1 sum_k d_k (|G| G^-1_jk), which is Gamma for Hessian metrics only."""

    def adjugate(y):
        inverse = metric.inverse(y)
        return inverse / jnp.linalg.det(inverse)

    extra = jnp.linalg.det(metric.inverse(theta)) * row_divergence(adjugate, theta)
    return row_divergence(metric.inverse, theta) + extra


def no_correction(metric, theta: jax.Array) -> jax.Array:
    """0."""
    return jnp.zeros_like(theta)


def minus_gamma(metric, theta: jax.Array) -> jax.Array:
    """-Gamma."""
    return -row_divergence(metric.inverse, theta)


def _recipe_metric(target: Target) -> RecipeMetric:
    return RecipeMetric(target, offset=RECIPE_OFFSET)


def on_plane(method: Callable[..., Any], **changes: Any) -> Callable[..., Any]:
    """A builder with the metric that is not a Hessian."""
    return lambda target, **options: method(NonHessian2D(), **changes, **options)


def on_line(method: Callable[..., Any], **changes: Any) -> Callable[..., Any]:
    """A builder with the metric D sqrt(|U + C|)."""
    return lambda target, **options: method(_recipe_metric(target), **changes, **options)


PLANE, LINE = "gaussian-correlated-2d", "double-well"
GENERATOR = "f = -(D + Q) grad H + Gamma"
MIRROR = "r' = -r'_free where theta'_free < 0"
LIMIT = "pi_h -> pi as h -> 0"

DEFECTS: tuple[Defect, ...] = (
    planted(
        "sgrld-naive",
        "sgrld-recipe-metric",
        on_line(PlantedSGRLD, correction=no_correction),
        "naive SGRLD: Gamma left out; its law is exp(-U) G in one dimension",
        Kill("transfer_operator", LINE, LIMIT),
        "metric",
        source="ma2015complete, section 4.1 (the naive variant)",
        diagnosis=r"Gamma .*is missing",
    ),
    planted(
        "sgrld-gamma-sign",
        "sgrld-non-hessian",
        on_plane(PlantedSGRLD, correction=minus_gamma),
        "-Gamma for Gamma",
        Kill("generator_of_code", PLANE, GENERATOR),
        "metric",
        source="ma2015complete, equations (6) and (9) as printed",
        diagnosis=r"Gamma .*wrong sign",
    ),
    planted(
        "sgrld-old-correction",
        "sgrld-non-hessian",
        on_plane(PlantedSGRLD, correction=old_correction),
        "the correction of girolami2011riemann for Gamma: they agree for Hessian metrics only",
        Kill("generator_of_code", PLANE, GENERATOR),
        "metric",
        "dimension",
        source="girolami2011riemann",
        diagnosis=r"Gamma",
    ),
    planted(
        "sgrld-metric-twice",
        "sgrld",
        lambda target, **options: PlantedSGRLD(PositiveMetric(), power=2, reflect=True, **options),
        "the natural gradient G^-1 grad U multiplied by G^-1 again",
        Kill("generator_for_every_potential", "gamma", "A_1 = L for every smooth U"),
        "metric",
        source="a released baseline of SGRLD on the simplex",
        diagnosis=r"multiplied by D twice",
    ),
    planted(
        "sgrld-clipped-at-zero",
        "sgrld",
        lambda target, **options: ClippedSGRLD(PositiveMetric(), **{"reflect": True, **options}),
        "max(theta, 0) for |theta|: what crosses zero stays there",
        Kill("mirror_at_zero", "gamma", MIRROR),
        "manifold",
    ),
    planted(
        "sgrhmc-momentum-through-the-mirror",
        "sgrhmc",
        lambda target, **options: OneWaySGRHMC(PositiveMetric(), **{"reflect": True, **options}),
        "|theta| with a momentum that goes on as before: the particle runs into the mirror again",
        Kill("mirror_at_zero", "gamma", MIRROR),
        "manifold",
    ),
    planted(
        "sgrld-noise-without-metric",
        "sgrld-non-hessian",
        on_plane(PlantedSGRLD, noise=lambda metric, theta: jnp.eye(theta.shape[0], dtype=theta.dtype)),
        "noise N(0, 2 T h I) for N(0, 2 T h G^-1)",
        Kill("generator_of_code", PLANE, "Cov(z') / h -> 2 D"),
        "metric",
        "variance",
        source="google-deepmind/optax#281",
        diagnosis=r"noise .*without the metric",
    ),
    planted(
        "sgrld-noise-by-metric",
        "sgrld-non-hessian",
        on_plane(PlantedSGRLD, noise=lambda metric, theta: metric.inverse(theta)),
        "noise G^-1 R for G^-1/2 R",
        Kill("generator_of_code", PLANE, "Cov(z') / h -> 2 D"),
        "metric",
        "variance",
        source="SciML/DiffEqFlux.jl#695",
        diagnosis=r"noise has the variance 2 h D\^2",
    ),
    planted(
        "sgrld-noise-diagonal",
        "sgrld-non-hessian",
        on_plane(PlantedSGRLD, noise=lambda metric, theta: jnp.diag(jnp.sqrt(jnp.diag(metric.inverse(theta))))),
        "noise of the diagonal of a full G^-1: right in one dimension",
        Kill("generator_of_code", PLANE, "Cov(z') / h -> 2 D"),
        "dimension",
        "metric",
        diagnosis=r"without its correlations",
    ),
    planted(
        "sgrhmc-naive",
        "sgrhmc-recipe-metric",
        on_line(PlantedSGRHMC, gamma=0.0),
        "naive SGRHMC: div B left out; its law is exp(-U) G^1/2 in one dimension",
        Kill("generator_of_code", LINE, GENERATOR),
        "metric",
        source="ma2015complete, section 4.1 (the naive variant)",
        diagnosis=r"Gamma .*is missing",
    ),
    planted(
        "sgrhmc-gamma-sign",
        "sgrhmc-non-hessian",
        on_plane(PlantedSGRHMC, gamma=-1.0),
        "- div B for + div B",
        Kill("generator_of_code", PLANE, GENERATOR),
        "metric",
        source="ma2015complete, equations (14) and (17) as printed",
        diagnosis=r"Gamma .*wrong sign",
    ),
    planted(
        "sgrhmc-anti-friction",
        "sgrhmc-non-hessian",
        on_plane(PlantedSGRHMC, drag=-1.0),
        "+ G^-1 r for - G^-1 r",
        Kill("generator_of_code", PLANE, GENERATOR),
        "metric",
        source="ma2015complete, equation (17) as printed",
        diagnosis=r"(friction|-D grad H) .*wrong sign",
    ),
    planted(
        "sgrhmc-compensation-dropped",
        "sgrhmc-compensated",
        lambda target, **options: Uncompensated(_recipe_metric(target), compensate=True, **options),
        "injected covariance 2 h T G^-1 for 2 h T G^-1 - h^2 B V^ B: a bias of the claimed order",
        Kill("compensated_step", LINE, "Cov z' = 2 h T G^-1 with gradient noise of reported covariance"),
        "metric",
        "gradient-noise",
        "order",
    ),
    planted(
        "recipe-code-without-gamma",
        "recipe-sgrhmc",
        code_without_gamma,
        "the declared dynamics is right, the step leaves Gamma out",
        Kill("local_weak_order", PLANE, "E phi(z_h) = phi + h L phi + O(h^2)"),
        "metric",
        diagnosis=r"Gamma .* is missing",
    ),
    planted(
        "recipe-gamma-sign-declared",
        "recipe-sgrhmc",
        recipe(lambda target, T: signed_dynamics(-1.0)(sgrhmc_on_plane(target, T))),
        "Gamma with the wrong sign, in the code and in what is declared",
        Kill("autodiff_recipe", PLANE, "f = -(D + Q) grad H + Gamma"),
        "claims",
        "metric",
        source="ma2015complete, equations (6) and (9) as printed",
    ),
    planted(
        "recipe-q-symmetric-declared",
        "recipe-sgrhmc",
        recipe(symmetric_q),
        "Q = [[0, B], [B, 0]], in the code and in what is declared",
        Kill("symbolic_recipe", PLANE, "Q = -Q^T"),
        "claims",
    ),
    planted(
        "sgrhmc-naive-declared",
        "sgrhmc-recipe-metric",
        declared_without_gamma,
        "naive SGRHMC that declares the drift that it has: code and claim agree, the law is wrong",
        Kill("completeness", LINE, "exp(-H) is stationary for the drift"),
        "claims",
        "metric",
    ),
    planted(
        "recipe-friction-root",
        "recipe-sgrhmc",
        recipe(root_as_friction),
        "D = diag(0, G^-1/2) for diag(0, G^-1), in the code and in what is declared",
        Kill("published_diffusion", PLANE, "D = diag(0, G^-1)"),
        "claims",
        "metric",
    ),
)
