"""Weights of documents given the topics: geodesic Monte Carlo on the simplex, with work in K dimensions alone.

Given the products p_d = beta v_d and the Gram matrix G = beta beta^T the law of the weights of a document is

    pi(theta) propto exp(-U),   U(theta) = -sum_k (alpha_k - 1) log theta_k - kappa (theta . p) / sqrt(theta . G theta)
    grad U = -(alpha - 1) / theta - kappa (p / |b| - (theta . p) G theta / |b|^3),   |b|^2 = theta . G theta

with respect to Lebesgue measure. Two forms of geodesic Monte Carlo leave it invariant at any step size: on the flat
simplex, along straight lines that are reflected at its faces, and on the sphere, theta = x^2, with potential
U(x^2) - sum_k log |x_k| along great circles.

Source: liu2016stochastic, section 4 (its released program uses the flat simplex); byrne2013geodesic (the sampler and
the map); neal2011mcmc, section 5.5.1 (reflections).
"""

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numba import config, njit

FLAT, SPHERE = "flat", "sphere"
FORMS = (FLAT, SPHERE)
MOST_REFLECTIONS = 200
"""A path that needs more is rejected, and so is its reverse, which keeps the law."""


class WeightSettings(NamedTuple):
    """Settings of the sampler of weights.

    Attributes:
        burn_in: transitions that are dropped first.
        kept: N, transitions that are kept.
        leapfrogs: steps of the integrator a transition.
        step_size: epsilon of a step; None for `default_step`.
        form: `flat` or `sphere`.
        floor: least weight at the start, before the division by the sum; the released program has 1e-6, from where
            a prior with alpha > 1 repels with a force of 1e6 (alpha - 1).
    """

    burn_in: int = 40
    kept: int = 20
    leapfrogs: int = 10
    step_size: float | None = None
    form: str = SPHERE
    floor: float = 0.01

    def check(self) -> "WeightSettings":
        """Itself. Raises ValueError if a setting is out of its range."""
        for name, least in (("burn_in", 0), ("kept", 1), ("leapfrogs", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"{name}: must be at least {least}, got {getattr(self, name)!r}")
        if self.step_size is not None and not 0 < self.step_size < np.inf:
            raise ValueError(f"step_size: must be positive and finite, or None, got {self.step_size!r}")
        if not 0 < self.floor < 1:
            raise ValueError(f"floor: must lie in (0, 1), got {self.floor!r}")
        if self.form not in FORMS:
            raise ValueError(f"form: must be one of {', '.join(FORMS)}, got {self.form!r}")
        return self


USUAL = WeightSettings()


def default_step(grams: np.ndarray, alpha: np.ndarray, concentration: float, form: str = SPHERE) -> np.ndarray:
    """A step size (C,) for each set of topics, by the curvature of U.

    The direction of b turns with the weights by up to r = lambda_max(H G H) / |mean topic|^2, H = I - 1 1^T / K: 1 for
    topics close to each other, K for orthogonal ones. On the sphere theta = x^2 has the slope 2 |x|, about 2 / sqrt K.
    On the flat simplex small weights count: a force f sqrt(r) kappa of the data (f about 1/4) holds one at
    (alpha - 1) / (f sqrt(r) kappa), where the curvature of the prior is f^2 r kappa^2 / (alpha - 1). On the sphere the
    curvature there is 4 f sqrt(r) kappa, so that steps are sqrt(kappa) times as long.
    """
    K, kappa = len(alpha), concentration
    centred = grams - grams.mean(axis=1, keepdims=True)
    centred = centred - centred.mean(axis=2, keepdims=True)
    mean = np.fmax(grams.mean(axis=(1, 2)), 1 / (4 * K))
    r = np.linalg.eigvalsh(centred)[:, -1] / mean
    least, most = max(1.0, float(np.min(alpha)) - 1), max(1.0, float(np.max(alpha)))
    if form == SPHERE:
        return 0.5 / np.sqrt(kappa * (np.sqrt(1 + r) + 6 * r / K) + 4 * K * most)
    return 0.5 / np.sqrt(kappa * (1 + r) + kappa**2 * (1 + r) / (16 * least) + K * K * most)


def initial_weights(products: np.ndarray, grams: np.ndarray, which: np.ndarray, floor: float) -> np.ndarray:
    """Least squares: G^-1 p, entries below `floor` set to it, divided by the sum; as the released program starts."""
    inverse = np.linalg.pinv(grams, hermitian=True)
    solved = products @ inverse[0] if len(grams) == 1 else np.einsum("nk,nkl->nl", products, inverse[which])
    solved = np.fmax(solved / np.fmax(np.abs(solved).sum(axis=1, keepdims=True), np.finfo(float).tiny), floor)
    return solved / solved.sum(axis=1, keepdims=True)


def sample_weights(
    generator: np.random.Generator,
    products: np.ndarray,
    grams: np.ndarray,
    alpha: np.ndarray,
    concentration: float,
    settings: WeightSettings = USUAL,
    which: np.ndarray | None = None,
    start: np.ndarray | None = None,
) -> tuple[np.ndarray, float]:
    """Weights of documents given topics.

    Args:
        generator: all random numbers are drawn here, in an order that does not depend on the number of threads.
        products: p (n, K), the products of each document with its topics.
        grams: (C, K, K), the Gram matrix of each set of topics.
        alpha: (K,).
        concentration: kappa.
        settings: how.
        which: (n,), the set of topics of each document; None where there is one set.
        start: (n, K) positive weights; None for `initial_weights`.

    Returns:
        (theta (n, kept, K), share of accepted transitions).

    Error: none but the start, at any step size: the transitions leave the law of the weights invariant.
    """
    settings.check()
    n, K = products.shape
    which = np.zeros(n, np.int64) if which is None else np.asarray(which, np.int64)
    theta = initial_weights(products, grams, which, settings.floor) if start is None else np.array(start, np.float64)
    if settings.step_size is None:
        steps = default_step(grams, alpha, concentration, settings.form)
    else:
        steps = np.full(len(grams), float(settings.step_size))
    sweeps = settings.burn_in + settings.kept
    normals = generator.standard_normal((n, sweeps, K))
    levels = generator.standard_exponential((n, sweeps))
    kept = np.empty((n, settings.kept, K))
    accepted = np.zeros(n, np.int64)
    flat = settings.form == FLAT
    workers = min(config.NUMBA_NUM_THREADS, n)  # pyright: ignore[reportAttributeAccessIssue]
    edges = np.linspace(0, n, workers + 1).astype(int)
    prior = _Prior(np.asarray(alpha, np.float64), float(concentration), flat)
    problem = _Problem(np.ascontiguousarray(products), np.ascontiguousarray(grams), which, steps)
    length = _Length(settings.leapfrogs, settings.burn_in)
    chains = _Chains(theta if flat else np.sqrt(theta), normals, levels, kept, accepted)
    with ThreadPoolExecutor(workers) as pool:  # the kernel holds no lock
        part = lambda i: _documents(int(edges[i]), int(edges[i + 1]), problem, prior, length, chains)
        list(pool.map(part, range(workers)))
    return kept, float(accepted.sum() / (n * sweeps))


class _Prior(NamedTuple):
    """The Dirichlet parameters alpha (K,), the concentration kappa, and whether x is theta itself or its root."""

    alpha: np.ndarray
    kappa: float
    flat: bool


class _Problem(NamedTuple):
    """Products (n, K), Gram matrices (C, K, K), the set of each document (n,), step sizes (C,)."""

    products: np.ndarray
    grams: np.ndarray
    which: np.ndarray
    steps: np.ndarray


class _Length(NamedTuple):
    """Leapfrog steps per transition, and transitions that are dropped first."""

    leapfrogs: int
    burn_in: int


class _Chains(NamedTuple):
    """Points (n, K), which are moved; the noise; what is kept (n, kept, K), and how many were accepted (n,)."""

    points: np.ndarray
    normals: np.ndarray
    levels: np.ndarray
    kept: np.ndarray
    accepted: np.ndarray


@njit(cache=True, error_model="numpy")
def _force(x, p, gram, prior, work):
    """grad U at x into `work[1]`; G theta into `work[3]`; returns (theta . p) / |b|."""
    gradient, theta, along = work[1], work[2], work[3]
    alpha, kappa, flat = prior
    K = len(x)
    for i in range(K):
        theta[i] = x[i] if flat else x[i] * x[i]
        along[i] = 0.0
    for j in range(K):
        w = theta[j]
        for i in range(K):
            along[i] += gram[j, i] * w
    product, square = 0.0, 0.0
    for i in range(K):
        product += theta[i] * p[i]
        square += theta[i] * along[i]
    inverse = 1.0 / np.sqrt(square)
    cosine = product * inverse
    pull = cosine * inverse * inverse
    for i in range(K):
        data = kappa * (p[i] * inverse - pull * along[i])
        if flat:
            gradient[i] = -(alpha[i] - 1.0) / x[i] - data
        else:
            gradient[i] = -(2.0 * alpha[i] - 1.0) / x[i] - 2.0 * x[i] * data
    return cosine


@njit(cache=True, error_model="numpy")
def _prior(x, alpha, flat):
    """The part of U that the Dirichlet law (and, on the sphere, the map) gives."""
    value = 0.0
    for i in range(len(x)):
        power = alpha[i] - 1.0 if flat else 2.0 * alpha[i] - 1.0
        if power != 0.0:
            value -= power * np.log(abs(x[i]))
    return value


@njit(cache=True, error_model="numpy")
def _tangent(x, v, flat):
    """v projected onto the tangent space at x, in place."""
    K = len(x)
    shift = 0.0
    if flat:
        for i in range(K):
            shift += v[i]
        shift /= K
        for i in range(K):
            v[i] -= shift
    else:
        for i in range(K):
            shift += v[i] * x[i]
        for i in range(K):
            v[i] -= shift * x[i]


@njit(cache=True, error_model="numpy")
def reflected(v: np.ndarray, j: int) -> None:
    """Reflect a tangent velocity of the simplex in the face x_j = 0, in place."""
    K = len(v)
    old = v[j]
    for i in range(K):
        v[i] += 2.0 * old / (K - 1)
    v[j] = -old


@njit(cache=True, error_model="numpy")
def _rotate(x, v, time):
    """The geodesic flow of the sphere in place."""
    K = len(x)
    speed = 0.0
    for i in range(K):
        speed += v[i] * v[i]
    speed = np.sqrt(speed)
    c, s = np.cos(speed * time), np.sin(speed * time)
    length = 0.0
    for i in range(K):
        a, b = x[i], v[i]
        x[i] = a * c + (b / speed * s if speed > 0.0 else 0.0)
        v[i] = b * c - a * speed * s
        length += x[i] * x[i]
    length = 1.0 / np.sqrt(length)
    for i in range(K):
        x[i] *= length


@njit(cache=True, error_model="numpy")
def _glide(x, v, time):
    """The straight line in the simplex, reflected at its faces, in place; False if it was not followed to its end."""
    K = len(x)
    for _ in range(MOST_REFLECTIONS):
        first, face = time, -1
        for i in range(K):
            if x[i] + first * v[i] < 0.0:
                hit = -x[i] / v[i]
                if hit < first:
                    first, face = hit, i
        for i in range(K):
            x[i] = max(x[i] + first * v[i], 0.0)
        if face < 0:
            total = 0.0
            for i in range(K):
                total += x[i]
            for i in range(K):
                x[i] /= total
            return True
        x[face] = 0.0
        reflected(v, face)
        time -= first
    return False


@njit(cache=True, error_model="numpy")
def _transition(x, p, gram, prior, step, leapfrogs, level, work):
    """One transition of geodesic Monte Carlo from x, in place; `work[4]` is standard normal. True if accepted."""
    alpha, kappa, flat = prior
    K = len(x)
    old, gradient, v = work[0], work[1], work[4]
    for i in range(K):
        old[i] = x[i]
    _tangent(x, v, flat)
    before = _prior(x, alpha, flat) - kappa * _force(x, p, gram, prior, work)
    for i in range(K):
        before += 0.5 * v[i] * v[i]
    cosine, followed = 0.0, True
    for _ in range(leapfrogs):
        _tangent(x, gradient, flat)
        for i in range(K):
            v[i] -= 0.5 * step * gradient[i]
        if flat:
            followed = _glide(x, v, step) and followed
        else:
            _rotate(x, v, step)
        _tangent(x, v, flat)
        cosine = _force(x, p, gram, prior, work)
        _tangent(x, gradient, flat)
        for i in range(K):
            v[i] -= 0.5 * step * gradient[i]
    after = _prior(x, alpha, flat) - kappa * cosine
    for i in range(K):
        after += 0.5 * v[i] * v[i]
    if followed and after - before <= level:  # False for NaN
        return True
    for i in range(K):
        x[i] = old[i]
    return False


@njit(cache=True, error_model="numpy", nogil=True)
def _documents(first, last, problem, prior, length, chains):
    """Transitions for each document; the points of the chains are changed in place."""
    products, grams, which, steps = problem
    points, normals, levels, kept, accepted = chains
    flat, burn_in = prior.flat, length.burn_in
    _, sweeps, K = normals.shape
    for d in range(first, last):
        work = np.empty((5, K))
        x, v = points[d].copy(), work[4]
        for t in range(sweeps):
            for i in range(K):
                v[i] = normals[d, t, i]
            gram, step = grams[which[d]], steps[which[d]]
            if _transition(x, products[d], gram, prior, step, length.leapfrogs, levels[d, t], work):
                accepted[d] += 1
            if t >= burn_in:
                for i in range(K):
                    kept[d, t - burn_in, i] = x[i] if flat else x[i] * x[i]
        points[d] = x
