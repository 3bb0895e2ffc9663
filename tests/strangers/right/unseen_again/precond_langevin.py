"""Overdamped Langevin samplers from chapter 3 of my thesis (JAX).

Notation: theta parameters, U potential (minus log posterior), G preconditioner, Gamma its divergence.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import simple_sampler

LAMBDA = 1.0  # damping of the gradient-based metric
P_REFRESH = 0.25  # probability of a new anchor (loopless SVRG)


def grad_U(estimator, key, theta):
    return estimator.estimate(key, (), theta)[0].gradient


def randn_tree(key, tree):
    leaves, treedef = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    return jax.tree.unflatten(
        treedef, [jax.random.normal(k, leaf.shape, leaf.dtype) for k, leaf in zip(keys, leaves)]
    )


# --- 3.1 pSGLD, with the Gamma that everybody drops ----------------------------------------------


class PSGLDState(NamedTuple):
    position: Any
    t: jax.Array


@dataclass(frozen=True)
class PSGLDGamma:
    """d theta = (-G grad U + Gamma) dt + sqrt(2 G) dW, G = diag(1 / (lam + sqrt(1 + theta_i^2)))."""

    lam: float = 1.0

    def init(self, key, position, estimator):
        return PSGLDState(position, jnp.zeros((), jnp.int32))

    def G(self, theta):
        return 1.0 / (self.lam + jnp.sqrt(1.0 + theta**2))

    def step(self, key, state, step_size, estimator):
        batch_key, noise_key = jax.random.split(key)
        grads = grad_U(estimator, batch_key, state.position)
        noise = randn_tree(noise_key, state.position)

        def update(theta, g, xi):
            h = jnp.asarray(step_size, theta.dtype)
            G = self.G(theta)
            Gamma = jax.grad(lambda t: jnp.sum(self.G(t)))(theta)  # G_i sees theta_i only
            return theta + h * (Gamma - G * g) + jnp.sqrt(2 * h * G) * xi

        return PSGLDState(jax.tree.map(update, state.position, grads, noise), state.t + 1)


# --- 3.2 RMSprop-like metric from gradients, divergence by random finite differences --------------


def rmsprop_metric(estimator, key, theta):
    g = grad_U(estimator, key, theta)
    return jax.lax.rsqrt(LAMBDA + g * g)


def rfd_step(key, theta, step_size, estimator):
    # the metric has a minibatch of its own: otherwise E[G g] is not E[G] E[g]
    k_drift, k_metric, k_w, k_xi = jax.random.split(key, 4)
    h = jnp.asarray(step_size, theta.dtype)
    g = grad_U(estimator, k_drift, theta)
    G = rmsprop_metric(estimator, k_metric, theta)
    w = jax.random.normal(k_w, theta.shape, theta.dtype)
    delta = 0.1 * jnp.sqrt(h)
    plus = rmsprop_metric(estimator, k_metric, theta + 0.5 * delta * w)
    minus = rmsprop_metric(estimator, k_metric, theta - 0.5 * delta * w)
    Gamma = (plus - minus) * w / delta
    xi = jax.random.normal(k_xi, theta.shape, theta.dtype)
    return theta - h * G * g + h * Gamma + jnp.sqrt(2 * h * G) * xi


rfd_psgld = simple_sampler(rfd_step)


# --- 3.3 Leimkuhler & Matthews: average of two successive noises ---------------------------------


class LMState(NamedTuple):
    theta: jax.Array
    xi: jax.Array


class LeimkuhlerMatthews:
    def init(self, key, position, estimator):
        return LMState(position, jax.random.normal(key, position.shape, position.dtype))

    def position(self, state):
        return state.theta

    def step(self, key, state, step_size, estimator):
        k1, k2 = jax.random.split(key)
        h = jnp.asarray(step_size, state.theta.dtype)
        xi_new = jax.random.normal(k2, state.xi.shape, state.xi.dtype)
        theta = state.theta - h * grad_U(estimator, k1, state.theta) + jnp.sqrt(h / 2) * (state.xi + xi_new)
        return LMState(theta, xi_new)


# --- 3.4 control variates around a random anchor (loopless SVRG) ---------------------------------


class LSVRGState(NamedTuple):
    position: Any
    anchor: Any
    mu: Any  # big-batch gradient at the anchor


@dataclass(frozen=True)
class LSVRGLangevin:
    anchor_batches: int = 4

    def big_batch(self, key, theta, estimator):
        keys = jax.random.split(key, self.anchor_batches)
        grads = jax.vmap(lambda k: grad_U(estimator, k, theta))(keys)
        return jax.tree.map(lambda g: jnp.mean(g, axis=0), grads)

    def init(self, key, position, estimator):
        return LSVRGState(position, position, self.big_batch(key, position, estimator))

    def step(self, key, state, step_size, estimator):
        k_coin, k_anchor, k_batch, k_noise = jax.random.split(key, 4)
        theta = state.position
        anchor, mu = jax.lax.cond(
            jax.random.bernoulli(k_coin, P_REFRESH),
            lambda: (theta, self.big_batch(k_anchor, theta, estimator)),
            lambda: (state.anchor, state.mu),
        )
        # same key, same minibatch, at both points
        g_theta = grad_U(estimator, k_batch, theta)
        g_anchor = grad_U(estimator, k_batch, anchor)
        xi = randn_tree(k_noise, theta)

        def update(t, a, b, m, e):
            h = jnp.asarray(step_size, t.dtype)
            return t - h * (a - b + m) + jnp.sqrt(2 * h) * e

        return LSVRGState(jax.tree.map(update, theta, g_theta, g_anchor, mu, xi), anchor, mu)
