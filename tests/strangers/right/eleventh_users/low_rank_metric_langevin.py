"""Langevin dynamics whose metric is the identity and a low-rank term that depends on the position.

    dx = (-D grad U + Gamma) dt + sqrt(2 D) dW,      D(x) = I + sum_j phi_j(x) v_j v_j^T,      Gamma_i = sum_k d_k D_ik,

for orthonormal rows v_j of a frame that is drawn once, in `init`, and phi_j(x) = strength sigma(sharpness v_j . x). As phi_j is a function
of v_j . x alone, Gamma = sum_j phi_j' v_j. The root of D is not needed: noise in all directions and noise in those of the frame add up.
The time of a step is uniform around `step_size`. Noise is normal, or a coin of the same variance, which is as good at weak order one.
"""

from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw


def random_frame(key, rank, size, dtype):
    """min(rank, size) orthonormal rows."""
    rows = min(rank, size)
    q, _ = jnp.linalg.qr(jax.random.normal(key, (size, rows), dtype))
    return q.T


def unit_noise(kind, key, shape, dtype):
    if kind == "normal":
        return jax.random.normal(key, shape, dtype)
    return jax.random.rademacher(key, shape, dtype)


@dataclass(frozen=True)
class LowRankLangevin:
    rank: int = 2
    strength: float = 1.5
    sharpness: float = 1.0
    jitter: float = 0.4
    noise: Literal["normal", "coin"] = "normal"

    claims = Claims(Source("", "own"), StationaryLaw(order=1))

    def __post_init__(self):
        if self.rank < 1 or self.strength <= 0:
            raise ValueError("rank and strength have to be positive")
        if not 0 <= self.jitter < 1:
            raise ValueError("jitter has to be in [0, 1): times are positive")

    def init(self, key, position, estimator):
        flat, _ = ravel_pytree(position)
        return {"position": position, "frame": random_frame(key, self.rank, flat.size, flat.dtype)}

    def low_rank(self, frame, x):
        """phi_j and its derivative along v_j."""
        s = jax.nn.sigmoid(self.sharpness * (frame @ x))
        return self.strength * s, self.strength * self.sharpness * s * (1 - s)

    def step(self, key, state, step_size, estimator):
        gradient_key, time_key, full_key, frame_key = jax.random.split(key, 4)
        frame = state["frame"]
        x, unravel = ravel_pytree(state["position"])
        g, _ = ravel_pytree(estimator.estimate(gradient_key, (), state["position"])[0].gradient)
        phi, along = self.low_rank(frame, x)
        drift = -g + frame.T @ (along - phi * (frame @ g))
        around = jax.random.uniform(time_key, (), x.dtype, 1 - self.jitter, 1 + self.jitter)
        time = step_size * around
        everywhere = unit_noise(self.noise, full_key, x.shape, x.dtype)
        within = unit_noise(self.noise, frame_key, phi.shape, x.dtype)
        diffusion = everywhere + frame.T @ (jnp.sqrt(phi) * within)
        return {"position": unravel(x + time * drift + jnp.sqrt(2 * time) * diffusion), "frame": frame}
