"""MALA with a fixed, full preconditioner A = L L^T, L = D (I + c S), S the shift by one coordinate.

    y = x - h A g(x) + sqrt(2h) L z
    way back: z' = L^-1 (x - y + h A g(y)) / sqrt(2h) = -z + sqrt(h/2) L^T (g(x) + g(y))
    log ratio = U(x) - U(y) + |z|^2/2 - |z'|^2/2

Right: the density of z -> y has the constant Jacobian of L, so the ratio q(y,x)/q(x,y) is that of the normals z' and z;
L^-1 is never needed.  U and g at x are kept in the state.  Returns (state, info).  Exact.     Object: kernel(coupling, scale)
"""
from collections import namedtuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

MalaState = namedtuple("MalaState", ["position", "potential", "grad"])
MalaInfo = namedtuple("MalaInfo", ["acceptance", "accepted"])


def kernel(coupling=0.4, scale=0.8):
    if abs(coupling) >= 1 or scale <= 0:
        raise ValueError("|coupling| < 1, scale > 0")

    def L(v):
        return scale * (v + coupling * jnp.concatenate([jnp.zeros_like(v[:1]), v[:-1]]))

    def LT(v):
        return scale * (v + coupling * jnp.concatenate([v[1:], jnp.zeros_like(v[:1])]))

    def evaluate(key, position, estimator):
        estimate = estimator.estimate(key, (), position)[0]
        return MalaState(position, estimate.potential, estimate.gradient)

    def init(key, position, estimator):
        return evaluate(key, position, estimator)

    def step(key, state, h, estimator):
        k_grad, k_prop, k_acc = jax.random.split(key, 3)
        x, unravel = ravel_pytree(state.position)
        gx = ravel_pytree(state.grad)[0]
        z = jax.random.normal(k_prop, x.shape, x.dtype)
        y = (x - h * L(LT(gx)) + jnp.sqrt(2 * h) * L(z)).astype(x.dtype)
        proposal = evaluate(k_grad, unravel(y), estimator)
        gy = ravel_pytree(proposal.grad)[0]
        back = -z + jnp.sqrt(h / 2) * LT(gx + gy)
        log_ratio = state.potential - proposal.potential + 0.5 * jnp.sum(z**2) - 0.5 * jnp.sum(back**2)
        accepted = jnp.log(jax.random.uniform(k_acc, (), x.dtype)) < log_ratio
        new = jax.tree.map(lambda a, b: jnp.where(accepted, a, b), proposal, state)
        return new, MalaInfo(jnp.exp(jnp.minimum(log_ratio, 0.0)), accepted)

    return simple_sampler(step, init=init, claims=Claims(Source("", "own"), ExactLaw()))
