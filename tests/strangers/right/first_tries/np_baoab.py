import numpy as np

from sgmcmc_verification.samplers.simple import simple_sampler


class Baoab:
    gamma = 1.0

    def start(self, rng, position, estimator):
        return {"position": np.array(position), "p": rng.normal(size=np.shape(position))}

    def grad(self, rng, x, estimator):
        return np.asarray(estimator.estimate(rng, (), x)[0].gradient)

    def step(self, rng, s, dt, estimator):
        x, p = s["position"], s["p"]
        p = p - dt / 2 * self.grad(rng, x, estimator)
        x = x + dt / 2 * p
        a = np.exp(-self.gamma * dt)
        p = a * p + np.sqrt(1 - a**2) * rng.normal(size=p.shape)
        x = x + dt / 2 * p
        p = p - dt / 2 * self.grad(rng, x, estimator)
        return {"position": x, "p": p}


_it = Baoab()
baoab = simple_sampler(_it.step, init=_it.start, backend="host")
