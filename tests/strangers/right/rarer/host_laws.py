"""Host samplers that draw from the less usual laws of a NumPy Generator, of child generators, of SciPy and of torch,
and whole kernels in Python. Noise has mean 0, variance 1 and a law symmetric about 0: exp(-U) + O(h); the others are
exact."""

import random
from typing import Any

import numpy as np
import scipy.stats
import torch

from sgmcmc_verification.samplers.estimators.host import estimator_key
from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source

EXACT = Claims(Source("metropolis1953equation", "the algorithm"), ExactLaw())


def evaluate(rng, estimator, x):
    """(U, grad U) at x."""
    estimate = estimator.estimate(estimator_key(rng, estimator), (), x)[0]
    return float(estimate.potential), np.asarray(estimate.gradient)


def langevin(noise):
    """SGLD with noise(rng, shape)."""

    def step(rng, x, h, estimator):
        x = np.asarray(x)
        g = np.asarray(estimator.estimate(estimator_key(rng, estimator), (), x)[0].gradient)
        return (x - h * g + np.sqrt(2 * h) * noise(rng, x.shape)).astype(x.dtype)

    return simple_sampler(step, backend="host")


logistic = langevin(lambda rng, s: rng.logistic(size=s) * np.sqrt(3) / np.pi)
triangular = langevin(lambda rng, s: rng.triangular(-1.0, 0.0, 1.0, s) * np.sqrt(6))
gumbels = langevin(lambda rng, s: (rng.gumbel(size=s) - rng.gumbel(size=s)) * np.sqrt(3) / np.pi)
poissons = langevin(lambda rng, s: (rng.poisson(2.0, s) - rng.poisson(2.0, s)) / 2)
student = langevin(lambda rng, s: rng.standard_t(10, s) * np.sqrt(0.8))
beta = langevin(lambda rng, s: (rng.beta(2.0, 2.0, s) - 0.5) * np.sqrt(20))
binomial = langevin(lambda rng, s: (rng.binomial(16, 0.5, s) - 8) / 2)
# sin of a von Mises angle at kappa = 0 has variance 1/2.
angles = langevin(lambda rng, s: np.sin(rng.vonmises(0.0, 0.0, s)) * np.sqrt(2))
# |z| = power(2), E z^2 = 1/2, with a sign of integers with end point.
powers = langevin(lambda rng, s: rng.power(2.0, s) * (2 * rng.integers(0, 1, s, endpoint=True) - 1) * np.sqrt(2))
weibull = langevin(lambda rng, s: rng.weibull(2.0, s) * np.sign(rng.random(s) - 0.5))
rayleigh = langevin(lambda rng, s: rng.rayleigh(1.0, s) * np.cos(2 * np.pi * rng.random(s)))
# -1, 0, 1 with probabilities 1/4, 1/2, 1/4: variance 1/2.
multinomial = langevin(
    lambda rng, s: (rng.multinomial(1, [0.25, 0.5, 0.25], s) @ np.array([-1.0, 0.0, 1.0])) * np.sqrt(2)
)
# 6 of 12 balls, 6 of them red: variance 6 (1/2)^2 6 / 11.
hypergeometric = langevin(lambda rng, s: (rng.hypergeometric(6, 6, 6, s) - 3) / np.sqrt(9 / 11))
geometric = langevin(lambda rng, s: (rng.geometric(0.5, s) - rng.geometric(0.5, s)) / 2.0)
dirichlet = langevin(lambda rng, s: np.diff(rng.dirichlet([1.0, 1.0, 1.0], s)[..., :2])[..., 0] * np.sqrt(6))
chi = langevin(lambda rng, s: np.sqrt(rng.chisquare(1, s)) * rng.choice([-1.0, 1.0], s))


def _shuffled(rng, shape):
    """Each entry is the first of a list that is shuffled in place."""
    nodes = np.array([-1.5, -0.5, 0.5, 1.5])
    out = np.empty(shape)
    for i in np.ndindex(*shape):
        rng.shuffle(nodes)
        out[i] = nodes[0]
    return out / np.sqrt(1.25)


shuffled = langevin(_shuffled)


def _buffer(rng, shape):
    """Into a buffer."""
    out = np.empty(shape)
    rng.standard_normal(out=out)
    return out


into_buffer = langevin(_buffer)


def _rejected(rng, shape):
    """N(0, 1) given |z| < 2 by rejection, scaled."""
    z = rng.standard_normal(shape)
    while np.any(np.abs(z) >= 2):
        z = np.where(np.abs(z) < 2, z, rng.standard_normal(shape))
    return z / scipy.stats.truncnorm.std(-2, 2)


rejected = langevin(_rejected)
scipy_normal = langevin(lambda rng, s: scipy.stats.norm.rvs(size=s, random_state=rng))
scipy_laplace = langevin(lambda rng, s: scipy.stats.laplace.rvs(scale=0.5**0.5, size=s, random_state=rng))
child_by_seed = langevin(lambda rng, s: np.random.default_rng(rng.integers(2**31)).standard_normal(s))
child_by_spawn = langevin(lambda rng, s: rng.spawn(1)[0].standard_normal(s))


def _python(rng, shape):
    """Python's own generator, seeded by the given one."""
    mine = random.Random(int(rng.integers(2**31)))
    return np.array([mine.gauss(0.0, 1.0) for _ in range(int(np.prod(shape)))]).reshape(shape)


python_gauss = langevin(_python)


def _torch_generator(rng):
    return torch.Generator().manual_seed(int(rng.integers(2**31)))


def _torch_normal(rng, shape):
    return torch.randn(shape, generator=_torch_generator(rng), dtype=torch.float64).numpy()


torch_normal = langevin(_torch_normal)


def _torch_signs(rng, shape):
    p = torch.full(shape, 0.5, dtype=torch.float64)
    return (2 * torch.bernoulli(p, generator=_torch_generator(rng)) - 1).numpy()


torch_signs = langevin(_torch_signs)


def _torch_uniform(rng, shape):
    return (torch.rand(shape, generator=_torch_generator(rng), dtype=torch.float64).numpy() - 0.5) * np.sqrt(12)


torch_uniform = langevin(_torch_uniform)


def _torch_in_place(rng, shape):
    return torch.empty(shape, dtype=torch.float64).normal_(0.0, 1.0, generator=_torch_generator(rng)).numpy()


torch_in_place = langevin(_torch_in_place)


class HostStretch:
    """Goodman and Weare's stretch move, one walker after the other."""

    backend = "host"
    needs = ("potential",)

    def init(self, rng, position, estimator):
        position = np.asarray(position)
        return np.stack([position + 0.5 * rng.standard_normal(position.shape) for _ in range(2 * position.size + 4)])

    def step(self, rng, state, h, estimator):
        state = np.array(state)
        for i in range(len(state)):
            j = rng.choice([k for k in range(len(state)) if k != i])
            z = (1 + rng.random()) ** 2 / 2
            y = (state[j] + z * (state[i] - state[j])).astype(state.dtype)
            change = evaluate(rng, estimator, state[i])[0] - evaluate(rng, estimator, y)[0]
            if np.log(rng.random()) < (state[i].size - 1) * np.log(z) + change:
                state[i] = y
        return state

    def position(self, state):
        return state[0]


host_stretch = HostStretch()


def _elliptical(rng, x, h, estimator):
    # Murray, Adams and MacKay with the prior N(0, 2 I) split off: U = |x|^2 / 4 + rest.
    x = np.asarray(x)
    rest = lambda y: evaluate(rng, estimator, y.astype(x.dtype))[0] - float(np.sum(y**2)) / 4
    nu = np.sqrt(2) * rng.standard_normal(x.shape)
    level = rest(x) + rng.exponential()
    angle = rng.uniform(0.0, 2 * np.pi)
    low, high = angle - 2 * np.pi, angle
    while True:
        y = x * np.cos(angle) + nu * np.sin(angle)
        if rest(y) <= level:
            return y.astype(x.dtype)
        low, high = (angle, high) if angle < 0 else (low, angle)
        angle = rng.uniform(low, high)


host_elliptical = simple_sampler(_elliptical, backend="host", needs=("potential",), claims=EXACT)


class HostCached:
    """MALA with everything cached in a dict, beside counters."""

    backend = "host"
    needs = ("gradient", "potential")
    claims = EXACT

    def init(self, rng, position, estimator):
        U, g = evaluate(rng, estimator, position)
        return {"accepted": 0, "grad": g, "steps": 0, "u": U, "x": np.asarray(position)}

    def step(self, rng, state, h, estimator):
        x, g, U = state["x"], state["grad"], state["u"]
        y = (x - h * g + np.sqrt(2 * h) * rng.standard_normal(x.shape)).astype(x.dtype)
        V, f = evaluate(rng, estimator, y)
        log_q = (np.sum((y - x + h * g) ** 2) - np.sum((x - y + h * f) ** 2)) / (4 * h)
        ok = np.log(rng.random()) < U - V + log_q
        new = {"grad": f, "u": V, "x": y} if ok else {"grad": g, "u": U, "x": x}
        return {**new, "accepted": state["accepted"] + int(ok), "steps": state["steps"] + 1}

    def position(self, state):
        return state["x"]

    def unpack(self, state):
        return state["x"]

    def pack(self, rng, z, estimator):
        return self.init(rng, z, estimator)


host_cached = HostCached()


def _until_accepted(rng, x, h, estimator):
    # Up to three walks in one step, ended by a coin: a mixture of powers of an exact kernel.
    x = np.asarray(x)
    while True:
        y = (x + np.sqrt(2 * h) * rng.standard_normal(x.shape)).astype(x.dtype)
        if np.log(rng.random()) < evaluate(rng, estimator, x)[0] - evaluate(rng, estimator, y)[0]:
            x = y
        if rng.random() < 0.5:
            return x


geometric_substeps = simple_sampler(_until_accepted, backend="host", needs=("potential",), claims=EXACT)


class HostBAOAB:
    """BAOAB with the velocity in a list, noise by multivariate_normal."""

    backend = "host"

    def init(self, rng, position, estimator):
        position = np.asarray(position)
        return [position, rng.standard_normal(position.shape).astype(position.dtype)]

    def step(self, rng, state, h, estimator):
        x, v = state
        force = lambda x: -np.asarray(estimator.estimate(estimator_key(rng, estimator), (), x)[0].gradient)
        v = v + h / 2 * force(x)
        x = x + h / 2 * v
        c = np.exp(-h)
        noise = rng.multivariate_normal(np.zeros(x.size), np.eye(x.size)).reshape(x.shape)
        v = c * v + np.sqrt(1 - c**2) * noise
        x = (x + h / 2 * v).astype(x.dtype)
        return [x, (v + h / 2 * force(x)).astype(x.dtype)]

    def position(self, state):
        return state[0]


host_baoab: Any = HostBAOAB()
