"""Functions of a Target that return a sampler with a minibatch of its own: drawn by randint, choice, permutation,
top-k of Gumbel draws, Bernoulli masks or categorical weights, plain or with control variates, in SGLD, SGHMC,
BAOAB and SGNHT. Every gradient is unbiased for grad U (prior plus N / n times the batch), so the law is exp(-U)
+ O(h), the noise of the minibatch included. A target that is no sum over data is sampled with the gradient of
the estimator."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers.estimators.host import estimator_key
from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, Source, StationaryLaw


def _normal(key, x):
    return jax.random.normal(key, x.shape, x.dtype)


def weighted_gradient(terms, index, weights, x):
    """Gradient of prior + sum_j weights_j datum(x, data[index_j])."""
    batch = jax.tree.map(lambda a: jnp.asarray(a)[index], terms.data)

    def potential(x):
        return terms.prior(x) + jnp.sum(weights * jax.vmap(terms.datum, (None, 0))(x, batch))

    return jax.grad(potential)(x)


def gradient_of(target, draw):
    """(key, x, estimator) -> an unbiased gradient, from `draw(key, N) -> (index, weights)` where there are data."""

    def gradient(key, x, estimator):
        if target.terms is None:
            return estimator.estimate(key, (), x)[0].gradient
        index, weights = draw(key, target.terms.size)
        return weighted_gradient(target.terms, index, jnp.asarray(weights, x.dtype), x)

    return gradient


def sgld(gradient):
    """SGLD with a gradient (key, x, estimator)."""

    def step(key, x, h, estimator):
        k1, k2 = jax.random.split(key)
        return x - h * gradient(k1, x, estimator) + jnp.sqrt(2 * h) * _normal(k2, x)

    return simple_sampler(step)


def _with_replacement(key, total, n=2):
    return jax.random.randint(key, (n,), 0, total), total / n


def _subset(key, total, n=3):
    return jax.random.choice(key, total, (n,), replace=False), total / n


def _shuffled(key, total, n=2):
    return jax.random.permutation(key, total)[:n], total / n


def _top_k(key, total, n=3):
    return jax.lax.top_k(jax.random.gumbel(key, (total,)), n)[1], total / n


def _window(key, total, n=2):
    return (jax.random.randint(key, (), 0, total) + jnp.arange(n)) % total, total / n


def _bernoulli(key, total, q=0.5):
    return jnp.arange(total), jax.random.bernoulli(key, q, (total,)) / q


def _categorical(key, total, n=2):
    p = (1.0 + jnp.arange(total)) / (total * (total + 1) / 2)
    index = jax.random.categorical(key, jnp.log(p), shape=(n,))
    return index, 1 / (n * p[index])


def sgld_with_replacement(target):
    """SGLD, two data with replacement by randint."""
    return sgld(gradient_of(target, _with_replacement))


def sgld_subset(target):
    """SGLD, a subset of three by choice without replacement."""
    return sgld(gradient_of(target, _subset))


def sgld_shuffled(target):
    """SGLD, the first two of a permutation."""
    return sgld(gradient_of(target, _shuffled))


def sgld_top_k(target):
    """SGLD, a uniform subset as the three largest of Gumbel draws."""
    return sgld(gradient_of(target, _top_k))


def sgld_window(target):
    """SGLD, a random window of two neighbours in the cyclic order: every datum is in as many windows."""
    return sgld(gradient_of(target, _window))


def sgld_bernoulli(target):
    """SGLD, every datum with probability 1/2 and weight 2."""
    return sgld(gradient_of(target, _bernoulli))


def sgld_importance(target):
    """SGLD, data by unequal probabilities p_i with weights 1 / (n p_i)."""
    return sgld(gradient_of(target, _categorical))


def preconditioned(target, batch_size=2, temperature=1.0):
    """SGLD with step h / curvature as constant preconditioner, batch size and temperature as options."""
    gradient = gradient_of(target, lambda key, total: _with_replacement(key, total, batch_size))
    D = 1.0 / target.curvature

    def step(key, x, h, estimator):
        k1, k2 = jax.random.split(key)
        noise = _normal(k2, x)
        return x - h * D * gradient(k1, x, estimator) + jnp.sqrt(2 * h * D * temperature) * noise

    return simple_sampler(step, claims=Claims(Source("", ""), StationaryLaw(order=1, temperature=temperature)))


def control_variates(target):
    """SGLD-CV: grad U(c) + N/n sum (grad U_i(x) - grad U_i(c)) with c from gradient descent; unbiased for any c."""
    if target.terms is None:
        return sgld(gradient_of(target, _with_replacement))
    rate = 0.5 / target.curvature
    centre = jax.lax.fori_loop(0, 200, lambda _, x: x - rate * jax.grad(target.potential)(x), target.example)
    full = jax.grad(target.potential)(centre)

    def gradient(key, x, estimator):
        index, scale = _with_replacement(key, target.terms.size)
        c = centre.astype(x.dtype)
        batch = lambda y: weighted_gradient(target.terms, index, scale, y) - jax.grad(target.terms.prior)(y)
        prior = lambda y: jax.grad(target.terms.prior)(y)
        return full.astype(x.dtype) + prior(x) - prior(c) + batch(x) - batch(c)

    return sgld(gradient)


class Snapshot(NamedTuple):
    """Position, a snapshot of an earlier position, the full gradient there."""

    position: jax.Array
    anchor: jax.Array
    full: jax.Array


def loopless_svrg(target):
    """SVRG-Langevin without an inner loop: the snapshot moves to the position with probability 1/4 after a step."""

    def full_gradient(key, x, estimator):
        return jax.grad(target.potential)(x) if target.terms else estimator.estimate(key, (), x)[0].gradient

    def init(key, position, estimator):
        return Snapshot(position, position, full_gradient(key, position, estimator))

    def step(key, state, h, estimator):
        k1, k2, k3, k4 = jax.random.split(key, 4)
        x = state.position
        if target.terms is None:
            g = full_gradient(k1, x, estimator)
        else:
            index, scale = _with_replacement(k1, target.terms.size)
            # the prior is in both and in the full gradient, so it comes out once
            here = weighted_gradient(target.terms, index, scale, x)
            g = state.full + here - weighted_gradient(target.terms, index, scale, state.anchor)
        x = x - h * g + jnp.sqrt(2 * h) * _normal(k2, x)
        fresh = jax.random.uniform(k3) < 0.25
        anchor = jnp.where(fresh, x, state.anchor)
        full = jax.lax.cond(fresh, lambda: full_gradient(k4, x, estimator), lambda: state.full)
        return Snapshot(x, anchor, full)

    return simple_sampler(step, init=init)


def sghmc(target):
    """Semi-implicit SGHMC on minibatches, state {"m", "x"}, friction 2."""
    gradient = gradient_of(target, _subset)

    def step(key, state, h, estimator):
        k1, k2 = jax.random.split(key)
        m = state["m"] - h * gradient(k1, state["x"], estimator) - 2 * h * state["m"]
        m = m + jnp.sqrt(4 * h) * _normal(k2, m)
        return {"m": m, "x": state["x"] + h * m}

    return simple_sampler(
        step,
        init=lambda key, position, estimator: {"m": _normal(key, position), "x": position},
        position=lambda s: s["x"],
        unpack=lambda s: s,
        pack=lambda key, z, estimator: z,
    )


def baoab(target):
    """BAOAB with a minibatch for every half kick, state (x, v), friction 2."""
    gradient = gradient_of(target, _with_replacement)

    def step(key, state, h, estimator):
        k1, k2, k3 = jax.random.split(key, 3)
        x, v = state
        v = v - h / 2 * gradient(k1, x, estimator)
        x = x + h / 2 * v
        a = jnp.exp(-2 * h)
        v = a * v + jnp.sqrt(1 - a * a) * _normal(k2, v)
        x = x + h / 2 * v
        return x, v - h / 2 * gradient(k3, x, estimator)

    return simple_sampler(
        step,
        init=lambda key, position, estimator: (position, _normal(key, position)),
        position=lambda s: s[0],
        unpack=lambda s: s,
        pack=lambda key, z, estimator: tuple(z),
    )


def sgnht(target):
    """SGNHT on minibatches with a scalar thermostat."""
    gradient = gradient_of(target, _shuffled)

    def step(key, state, h, estimator):
        k1, k2 = jax.random.split(key)
        x, p, xi = state
        p = p - h * gradient(k1, x, estimator) - h * xi * p + jnp.sqrt(2 * h) * _normal(k2, p)
        return x + h * p, p, xi + h * (jnp.mean(p * p) - 1)

    return simple_sampler(
        step,
        init=lambda key, position, estimator: (position, _normal(key, position), jnp.ones((), position.dtype)),
        position=lambda s: s[0],
        unpack=lambda s: s,
        pack=lambda key, z, estimator: tuple(z),
    )


def mala_of_target(target):
    """MALA that differentiates target.potential itself; no minibatch, exact."""

    def log_density(x):
        return -target.potential(x)

    def step(key, x, h, estimator):
        k1, k2 = jax.random.split(key)
        p, g = jax.value_and_grad(log_density)(x)
        y = x + h * g + jnp.sqrt(2 * h) * _normal(k1, x)
        q, f = jax.value_and_grad(log_density)(y)
        log_ratio = q - p - (jnp.sum((x - y - h * f) ** 2) - jnp.sum((y - x - h * g) ** 2)) / (4 * h)
        return jnp.where(jnp.log(jax.random.uniform(k2, dtype=x.dtype)) < log_ratio, y, x)

    return simple_sampler(step, needs=("gradient", "potential"))


def laplace_metric(target):
    """Langevin with the inverse Hessian at the mode as constant preconditioner A: drift -A grad U, covariance 2 h A."""
    rate = 0.5 / target.curvature
    descend = lambda _, x: x - rate * jax.grad(target.flat_potential)(x)
    mode = jax.lax.fori_loop(0, 300, descend, target.ravel(target.example))
    values, vectors = np.linalg.eigh(np.asarray(jax.hessian(target.flat_potential)(mode), np.float64))
    root = vectors / np.sqrt(np.maximum(np.abs(values), 1e-6))

    def step(key, x, h, estimator):
        k1, k2 = jax.random.split(key)
        L = jnp.asarray(root, x.dtype)
        return x - h * L @ (L.T @ estimator.estimate(k1, (), x)[0].gradient) + jnp.sqrt(2 * h) * L @ _normal(k2, x)

    return simple_sampler(step)


def host_minibatch(target):
    """SGLD in NumPy with a subset of two by rng.choice."""
    terms = target.terms
    gradient = None if terms is None else jax.jit(lambda index, x: weighted_gradient(terms, index, terms.size / 2, x))

    def step(rng, x, h, estimator):
        x = np.asarray(x)
        if gradient is None:
            g = estimator.estimate(estimator_key(rng, estimator), (), x)[0].gradient
        else:
            g = gradient(rng.choice(terms.size, size=2, replace=False), x)
        return (x - h * np.asarray(g) + np.sqrt(2 * h) * rng.standard_normal(x.shape)).astype(x.dtype)

    return simple_sampler(step, backend="host")
