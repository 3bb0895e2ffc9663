"""Langevin samplers in JAX: keys and counts in states, layers, control variates, a metric, thermostats."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw, simple_sampler

SECOND_ORDER = Claims(Source("", "own"), StationaryLaw(order=2))
FRICTION = 1.0


def gradient_of(estimator, key, x):
    return estimator.estimate(key, (), x)[0].gradient


def normal_like(key, tree):
    leaves, structure = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    return jax.tree.unflatten(structure, [jax.random.normal(k, a.shape, a.dtype) for k, a in zip(keys, leaves)])


# 1. OBABO with the gradient of the last point, a key and a count in the state


class Chain(NamedTuple):
    position: jax.Array
    momentum: jax.Array
    gradient: jax.Array


def keyed_init(key, position, estimator):
    momentum_key, batch_key, chain_key = jax.random.split(key, 3)
    chain = Chain(position, normal_like(momentum_key, position), gradient_of(estimator, batch_key, position))
    return {"chain": chain, "key": chain_key, "count": jnp.zeros((), jnp.int32)}


def keyed_step(key, state, h, estimator):
    x, p, g = state["chain"]
    next_key, first_key, second_key = jax.random.split(state["key"], 3)
    kept = jnp.exp(-FRICTION * h / 2)
    refresh = lambda k, p: jax.tree.map(lambda a, n: kept * a + jnp.sqrt(1 - kept**2) * n, p, normal_like(k, p))
    kick = lambda p, g: jax.tree.map(lambda a, b: a - h / 2 * b, p, g)
    p = kick(refresh(first_key, p), g)
    x = jax.tree.map(lambda a, b: a + h * b, x, p)
    g = gradient_of(estimator, key, x)
    p = refresh(second_key, kick(p, g))
    return {"chain": Chain(x, p, g), "key": next_key, "count": state["count"] + 1}


keyed = simple_sampler(
    keyed_step, init=keyed_init, position=lambda state: state["chain"].position, claims=SECOND_ORDER
)


# 2. BAOAB, three times in a scan, with the momenta as a list of layers


def layered_init(key, position, estimator):
    layers = jax.tree.leaves(position)
    keys = jax.random.split(key, len(layers))
    return {"position": position, "momenta": [jax.random.normal(k, a.shape, a.dtype) for k, a in zip(keys, layers)]}


def layered_step(key, state, h, estimator):
    structure = jax.tree.structure(state["position"])
    kept = jnp.exp(-FRICTION * h)

    def baoab(carry, key):
        xs, ps = carry
        noise_key, first_key, second_key = jax.random.split(key, 3)
        slope = lambda k, xs: jax.tree.leaves(gradient_of(estimator, k, jax.tree.unflatten(structure, xs)))
        ps = [p - h / 2 * g for p, g in zip(ps, slope(first_key, xs))]
        xs = [x + h / 2 * p for x, p in zip(xs, ps)]
        ps = [kept * p + jnp.sqrt(1 - kept**2) * n for p, n in zip(ps, normal_like(noise_key, ps))]
        xs = [x + h / 2 * p for x, p in zip(xs, ps)]
        ps = [p - h / 2 * g for p, g in zip(ps, slope(second_key, xs))]
        return (xs, ps), None

    start = (jax.tree.leaves(state["position"]), state["momenta"])
    (xs, ps), _ = lax.scan(baoab, start, jax.random.split(key, 3))
    return {"position": jax.tree.unflatten(structure, xs), "momenta": ps}


layered = simple_sampler(layered_step, init=layered_init, claims=SECOND_ORDER)


# 3. SVRG: every fifth step makes the position the anchor


class Anchor(NamedTuple):
    point: jax.Array
    slope: jax.Array


def batch_slope(terms, index, x):
    """Sum of the gradients of some rows."""
    rows = jax.tree.map(lambda a: jnp.asarray(a)[index], terms.data)
    return jax.grad(lambda q: jnp.sum(jax.vmap(terms.datum, (None, 0))(q, rows)))(x)


def svrg(target):
    terms = target.terms
    period, batch = 5, 2

    def full_slope(x):
        if terms is None:
            return jax.tree.map(jnp.zeros_like, x)
        return batch_slope(terms, jnp.arange(terms.size), x)

    def init(key, position, estimator):
        return {"x": position, "anchor": Anchor(position, full_slope(position)), "age": jnp.zeros((), jnp.int32)}

    def step(key, state, h, estimator):
        batch_key, noise_key = jax.random.split(key)
        x = state["x"]
        anchor = lax.cond(
            state["age"] == 0, lambda x, old: Anchor(x, full_slope(x)), lambda x, old: old, x, state["anchor"]
        )
        if terms is None:
            g = gradient_of(estimator, batch_key, x)
        else:
            index = jax.random.randint(batch_key, (batch,), 0, terms.size)
            new, old = batch_slope(terms, index, x), batch_slope(terms, index, anchor.point)
            g = jax.tree.map(
                lambda r, s, a, b: r + s + terms.size / batch * (a - b), jax.grad(terms.prior)(x), anchor.slope, new, old
            )
        x = jax.tree.map(lambda a, b, n: a - h * b + jnp.sqrt(2 * h) * n, x, g, normal_like(noise_key, x))
        return {"x": x, "anchor": anchor, "age": (state["age"] + 1) % period}

    return simple_sampler(step, init=init, position=lambda state: state["x"])


# 4. Control variates of second order around the point where the chain started


def taylor(target):
    terms = target.terms
    batch = 2

    def init(key, position, estimator):
        centre, back = ravel_pytree(position)
        if terms is None:
            slope, hessian = jnp.zeros_like(centre), jnp.zeros((centre.size, centre.size), centre.dtype)
        else:
            total = lambda q: jnp.sum(jax.vmap(terms.datum, (None, 0))(back(q), jax.tree.map(jnp.asarray, terms.data)))
            slope, hessian = jax.grad(total)(centre), jax.hessian(total)(centre)
        return {"position": position, "centre": centre, "slope": slope, "hessian": hessian}

    def step(key, state, h, estimator):
        batch_key, noise_key = jax.random.split(key)
        x, back = ravel_pytree(state["position"])
        if terms is None:
            g = ravel_pytree(gradient_of(estimator, batch_key, state["position"]))[0]
        else:
            c = state["centre"]
            index = jax.random.choice(batch_key, terms.size, (min(batch, terms.size),), replace=False)
            of_batch = lambda q: ravel_pytree(batch_slope(terms, index, back(q)))[0]
            at_centre, along = jax.jvp(of_batch, (c,), (x - c,))
            rest = terms.size / index.size * (of_batch(x) - at_centre - along)
            of_prior = ravel_pytree(jax.grad(terms.prior)(state["position"]))[0]
            g = of_prior + state["slope"] + state["hessian"] @ (x - c) + rest
        y = x - h * g + jnp.sqrt(2 * h) * jax.random.normal(noise_key, x.shape, x.dtype)
        return {**state, "position": back(y)}

    return simple_sampler(step, init=init)


# 5. A metric of the position, D(x) = 1 + x x' / (1 + |x|^2), its Gamma by differentiation


def diffusion(x):
    return jnp.eye(x.size, dtype=x.dtype) + jnp.outer(x, x) / (1 + jnp.dot(x, x))


def metric_step(key, position, h, estimator):
    batch_key, noise_key = jax.random.split(key)
    x, back = ravel_pytree(position)
    g = ravel_pytree(gradient_of(estimator, batch_key, position))[0]
    d = diffusion(x)
    gamma = jnp.einsum("ijj->i", jax.jacfwd(diffusion)(x))  # Gamma_i = sum over j of the derivative of D_ij by x_j
    noise = jnp.linalg.cholesky(d) @ jax.random.normal(noise_key, x.shape, x.dtype)
    return back(x - h * (d @ g - gamma) + jnp.sqrt(2 * h) * noise)


metric = simple_sampler(metric_step)


# 6. SGNHT with a thermostat for each leaf


class Thermostatted(NamedTuple):
    position: jax.Array
    momentum: jax.Array
    xi: jax.Array


def sgnht(diffusion=1.0):
    if diffusion <= 0:
        raise ValueError("diffusion has to be positive")

    def init(key, position, estimator):
        xi = jax.tree.map(lambda a: jnp.full((), diffusion, a.dtype), position)
        return Thermostatted(position, normal_like(key, position), xi)

    def step(key, state, h, estimator):
        batch_key, noise_key = jax.random.split(key)
        x, p, xi = state
        g, noise = gradient_of(estimator, batch_key, x), normal_like(noise_key, p)
        p = jax.tree.map(lambda p, g, xi, n: (1 - h * xi) * p - h * g + jnp.sqrt(2 * diffusion * h) * n, p, g, xi, noise)
        x = jax.tree.map(lambda x, p: x + h * p, x, p)
        xi = jax.tree.map(lambda xi, p: xi + h * (jnp.mean(p**2) - 1), xi, p)
        return Thermostatted(x, p, xi)

    return simple_sampler(step, init=init)
