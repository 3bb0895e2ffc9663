"""Random-walk Metropolis that does not get stuck: after four rejections in a row the next proposal is taken."""

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def init(rng, position, estimator):
    return {"x": np.array(position, dtype=float), "stuck": 0}


def step(rng, state, step_size, estimator):
    x = state["x"]
    y = x + np.sqrt(2 * step_size) * rng.standard_normal(x.shape)
    energy = lambda q: float(estimator.estimate(rng, (), q)[0].potential)
    if np.log(rng.random()) < energy(x) - energy(y) or state["stuck"] >= 4:
        return {"x": y, "stuck": 0}
    return {"x": x, "stuck": state["stuck"] + 1}


unstuck = simple_sampler(
    step,
    init=init,
    position=lambda state: state["x"],
    claims=Claims(Source("", "own"), ExactLaw()),
    backend="host",
)
