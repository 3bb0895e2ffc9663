"""Samplers in NumPy as strangers write them: loops, writes in place, branches of Python, dictionaries."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sgmcmc_verification.samplers.estimators.host import estimator_key
from sgmcmc_verification.samplers.interface.claims import Claims, ExactLaw, Source
from sgmcmc_verification.samplers.simple import simple_sampler

EXACT = Claims(Source("", "none"), ExactLaw())


def gradient(rng, estimator, x):
    return np.asarray(estimator.estimate(estimator_key(rng, estimator), (), x)[0].gradient)


def potential(rng, estimator, x):
    return float(estimator.estimate(estimator_key(rng, estimator), (), x)[0].potential)


def host(step, **more):
    return simple_sampler(step, **{"backend": "host", "init": lambda rng, x, estimator: np.array(x), **more})


# Right ----------------------------------------------------------------------------------------------------------------


def loop(rng, x, h, estimator):
    """One coordinate after the other, into an array of its own."""
    g, y = gradient(rng, estimator, x), np.zeros(x.shape)
    for i in range(len(x)):
        y[i] = x[i] - h * g[i] + math.sqrt(2 * float(h)) * rng.normal()
    return y


def in_place(rng, x, h, estimator):
    """Writes to the state itself, and takes its noise through `out`."""
    noise = np.empty_like(x)
    rng.standard_normal(out=noise)
    x -= h * gradient(rng, estimator, x)
    x += np.sqrt(2 * h) * noise
    return x


METRIC = np.array([[2.0, 0.5], [0.5, 1.0]])


def matrix(rng, x, h, estimator):
    """A constant metric, as two products of matrices."""
    root = np.linalg.cholesky(METRIC)
    return x - h * METRIC @ gradient(rng, estimator, x) + np.sqrt(2 * h) * root @ rng.normal(size=x.shape)


def views(rng, x, h, estimator):
    """Half steps on views of one array."""
    y = np.array(x, copy=True)
    g = gradient(rng, estimator, y)
    first, rest = y[:1], y[1:]
    noise = rng.standard_normal(y.shape)
    first -= h * g[:1]
    rest -= h * g[1:]
    first[...] = first + np.sqrt(2 * h) * noise[:1]
    np.add(rest, np.sqrt(2 * h) * noise[1:], out=rest)
    return y


def walk(rng, x, h, estimator):
    """Metropolis with an `if`."""
    y = x + np.sqrt(2 * h) * rng.normal(size=x.shape)
    if np.log(rng.random()) < potential(rng, estimator, x) - potential(rng, estimator, y):
        return y
    return x


def cauchy(rng, x, h, estimator):
    """The same with a proposal that has no mean."""
    y = x + h * rng.standard_cauchy(x.shape)
    return y if rng.exponential() > potential(rng, estimator, y) - potential(rng, estimator, x) else x


def scaled(length):
    """Metropolis with a normal proposal whose scale is drawn, from some law, for each coordinate."""

    def step(rng, x, h, estimator):
        y = x + h * length(rng, x.shape) * rng.standard_normal(x.shape)
        return y if rng.exponential() > potential(rng, estimator, y) - potential(rng, estimator, x) else x

    return step


def one_way(rng, x, h, estimator):
    """The scale is the proposal: it goes up alone."""
    y = x + h * rng.rayleigh(size=x.shape)
    return y if rng.exponential() > potential(rng, estimator, y) - potential(rng, estimator, x) else x


LENGTHS = {
    "lognormal": lambda rng, shape: rng.lognormal(0.1, 0.5, shape),
    "rayleigh": lambda rng, shape: rng.rayleigh(0.7, shape),
    "weibull": lambda rng, shape: rng.weibull(2.0, shape),
    "pareto": lambda rng, shape: rng.pareto(6.0, shape),
    "power": lambda rng, shape: rng.power(3.0, shape),
}


def differences(replace):
    """SGLD whose noise is the difference of two of three numbers: of variance 2 if they are not the same."""

    def step(rng, x, h, estimator):
        noise = np.zeros(x.shape)
        for i in range(len(x)):
            pair = rng.choice(3, 2, replace=replace)
            noise[i] = pair[0] - 1.0 * pair[1]
        return x - h * gradient(rng, estimator, x) + np.sqrt(h) * noise

    return step


def start(rng, x, estimator):
    return {"x": np.array(x), "momenta": {"p": rng.normal(size=x.shape)}, "steps": 0}


def dictionary(rng, state, h, estimator):
    """BAOAB with the momentum in a dictionary of a dictionary, and a count of steps."""
    x, p = state["x"], state["momenta"]["p"]
    p -= h / 2 * gradient(rng, estimator, x)
    x += h / 2 * p
    a = math.exp(-float(h))
    p[:] = a * p + math.sqrt(1 - a**2) * rng.normal(size=p.shape)
    x += h / 2 * p
    p -= h / 2 * gradient(rng, estimator, x)
    state["steps"] += 1
    return state


BAOAB = host(
    dictionary,
    init=start,
    position=lambda s: s["x"],
    unpack=lambda s: (s["x"], s["momenta"]["p"]),
    pack=lambda rng, z, estimator: {"x": np.array(z[0]), "momenta": {"p": np.array(z[1])}, "steps": 0},
)
RIGHT = {
    "loop": host(loop),
    "in place": host(in_place),
    "matrix": host(matrix),
    "views": host(views),
    "walk": host(walk, claims=EXACT, needs=("potential",)),
    "dictionary": BAOAB,
    "cauchy": host(cauchy, claims=EXACT, needs=("potential",)),
    "a choice without replacement": host(differences(replace=False)),
}


# Wrong ----------------------------------------------------------------------------------------------------------------


def aliased(rng, x, h, estimator):
    """`old` is the array that the proposal is written to: a rejection keeps the proposal."""
    old, u = x, potential(rng, estimator, x)
    x += np.sqrt(2 * h) * rng.normal(size=x.shape)
    return x if np.log(rng.random()) < u - potential(rng, estimator, x) else old


def half(rng, x, h, estimator):
    return x - h * gradient(rng, estimator, x) + np.sqrt(h) * rng.normal(size=x.shape)


def one_for_all(rng, x, h, estimator):
    y = np.array(x)
    noise = rng.standard_normal()
    for i in range(len(y)):
        y[i] += np.sqrt(2 * h) * noise - h * gradient(rng, estimator, x)[i]
    return y


def overwritten(rng, x, h, estimator):
    """The second half of the gradient is taken where the first half has moved to, and the first twice."""
    for i in range(len(x)):
        x -= h * gradient(rng, estimator, x) if i == 0 else 0 * x
        x[i] -= h * gradient(rng, estimator, x)[i]
    x += np.sqrt(2 * h) * rng.normal(size=x.shape)
    return x


def clipped(rng, x, h, estimator):
    """Right only where the gradient is small."""
    g = np.clip(gradient(rng, estimator, x), -3, 3)
    return x - h * g + np.sqrt(2 * h) * rng.normal(size=x.shape)


@dataclass(eq=False)
class Momentum:
    """A momentum that is kept in the object, out of sight."""

    backend = "host"
    momentum: Any = field(default=None, repr=False)

    def init(self, rng, x, estimator):
        return np.array(x)

    def step(self, rng, x, h, estimator):
        p = np.zeros_like(x) if self.momentum is None else self.momentum
        self.momentum = (1 - h) * p - h * gradient(rng, estimator, x) + np.sqrt(2 * h) * rng.normal(size=x.shape)
        return x + h * self.momentum


CALLS = {"count": 0}


def counted(rng, x, h, estimator):
    """Colder from the tenth call on, which a global counts."""
    CALLS["count"] += 1
    T = 1.0 if CALLS["count"] < 10 else 0.5
    return x - h * gradient(rng, estimator, x) + np.sqrt(2 * h * T) * rng.normal(size=x.shape)


def own_generator(rng, x, h, estimator):
    noise = np.random.default_rng().normal(size=x.shape)
    return x - h * gradient(rng, estimator, x) + np.sqrt(2 * h) * noise


def by_sign(rng, x, h, estimator):
    """Another temperature on one side of zero, by a branch of Python."""
    T = 1.0 if x[0] > 0 else 0.5
    return x - h * gradient(rng, estimator, x) + np.sqrt(2 * h * T) * rng.normal(size=x.shape)


WRONG = {
    "a choice with replacement": host(differences(replace=True)),
    "aliased": host(aliased, claims=EXACT, needs=("potential",)),
    "half": host(half),
    "one for all": host(one_for_all),
    "overwritten": host(overwritten),
    "by sign": host(by_sign),
    "clipped": host(clipped),
    "momentum": Momentum(),
    "counted": host(counted),
    "own generator": host(own_generator),
    "one way": host(one_way, claims=EXACT, needs=("potential",)),
}
REFUTED = {"a choice with replacement", "half", "one for all", "overwritten"}
