"""Loops over the steps of a sampler, which benchmarks time beside each other: the runner, a plain scan, BlackJAX."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from sgmcmc_verification.samplers.interface.sampler import Estimator, Sampler
from sgmcmc_verification.samplers.runner.run import run
from sgmcmc_verification.targets.target import DataTerms

Turn = Callable[[], Any]
"""Takes steps in float32, and returns the last positions."""


def runner(sampler: Sampler, estimator: Estimator, position, chains: int, steps: int, step_size, **options) -> Turn:
    """A run that keeps the last positions."""
    key, numbers = jax.random.key(0), {"num_steps": steps, "thin": steps, "num_chains": chains}
    return lambda: run(sampler, estimator, key, step_size=step_size, position=position, **numbers, **options).position


def written_by_hand(sampler: Sampler, estimator: Estimator, position, chains: int, steps: int, step_size) -> Turn:
    """The same steps in a plain scan, with the same keys; chains batched on the first axis, as is usual.

    The initial states are made once: some take a sum over all data.
    """

    def chain(key, state):
        # the step number is carried: twice as fast here as scanning over an array of step numbers
        def body(carry, _):
            t, state = carry
            state = sampler.step(jax.random.fold_in(key, t), state, jnp.float32(step_size), estimator)
            return (t + 1, state), None

        return sampler.position(lax.scan(body, (jnp.uint32(1), state), length=steps)[0][1])

    keys = jax.vmap(jax.random.fold_in, (None, 0))(jax.random.key(0), jnp.arange(chains))
    positions = jnp.broadcast_to(position, (chains, *position.shape))
    begin = lambda key, x: sampler.init(jax.random.fold_in(key, 0), x, estimator)
    if chains == 1:
        state = jax.jit(begin)(keys[0], positions[0])
        alone = jax.jit(chain)
        return lambda: alone(keys[0], state)
    states = jax.jit(jax.vmap(begin))(keys, positions)
    compiled = jax.jit(jax.vmap(chain))
    return lambda: compiled(keys, states)


def blackjax_sgld(grad_estimator, minibatch, position, chains: int, steps: int, step_size) -> Turn:
    """BlackJAX's SGLD in a scan over keys, as its documentation writes loops; minibatch: key -> batch or None.

    Its step is x + h grad log p + N(0, 2 h), the same as that of the suite.
    """
    import blackjax  # asv imports this folder, and need not have the peers

    algorithm: Any = blackjax.sgld(grad_estimator)

    def chain(key, x):
        def body(x, key):
            key, batch_key = jax.random.split(key) if minibatch else (key, key)
            batch = minibatch(batch_key) if minibatch else ()
            return algorithm.step(key, x, batch, step_size), None

        return lax.scan(body, algorithm.init(x), jax.random.split(key, steps))[0]

    keys = jax.random.split(jax.random.key(0), chains)
    positions = jnp.broadcast_to(position, (chains, *position.shape))
    compiled = jax.jit(lambda k, x: chain(k[0], x[0]) if chains == 1 else jax.vmap(chain)(k, x))
    return lambda: compiled(keys, positions)


def logistic_terms(rows: int, columns: int) -> DataTerms:
    """A logistic regression on random data, float32, with the prior N(0, I)."""
    generator = np.random.default_rng(0)
    features = jnp.asarray(generator.normal(size=(rows, columns)), jnp.float32)
    labels = jnp.asarray(generator.random(rows) < 0.5, jnp.float32) * 2 - 1
    prior = lambda w: 0.5 * jnp.sum(w * w)
    datum = lambda w, row: jax.nn.softplus(-row[1] * (row[0] @ w))
    return DataTerms(prior, datum, (features, labels), rows)


def draw_rows(terms: DataTerms, batch: int) -> Callable[[jax.Array], Any]:
    """Key -> a minibatch drawn with replacement."""

    def minibatch(key):
        indices = jax.random.randint(key, (batch,), 0, terms.size)
        return jax.tree.map(lambda a: a[indices], terms.data)

    return minibatch


def blackjax_gradient(terms: DataTerms) -> Callable[..., Any]:
    """BlackJAX's estimate of the gradient of the log-posterior: (position, minibatch) -> gradient."""
    import blackjax

    prior, datum = lambda w: -terms.prior(w), lambda w, row: -terms.datum(w, row)
    return blackjax.sgmcmc.gradients.grad_estimator(prior, datum, terms.size)


def blackjax_control_variates(terms: DataTerms, centre: jax.Array) -> Callable[..., Any]:
    """The same, corrected at a centre."""
    import blackjax

    return blackjax.sgmcmc.gradients.control_variates(blackjax_gradient(terms), centre, terms.data)
