"""SGLD with stochastic weight averaging: after the burn-in the model that is used is the average of the iterates."""

import torch


class SWALangevin:
    backend = "host"

    def __init__(self, swa_start=500):
        self.swa_start = swa_start

    def init(self, rng, position, estimator):
        theta = torch.tensor(position)
        return dict(raw=theta, average=torch.zeros_like(theta), steps=0)

    def position(self, state):
        return state["average"] if state["steps"] > self.swa_start else state["raw"]

    def step(self, rng, state, h, estimator):
        theta, average, steps = state["raw"], state["average"], state["steps"] + 1
        with torch.no_grad():
            gradient = torch.from_numpy(estimator.estimate(rng, (), theta.numpy())[0].gradient)
            noise = torch.from_numpy(rng.standard_normal(tuple(theta.shape)))
            theta = theta.sub(gradient, alpha=h).add(noise, alpha=(2 * h) ** 0.5)
            if steps > self.swa_start:
                average = average + (theta - average) / (steps - self.swa_start)
        return dict(raw=theta, average=average, steps=steps)
