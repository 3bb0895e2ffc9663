"""Stochastic gradient geodesic Monte Carlo (SGGMC)."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from samplers.noise import injected_noise, normal_like
from samplers.sghmc import SGHMC
from samplers.types import Claims, Source
from samplers.validate import require
from targets.manifolds.base import Manifold
from targets.target import Target


class TangentPoint(NamedTuple):
    """The full variable z: a point of the manifold and a tangent vector there, both in ambient coordinates."""

    position: Any
    velocity: Any


class GeodesicState(NamedTuple):
    """Position, velocity and the estimator's own state."""

    position: Any
    velocity: Any
    estate: Any


@dataclass(frozen=True, eq=False)
class SGGMC:
    """Underdamped Langevin dynamics on an embedded manifold, with exact geodesics and a symmetric splitting.

        A(h/2) B(h/2) O(h) B(h/2) A(h/2)
        A(t): (x, v) <- geodesic flow for a time t
        B(t): v <- exp(-C t) v
        O(h): v <- v + P(x) [-h grad U~(x) + N(0, 2 C T h - h^2 V^)],  P(x) = projection onto the tangent space

    with V^ = 0 unless `compensate`.

    Source: liu2016stochastic, Algorithm 1 (scalar friction). Differs from the source in:
        1. the temperature T;
        2. after a step, position and velocity are moved back to the constraint, which changes them by round-off.

    Args:
        manifold: where the position lives; needs `tangent`, `geodesic` and `project_roundoff`.
        friction: C > 0.
        temperature: T > 0; the law is exp(-U / T) with respect to the Hausdorff measure.
        compensate: subtract the estimate's covariance from the injected noise.

    Error: weak order 2 and invariant law O(h^2), for exact gradients or compensated noise. With U = 0, on any
    manifold, E |v|^2 / dim = T C h / sinh(C h).

    Raises:
        ValueError: if `friction` or `temperature` is not positive.
    """

    manifold: Manifold
    friction: float = 1.0
    temperature: float = 1.0
    compensate: bool = False

    backend = "jax"

    def __post_init__(self):
        require(self.friction > 0, "friction: must be positive", self.friction)
        require(self.temperature > 0, "temperature: must be positive", self.temperature)

    @property
    def needs(self):
        return frozenset({"gradient", "covariance"} if self.compensate else {"gradient"})

    @property
    def flat(self) -> bool:
        """True on a Euclidean space, where the step is that of SGHMC with the symmetric splitting."""
        return self.manifold.name.startswith("euclidean")

    @property
    def claims(self):
        twin = SGHMC(self.friction, self.temperature, scheme="symmetric")
        return Claims(
            kind="fixed-step",
            source=Source("liu2016stochastic", "Algorithm 1"),
            weak_order=2,
            invariant_order=2,
            temperature=self.temperature,
            dynamics=self.dynamics if self.flat else None,
            discrete_law=twin.discrete_law if self.flat else None,
            conditions=("exact gradient or compensated noise",),
            spaces=("euclidean", "sphere"),
        )

    def dynamics(self, target: Target):
        """H = (U + |v|^2 / 2) / T, D = diag(0, C T), Q = T [[0, -I], [I, 0]] on a Euclidean space."""
        return SGHMC(self.friction, self.temperature).dynamics(target)

    def init(self, key, position, estimator):
        velocity_key, estimator_key = jax.random.split(key)
        root = jnp.sqrt(self.temperature)
        white = jax.tree.map(lambda n: root.astype(n.dtype) * n, normal_like(velocity_key, position))
        velocity = self.manifold.tangent(position, white)
        return GeodesicState(position, velocity, estimator.init(estimator_key, position))

    def step(self, key, state, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        h, C = step_size, self.friction
        x, v = self.manifold.geodesic(state.position, state.velocity, 0.5 * h)
        estimate, estate = estimator.estimate(gradient_key, state.estate, x)
        covariance = estimate.covariance if self.compensate else None
        noise = injected_noise(noise_key, v, 2 * C * self.temperature * h, h, covariance)
        kick = self.manifold.tangent(x, jax.tree.map(lambda g, n: n - h * g, estimate.gradient, noise))
        decay = jnp.exp(-0.5 * C * h)
        v = jax.tree.map(lambda b, k: decay * (decay * b + k), v, kick)
        x, v = self.manifold.geodesic(x, v, 0.5 * h)
        x = self.manifold.project_roundoff(x)
        return GeodesicState(x, self.manifold.tangent(x, v), estate)

    def position(self, state):
        return state.position

    def unpack(self, state):
        return TangentPoint(state.position, state.velocity)

    def pack(self, key, z, estimator):
        return GeodesicState(z.position, z.velocity, estimator.init(key, z.position))
