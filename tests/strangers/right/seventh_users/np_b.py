"""Several temperatures, anchored minibatches for a splitting, and an ensemble, in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

# --- Parallel tempering ------------------------------------------------------------------------------------------------
#
# Replica i has the law exp(-U / T_i) and makes a random-walk Metropolis step of variance 2 h T_i; then the pairs of
# neighbours, from the hottest down, change places with probability min(1, exp((1/T_i - 1/T_j) (U(x_i) - U(x_j)))). Each of these
# kernels keeps the product of the laws, for each h, and so does their composition; the coldest (T = 1) is shown. Positions are single arrays, of any shape.

LADDER = np.array([1.0, 2.0, 4.0])


class ParallelTempering:
    backend = "host"
    claims = Claims(Source("", "own"), ExactLaw())

    def init(self, rng, position, estimator):
        if not isinstance(position, np.ndarray):
            raise TypeError("a position is one array")
        return {"replicas": np.stack([position] * len(LADDER))}

    def position(self, state):
        return state["replicas"][0]

    def step(self, rng, state, h, estimator):
        x = state["replicas"].copy()
        energies = []
        for i, temperature in enumerate(LADDER):
            here = estimator.estimate(rng, (), x[i])[0].potential
            y = x[i] + np.sqrt(2 * h * temperature) * rng.standard_normal(x[i].shape)
            there = estimator.estimate(rng, (), y)[0].potential
            if np.log(rng.random()) < (here - there) / temperature:
                x[i] = y
                here = there
            energies.append(here)
        for i in reversed(range(len(LADDER) - 1)):
            j = i + 1
            log_ratio = (1 / LADDER[i] - 1 / LADDER[j]) * (energies[i] - energies[j])
            if np.log(rng.random()) < log_ratio:
                x[[i, j]] = x[[j, i]]
                energies[i], energies[j] = energies[j], energies[i]
        return {"replicas": x}


# --- Underdamped splitting with minibatches around an anchor (control variates; Baker et al. 2019) ---------------------
#
# A(h/2) B(h/2) O(h) B(h/2) A(h/2), both kicks with one gradient at the midpoint. With data of its own,
#     g = grad U_0(x) + sum_i grad L_i(a) + N/n sum_{i in S} (grad L_i(x) - grad L_i(a)),
# the anchor a being where the chain began. S is drawn with replacement: E g = grad U(x) for each a, and the variance of g is
# bounded near a, so that it moves the law by O(h) alone. Claims nothing: exp(-U) up to O(h).

BATCH = 2


def anchored_splitting(target, friction=1.0):
    terms = target.terms
    if terms is not None:
        over_rows = lambda q, rows: jnp.sum(jax.vmap(terms.datum, (None, 0))(q, rows))
        slope_of_rows = jax.jit(jax.grad(over_rows))
        slope_of_prior = jax.jit(jax.grad(terms.prior))
        data = jax.tree.map(np.asarray, terms.data)

    def init(rng, position, estimator):
        state = {
            "position": jax.tree.map(np.array, position),
            "momentum": jax.tree.map(lambda a: rng.standard_normal(np.shape(a)), position),
        }
        if terms is not None:
            state["anchor"] = jax.tree.map(np.array, position)
            state["slope_at_anchor"] = jax.tree.map(np.array, slope_of_rows(position, data))
        return state

    def slope(rng, state, x, estimator):
        if terms is None:
            return estimator.estimate(rng, (), x)[0].gradient
        index = rng.integers(0, terms.size, BATCH)
        rows = jax.tree.map(lambda a: a[index], data)
        weight = terms.size / BATCH
        return jax.tree.map(
            lambda prior, total, here, there: np.asarray(prior + total + weight * (here - there)),
            slope_of_prior(x),
            state["slope_at_anchor"],
            slope_of_rows(x, rows),
            slope_of_rows(state["anchor"], rows),
        )

    def step(rng, state, h, estimator):
        kept = np.exp(-friction * h)
        x = jax.tree.map(lambda q, p: q + h / 2 * p, state["position"], state["momentum"])
        g = slope(rng, state, x, estimator)
        p = jax.tree.map(lambda p, g: p - h / 2 * g, state["momentum"], g)
        p = jax.tree.map(lambda p: kept * p + np.sqrt(1 - kept**2) * rng.standard_normal(np.shape(p)), p)
        p = jax.tree.map(lambda p, g: p - h / 2 * g, p, g)
        x = jax.tree.map(lambda q, p: q + h / 2 * p, x, p)
        return {**state, "position": x, "momentum": p}

    return simple_sampler(step, init=init, backend="host")


# --- Affine-invariant ensemble with a random walk in between (Goodman and Weare 2010) ----------------------------------
#
# Walkers are moved one after the other, each by a stretch y = x_j + z (x_k - x_j), sqrt(z) uniform on [a^-1/2, a^1/2], with
#     log alpha = (n - 1) log z + U(x_k) - U(y),      n the number of all numbers of a position,
# or, by a coin, by a Metropolis step of variance 2 h, which is needed where there are more numbers than walkers. Both keep
# exp(-U) of walker k given the others. The first walker is shown. Positions are single arrays, of any shape.

WALKERS = 4
STRETCH = 2.0


class Ensemble:
    backend = "host"
    claims = Claims(Source("", "own"), ExactLaw())

    def init(self, rng, position, estimator):
        if not isinstance(position, np.ndarray):
            raise TypeError("a position is one array")
        others = [position + 0.5 * rng.standard_normal(position.shape) for _ in range(WALKERS - 1)]
        return {"walkers": np.stack([position, *others])}

    def position(self, state):
        return state["walkers"][0]

    def step(self, rng, state, h, estimator):
        walkers = state["walkers"].copy()
        for k in range(WALKERS):
            x = walkers[k].copy()
            if rng.random() < 0.5:
                j = int(rng.integers(WALKERS - 1))
                j += j >= k
                z = (1 + (STRETCH - 1) * rng.random()) ** 2 / STRETCH
                y = walkers[j] + z * (x - walkers[j])
                log_jacobian = (x.size - 1) * np.log(z)
            else:
                y = x + np.sqrt(2 * h) * rng.standard_normal(x.shape)
                log_jacobian = 0.0
            here, there = (estimator.estimate(rng, (), q)[0].potential for q in (x, y))
            if np.log(rng.random()) < log_jacobian + here - there:
                walkers[k] = y
        return {"walkers": walkers}
