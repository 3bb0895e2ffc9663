"""Code that accompanies a paper: population MCMC, minibatches without replacement, loopless SVRG, dense preconditioning."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def differential_evolution(n_walkers=4):
    """DE-MC (ter Braak 2006): x_k + gamma (x_a - x_b) + e, symmetric, one walker after the other."""
    if n_walkers < 3:
        raise ValueError(f"DE-MC needs at least three walkers, got {n_walkers}")

    def init(rng, position, estimator):
        walkers = [np.array(position)]
        for _ in range(n_walkers - 1):
            walkers.append(np.array(position) + 0.1 * rng.normal(size=position.shape))
        energies = [float(estimator.estimate(rng, (), w)[0].potential) for w in walkers]
        return {"walkers": walkers, "energies": energies}

    def step(rng, state, h, estimator):
        walkers, energies = list(state["walkers"]), list(state["energies"])
        gamma = 2.38 / np.sqrt(2 * walkers[0].size)
        for k in range(n_walkers):
            others = [j for j in range(n_walkers) if j != k]
            a, b = rng.choice(others, size=2, replace=False)
            e = np.sqrt(2 * h) * rng.standard_normal(walkers[k].shape)
            proposal = walkers[k] + gamma * (walkers[a] - walkers[b]) + e
            energy = float(estimator.estimate(rng, (), proposal)[0].potential)
            if np.log(1.0 - rng.random()) <= energies[k] - energy:
                walkers[k], energies[k] = proposal, energy
        return {"walkers": walkers, "energies": energies}

    return simple_sampler(
        step,
        init=init,
        position=lambda state: state["walkers"][0],
        claims=Claims(Source("", "ter Braak (2006)"), ExactLaw()),
        backend="host",
    )


# ------------------------------------------------------------------------------------------------------------------


def minibatch_sgld(target, batch_size=2):
    """SGLD on minibatches that are drawn without replacement."""
    terms = target.terms

    if terms is not None:
        data = jax.tree.map(np.asarray, terms.data)
        n = min(batch_size, terms.size)

        @jax.jit
        def stochastic_gradient(x, rows):
            def loss(q):
                return terms.prior(q) + (terms.size / n) * jnp.sum(jax.vmap(terms.datum, (None, 0))(q, rows))

            return jax.grad(loss)(x)

    def step(rng, x, h, estimator):
        if terms is None:
            g = estimator.estimate(rng, (), x)[0].gradient
        else:
            chosen = rng.choice(terms.size, size=n, replace=False)
            g = np.asarray(stochastic_gradient(x, jax.tree.map(lambda a: a[chosen], data)))
        return x - h * g + rng.normal(loc=0.0, scale=np.sqrt(2 * h), size=x.shape)

    return simple_sampler(step, backend="host")


# ------------------------------------------------------------------------------------------------------------------


def loopless_svrg(target, refresh=0.2, batch_size=2):
    """SVRG-LD whose anchor moves to the chain with probability `refresh` after each step."""
    assert 0 < refresh <= 1, refresh
    terms = target.terms

    if terms is None:
        full = lambda x: np.zeros_like(x)
    else:
        data = jax.tree.map(np.asarray, terms.data)
        of_rows = lambda q, rows: jnp.sum(jax.vmap(terms.datum, (None, 0))(q, rows))
        full = jax.jit(jax.grad(lambda q: terms.prior(q) + of_rows(q, data)))
        some = jax.jit(jax.grad(lambda q, rows: terms.prior(q) + terms.size / batch_size * of_rows(q, rows)))

    def init(rng, position, estimator):
        return {
            "position": np.array(position),
            "anchor": np.array(position),
            "anchor_gradient": np.array(full(position)),
        }

    def step(rng, state, h, estimator):
        x = state["position"]
        if terms is None:
            g = estimator.estimate(rng, (), x)[0].gradient
        else:
            index = rng.integers(0, terms.size, size=batch_size)
            rows = jax.tree.map(lambda a: a[index], data)
            g = np.array(some(x, rows)) - np.array(some(state["anchor"], rows)) + state["anchor_gradient"]
        new = dict(state, position=x - h * g + np.sqrt(2 * h) * rng.standard_normal(x.shape))
        if terms is not None and rng.random() < refresh:
            new["anchor"] = new["position"].copy()
            new["anchor_gradient"] = np.array(full(new["anchor"]))
        return new

    return simple_sampler(step, init=init, backend="host")


# ------------------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=16)
def _factor(d, rho):
    matrix = (1.0 - rho) * np.eye(d) + rho * np.ones((d, d))
    return matrix, np.linalg.cholesky(matrix)


class DensePreconditioner:
    """x - h M grad U + sqrt(2 h) L n with a fixed matrix M = L L^T, here an equicorrelation matrix."""

    backend = "host"

    def __init__(self, rho=0.3):
        if not 0 <= rho < 1:
            raise ValueError(f"rho must be in [0, 1), got {rho}")
        self.rho = rho

    def step(self, rng, x, h, estimator):
        g = np.asarray(estimator.estimate(rng, (), x)[0].gradient).reshape(-1)
        M, L = _factor(x.size, self.rho)
        n = rng.standard_normal(x.size)
        move = -h * (M @ g) + np.sqrt(2.0 * h) * (L @ n)
        return x + move.reshape(x.shape).astype(x.dtype)
