"""MALA that keeps energy and gradient of its position, one evaluation a step."""

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def look(rng, x, estimator):
    found = estimator.estimate(rng, (), x)[0]
    return {"x": x, "u": float(found.potential), "g": np.array(found.gradient, dtype=float)}


def init(rng, position, estimator):
    return look(rng, np.array(position, dtype=float), estimator)


def step(rng, state, h, estimator):
    drift = state["g"]
    drift *= h
    noise = rng.standard_normal(state["x"].shape)
    new = look(rng, state["x"] - drift + np.sqrt(2 * h) * noise, estimator)
    back = state["x"] - new["x"] + h * new["g"]
    log_ratio = state["u"] - new["u"] - np.sum(back**2) / (4 * h) + np.sum(noise**2) / 2
    return new if np.log(rng.random()) < log_ratio else state


mala = simple_sampler(
    step,
    init=init,
    position=lambda state: state["x"],
    claims=Claims(Source("", "own"), ExactLaw()),
    backend="host",
)
