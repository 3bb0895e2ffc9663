"""A mixture of three Metropolis kernels, one drawn at each step: Hug, a random walk, an independence sampler.

    Hug (Ludkin and Sherlock 2023): v ~ N(0, I), B times { x += e v / 2; v <- v - 2 n (n.v), n = g/|g| at x; x += e v / 2 }
        reversible (run from (y, -v')), volume-preserving, |v| is kept: accepted with min(1, pi(y)/pi(x))
    walk: y = x + sqrt(2h) z
    independence: y = s t, t with iid Student t_5 entries, accepted with min(1, pi(y) f(x) / (pi(x) f(y)))

Right: each kernel is reversible for exp(-U) and the choice does not depend on the state.  Exact at every step size.
Object: MixedKernels
"""
import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source

NU = 5.0


class MixedKernels:
    backend = "host"
    claims = Claims(Source("", "own"), ExactLaw())

    def __init__(self, scale=1.2, bounces=3):
        if scale <= 0 or bounces < 1:
            raise ValueError("scale > 0, bounces >= 1")
        self.scale = scale
        self.bounces = bounces

    def step(self, rng, x, step_size, estimator):
        look = lambda q: estimator.estimate(rng, (), q)[0]
        choice = rng.random()
        if choice < 0.5:
            y = self._hug(rng, x, np.sqrt(2 * step_size), look)
            log_correction = 0.0
        elif choice < 0.8:
            y = x + np.sqrt(2 * step_size) * rng.standard_normal(x.shape)
            log_correction = 0.0
        else:
            y = self.scale * rng.standard_t(NU, size=x.shape)
            log_correction = self._log_t(x) - self._log_t(y)
        log_ratio = look(x).potential - look(y).potential + log_correction
        return y if np.log(rng.random()) < log_ratio else x

    def _log_t(self, x):
        return -(NU + 1) / 2 * np.sum(np.log1p((x / self.scale) ** 2 / NU))

    def _hug(self, rng, x, eps, look):
        v = rng.standard_normal(x.shape)
        for _ in range(self.bounces):
            x = x + eps / 2 * v
            g = look(x).gradient
            norm2 = np.sum(g * g)
            if norm2 > 0:
                v = v - 2 * g * (np.sum(g * v) / norm2)
            x = x + eps / 2 * v
        return x
