"""NumPy kernels that are meant to be exact: random walks, slices, MALA, delayed rejection, differential evolution."""

from collections import deque

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

EXACT = Claims(Source("", "own"), ExactLaw())


def _energy(estimator, rng, x):
    return float(estimator.estimate(rng, (), x)[0].potential)


# --- coordinate-wise random walk ----------------------------------------------------------------------------------


def _componentwise(rng, x, h, estimator):
    x = np.array(x)
    flat = x.reshape(-1)
    current = _energy(estimator, rng, x)
    for i in range(flat.size):
        backup = flat
        flat[i] += np.sqrt(2 * h) * rng.standard_normal()
        proposed = _energy(estimator, rng, x)
        if np.log(rng.random()) < current - proposed:
            current = proposed
        else:
            flat[:] = backup
    return x


componentwise = simple_sampler(_componentwise, claims=EXACT, backend="host")


# --- Metropolis within Gibbs --------------------------------------------------------------------------------------


class MetropolisWithinGibbs:
    """One pass over the coordinates; the energy is kept so that each costs one evaluation."""

    backend = "host"
    claims = EXACT

    def init(self, rng, position, estimator):
        return {"position": np.array(position), "energy": np.array(_energy(estimator, rng, position))}

    def step(self, rng, state, h, estimator):
        x, energy = state["position"].copy(), float(state["energy"])
        for index in np.ndindex(x.shape):
            y = x.copy()
            y[index] += np.sqrt(2 * h) * rng.standard_normal()
            last, energy = energy, _energy(estimator, rng, y)
            if np.log(rng.random()) < last - energy:
                x = y
        return {"position": x, "energy": np.array(energy)}


# --- a random walk scaled by the recent past ----------------------------------------------------------------------


class RecentHistoryWalk:
    """Random walk Metropolis whose scale follows the spread of the last few positions."""

    backend = "host"
    claims = EXACT

    def __init__(self, window=5):
        if window < 2:
            raise ValueError("window: at least 2")
        self.window = window

    def init(self, rng, position, estimator):
        position = np.array(position)
        start = [position + rng.standard_normal(position.shape) for _ in range(self.window - 1)]
        return {"position": position, "history": deque([*start, position.copy()], maxlen=self.window)}

    def step(self, rng, state, h, estimator):
        x, history = state["position"], deque(state["history"], maxlen=self.window)
        scale = 2.4 / np.sqrt(max(x.size, 1)) * np.std(np.array(history), axis=0)
        y = x + scale * rng.standard_normal(x.shape)
        if np.log(rng.random()) < _energy(estimator, rng, x) - _energy(estimator, rng, y):
            x = y
        history.append(x.copy())
        return {"position": x, "history": history}


# --- slice sampling -----------------------------------------------------------------------------------------------


def _slice_sweep(rng, x, h, estimator, width=2.0):
    """Neal (2003): stepping out and shrinkage, coordinate by coordinate."""
    x = np.array(x, dtype=float)

    def logp(index, value):
        z = x.copy()
        z[index] = value
        return -_energy(estimator, rng, z)

    for index in np.ndindex(x.shape):
        x0 = x[index]
        level = logp(index, x0) - rng.uniform()
        left = x0 - width * rng.uniform()
        right = left + width
        while logp(index, left) > level:
            left -= width
        while logp(index, right) > level:
            right += width
        while True:
            x1 = left + (right - left) * rng.uniform()
            if logp(index, x1) > level:
                x[index] = x1
                break
            if x1 < x0:
                left = x1
            else:
                right = x1
    return x


def slice_sampler():
    return simple_sampler(
        lambda rng, x, h, estimator: _slice_sweep(rng, x, h, estimator), claims=EXACT, backend="host"
    )


# --- elliptical slice sampling ------------------------------------------------------------------------------------


class EllipticalSlice:
    """Murray et al. (2010), with the prior N(0, prior_scale^2)."""

    backend = "host"
    claims = EXACT

    def __init__(self, prior_scale=1.0):
        if prior_scale <= 0:
            raise ValueError("prior_scale must be positive")
        self.prior_scale = prior_scale

    def _log_likelihood(self, rng, f, estimator):
        return -_energy(estimator, rng, f) + 0.5 * np.sum(f**2) / self.prior_scale**2

    def step(self, rng, f, h, estimator):
        threshold = self._log_likelihood(rng, f, estimator) + np.log(1 - rng.random())
        theta = rng.uniform(0, 2 * np.pi)
        low, high = theta - 2 * np.pi, theta
        while True:
            nu = self.prior_scale * rng.standard_normal(f.shape)
            proposal = f * np.cos(theta) + nu * np.sin(theta)
            if self._log_likelihood(rng, proposal, estimator) >= threshold:
                return proposal
            if theta < 0:
                low = theta
            else:
                high = theta
            theta = rng.uniform(low, high)


# --- MALA with a cache --------------------------------------------------------------------------------------------


class CachedMALA:
    """MALA that asks for one potential and one gradient a step."""

    backend = "host"
    claims = EXACT

    def init(self, rng, position, estimator):
        estimate = estimator.estimate(rng, (), position)[0]
        return {
            "position": np.array(position),
            "potential": np.array(estimate.potential),
            "gradient": np.array(estimate.gradient),
        }

    def step(self, rng, state, h, estimator):
        x, u, g = state["position"], state["potential"], state["gradient"]
        y = x - h * g + np.sqrt(2 * h) * rng.standard_normal(x.shape)
        estimate = estimator.estimate(rng, (), y)[0]
        new = {"position": y, "potential": np.array(estimate.potential), "gradient": np.array(estimate.gradient)}
        forward = np.sum((y - x + h * g) ** 2)
        backward = np.sum((x - y + h * new["gradient"]) ** 2)
        if np.log(rng.random()) >= u - new["potential"] + (forward - backward) / (4 * h):
            new.update(position=x, potential=u)
        return new


# --- delayed rejection --------------------------------------------------------------------------------------------


def _delayed_rejection(rng, x, h, estimator):
    """A bold move, and a timid one if it fails."""
    u = _energy(estimator, rng, x)
    scale = np.sqrt(2 * h)
    y = x + scale * rng.standard_normal(x.shape)
    if np.log(rng.random()) < u - _energy(estimator, rng, y):
        return y
    y = y + 0.25 * scale * rng.standard_normal(x.shape)
    if np.log(rng.random()) < u - _energy(estimator, rng, y):
        return y
    return x


delayed_rejection = simple_sampler(_delayed_rejection, claims=EXACT, backend="host")


# --- differential evolution ---------------------------------------------------------------------------------------


class DEMC:
    """ter Braak (2006): differences of two chains are the proposals of a third."""

    backend = "host"
    claims = EXACT
    chains = 4

    def init(self, rng, position, estimator):
        return {"population": np.array(position) + rng.standard_normal((self.chains, *np.shape(position)))}

    def position(self, state):
        return state["population"][0]

    def step(self, rng, state, h, estimator):
        population = state["population"].copy()
        gamma = 2.38 / np.sqrt(2 * max(population[0].size, 1))
        for i in range(self.chains):
            r1 = rng.integers(self.chains)
            r2 = (r1 + 1 + rng.integers(self.chains - 1)) % self.chains
            jitter = 1e-3 * rng.standard_normal(population[i].shape)
            y = population[i] + gamma * (population[r1] - population[r2]) + jitter
            if np.log(rng.random()) < _energy(estimator, rng, population[i]) - _energy(estimator, rng, y):
                population[i] = y
        return {"population": population}
