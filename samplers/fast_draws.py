"""Random variates for compiled loops over many numbers, and the same draws from a NumPy generator.

`draw_poisson(source, rate)` and its like stand in the source of a kernel. In plain Python the source is anything with
the methods of a `numpy.random.Generator`, such as the generators of the checks, which hand out the nodes of a
quadrature. Compiled by numba the source is the state of a xoshiro256++ generator, four 64-bit words, and the draw is
inlined: 3 to 5 times faster than calling NumPy's generator from numba. So a kernel has one source text, and what the
checks walk through is what runs.

The acceptance tests are written without cancellation, so that they hold at any rate and shape: their error is
about sqrt(rate) times machine epsilon, where the textbook form loses rate times machine epsilon.
"""

# pyright: reportUnusedFunction=false
import math

import numpy as np
from numba import njit
from numba.extending import overload

__all__ = ["draw_exponential", "draw_gamma", "draw_normal", "draw_poisson", "streams"]

WORDS = 4
"""64-bit words of the state of a stream."""


def streams(generator: np.random.Generator, count: int) -> np.ndarray:
    """States (count, 4) of independent streams, from the generator.

    Each is 256 random bits; that two of them come within 2^64 draws of one another has a probability below
    count^2 2^-191.
    """
    return generator.integers(0, 1 << 64, size=(count, WORDS), dtype=np.uint64)


# The laws as calls of a NumPy generator. The compiled forms are below.


def draw_normal(source):
    """N(0, 1)."""
    return source.standard_normal()


def draw_exponential(source):
    """Exponential of mean 1."""
    return source.standard_exponential()


def draw_gamma(source, shape):
    """Gamma(shape, 1), shape >= 1/2 in compiled code, which does not guard against underflow."""
    return source.standard_gamma(shape)


def draw_poisson(source, rate):
    """Poisson(rate), as a float."""
    return source.poisson(rate)


LAYERS = 256
TAIL = 3.6541528853610088
AREA = 0.00492867323399


def _layers():
    """Right ends x_0 > x_1 > .. > x_256 = 0 of the layers of equal area under exp(-x^2 / 2).

    Source: marsaglia2000ziggurat, section 2 (the tail starts at x_1 = `TAIL`; each layer has the area `AREA`).
    """
    x = np.zeros(LAYERS + 1)
    x[0] = AREA / math.exp(-0.5 * TAIL**2)
    x[1] = TAIL
    for i in range(2, LAYERS):
        x[i] = math.sqrt(-2 * math.log(AREA / x[i - 1] + math.exp(-0.5 * x[i - 1] ** 2)))
    return x


EDGES = _layers()
HEIGHTS = np.exp(-0.5 * EDGES**2)
HEIGHTS[0] = 0.0  # the lowest layer holds the tail instead of a wedge
_TO_UNIT = 2.0**-53
_LAYER, _ONE = np.uint64(LAYERS - 1), np.uint64(1)
_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)


@njit(error_model="numpy")
def _rotate(x, k):
    return (x << np.uint64(k)) | (x >> np.uint64(64 - k))


@njit(error_model="numpy")
def _bits(s):
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


@njit(error_model="numpy")
def _uniform(s):
    """Uniform on (0, 1], multiples of 2^-53."""
    return (np.float64(np.int64(_bits(s) >> np.uint64(11))) + 1.0) * _TO_UNIT


@njit(error_model="numpy")
def _edge(s, i, u):
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
def _normal(s):
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
def _exponential(s):
    return -math.log(_uniform(s))


@njit(error_model="numpy")
def _gamma_accepts(z, w, d, u):
    return math.log(u) < 0.5 * z * z + d * (math.log1p(w) - w)


@njit(error_model="numpy")
def _boost(s, shape):
    """U^(1 / shape)."""
    return math.exp(-_exponential(s) / shape)


@njit(error_model="numpy", inline="always")
def _gamma(s, shape):
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


@njit(error_model="numpy", inline="always")
def _poisson(s, rate):
    """Poisson(rate), as a float."""
    u = _uniform(s)
    return 0.0 if u <= 1.0 - rate else _poisson_other(s, rate, u)  # e^-rate >= 1 - rate


@njit(error_model="numpy")
def _poisson_other(s, rate, u):
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
def _log_weight(k, rate):
    """log(rate^k e^-rate / k!), without cancellation."""
    if k < 10.0:
        return k * math.log(rate) - rate - math.lgamma(k + 1.0)
    x = 1.0 / (k * k)
    remainder = (1 / 12 - x * (1 / 360 - x * (1 / 1260 - x * (1 / 1680 - x / 1188)))) / k
    gap = k - rate
    if gap > -0.5 * rate:
        main = gap - k * math.log1p(gap / rate)
    else:
        main = gap - k * math.log(k / rate)
    return main - remainder - 0.5 * math.log(k) - _LOG_SQRT_2PI


@overload(draw_normal)
def _(source):
    return lambda source: _normal(source)


@overload(draw_exponential)
def _(source):
    return lambda source: _exponential(source)


@overload(draw_gamma)
def _(source, shape):
    return lambda source, shape: _gamma(source, shape)


@overload(draw_poisson)
def _(source, rate):
    return lambda source, rate: _poisson(source, rate)
