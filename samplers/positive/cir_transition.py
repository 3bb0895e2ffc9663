"""The exact transition of the Cox-Ingersoll-Ross process, in logs and for any shape: the kernel of SCIR.

`draw_poisson(source, rate)` and its like stand in the source of the kernel. In plain Python the source is anything with
the methods of a `numpy.random.Generator`, such as the generators of the checks, which return the nodes of a
quadrature. Compiled by numba it is the state of a xoshiro256++ generator, four words, and the draw is inlined. So the
kernel has one text, and what the checks walk through is what runs. All compiled functions are in this file, because
numba's cache looks at the file of the outermost one only when it asks whether the code has changed.

The acceptance tests are written without cancellation, so that they hold at any rate and shape: their error is about
sqrt(rate) times machine epsilon, where the textbook form loses rate times machine epsilon.
"""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numba import config, njit
from numba.extending import overload

from sgmcmc_verification.samplers.validation import require

RandomSource = Any
"""A `numpy.random.Generator` or its like in plain Python; the state (4,) of a stream in compiled code."""

BLOCK = 8192
"""Numbers that share a stream of random bits; what is drawn does not depend on how blocks are shared out."""

LEAST = 8
"""Blocks that a thread of its own is worth."""

MANY = 1.0
"""Rate from which shapes of at least 1/2 are drawn from a normal and a Gamma variate: faster, and exact."""
SMALL = 1e-20
"""Rate of which a count other than zero comes once in 10^20 draws, and is left out."""
HUGE = 1e15
"""Rate from which the Poisson count is no longer resolved in double precision."""


def cir_transition(
    generator: np.random.Generator, log_theta: np.ndarray | float, shape: np.ndarray | float, step_size: float
) -> np.ndarray:
    """Exact transition of d theta = (a - theta) dt + sqrt(2 theta) dW over a time h, in logs.

        J ~ Poisson(r),  r = theta / (e^h - 1),   theta' = (1 - e^-h) Gamma(a + J)

    which is (1 - e^-h) / 2 times a noncentral chi-square with 2 a degrees of freedom and noncentrality 2 r, for every
    a > 0. The logarithm of Gamma(a + J) is drawn, which stays finite where the variate underflows (at a = 1e-4 nine in
    ten are below 1e-308). For a >= 1/2 and r > 1 the same law is
    drawn as

        theta' = (1 - e^-h) [(sqrt(r) + Z / sqrt(2))^2 + Gamma(a - 1/2)],   Z ~ N(0, 1)

    Source: baker2018large, equation (2.2) (noncentral chi-square form).

    Args:
        generator: NumPy's. The draws are made by streams that it seeds, one for each 8192 numbers;
            large arrays are shared out to the threads that numba may use, which changes no number.
        log_theta: log of the current values, any shape, -inf allowed; below 709.
        shape: a > 0, broadcast against `log_theta`.
        step_size: h > 0.

    Returns:
        log theta', of the broadcast shape.

    Error: of the law, sqrt(r) times machine epsilon up to r = 1e15 (3e-8 there). Beyond, for a < 1/2, the second form
    with Gamma(a - 1/2) replaced by its mean a - 1/2: an error in total variation below 1 / r.

    Raises:
        ValueError: if the step size or a shape is not positive and finite, a theta is NaN or overflows, or theta / h
            does.
    """
    with np.errstate(over="ignore"):
        return cir_logs(generator, np.exp(np.asarray(log_theta, np.float64)), shape, step_size)


def cir_logs(
    generator: np.random.Generator, theta: np.ndarray | float, shape: np.ndarray | float, step_size: float
) -> np.ndarray:
    """log theta' of `cir_transition` from theta itself, where the caller has it.

    A theta below 1e-308 may be given as 0: the law of theta' is that from 0 up to theta / h in total variation.

    Raises:
        ValueError: as `cir_transition`.
    """
    require(0 < step_size < math.inf, "step_size: must be positive and finite", step_size)
    theta, shape = np.broadcast_arrays(np.asarray(theta, np.float64), np.asarray(shape, np.float64))
    before, shapes = np.ravel(theta), np.ravel(shape)  # copies only what is broadcast
    after = np.empty(before.size)
    if isinstance(generator, np.random.Generator):
        bad = _shared_out(streams(generator, -(-before.size // BLOCK)), before, shapes, step_size, after)
    else:
        bad = _block.py_func(generator, before, shapes, step_size, after)
    if bad >= 0:
        _refuse(before[bad], shapes[bad], step_size)
    return after.reshape(theta.shape)


def _shared_out(states: np.ndarray, theta: np.ndarray, shape: np.ndarray, step_size: float, out: np.ndarray) -> int:
    """`_all_blocks`, by as many threads as numba may use where there is enough to do."""
    blocks = len(states)
    workers = min(config.NUMBA_NUM_THREADS, blocks // LEAST)  # pyright: ignore[reportAttributeAccessIssue]
    if workers < 2:
        return _all_blocks(states, theta, shape, step_size, out)
    edges = np.linspace(0, blocks, workers + 1).astype(int)

    def part(i: int) -> int:
        low = edges[i] * BLOCK
        mine = slice(low, edges[i + 1] * BLOCK)
        bad = _all_blocks(states[edges[i] : edges[i + 1]], theta[mine], shape[mine], step_size, out[mine])
        return bad if bad < 0 else low + bad

    with ThreadPoolExecutor(workers) as pool:  # the kernel holds no lock
        return min((bad for bad in pool.map(part, range(workers)) if bad >= 0), default=-1)


def _refuse(theta: float, shape: float, step_size: float) -> None:
    require(bool(0 < shape < math.inf), "shape: must be positive and finite", shape)
    require(bool(0 <= theta < math.inf), "theta: must be finite and not negative", theta)
    raise ValueError(f"step_size: {step_size} is too small for theta = {theta}, theta / h overflows; take a larger one")


WORDS = 4
"""64-bit words of the state of a stream."""


def streams(generator: np.random.Generator, count: int) -> np.ndarray:
    """States (count, 4) of independent streams, from the generator.

    Each is 256 random bits; that two of them come within 2^64 draws of one another has a probability below
    count^2 2^-191.
    """
    return generator.integers(0, 1 << 64, size=(count, WORDS), dtype=np.uint64)


# The laws as calls of a NumPy generator. The compiled forms are below.


def draw_normal(source: RandomSource) -> float:
    """N(0, 1)."""
    return source.standard_normal()


def draw_uniform(source: RandomSource) -> float:
    """Uniform on (0, 1]."""
    return 1.0 - source.random()


def draw_gamma(source: RandomSource, shape: float) -> float:
    """Gamma(shape, 1), shape >= 1/2 in compiled code, which does not guard against underflow."""
    return source.standard_gamma(shape)


def draw_log_gamma(source: RandomSource, shape: float) -> float:
    """log Gamma(shape, 1), which is finite where the variate underflows."""
    if shape < 1.0:
        return math.log(source.standard_gamma(shape + 1.0)) - source.standard_exponential() / shape
    return math.log(source.standard_gamma(shape))


def draw_poisson(source: RandomSource, rate: float) -> float:
    """Poisson(rate), as a float."""
    return source.poisson(rate)


LAYERS = 256
TAIL = 3.6541528853610088
EXPONENTIAL_TAIL = 7.69711747013104972


def _layers(
    tail: float, area_beyond: float, density: Callable[[float], float], inverse: Callable[[float], float]
) -> tuple[np.ndarray, np.ndarray]:
    """Right ends x_0 > x_1 = tail > .. > x_256 = 0 of layers of equal area under a density, and its values there.

    The lowest layer is the rectangle below x_1 and the tail beyond; x_0 is its area as the width of a rectangle.

    Source: marsaglia2000ziggurat, section 2.
    """
    area = tail * density(tail) + area_beyond
    x = np.zeros(LAYERS + 1)
    x[0], x[1] = area / density(tail), tail
    for i in range(2, LAYERS):
        x[i] = inverse(area / x[i - 1] + density(x[i - 1]))
    heights = np.array([density(edge) for edge in x])
    heights[0] = 0.0  # the lowest layer has the tail instead of a wedge
    return x, heights


EDGES, HEIGHTS = _layers(
    TAIL,
    math.sqrt(math.pi / 2) * math.erfc(TAIL / math.sqrt(2)),
    lambda x: math.exp(-0.5 * x * x),
    lambda y: math.sqrt(-2 * math.log(y)),
)
"""For exp(-x^2 / 2)."""
EXPONENTIAL_EDGES, EXPONENTIAL_HEIGHTS = _layers(
    EXPONENTIAL_TAIL, math.exp(-EXPONENTIAL_TAIL), lambda x: math.exp(-x), lambda y: -math.log(y)
)
"""For exp(-x)."""
_TO_UNIT = 2.0**-53
_LAYER, _ONE = np.uint64(LAYERS - 1), np.uint64(1)
_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)


@njit(error_model="numpy", inline="always")
def _rotate(x: np.uint64, k: int) -> np.uint64:
    return (x << np.uint64(k)) | (x >> np.uint64(64 - k))


@njit(error_model="numpy", inline="always")
def _bits(s: np.ndarray) -> np.uint64:
    """Next 64 bits of xoshiro256++. Source: blackman2021scrambled, figure 2."""
    result = _rotate(s[0] + s[3], 23) + s[0]
    t = s[1] << np.uint64(17)
    s[2] ^= s[0]
    s[3] ^= s[1]
    s[1] ^= s[2]
    s[0] ^= s[3]
    s[2] ^= t
    s[3] = _rotate(s[3], 45)
    return result


@njit(error_model="numpy", inline="always")
def _uniform(s: np.ndarray) -> float:
    """Uniform on (0, 1], multiples of 2^-53."""
    return (np.float64(np.int64(_bits(s) >> np.uint64(11))) + 1.0) * _TO_UNIT


@njit(error_model="numpy")
def _edge(s: np.ndarray, i: np.uint64, u: float) -> float:
    """A variate from the tail or the wedge of layer i, or NaN where the wedge refuses."""
    if i == 0:
        while True:
            tail = -math.log(_uniform(s)) / TAIL
            if -2.0 * math.log(_uniform(s)) > tail * tail:
                return TAIL + tail if u > 0 else -TAIL - tail
    x = u * EDGES[i]
    if HEIGHTS[i] + _uniform(s) * (HEIGHTS[i + _ONE] - HEIGHTS[i]) < math.exp(-0.5 * x * x):
        return x
    return math.nan


@njit(error_model="numpy", inline="always")
def _normal(s: np.ndarray) -> float:
    """N(0, 1) by the ziggurat. Source: marsaglia2000ziggurat, with 53 random bits beside the 8 of the layer."""
    x = math.nan
    while x != x:
        bits = _bits(s)
        i = np.uint64(bits & _LAYER)  # an unsigned index is not tested for being negative
        u = (np.float64(np.int64(bits) >> np.int64(11)) + 0.5) * (2 * _TO_UNIT)
        x = u * EDGES[i]
        if abs(x) >= EDGES[i + _ONE]:
            x = _edge(s, i, u)
    return x


@njit(error_model="numpy")
def _exponential_edge(s: np.ndarray, i: np.uint64, x: float) -> float:
    """A variate from the tail, or x or NaN from the wedge of layer i."""
    if i == 0:
        return EXPONENTIAL_TAIL - math.log(_uniform(s))
    low, high = EXPONENTIAL_HEIGHTS[i], EXPONENTIAL_HEIGHTS[i + _ONE]
    return x if low + _uniform(s) * (high - low) < math.exp(-x) else math.nan


@njit(error_model="numpy", inline="always")
def _exponential(s: np.ndarray) -> float:
    """Exponential of mean 1, by the ziggurat as in `_normal`."""
    x = math.nan
    while x != x:
        bits = _bits(s)
        i = np.uint64(bits & _LAYER)
        x = (np.float64(np.int64(bits >> np.uint64(11))) + 0.5) * _TO_UNIT * EXPONENTIAL_EDGES[i]
        if x >= EXPONENTIAL_EDGES[i + _ONE]:
            x = _exponential_edge(s, i, x)
    return x


@njit(error_model="numpy")
def _gamma_accepts(z: float, w: float, d: float, u: float) -> bool:
    return math.log(u) < 0.5 * z * z + d * (math.log1p(w) - w)


@njit(error_model="numpy")
def _boost(s: np.ndarray, shape: float) -> float:
    """U^(1 / shape)."""
    return math.exp(-_exponential(s) / shape)


@njit(error_model="numpy", inline="always")
def _gamma(s: np.ndarray, shape: float) -> float:
    """Gamma(shape, 1). Source: marsaglia2000gamma, section 3; below 1 by Gamma(a) = Gamma(a + 1) U^(1/a), section 6."""
    d = (shape if shape >= 1.0 else shape + 1.0) - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    w, waiting = 0.0, True
    while waiting:
        z = _normal(s)
        t = c * z
        if t > -1.0:
            w = t * (3.0 + t * (3.0 + t))  # (1 + t)^3 - 1
            u = _uniform(s)
            waiting = not (u < 1.0 - 0.0331 * (z * z) * (z * z) or _gamma_accepts(z, w, d, u))
    value = d * (1.0 + w)
    return value if shape >= 1.0 else value * _boost(s, shape)


@njit(error_model="numpy")
def _log_gamma_other(s: np.ndarray, shape: float) -> float:
    """log Gamma(shape, 1) from a variate; below 1 from that of shape + 1, as in `_gamma`."""
    if shape < 1.0:
        return math.log(_gamma(s, shape + 1.0)) - _exponential(s) / shape
    return math.log(_gamma(s, shape))


@njit(error_model="numpy", inline="always")
def _log_gamma(s: np.ndarray, shape: float) -> float:
    """log x, x ~ Gamma(shape, 1), for small shapes by rejection in log x.

    The density of l = log x is proportional to e^(shape l - x). It is at most e^(shape l) for l < 0, and for l > 0 at
    most e^-((1 - shape) l) / e, because x e^-x <= 1 / e. The masses of these bounds are as 1 to w = shape / (e (1 -
    shape)); of (0, 1 + w) a uniform number selects one and, with what is left of it, accepts: with the probability
    e^-x >= 1 - x, or x e^(1 - x).

    Source: liu2017efficient, section 2 (in z = -shape l).
    """
    value, mean, w = math.nan, 1.0 / shape, 0.0
    if shape >= 0.5:
        value = _log_gamma_other(s, shape)
    else:
        w = shape / (math.e * (1.0 - shape))
    while value != value:
        u = _uniform(s) * (1.0 + w) - w
        if u > 0.0:
            value = -_exponential(s) * mean
            x = math.exp(value)
            if u > 1.0 - x and u >= math.exp(-x):
                value = math.nan
        else:
            value = _exponential(s) / (1.0 - shape)
            x = math.exp(value)
            if -u >= w * x * math.exp(1.0 - x):
                value = math.nan
    return value


@njit(error_model="numpy", inline="always")
def _poisson(s: np.ndarray, rate: float) -> float:
    """Poisson(rate), as a float."""
    u = _uniform(s)
    return 0.0 if u <= 1.0 - rate else _poisson_other(s, rate, u)  # e^-rate >= 1 - rate


@njit(error_model="numpy")
def _poisson_other(s: np.ndarray, rate: float, u: float) -> float:
    """Poisson(rate) by products of uniforms below 10, the first of which is u, else PTRS.

    The logarithm of the ratio of the weight to its bound is k - rate - k log1p((k - rate) / rate) less the remainder of
    Stirling's series, instead of a difference of terms of the size of the rate times its logarithm.

    Source: hormann1993transformed, algorithm PTRS.
    """
    if rate < 10.0:
        limit, k = math.exp(-rate), 0.0
        while u > limit:
            u *= _uniform(s)
            k += 1.0
        return k
    root = math.sqrt(rate)
    b = 0.931 + 2.53 * root
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_r = 0.9277 - 3.6224 / (b - 2.0)
    while True:
        u = _uniform(s) - 0.5
        v = _uniform(s)
        us = 0.5 - abs(u)
        if us <= 0.0:
            continue
        k = math.floor((2.0 * a / us + b) * u + rate + 0.43)
        if us >= 0.07 and v <= v_r:
            return k
        if k < 0.0 or (us < 0.013 and v > us):
            continue
        if math.log(v * inverse_alpha / (a / (us * us) + b)) <= _log_weight(k, rate):
            return k


@njit(error_model="numpy")
def _log_weight(k: float, rate: float) -> float:
    """log(rate^k e^-rate / k!), without cancellation."""
    if k < 10.0:
        return k * math.log(rate) - rate - math.lgamma(k + 1.0)
    x = 1.0 / (k * k)
    remainder = (1 / 12 - x * (1 / 360 - x * (1 / 1260 - x * (1 / 1680 - x / 1188)))) / k
    gap = k - rate
    main = gap - k * (math.log1p(gap / rate) if gap > -0.5 * rate else math.log(k / rate))
    return main - remainder - 0.5 * math.log(k) - _LOG_SQRT_2PI


@overload(draw_normal)
def _(source):
    return lambda source: _normal(source)


@overload(draw_uniform)
def _(source):
    return lambda source: _uniform(source)


@overload(draw_gamma)
def _(source, shape):
    return lambda source, shape: _gamma(source, shape)


@overload(draw_log_gamma, inline="always")
def _(source, shape):
    return lambda source, shape: _log_gamma(source, shape)


@overload(draw_poisson)
def _(source, rate):
    return lambda source, rate: _poisson(source, rate)


@njit(cache=True, nogil=True, error_model="numpy")
def _block(source: RandomSource, theta: np.ndarray, shape: np.ndarray, step_size: float, out: np.ndarray) -> int:
    """The transition of each number; the index of the first that is refused, or -1."""
    log_factor = math.log(-math.expm1(-step_size))
    decay = 1.0 / math.expm1(step_size) if step_size < 709.0 else 0.0
    for i in range(theta.size):
        a, rate = shape[i], decay * theta[i]
        if not (0.0 < a < math.inf) or not (0.0 <= rate < math.inf):
            return i
        if rate > MANY and (a >= 0.5 or rate > HUGE):
            root = math.sqrt(rate) + math.sqrt(0.5) * draw_normal(source)
            rest = draw_gamma(source, a - 0.5) if a > 0.5 else a - 0.5
            out[i] = log_factor + math.log(root * root + rest)
            continue
        if rate > SMALL:
            a += draw_poisson(source, rate)
        out[i] = log_factor + draw_log_gamma(source, a)
    return -1


@njit(cache=True, nogil=True, error_model="numpy")
def _all_blocks(states: np.ndarray, theta: np.ndarray, shape: np.ndarray, step_size: float, out: np.ndarray) -> int:
    """`_block` over stretches of `BLOCK` numbers, each with its own stream."""
    for b in range(states.shape[0]):
        low, high = b * BLOCK, min((b + 1) * BLOCK, theta.size)
        bad = _block(states[b], theta[low:high], shape[low:high], step_size, out[low:high])
        if bad >= 0:
            return low + bad
    return -1
