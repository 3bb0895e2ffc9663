"""Langevin dynamics preconditioned by RMSprop (pSGLD), and its preconditioner as a metric."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers.dynamics import published
from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics
from sgmcmc_verification.samplers.dynamics.overdamped import reversible_dynamics
from sgmcmc_verification.samplers.entry import FLAT, Row
from sgmcmc_verification.samplers.interface.aliases import Estimator, EstimatorState, Position, Scalar, Tree
from sgmcmc_verification.samplers.interface.claims import (
    AdaptiveLaw,
    Claims,
    Diffusion,
    RunningSquares,
    Source,
    StationaryLaw,
    StationaryMoments,
)
from sgmcmc_verification.samplers.interface.from_step import PositionMixin
from sgmcmc_verification.samplers.numerics.noise import normal_like
from sgmcmc_verification.samplers.riemannian.sgrld import SGRLD
from sgmcmc_verification.samplers.validation import require, require_positive
from sgmcmc_verification.targets.target import Target


def rmsprop(second_moment: jax.Array, regularisation: float) -> jax.Array:
    """G = 1 / (lambda + sqrt V), entry by entry [li2016preconditioned, Algorithm 1]."""
    return 1 / (regularisation + jnp.sqrt(second_moment))


def _require(decay: float, regularisation: float, second_moment: float | np.ndarray, data_size: int) -> None:
    """Raise for arguments that make no preconditioner."""
    require(0 <= decay <= 1, "decay: must lie between 0 and 1", decay)
    require(regularisation > 0, "regularisation: must be positive", regularisation)
    require(bool(np.all(np.asarray(second_moment) >= 0)), "second_moment: must not be negative", second_moment)
    require(data_size > 0, "data_size: must be positive", data_size)


class PSGLDState(NamedTuple):
    """Position, V in ravel order (d,) (empty if it is kept fixed), and the estimator's own state."""

    position: Position
    second_moment: Tree
    estate: EstimatorState


@dataclass(frozen=True, eq=False)
class PSGLD(PositionMixin):
    """SGLD with a diagonal preconditioner G from a running mean V of the squares of the gradient, without Gamma.

        V' = alpha V + (1 - alpha) (grad U~ / N)^2,   G = 1 / (lambda + sqrt V'),
        theta' = theta - h G grad U~ + N(0, 2 h T G)

    With alpha = 1 the preconditioner is the constant 1 / (lambda + sqrt V), and this is SGLD in other units: exact to
    the order claimed. With alpha < 1 it is the method as it is used, and no law is claimed: as h -> 0 with alpha
    fixed, V has forgotten all but the last 1 / (1 - alpha) steps, in which the chain does not move, so that V -> g^2
    with g = grad U / N, and the law in one dimension is

        exp(-U / T) (lambda + |g|)

    whatever alpha is. Dropping Gamma is no matter of how close alpha is to 1, as section 4 of the source suggests, but
    of the time h / (1 - alpha) over which V averages.

    Source: li2016preconditioned, Algorithm 1, with h = epsilon / 2 of the source. Differs from the source in:
        1. V averages the whole gradient, that of the prior included, divided by N;
        2. the temperature T;
        3. V starts from `second_moment`, which is 0 in the source.

    Args:
        decay: alpha, between 0 and 1; 1 keeps V where it starts.
        regularisation: lambda > 0.
        second_moment: V at the start, a number or (d,) in ravel order.
        data_size: N.
        temperature: T > 0; the law is exp(-U / T).

    Error: with alpha = 1 weak order 1 and invariant law O(h), for exact gradients; gradient noise of covariance V^
    adds O(h V^).

    Raises:
        ValueError: if an argument is out of its range.
    """

    decay: float = 0.99
    regularisation: float = 1e-5
    second_moment: float | np.ndarray = 0.0
    data_size: int = 1
    temperature: float = 1.0

    backend = "jax"
    needs = frozenset({"gradient"})

    def __post_init__(self) -> None:
        _require(self.decay, self.regularisation, self.second_moment, self.data_size)
        require_positive(self, "temperature")

    @property
    def frozen(self) -> bool:
        """True if the preconditioner is constant."""
        return self.decay == 1

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        source = Source("li2016preconditioned", "Algorithm 1")
        learnt = RunningSquares(self.decay, self.second_moment, self.data_size, self.regularisation)
        if not self.frozen:
            return Claims(source, AdaptiveLaw(temperature=self.temperature), learnt)
        T = self.temperature
        factor = float(np.ravel(rmsprop(jnp.asarray(self.second_moment, float), self.regularisation))[0])
        return Claims(
            source,
            StationaryLaw(order=1, temperature=T),
            Diffusion(self.dynamics, weak_order=1),
            # (1 - h G k)^2 s + 2 h T G = s: the fixed point of the recursion of the variance
            StationaryMoments(lambda h, curvature: {"position": T / curvature / (1 - h * factor * curvature / 2)}),
            learnt,
            conditions=("exact gradient",),
        )

    def dynamics(self, target: Target) -> Dynamics:
        """D = T G with the constant G, Q = 0, H = U / T."""
        T = self.temperature
        return reversible_dynamics(target, lambda z: T * jnp.diag(self.preconditioner(self._start(z))), T)

    def _start(self, theta: jax.Array) -> jax.Array:
        """V at the start, for a flat position."""
        return jnp.broadcast_to(jnp.asarray(self.second_moment, theta.dtype), theta.shape)

    def preconditioner(self, second_moment: jax.Array) -> jax.Array:
        """The diagonal of G."""
        return rmsprop(second_moment, self.regularisation)

    def updated(self, second_moment: jax.Array, gradient: jax.Array) -> jax.Array:
        """V after a gradient."""
        return self.decay * second_moment + (1 - self.decay) * (gradient / self.data_size) ** 2

    def init(self, key: jax.Array, position: Position, estimator: Estimator) -> PSGLDState:
        """Start a chain at a position."""
        theta = ravel_pytree(position)[0]
        return PSGLDState(position, () if self.frozen else self._start(theta), estimator.init(key, position))

    def step(self, key: jax.Array, state: PSGLDState, step_size: Scalar, estimator: Estimator) -> PSGLDState:
        """Take one step."""
        gradient_key, noise_key = jax.random.split(key)
        theta, unravel = ravel_pytree(state.position)
        estimate, estate = estimator.estimate(gradient_key, state.estate, state.position)
        gradient = ravel_pytree(estimate.gradient)[0]
        moment = self._start(theta) if self.frozen else self.updated(state.second_moment, gradient)
        g = self.preconditioner(moment)
        noise = jnp.sqrt(2 * self.temperature * step_size) * jnp.sqrt(g) * normal_like(noise_key, theta)
        theta = theta - step_size * g * gradient + noise
        return PSGLDState(unravel(theta), () if self.frozen else moment, estate)


@dataclass(frozen=True, eq=False)
class RMSpropMetric:
    """The preconditioner of pSGLD as a function of the position: that of a step whose V comes from elsewhere.

        G^-1 = diag 1 / (lambda + sqrt(alpha V + (1 - alpha) (grad U / N)^2)),  V fixed

    (G^-1 is the letter of metrics; the source's letter for it is G.) For `samplers.riemannian.sgrld.SGRLD`, whose
    Gamma_i = d_i G^-1_ii is the source's, derivative of the newest square alone. Here it is all that there is to
    differentiate, and SGRLD leaves exp(-U / T) invariant; without it the law in one dimension is exp(-U / T) G. In
    `PSGLD` V depends on former positions, and neither is right.

    Source: li2016preconditioned, Algorithm 1 and section 4. Differs from the source in:
        1. exact gradients, so that G^-1 depends on theta alone: with those of a minibatch it is correlated with the
           gradient that it multiplies, and the drift is biased at every step size.

    Args:
        target: gives grad U.
        decay: alpha, between 0 and 1.
        regularisation: lambda > 0.
        second_moment: V > 0, a number or (d,), which makes the metric smooth where the gradient vanishes.
        data_size: N.

    Raises:
        ValueError: if an argument is out of its range.
    """

    target: Target
    decay: float = 0.99
    regularisation: float = 1e-5
    second_moment: float | np.ndarray = 1.0
    data_size: int = 1

    def __post_init__(self) -> None:
        _require(self.decay, self.regularisation, self.second_moment, self.data_size)

    def _diagonal(self, theta: jax.Array) -> jax.Array:
        gradient = jax.grad(self.target.flat_potential)(theta) / self.data_size
        past = jnp.asarray(self.second_moment, theta.dtype)
        return rmsprop(self.decay * past + (1 - self.decay) * gradient**2, self.regularisation)

    def inverse(self, theta: jax.Array) -> jax.Array:
        """G^-1(theta), (n, n)."""
        return jnp.diag(self._diagonal(theta))

    def inverse_sqrt(self, theta: jax.Array) -> jax.Array:
        """Square root (n, n) of `inverse`."""
        return jnp.diag(jnp.sqrt(self._diagonal(theta)))


MOMENTS = (
    {"second_moment": 0.3, "regularisation": 0.5, "temperature": 0.5},
    {"second_moment": 2.0, "regularisation": 0.02, "temperature": 2.0},
)

DECAYS = (
    {"decay": 0.9, "second_moment": 0.5, "regularisation": 0.5, "temperature": 0.5},
    {"decay": 0.6, "second_moment": 2.0, "regularisation": 0.1, "temperature": 2.0},
)


def data_size(target: Target) -> int:
    """N, 1 for a target that is not a sum over data."""
    return 1 if target.terms is None else target.terms.size


def _frozen(
    target: Target,
    second_moment: float = 1.0,
    regularisation: float = 0.1,
    temperature: float = 1.0,
    method: type[PSGLD] = PSGLD,
) -> PSGLD:
    """pSGLD with a constant preconditioner, another one in each coordinate."""
    moments = second_moment * np.linspace(1.0, 3.0, target.size)
    return method(1.0, regularisation, moments, data_size(target), temperature)


def _rmsprop(
    target: Target,
    decay: float = 0.8,
    second_moment: float = 1.0,
    regularisation: float = 0.2,
    temperature: float = 1.0,
    method: type[SGRLD] = SGRLD,
) -> SGRLD:
    """SGRLD with the preconditioner of pSGLD as a function of the position, its Gamma included.

    The former mean of squares is `second_moment` times the curvature, what E (d U)^2 is for a Gaussian law.
    """
    past = second_moment * target.curvature / data_size(target) ** 2
    return method(RMSpropMetric(target, decay, regularisation, past, data_size(target)), temperature)


ENTRIES: tuple[Row, ...] = (
    Row(
        "psgld-frozen",
        _frozen,
        targets=FLAT,
        variants=MOMENTS,
        diffusion=published.langevin(published.rmsprop_constant),
    ),
    Row(
        "psgld-gamma",
        _rmsprop,
        targets=FLAT[1:4],
        variants=DECAYS,
        step_size=0.05,
        diffusion=published.langevin(published.rmsprop),
    ),
)
