"""NumPy samplers of step-size bias, as written for small scripts."""

import jax
import numpy as np

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw, simple_sampler


def slope(estimator, rng, x):
    return estimator.estimate(rng, (), x)[0].gradient


# ---- 1. stochastic Heun


def _heun(rng, x, h, estimator):
    """Predictor and corrector, each with its own noise."""
    g0 = slope(estimator, rng, x)
    guess = x - h * g0 + np.sqrt(2 * h) * rng.standard_normal(x.shape)
    g1 = slope(estimator, rng, guess)
    return x - h / 2 * (g0 + g1) + np.sqrt(2 * h) * rng.standard_normal(x.shape)


heun = simple_sampler(_heun, backend="host", claims=Claims(Source("", "Heun"), StationaryLaw(order=2)))


# ---- 2. SGLD that saves memory in single precision


class FrugalLangevin:
    backend = "host"

    def init(self, rng, position, estimator):
        return {"position": np.array(position)}

    def step(self, rng, state, h, estimator):
        x = state["position"]
        g = slope(estimator, rng, x)
        if x.dtype == np.float32:
            # draw in place: no copy in double precision
            noise = rng.standard_normal(x.shape, dtype=np.float32)
            noise *= np.float32(np.sqrt(h))
        else:
            noise = np.sqrt(2 * h) * rng.standard_normal(x.shape)
        return {"position": (x - h * g + noise).astype(x.dtype)}


# ---- 3. slightly coloured noise


class ColouredNoise:
    """The noise keeps a tenth of the last one, at unit variance: smoother paths."""

    backend = "host"

    def __init__(self):
        self.last = None

    def init(self, rng, position, estimator):
        self.last = None
        return np.array(position)

    def step(self, rng, x, h, estimator):
        n = rng.standard_normal(x.shape)
        if self.last is None or self.last.shape != n.shape:
            self.last = n
        noise = (n + 0.1 * self.last) / np.sqrt(1.01)
        self.last = n
        return x - h * slope(estimator, rng, x) + np.sqrt(2 * h) * noise


# ---- 4. steps in proportion to the size of a layer


def _by_layer(rng, x, h, estimator):
    """Layers move at their own pace: the largest with h, a smaller one with its share of h."""
    layers, form = jax.tree.flatten(x)
    slopes = jax.tree.leaves(slope(estimator, rng, x))
    largest = max(layer.size for layer in layers)
    paces = [h * layer.size / largest for layer in layers]
    spreads = np.sqrt(2 * np.array(sorted(paces, reverse=True)))  # from the largest down
    moved = [
        np.asarray(layer - pace * g + spread * rng.standard_normal(layer.shape))
        for layer, g, pace, spread in zip(layers, slopes, paces, spreads)
    ]
    return form.unflatten(moved)


by_layer = simple_sampler(_by_layer, backend="host")


# ---- 5. kinetic Langevin on weights


class WeightLangevin:
    """Underdamped; `friction` per unit of time. State: (position, velocity)."""

    backend = "host"

    def __init__(self, friction=1.5):
        self.friction = friction

    def init(self, rng, position, estimator):
        return np.array(position), rng.standard_normal(np.shape(position))

    def position(self, state):
        return state[0]

    def step(self, rng, state, h, estimator):
        x, v = state
        keep = np.exp(-self.friction * h)
        bath = rng.standard_normal(x.shape[-1:])  # one number a feature
        v = keep * (v - h * slope(estimator, rng, x)) + np.sqrt(1 - keep * keep) * bath
        return x + h * v, v


# ---- 6. a fence, far out


def _fenced(rng, x, h, estimator):
    """SGLD; beyond |x| = 4 sqrt(d), where nothing should be, it is pulled back."""
    drift = -slope(estimator, rng, x)
    radius, fence = np.sqrt(np.sum(x * x)), 4 * np.sqrt(x.size)
    if radius > fence:
        drift = drift - 2 * (1 - fence / radius) * x
    return x + h * drift + np.sqrt(2 * h) * rng.standard_normal(x.shape)


fenced = simple_sampler(_fenced, backend="host")
