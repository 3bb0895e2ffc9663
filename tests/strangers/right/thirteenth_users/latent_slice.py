"""Latent slice sampling (Li and Walker, "A latent slice sampling algorithm", 2023), in any number of coordinates.

A slice sampler without a width to tune: the width of the window is a variable of the chain. The joint law is

    p(x, w, s, l)  ~  1(w < exp(-U(x)))  prod_i  p(s_i) 1(|l_i - x_i| < s_i / 2) / s_i,      p(s) = s exp(-s / scale) / scale^2,

whose marginal in x is exp(-U), with s independent of it. One sweep draws, each given all others,

    level  -log w = U(x) + Exp(1)
    l_i    uniform on x_i -+ s_i / 2
    s_i    2 |l_i - x_i| + scale Exp(1)
    x      uniform on the part of the box l -+ s / 2 in the slice, by shrinkage towards the present x

No rejection, no gradients and no step size: the argument of that name is left alone.
"""

from typing import NamedTuple

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


class Window(NamedTuple):
    """A point and the widths of its window, one a coordinate."""

    position: np.ndarray
    width: np.ndarray


def shrink(rng, x, low, high, inside):
    """A point of the box in the slice: uniform trials, each of which cuts the box between itself and x if it is outside."""
    low, high = np.array(low), np.array(high)
    while True:
        y = low + (high - low) * rng.random(x.shape)
        if inside(y):
            return y
        below = y < x
        low = np.where(below, y, low)
        high = np.where(below, high, y)


def latent_slice(scale=2.0):
    """A latent slice sampler.

    Args:
        scale: of the law of the widths, whose mean is 2 scale. A matter of cost: the law of x is the same for all.
    """
    if not scale > 0:
        raise ValueError("scale has to be positive")

    def init(rng, position, estimator):
        x = np.array(position)
        return Window(x, rng.gamma(2.0, scale, x.shape).astype(x.dtype))

    def step(rng, state, step_size, estimator):
        def energy(q):
            return estimator.estimate(rng, (), q)[0].potential

        x, width = state
        level = energy(x) + rng.exponential()
        centre = x + width * (rng.random(x.shape) - 0.5)
        width = (2 * np.abs(centre - x) + scale * rng.exponential(size=x.shape)).astype(x.dtype)
        y = shrink(rng, x, centre - width / 2, centre + width / 2, lambda q: energy(q) <= level)
        return Window(y.astype(x.dtype), width)

    return simple_sampler(
        step, init=init, claims=Claims(Source("", "Li and Walker 2023, section 2"), ExactLaw()), backend="host"
    )
