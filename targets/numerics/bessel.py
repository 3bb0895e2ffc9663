"""Modified Bessel functions of the first kind, as von Mises-Fisher laws need them: no overflow, no cancellation.

Everything rests on two functions of an order nu >= -1/2 and a concentration kappa >= 0,

    D_nu(kappa)   = log(Gamma(nu + 1) (kappa / 2)^-nu I_nu(kappa)) = log 0F1(; nu + 1; kappa^2 / 4)
    rho_nu(kappa) = I_(nu+1)(kappa) / (kappa I_nu(kappa)),         D_nu' = kappa rho_nu

both analytic at kappa = 0. For a >= 24 they come from the uniform (Debye) expansion; with s = sqrt(1 + (kappa / a)^2),
t = 1 / s and P(t) = sum_(k <= 12) u_k(t) / a^k,

    D_a   = a ((s - 1) - log(1 + (s - 1) / 2)) - log(s) / 2 + log(P(t) / P(1))
    rho_a = (1 / (1 + s) - t^2 / (2 a) - t^3 P'(t) / (a P(t))) / a

and a smaller order is reached from a = nu + m by the recursion, stable in this direction,

    rho_(j-1) = 1 / (2 j + kappa^2 rho_j),      D_(j-1) = D_j + log(1 + kappa^2 rho_j / (2 j))

Every term of D is positive, so D is accurate to a relative error, from kappa = 0 to 1e6 and beyond, in float64 and in
float32. The expansion itself is in error by less than 1e-16 at a = 24, and by less above: the rest is round-off.

The order is a Python number. The concentration is a JAX array or tracer (the result then is one, of the same dtype,
and may be differentiated twice), or NumPy's or Python's (the result then is NumPy's, float64).

Source: olver2010nist, 10.41.3 (the expansion), 10.41.9 (u_k), 10.29.1 (recursion); sums and derivatives derived here.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache, partial
from types import ModuleType
from typing import Any, TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy import special

Reals = TypeVar("Reals", Float[Array, "..."], float | Float[np.ndarray, "..."])
"""A concentration, or a function of it: JAX or NumPy, entry by entry."""
Pair = tuple[Float[Array, "*shape"]]
LEAST_ORDER = 24
TERMS = 12


def log_mean_exponential(n: int, concentration: Reals) -> Reals:
    """log E exp(kappa x_1) for x uniform on S^(n-1), n >= 1 (S^0 is {-1, 1}); relative error a few eps.

    It is D_(n/2-1)(kappa), 0 at kappa = 0, and its derivative is `mean_resultant`.
    """
    return _dispatch(_growth, n / 2 - 1, concentration)


def mean_resultant(n: int, concentration: Reals) -> Reals:
    """A_n(kappa) = I_(n/2)(kappa) / I_(n/2-1)(kappa), the length of the mean of a von Mises-Fisher law on S^(n-1)."""
    return bessel_ratio(n / 2 - 1, concentration)


def log_vmf_constant(n: int, concentration: Reals) -> Reals:
    """log c_n(kappa), where c_n exp(kappa mu . x) is the density of the von Mises-Fisher law on S^(n-1).

        c_n(kappa) = kappa^(n/2-1) / ((2 pi)^(n/2) I_(n/2-1)(kappa)) = exp(-D_(n/2-1)(kappa)) / area(S^(n-1))

    At kappa = 0 it is minus the log of the area; its derivative is -A_n(kappa). The error is a few eps times the larger
    of the two logarithms.
    """
    return -log_area(n) - log_mean_exponential(n, concentration)


def log_area(n: int) -> float:
    """log of the area of S^(n-1), 2 pi^(n/2) / Gamma(n/2)."""
    return math.log(2) + n / 2 * math.log(math.pi) - math.lgamma(n / 2)


def log_bessel_i(order: float, concentration: Reals) -> Reals:
    """log I_nu(kappa), nu >= 0; -inf at kappa = 0 for nu > 0. Error: a few eps times the largest of its three terms."""
    if order < 0:
        raise ValueError(f"order: must not be negative, got {order!r}")
    xlogy = jax.scipy.special.xlogy if isinstance(concentration, jax.Array) else special.xlogy
    growth = _dispatch(_growth, order, concentration)
    half = concentration / 2
    power = xlogy(jnp.asarray(order, half.dtype) if isinstance(half, jax.Array) else order, half)
    return cast(Reals, power - math.lgamma(order + 1) + growth)


def bessel_ratio(order: float, concentration: Reals) -> Reals:
    """R_nu(kappa) = I_(nu+1)(kappa) / I_nu(kappa), to a relative error of a few eps."""
    return _dispatch(_ratio, order, concentration)


def _dispatch(function: Callable[[float, Array], Array], order: float, concentration: Reals) -> Reals:
    if not -0.5 <= order < math.inf:
        raise ValueError(f"order: must be at least -1/2 and finite, got {order!r}")
    if isinstance(concentration, jax.Array):
        return cast(Reals, function(float(order), concentration))
    values = np.asarray(concentration, np.float64)
    if not np.all(values >= 0):
        raise ValueError("concentration: must not be negative or NaN")
    rho, growth = _evaluate(np, float(order), values)
    return cast(Reals, values * rho if function is _ratio else growth)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _growth(order: float, concentration: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    return _evaluate(jnp, order, concentration)[1]


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _ratio(order: float, concentration: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    return concentration * _evaluate(jnp, order, concentration)[0]


@_growth.defjvp
def _growth_jvp(order: float, primals: Pair, tangents: Pair) -> tuple[Array, Array]:
    return _growth(order, *primals), _ratio(order, *primals) * tangents[0]


@_ratio.defjvp
def _ratio_jvp(order: float, primals: Pair, tangents: Pair) -> tuple[Array, Array]:
    """R' = rho (1 - kappa (R_nu - R_(nu+1))); the textbook's 1 - R^2 - (2 nu + 1) rho cancels at small kappa."""
    (concentration,) = primals
    rho = _evaluate(jnp, order, concentration)[0]
    ratio = _ratio(order, concentration)
    slope = rho * (1 - concentration * (ratio - _ratio(order + 1, concentration)))
    return ratio, slope * tangents[0]


def _evaluate(xp: ModuleType, order: float, concentration: Reals) -> tuple[Reals, Reals]:
    """rho_nu and D_nu; `xp` is numpy or jax.numpy."""
    steps = max(0, math.ceil(LEAST_ORDER - order))
    a = order + steps
    z = concentration / a
    s = xp.sqrt(1 + z * z)
    t = 1 / s
    excess = z * z / (1 + s)  # s - 1
    powers = t[..., None] ** xp.asarray(np.arange(3 * TERMS + 1), t.dtype)
    value, slope, quotient = (xp.sum(powers * xp.asarray(row, t.dtype), axis=-1) for row in _debye(a))
    rho = (1 / (1 + s) - t * t / (2 * a) - t**3 * slope / (a * value)) / a
    # P(t) / P(1) = 1 + (t - 1) Q(t), which keeps the relative accuracy near kappa = 0
    growth = a * (excess - xp.log1p(excess / 2)) + xp.log1p(-excess * t * quotient) - xp.log1p(excess) / 2

    def lower(k: Any, carry: tuple[Any, Any]) -> tuple[Any, Any]:
        rho, growth = carry
        twice = 2 * (a - k)
        added = concentration * (concentration * rho) / twice
        return 1 / (twice * (1 + added)), growth + xp.log1p(added)

    if xp is np:
        for k in range(steps):
            rho, growth = lower(k, (rho, growth))
        return rho, growth
    body = lambda k, carry: lower(k.astype(t.dtype), carry)
    return jax.lax.fori_loop(0, steps, body, (rho, growth)) if steps else (rho, growth)


@cache
def _debye(a: float) -> Float[np.ndarray, "3 k"]:
    """Coefficients (3, 3 TERMS + 1) of P(t), P'(t) and Q(t) = (P(t) - P(1)) / ((t - 1) P(1)), lowest power first."""
    coefficients = np.zeros(3 * TERMS + 1)
    for k, polynomial in enumerate(_polynomials()):
        for power, value in polynomial.items():
            coefficients[power] += float(value) / a**k
    slope = np.append(coefficients[1:] * np.arange(1, len(coefficients)), 0.0)
    # (t^k - 1) / (t - 1) = 1 + t + ... + t^(k-1): the coefficients of Q are sums of tails
    quotient = np.append(np.cumsum(coefficients[:0:-1])[::-1], 0.0) / coefficients.sum()
    return np.stack([coefficients, slope, quotient])


@cache
def _polynomials() -> tuple[dict[int, Fraction], ...]:
    """u_0 .. u_TERMS by u' = t^2 (1 - t^2) u'_k / 2 + (1/8) int_0^t (1 - 5 x^2) u_k dx, as {power: coefficient}."""
    found = [{0: Fraction(1)}]
    for _ in range(TERMS):
        following: dict[int, Fraction] = {}
        for power, value in found[-1].items():
            for shift, factor in (
                (1, Fraction(power, 2) + Fraction(1, 8 * (power + 1))),
                (3, -Fraction(power, 2) - Fraction(5, 8 * (power + 3))),
            ):
                following[power + shift] = following.get(power + shift, Fraction(0)) + factor * value
        found.append(following)
    return tuple(found)
