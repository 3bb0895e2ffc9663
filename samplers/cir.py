"""The exact transition of the Cox-Ingersoll-Ross process, in logs and for any shape: the kernel of SCIR."""

import math

import numpy as np
from numba import njit

from samplers.fast_draws import draw_exponential, draw_gamma, draw_normal, draw_poisson, streams
from samplers.validate import require

BLOCK = 8192
"""Numbers that share a stream of random bits; what is drawn does not depend on how blocks are shared out."""

MANY = 1.0
"""Rate from which shapes of at least 1/2 are drawn from a normal and a Gamma variate: faster, and exact."""
SMALL = -46.0
"""Log of a rate of which a count other than zero comes once in 10^20 draws, and is left out."""
HUGE = 1e15
"""Rate from which the Poisson count is no longer resolved in double precision."""


def cir_transition(generator: np.random.Generator, log_theta, shape, step_size: float) -> np.ndarray:
    """Exact transition of d theta = (a - theta) dt + sqrt(2 theta) dW over a time h, in logs.

        J ~ Poisson(r),  r = theta / (e^h - 1),   theta' = (1 - e^-h) Gamma(a + J)

    which is (1 - e^-h) / 2 times a noncentral chi-square with 2 a degrees of freedom and noncentrality 2 r, for every
    a > 0. Below a + J = 1 the logarithm of Gamma(a + J) = Gamma(a + J + 1) U^(1/(a + J)) is drawn, which stays finite
    where the variate underflows (at a = 1e-4 nine in ten are below 1e-308). For a >= 1/2 and r > 10 the same law is
    drawn as

        theta' = (1 - e^-h) [(sqrt(r) + Z / sqrt(2))^2 + Gamma(a - 1/2)],   Z ~ N(0, 1)

    Source: baker2018large, equation (2.2) (noncentral chi-square form).

    Args:
        generator: NumPy's. The draws are made by streams that it seeds, one for each 8192 numbers.
        log_theta: log of the current values, any shape, -inf allowed.
        shape: a > 0, broadcast against `log_theta`.
        step_size: h > 0.

    Returns:
        log theta', of the broadcast shape.

    Error: of the law, sqrt(r) times machine epsilon up to r = 1e15 (3e-8 there). Beyond, for a < 1/2, the second form
    with Gamma(a - 1/2) replaced by its mean a - 1/2: an error in total variation below 1 / r.

    Raises:
        ValueError: if the step size or a shape is not positive and finite, a log theta is NaN or +inf, or theta / h
            overflows.
    """
    require(0 < step_size < math.inf, "step_size: must be positive and finite", step_size)
    log_theta, shape = np.broadcast_arrays(np.asarray(log_theta, np.float64), np.asarray(shape, np.float64))
    before, shapes = np.ravel(log_theta), np.ravel(shape)  # copies only what is broadcast
    after = np.empty(before.size)
    if isinstance(generator, np.random.Generator):
        bad = _all_blocks(streams(generator, -(-before.size // BLOCK)), before, shapes, step_size, after)
    else:
        bad = _block.py_func(generator, before, shapes, step_size, after)
    if bad >= 0:
        _refuse(before[bad], shapes[bad], step_size)
    return after.reshape(log_theta.shape)


def _refuse(log_theta, shape, step_size):
    require(bool(0 < shape < math.inf), "shape: must be positive and finite", shape)
    require(bool(log_theta < math.inf), "log_theta: must be a number below infinity", log_theta)
    raise ValueError(
        f"step_size: {step_size} is too small for theta = exp({log_theta}), theta / h overflows; take a larger one"
    )


@njit(cache=True, nogil=True, error_model="numpy")
def _block(source, log_theta, shape, step_size, out):
    """The transition of each number; the index of the first that is refused, or -1."""
    log_factor = math.log(-math.expm1(-step_size))
    log_growth = step_size + log_factor  # log(e^h - 1)
    for i in range(log_theta.size):
        a, log_rate = shape[i], log_theta[i] - log_growth
        if not (0.0 < a < math.inf) or not (log_rate < 709.0):
            return i
        rate = math.exp(log_rate) if log_rate > SMALL else 0.0
        if rate > MANY and (a >= 0.5 or rate > HUGE):
            root = math.sqrt(rate) + math.sqrt(0.5) * draw_normal(source)
            rest = draw_gamma(source, a - 0.5) if a > 0.5 else a - 0.5
            out[i] = log_factor + math.log(root * root + rest)
            continue
        if rate > 0.0:
            a += draw_poisson(source, rate)
        if a < 1.0:
            out[i] = log_factor + math.log(draw_gamma(source, a + 1.0)) - draw_exponential(source) / a
        else:
            out[i] = log_factor + math.log(draw_gamma(source, a))
    return -1


@njit(cache=True, nogil=True, error_model="numpy")
def _all_blocks(states, log_theta, shape, step_size, out):
    """`_block` over stretches of `BLOCK` numbers, each with its own stream."""
    for b in range(states.shape[0]):
        low, high = b * BLOCK, min((b + 1) * BLOCK, log_theta.size)
        bad = _block(states[b], log_theta[low:high], shape[low:high], step_size, out[low:high])
        if bad >= 0:
            return low + bad
    return -1
