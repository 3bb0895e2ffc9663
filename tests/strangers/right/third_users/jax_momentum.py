"""Four strangers with a momentum, a memory or a thermostat."""

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw, simple_sampler

SECOND = Claims(Source("", "own"), StationaryLaw(order=2), conditions=("exact gradient",))


# --- BAOAB whose state holds the key of the next step ---------------------------------------------------------------
# B A O A B with exact flows at friction 1: law O(h^2). The draws of step n come from the key that was given one step
# earlier (or to init); every key is used once, so the draws are fresh and independent of (x, p).
def _baoab_init(key, position, estimator):
    k_momentum, k_next = jax.random.split(key)
    p = jax.random.normal(k_momentum, position.shape, position.dtype)
    return {"position": position, "momentum": p, "key": k_next}


def _baoab_step(key, state, h, estimator):
    k1, k2, k_noise = jax.random.split(state["key"], 3)
    x, p = state["position"], state["momentum"]
    h = jnp.asarray(h, x.dtype)
    p = p - h / 2 * estimator.estimate(k1, (), x)[0].gradient
    x = x + h / 2 * p
    p = jnp.exp(-h) * p + jnp.sqrt(-jnp.expm1(-2 * h)) * jax.random.normal(k_noise, x.shape, x.dtype)
    x = x + h / 2 * p
    p = p - h / 2 * estimator.estimate(k2, (), x)[0].gradient
    return {"position": x, "momentum": p, "key": key}


baoab_key_in_state = simple_sampler(_baoab_step, init=_baoab_init, claims=SECOND)


# --- UBU, state an array (2, ...) -----------------------------------------------------------------------------------
# U: exact flow of dx = v dt, dv = -c v dt + sqrt(2c) dW over h/2; B: v -= h grad U. Palindromic with exact flows: O(h^2).
# With e = exp(-ct): Var v = 1 - e^2, Cov(x, v) = (1-e)^2 / c = beta Var v, beta = (1-e) / (c (1+e)), and
# Var(x | v) = 2c int_0^t (a - beta b)^2 du, a = (1 - exp(-cu)) / c, b = exp(-cu): by Gauss-Legendre, free of cancellation.
_T, _W = np.polynomial.legendre.leggauss(10)
_C = 1.5


def _u(x, v, t, z1, z2):
    u, w = t * jnp.asarray((1 + _T) / 2, t.dtype), t * jnp.asarray(_W / 2, t.dtype)
    lost = -jnp.expm1(-_C * t)
    beta = lost / (_C * (2 - lost))
    sd_v = jnp.sqrt(-jnp.expm1(-2 * _C * t))
    sd_x = jnp.sqrt(2 * _C * jnp.sum(w * (-jnp.expm1(-_C * u) / _C - beta * jnp.exp(-_C * u)) ** 2))
    return x + lost / _C * v + beta * sd_v * z1 + sd_x * z2, (1 - lost) * v + sd_v * z1


def _ubu_step(key, state, h, estimator):
    k_grad, k_noise = jax.random.split(key)
    x, v = state
    h = jnp.asarray(h, x.dtype)
    z = jax.random.normal(k_noise, (4, *x.shape), x.dtype)
    x, v = _u(x, v, h / 2, z[0], z[1])
    v = v - h * estimator.estimate(k_grad, (), x)[0].gradient
    x, v = _u(x, v, h / 2, z[2], z[3])
    return jnp.stack([x, v])


ubu_stacked = simple_sampler(
    _ubu_step,
    init=lambda key, x, estimator: jnp.stack([x, jax.random.normal(key, x.shape, x.dtype)]),
    position=lambda state: state[0],
    claims=SECOND,
)


# --- SGNHT on one flat vector (x, p, s) -----------------------------------------------------------------------------
# dp = -grad U - s p dt + sqrt(2A) dW, ds = (p.p/d - 1) dt keeps exp(-U - p.p/2 - d (s-A)^2/2) (Ding et al. 2014): Euler, O(h).
def sgnht_flat(diffusion=1.0):
    def init(key, position, estimator):
        if position.ndim != 1:
            raise ValueError("vectors only")
        p = jax.random.normal(key, position.shape, position.dtype)
        return jnp.concatenate([position, p, jnp.full((1,), diffusion, position.dtype)])

    def parts(state):
        d = (state.shape[0] - 1) // 2
        return state[:d], state[d : 2 * d], state[-1]

    def step(key, state, h, estimator):
        k1, k2 = jax.random.split(key)
        x, p, s = parts(state)
        xi = jax.random.normal(k2, x.shape, x.dtype)
        p = p - h * estimator.estimate(k1, (), x)[0].gradient - h * s * p + jnp.sqrt(2 * diffusion * h) * xi
        x = x + h * p
        s = s + h * (jnp.mean(p * p) - 1)
        return jnp.concatenate([x, p, s[None]])

    return simple_sampler(step, init=init, position=lambda state: parts(state)[0])


# --- Leimkuhler and Matthews: a tuple (x, last noise) ---------------------------------------------------------------
# x' = x - h g + sqrt(h/2) (xi + xi'): the law of x errs by O(h^2) (Leimkuhler, Matthews, Tretyakov 2014); on a Gaussian
# V = a^2 V + h + a h, a = 1 - hk, gives V = 1/k exactly.
def _lm(key, state, h, estimator):
    x, old = state
    k_g, k_n = jax.random.split(key)
    new = jax.random.normal(k_n, x.shape, x.dtype)
    return x - h * estimator.estimate(k_g, (), x)[0].gradient + jnp.sqrt(h / 2) * (old + new), new


leimkuhler_matthews_tuple = simple_sampler(
    _lm,
    init=lambda key, x, estimator: (x, jax.random.normal(key, x.shape, x.dtype)),
    position=lambda state: state[0],
    claims=SECOND,
)
