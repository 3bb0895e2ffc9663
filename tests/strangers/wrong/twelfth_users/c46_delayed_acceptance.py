"""Random-walk Metropolis with delayed acceptance for large data (Christen and Fox, 2005; Banterle et al., 2019).

A proposal is first judged by a cheap potential, that of a few rows of the data. Only if it survives, the whole of the data is read, and the
second test corrects the first. The rows are drawn anew in each step, and do not depend on where the chain is, so that each step is in
detailed balance. Without data there is one test, with the potential of the estimator.
"""

from typing import Any, Callable, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


class Potentials(NamedTuple):
    """Two functions of a key and a position: a cheap potential, and the exact one."""

    cheap: Callable[[jax.Array, Any], jax.Array]
    exact: Callable[[jax.Array, Any], jax.Array]


def of_rows(terms, rows):
    """Sum of the terms of these rows, as a function of the position."""
    return lambda x: jnp.sum(jax.vmap(terms.datum, (None, 0))(x, rows))


def potentials_of(terms, batch: int) -> Potentials:
    data = jax.tree.map(jnp.asarray, terms.data)
    size = min(batch, terms.size)

    def cheap(key, x):
        index = jax.random.choice(key, terms.size, (size,), replace=False)
        rows = jax.tree.map(lambda a: a[index], data)
        return terms.prior(x) + terms.size / size * of_rows(terms, rows)(x)

    def exact(key, x):
        return terms.prior(x) + of_rows(terms, data)(x)

    return Potentials(cheap, exact)


def test(key, log_ratio):
    return jnp.log(jax.random.uniform(key, (), log_ratio.dtype)) < log_ratio


def delayed_acceptance(target, batch: int = 3):
    if batch < 1:
        raise ValueError("a batch has a row at least")
    terms = target.terms

    def step(key, position, step_size, estimator):
        move_key, screen_key, screen_test, full_key, full_test = jax.random.split(key, 5)
        x, unravel = ravel_pytree(position)
        y = x + jnp.sqrt(2 * jnp.asarray(step_size, x.dtype)) * jax.random.normal(move_key, x.shape, x.dtype)
        if terms is None:
            of_estimator = lambda k, q: estimator.estimate(k, (), q)[0].potential
            potentials = Potentials(of_estimator, of_estimator)
        else:
            potentials = potentials_of(terms, batch)

        def screened():
            """log of the first ratio."""
            return potentials.cheap(screen_key, position) - potentials.cheap(screen_key, unravel(y))

        def corrected():
            """log of the second ratio: the exact one, less what the first test has had of it."""
            exact = potentials.exact(full_key, position) - potentials.exact(full_key, unravel(y))
            cheap = potentials.cheap(full_key, position) - potentials.cheap(full_key, unravel(y))
            return exact - cheap

        accept = test(screen_test, screened()) & test(full_test, corrected())
        return unravel(jnp.where(accept, y, x))

    return simple_sampler(step, claims=Claims(Source("christen2005", "section 3"), ExactLaw()))
