"""Kernel Stein discrepancy with the inverse multiquadric kernel, for laws of which only the score is known."""

import math

import numpy as np
from jaxtyping import Float

from sgmcmc_verification.checks.statistics.outcome import Outcome, checked_sample
from sgmcmc_verification.checks.statistics.pairs import (
    Statistic,
    Tested,
    Tile,
    bootstrap,
    pair_statistic,
    require_statistic,
)
from sgmcmc_verification.checks.statistics.weighted_chi_square import moments_of, norm_test
from sgmcmc_verification.targets.numerics.arrays import ArrayLike


def ksd(
    samples: ArrayLike, scores: ArrayLike, *, offset: float = 1.0, statistic: Statistic = "U", block: int = 1024
) -> float:
    """Estimate of the squared kernel Stein discrepancy of i.i.d. samples: unbiased (U), or never negative (V).

        KSD^2 = E k_p(x, y),    k(x, y) = (c^2 + |x - y|^2)^(-1/2),    s = grad log p
        k_p(x, y) = s(x).s(y) k + s(x).grad_y k + s(y).grad_x k + tr grad_x grad_y k

    over the pairs i != j, or over all pairs. It is a number for comparison: its sign and size carry noise of order 1/n
    under the null hypothesis. `stein_test` and `ksd_test` decide.

    Blind spot: far apart modes. The score does not know the weights of isolated modes, so samples from one of two equal
    modes, or in wrong proportions, have a discrepancy near 0. Never the only test.

    Source: gorham2017measuring, theorem 8 (with this kernel the discrepancy controls weak convergence) and theorem 6
    (with a Gaussian one it does not in three and more dimensions).

    Args:
        samples: (n, d).
        scores: (n, d), the gradient of log p at the samples, that is minus the gradient of the potential.
        offset: c > 0, a length.
        statistic: "U" or "V".
        block: pairs are done in tiles of block x block: the memory is O(block^2), whatever n.

    Raises:
        ValueError: wrong shapes, values that are not finite, an offset that is not positive.
    """
    x, s = _checked(samples, scores, offset)
    require_statistic(statistic)
    return pair_statistic(_stein_tile(x, s, offset), len(x), statistic, block)


def ksd_test(
    samples: ArrayLike,
    scores: ArrayLike,
    *,
    offset: float = 1.0,
    statistic: Statistic = "U",
    replicates: int = 500,
    seed: int = 0,
    block: int = 1024,
) -> Tested:
    """`ksd` with the p-value of its bootstrap (`checks.statistics.pairs.bootstrap`), at all pairs of the sample.

    The p-value is no smaller than 1 / (1 + replicates) and right for large n only; `stein_test`, which looks at a few
    locations, has the tail that small levels need. Blind spot: as `ksd`.

    Source: liu2016kernelized, section 4 (U); chwialkowski2016kernel, section 3 (V).

    Args:
        samples: (n, d), i.i.d.
        scores: (n, d), the gradient of log p at the samples.
        offset: c > 0, a length.
        statistic: "U" or "V".
        replicates: of the bootstrap.
        seed: of the bootstrap.
        block: see `ksd`; the memory is O(block^2 + n replicates).

    Raises:
        ValueError: as `ksd`; fewer than one replicate.
    """
    x, s = _checked(samples, scores, offset)
    require_statistic(statistic)
    tile = _stein_tile(x, s, offset)
    return bootstrap(tile, len(x), statistic, block, replicates, np.random.default_rng(seed))


def _stein_tile(x: Float[np.ndarray, "n d"], s: Float[np.ndarray, "n d"], offset: float) -> Tile:
    """Blocks of k_p."""
    own, sx, d = np.sum(x * x, axis=1), np.sum(s * x, axis=1), x.shape[1]

    def tile(a: slice, b: slice) -> Float[np.ndarray, "rows columns"]:
        u = own[a, None] + own[b] - 2 * (x[a] @ x[b].T)
        np.maximum(u, 0.0, out=u)
        square = u.copy()
        u += offset**2
        root = 1 / np.sqrt(u)
        cube = root / u
        # the mixed terms are (s(x) - s(y)).(x - y) u^(-3/2), the trace is d u^(-3/2) - 3 |x - y|^2 u^(-5/2)
        mixed = sx[a, None] + sx[b] - s[a] @ x[b].T - x[a] @ s[b].T
        return (s[a] @ s[b].T) * root + (mixed + d - 3 * square / u) * cube

    return tile


def stein_features(
    samples: Float[np.ndarray, "n d"],
    scores: Float[np.ndarray, "n d"],
    locations: Float[np.ndarray, "J d"],
    offset: float,
) -> Float[np.ndarray, "n J*d"]:
    """xi_v(x) = (s(x) k(x, v) + grad_x k(x, v))/sqrt(J d) at J locations v, (n, J d); E_p xi_v = 0."""
    difference = samples[:, None, :] - locations[None, :, :]
    root = 1 / np.sqrt(offset**2 + np.sum(difference**2, axis=2))[:, :, None]
    features = scores[:, None, :] * root - difference * root**3
    return features.reshape(samples.shape[0], -1) / math.sqrt(locations.size)


def stein_test(
    samples: ArrayLike,
    scores: ArrayLike,
    locations: ArrayLike,
    *,
    offset: float = 1.0,
    name: str = "Stein discrepancy",
    allowance: float = 0.0,
) -> Outcome:
    """Test of FSSD <= a, the Stein discrepancy at finitely many locations, which is 0 under the claimed law.

        FSSD^2 = (1/(J d)) sum_v |E xi_v(x)|^2,    xi_v(x) = s(x) k(x, v) + grad_x k(x, v)
        k(x, v) = (c^2 + |x - v|^2)^(-1/2),    s = grad log p
        n (1/(J d)) sum_v |mean xi_v|^2 -> sum_j lambda_j chi2_1

    The effect is the square root of the unbiased estimate; `quadratic.norm_test` has the tail and what is detected, and
    the covariance is that of the sample. With a score that grows no faster than |x|, the features are bounded. As
    in `mmd_test`, p is right at 1e-10 to a few per cent from n = 1e5 on.

    Blind spot: far apart modes, as `ksd`: never the only test.

    Source: jitkrittum2017linear, theorem 1 and proposition 2.

    Args:
        samples: (n, d), i.i.d.
        scores: (n, d), the gradient of log p at the samples.
        locations: (J, d), chosen without looking at the samples, where the law has its mass.
        offset: c > 0, a length.
        name: what was tested.
        allowance: a, the largest FSSD that is no error.

    Raises:
        ValueError: wrong shapes, values that are not finite, an offset that is not positive, a negative allowance.
    """
    x, s = _checked(samples, scores, offset)
    v = checked_sample("locations", locations, 2, least=1)
    if v.shape[1] != x.shape[1]:
        raise ValueError(f"locations has {v.shape[1]} columns, samples {x.shape[1]}: give the same")
    block = max(1, 1_000_000 // v.size)
    mean, covariance = moments_of(lambda a, b: stein_features(a, b, v, offset), x, s, block=block)
    return norm_test(name, "Stein discrepancy", mean, covariance, 1 / x.shape[0], x.shape[0], allowance)


def _checked(
    samples: ArrayLike, scores: ArrayLike, offset: float
) -> tuple[Float[np.ndarray, "n d"], Float[np.ndarray, "n d"]]:
    x, s = checked_sample("samples", samples, 2), checked_sample("scores", scores, 2)
    if x.shape != s.shape:
        raise ValueError(f"scores has shape {s.shape}, samples {x.shape}: give the score at each sample")
    if not 0 < offset < math.inf:
        raise ValueError(f"offset is {offset}: give a positive length")
    return x, s
