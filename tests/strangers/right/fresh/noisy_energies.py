"""Kernels that know their potential up to noise and are exact all the same: a weight of mean one in the ratio whose
auxiliaries are part of the state, or a penalty for noise of known variance."""

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source


class CorrelatedPseudoMarginal:
    """Deligiannidis, Doucet and Pitt: W(x, u) = mean exp(s u_k - s^2 / 2), s = 1 / (1 + |x|^2), u_k ~ N(0, 1).

    E W = 1 for each x, so that exp(-U(x)) W(x, u) N(u) has the marginal exp(-U); u moves by an autoregression that
    keeps N(u), and both are accepted together.
    """

    claims = Claims(Source("", "Deligiannidis, Doucet and Pitt (2018)"), ExactLaw())
    needs = ("potential",)
    rho, number = 0.9, 4

    def _log_joint(self, key, x, u, estimator):
        s = 1 / (1 + jnp.sum(x**2))
        log_w = jax.nn.logsumexp(s * u - s**2 / 2) - jnp.log(self.number)
        return log_w - estimator.estimate(key, (), x)[0].potential

    def init(self, key, position, estimator):
        return {"u": jax.random.normal(key, (self.number,), position.dtype), "x": position}

    def step(self, key, state, step_size, estimator):
        a, b, c, d = jax.random.split(key, 4)
        x, u = state["x"], state["u"]
        y = x + jnp.sqrt(2 * step_size) * jax.random.normal(a, x.shape, x.dtype)
        v = self.rho * u + (1 - self.rho**2) ** 0.5 * jax.random.normal(b, u.shape, u.dtype)
        log_rate = self._log_joint(d, y, v, estimator) - self._log_joint(d, x, u, estimator)
        ok = jnp.log(jax.random.uniform(c, dtype=x.dtype)) < log_rate
        return {"u": jnp.where(ok, v, u), "x": jnp.where(ok, y, x)}

    def position(self, state):
        return state["x"]


correlated_pseudo_marginal = CorrelatedPseudoMarginal()


def _penalty(key, x, h, estimator):
    # Ceperley and Dewing: a difference known up to noise N(0, s^2) is penalised by s^2 / 2, and balance holds exactly.
    a, b, c, d = jax.random.split(key, 4)
    y = x + jnp.sqrt(2 * h) * jax.random.normal(a, x.shape, x.dtype)
    spread = 0.8
    difference = estimator.estimate(d, (), y)[0].potential - estimator.estimate(d, (), x)[0].potential
    difference = difference + spread * jax.random.normal(b, dtype=x.dtype)
    ok = jax.random.uniform(c, dtype=x.dtype) < jnp.exp(-difference - spread**2 / 2)
    return jnp.where(ok, y, x)


penalty = simple_sampler(_penalty, needs=("potential",))


class HostGrouped:
    """Grouped independence Metropolis-Hastings: a latent y ~ N(m(x), 1), estimated by three draws of N(0, 2).

    The weight is the mean of N(y_k; m(x), 1) / N(y_k; 0, 2), whose mean is one; it is kept with the position until
    both are replaced.
    """

    backend = "host"
    needs = ("potential",)

    def _log_weight(self, rng, x):
        y = np.sqrt(2.0) * rng.standard_normal(3)
        log_ratio = -((y - np.tanh(np.sum(x))) ** 2) / 2 + y**2 / 4 + np.log(2.0) / 2
        return float(np.log(np.mean(np.exp(log_ratio))))

    def init(self, rng, position, estimator):
        return {"log_weight": self._log_weight(rng, position), "position": np.array(position)}

    def step(self, rng, state, step_size, estimator):
        x, log_w = state["position"], state["log_weight"]
        energy = lambda x: float(estimator.estimate(rng, (), x)[0].potential)
        y = (x + np.sqrt(2 * step_size) * rng.standard_normal(x.shape)).astype(x.dtype)
        log_v = self._log_weight(rng, y)
        if np.log(rng.random()) < energy(x) - energy(y) + log_v - log_w:
            return {"log_weight": log_v, "position": y}
        return {"log_weight": log_w, "position": x}


host_grouped = HostGrouped()
