"""Four strangers whose state is the position."""

import jax.numpy as jnp
from jax import lax, random

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, StationaryLaw, simple_sampler


# x' = x - h g + sqrt(2 h) e, e = +-1: E e = E e^3 = 0, E e^2 = 1, so E f(x') = f + h (f'' - U' f') + O(h^2): order 1.
def _coin_step(key, x, h, estimator):
    k_grad, k_coin = random.split(key)
    est, _ = estimator.estimate(k_grad, (), x)
    signs = random.rademacher(k_coin, x.shape, x.dtype)
    return x - h * est.gradient + signs * jnp.sqrt(2.0 * h).astype(x.dtype)


rademacher_sgld = simple_sampler(_coin_step)


# Stochastic Heun with additive noise: Kloeden and Platen's explicit scheme of weak order 2 (b constant): law O(h^2).
# On U = k x^2 / 2: variance (1 - hk/2)^2 2h / (1 - (1 - hk + h^2k^2/2)^2) = (1/k) (1 + O(h^2)).
def heun(key, x, h, estimator):
    first, second, noise = random.split(key, 3)
    f = lambda k, q: -estimator.estimate(k, (), q)[0].gradient
    dw = jnp.sqrt(2 * h) * random.normal(noise, x.shape, x.dtype)
    a = f(first, x)
    b = f(second, x + h * a + dw)
    return x + 0.5 * h * (a + b) + dw


heun_second_order = simple_sampler(
    heun, claims=Claims(Source("", "own"), StationaryLaw(order=2), conditions=("exact gradient",))
)


# Euler for D(x) = diag 1 / (1 + x_i^2): drift -D grad U + Gamma, Gamma_i = dD_i/dx_i = -2 x_i / (1 + x_i^2)^2, noise 2 h D.
class LocalScale:
    def step(self, key, x, h, estimator):
        one, two = random.split(key)
        u = estimator.estimate(one, (), x)[0].gradient
        metric = 1 / (1 + x**2)
        gamma = -2 * x * metric**2
        return x + h * (gamma - metric * u) + jnp.sqrt(2 * h * metric) * random.normal(two, x.shape, x.dtype)


riemannian_with_gamma = LocalScale()


# Random walk on the sphere: the law of (x + s xi) / |x + s xi| depends on the angle between x and y only, hence is
# symmetric with respect to the surface measure; Metropolis' rule with U makes it exact.
def sphere_proposal(key, x, h, estimator):
    k_b, k_p, k_u = random.split(key, 3)
    raw = x + jnp.sqrt(h) * random.normal(k_p, x.shape, x.dtype)
    y = raw / jnp.linalg.norm(raw)
    u_x = estimator.estimate(k_b, (), x)[0].potential
    u_y = estimator.estimate(k_b, (), y)[0].potential
    coin = random.uniform(k_u, (), x.dtype)
    return lax.cond(jnp.log(coin) < u_x - u_y, lambda: y, lambda: x)


sphere_walk = simple_sampler(sphere_proposal, claims=Claims(Source("", "own"), ExactLaw(), spaces=("sphere",)))
