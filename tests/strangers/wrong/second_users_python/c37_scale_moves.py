"""Metropolis for positive parameters: log random walks, mixed with moves that rescale all parameters together."""

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def walk_move(rng, x, s):
    """Each parameter by a factor of its own; returns the move and the log of its Jacobian."""
    z = s * rng.standard_normal(x.shape)
    return x * np.exp(z), z.sum()


def scale_move(rng, x, s):
    """All parameters by one factor, which decorrelates them from the overall scale."""
    z = s * rng.standard_normal()
    return x * np.exp(z), z


MOVES = (walk_move, scale_move)


def step(rng, x, h, estimator):
    move = MOVES[rng.integers(len(MOVES))]
    y, log_jacobian = move(rng, x, np.sqrt(2 * h))
    U = lambda q: float(estimator.estimate(rng, (), q)[0].potential)
    if np.log(rng.random()) < U(x) - U(y) + log_jacobian:
        return y
    return x


positive_walk = simple_sampler(
    step, backend="host", claims=Claims(Source("", "own"), ExactLaw(), spaces=("positive",))
)
