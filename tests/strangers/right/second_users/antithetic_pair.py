"""Two Langevin chains driven by +z and -z, for averages of lower variance. The first one is the chain that is reported."""

import numpy as np

from sgmcmc_verification.samplers import simple_sampler


def half_noise(x, sign, z, h):
    return x + sign * np.sqrt(h) * z


def start(rng, position, estimator):
    x = np.array(position)
    return {"position": x, "mirror": x.copy(), "running_mean": np.zeros_like(x), "n": 0}


def step(rng, state, h, estimator):
    first, second = rng.standard_normal((2,) + state["position"].shape)
    moved = {}
    for name, sign in (("position", 1.0), ("mirror", -1.0)):
        x = half_noise(state[name], sign, first, h)
        x = x - h * estimator.estimate(rng, (), x)[0].gradient
        moved[name] = half_noise(x, sign, second, h)

    n = state["n"] + 1
    average = 0.5 * (moved["position"] + moved["mirror"])
    mean = state["running_mean"] + (average - state["running_mean"]) / n
    return {**moved, "running_mean": mean, "n": n}


antithetic = simple_sampler(step, init=start, backend="host")
