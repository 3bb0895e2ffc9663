"""The t-walk (Christen and Fox, Bayesian Analysis 2010): two points, four moves, no tuning."""

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source

A_WALK, A_TRAVERSE, N_MOVED = 1.5, 6.0, 4
MOVES = ("walk", "traverse", "hop", "blow")
CHANCES = (0.42, 0.42, 0.08, 0.08)


def log_normal(y, centre, sigma):
    return -y.size * np.log(sigma) - np.sum((y - centre) ** 2) / (2 * sigma**2)


def simulate_beta(rng):
    if rng.random() < (A_TRAVERSE - 1) / (2 * A_TRAVERSE):
        return rng.random() ** (1 / (A_TRAVERSE + 1))
    return rng.random() ** (1 / (1 - A_TRAVERSE))


def propose(rng, move, x, other, phi):
    """New x and log of q(y -> x) / q(x -> y); only the coordinates of phi move."""
    y = x.copy()
    a, b = x[phi], other[phi]
    if move == "walk":
        u = rng.random(a.size)
        y[phi] = a + (a - b) * A_WALK / (1 + A_WALK) * (A_WALK * u**2 + 2 * u - 1)
        return y, 0.0
    if move == "traverse":
        beta = simulate_beta(rng)
        y[phi] = b + beta * (b - a)
        return y, (a.size - 2) * np.log(beta)
    width = np.max(np.abs(b - a))
    if move == "hop":
        y[phi] = a + width / 3 * rng.standard_normal(a.size)
        back = np.max(np.abs(b - y[phi]))
        return y, log_normal(a, y[phi], back / 3) - log_normal(y[phi], a, width / 3)
    y[phi] = b + width * rng.standard_normal(a.size)
    back = np.max(np.abs(b - y[phi]))
    return y, log_normal(a, b, back) - log_normal(y[phi], b, width)


class TWalk:
    backend = "host"
    claims = Claims(Source("", "Christen and Fox 2010"), ExactLaw())

    def init(self, rng, position, estimator):
        x = np.array(position)
        return {"position": x, "partner": x + rng.standard_normal(x.shape)}

    def step(self, rng, state, step_size, estimator):
        names = ["position", "partner"] if rng.random() < 0.5 else ["partner", "position"]
        moving, other = (state[name].ravel() for name in names)
        phi = rng.random(moving.size) < min(moving.size, N_MOVED) / moving.size
        if not phi.any():
            return state
        y, log_q = propose(rng, rng.choice(MOVES, p=CHANCES), moving, other, phi)
        energy = lambda v: estimator.estimate(rng, (), v.reshape(state["position"].shape))[0].potential
        if np.log(rng.random()) < energy(moving) - energy(y) + log_q:
            return {**state, names[0]: y.reshape(state["position"].shape)}
        return state
