"""Two samplers from a Bayesian deep learning repository: SGLD with control variates, and a Riemannian SGLD."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import simple_sampler


class CVState(NamedTuple):
    """Parameters, the centring value, and the full data gradient there."""

    position: jax.Array
    centre: jax.Array
    centre_grad: jax.Array


def sgld_cv(target, batch_size=2):
    """SGLD-CV (Baker et al. 2019); the centring value is where the chain is started."""
    terms = target.terms

    if terms is None:  # nothing to subsample: plain Langevin with the gradients that we are given
        full_gradient = lambda x: jax.tree.map(jnp.zeros_like, x)
    else:
        data = jax.tree.map(jnp.asarray, terms.data)
        batch_potential = lambda x, batch: jnp.sum(jax.vmap(terms.datum, in_axes=(None, 0))(x, batch))
        full_gradient = jax.grad(lambda x: terms.prior(x) + batch_potential(x, data))

    def gradient(key, state, estimator):
        if terms is None:
            return estimator.estimate(key, (), state.position)[0].gradient
        idx = jax.random.randint(key, (batch_size,), 0, terms.size)
        batch = jax.tree.map(lambda a: a[idx], data)

        def estimate(x):
            return jax.grad(lambda q: terms.prior(q) + terms.size / batch_size * batch_potential(q, batch))(x)

        return jax.tree.map(
            lambda full, here, there: full + here - there,
            state.centre_grad,
            estimate(state.position),
            estimate(state.centre),
        )

    def init(key, position, estimator):
        return CVState(position, position, full_gradient(position))

    def step(key, state, dt, estimator):
        key_batch, key_noise = jax.random.split(key)
        grad = gradient(key_batch, state, estimator)
        leaves, treedef = jax.tree.flatten(state.position)
        noise = treedef.unflatten(
            [
                jax.random.normal(jax.random.fold_in(key_noise, i), leaf.shape, leaf.dtype)
                for i, leaf in enumerate(leaves)
            ]
        )
        new = jax.tree.map(lambda x, g, n: x - dt * g + jnp.sqrt(2 * dt) * n, state.position, grad, noise)
        return state._replace(position=new)

    return simple_sampler(step, init=init)


@dataclass(frozen=True)
class RiemannianSGLD:
    """dx = (-D grad U + div D) dt + sqrt(2 D) dW, D diagonal, D_ii = floor + bump / (1 + x_i^2).

    div D by automatic differentiation, so that another metric needs one line.
    """

    floor: float = 0.5
    bump: float = 1.0

    def __post_init__(self):
        if self.floor <= 0.0 or self.bump < 0.0:
            raise ValueError(f"not a metric: floor = {self.floor}, bump = {self.bump}")

    def inverse_metric(self, xi):
        return self.floor + self.bump / (1.0 + xi**2)

    def step(self, key, theta, epsilon, estimator):
        gkey, nkey = jax.random.split(key)
        g = estimator.estimate(gkey, (), theta)[0].gradient.ravel()
        x = theta.ravel()
        D, gamma = jax.vmap(jax.value_and_grad(self.inverse_metric))(x)
        noise = jax.random.normal(nkey, x.shape, x.dtype)
        x = x + epsilon * (gamma - D * g) + jnp.sqrt(2.0 * epsilon * D) * noise
        return x.reshape(theta.shape)
