"""Slice sampling of the head of a model whose embedding is frozen.

Some random orthonormal directions a step; on each, an interval of random size is doubled until both ends are off the slice,
and shrunk towards the present point, with the test of Neal (2003, figure 6) that a new point would have led to the same
interval. No step size.
"""

import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Moves, Source


class HeadSlice:
    backend = "host"
    claims = Claims(
        Source("", "Neal 2003, figures 4 to 6"),
        ExactLaw(),
        Moves(lambda part: {"embedding": jnp.zeros((2, 2)), "head": part}),
    )

    def __init__(self, width=1.0, doublings=6, directions=2):
        if doublings < 0 or directions < 1:
            raise ValueError("doublings >= 0 and directions >= 1")
        self.width = width
        self.doublings = doublings
        self.directions = directions

    def init(self, rng, position, estimator):
        if not isinstance(position["head"], np.ndarray):
            raise TypeError("the head is one array")
        return {"embedding": np.array(position["embedding"]), "head": np.array(position["head"])}

    def position(self, state):
        return {"embedding": state["embedding"], "head": state["head"]}

    def step(self, rng, state, step_size, estimator):
        head = state["head"]
        frame = self._frame(rng, head.size)
        for direction in frame.T:
            along = direction.reshape(head.shape)
            origin = head.copy()

            def energy(t):
                whole = {"embedding": state["embedding"], "head": origin + t * along}
                return float(estimator.estimate(rng, (), whole)[0].potential)

            head += self._move(rng, energy) * along
        return state

    def _frame(self, rng, size):
        columns = min(self.directions, size)
        return np.linalg.qr(rng.standard_normal((size, columns)))[0]

    def _move(self, rng, energy):
        """New place on the line, where the present one is 0."""
        level = energy(0.0) + rng.exponential()
        unit = rng.gamma(2.0, self.width / 2)
        low = -unit * rng.random()
        high = low + unit
        inside = {low: energy(low) < level, high: energy(high) < level}
        for _ in range(self.doublings):
            if not (inside[low] or inside[high]):
                break
            if rng.random() < 0.5:
                low = 2 * low - high
                inside[low] = energy(low) < level
            else:
                high = 2 * high - low
                inside[high] = energy(high) < level
        left, right = low, high
        while True:
            t = left + rng.random() * (right - left)
            if energy(t) < level and self._same_interval(energy, level, t, low, high, unit):
                return t
            if t < 0:
                left = t
            else:
                right = t

    def _same_interval(self, energy, level, t, low, high, unit):
        apart = False
        while high - low > 1.1 * unit:
            middle = (low + high) / 2
            apart = apart or (0 < middle) != (t < middle)
            if t < middle:
                high = middle
            else:
                low = middle
            if apart and energy(low) >= level and energy(high) >= level:
                return False
        return True
