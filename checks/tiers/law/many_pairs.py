"""Balance of thousands of pairs on a Gaussian, between bounds: where an acceptance is another one in a few places.

On a Gaussian the proposal of most kernels is an affine map y = B x + A xi + c of state and noise, and so is the way
back, xi' = A^-1 (x - c - B y). The decisions at a few uniforms bound the acceptance of both ways, a in [low, high], and

    log a(x, y) = r + log a(y, x),  r = U(x) - U(y) + (|xi|^2 - |xi'|^2) / 2,

which cannot hold where a lower bound of one side exceeds the upper one of the other. No rule of acceptance is assumed.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.core.check import NotApplicable
from sgmcmc_verification.checks.tracing.acceptance import decided
from sgmcmc_verification.checks.tracing.step_map import LOWEST, Affine, JaxStep, fit_affine

POINTS = 2048
"""Pairs at each step size; half of them start in the bulk, half within a box of `BOX` standard deviations."""
BULK, BOX, SIGMA = 2.0, 8.0, 3.5
"""Standard deviations of states, and largest normals."""
OTHERS = 48
"""Pairs of another proposal than that of the bulk that are looked at one by one."""
SHARES = np.array([-LOWEST / (1 - LOWEST), 1e-6, 1e-4, 1e-2, 0.1, 0.3, 0.6, 0.9, 0.999])
"""Uniforms at which a step is decided, as shares of the way from what accepts to what rejects.

The first of them is a uniform of 0, or 1, at which all is accepted that can be: an end that is neither x nor y is that
of another proposal than the one of the bulk.
"""
ROUNDED = 2.0**-23
"""Error of a share, of a uniform in single precision near one."""
SAME = 1e-9
"""Relative distance of two ends that are the same."""
CONDITION = 1e6
"""Condition of A up to which the way back is computed."""
TOLERANCE = 1e-6
"""Of logarithms: the rounding of a share near 1, of energies of some hundreds, and of the way back."""


class Unbalanced(NamedTuple):
    """The pair that is farthest from balance.

    Attributes:
        gap: of the logarithms, at least; 0 where all pairs can balance.
        text: in words.
        pairs: that were compared.
    """

    gap: float
    text: str
    pairs: int


class _Pairs:
    """States (P, d) and normals (P, d) of pairs, and the step that moves them.

    Args:
        step: on a Gaussian.
    """

    def __init__(self, step: JaxStep) -> None:
        d, gaussian = step.target.size, step.target.gaussian
        integers = jnp.zeros(step.program.count("integer"), int)
        end = lambda x, xi, share, h: decided(step, x, xi, integers, share, h)
        self.proposals = jax.jit(jax.vmap(end, (0, 0, None, None)))
        self.every = jax.jit(jax.vmap(jax.vmap(end, (None, None, 0, None)), (0, 0, None, None)))
        assert gaussian is not None
        self.centre = np.asarray(gaussian.mean, float)
        spread = np.sqrt(np.diag(np.linalg.inv(gaussian.precision)))
        cube = 2 * np.random.default_rng(0).random((POINTS, 2 * d)) - 1
        reach = np.where(np.arange(POINTS) % 2, BOX, BULK)[:, None]
        self.x, self.xi = self.centre + reach * spread * cube[:, :d], SIGMA * cube[:, d:]

    def push(self, x: np.ndarray, xi: np.ndarray, h: float) -> np.ndarray:
        """Proposals (P, d)."""
        return np.asarray(self.proposals(jnp.asarray(x), jnp.asarray(xi), 0.0, h))

    def bulk(self, h: float) -> Affine | None:
        """The affine map that the proposal is in the bulk; None if it is none, or not invertible."""
        try:
            found = fit_affine(lambda z, e: self.push(z, e, h), self.centre, len(self.centre), 1.0)
        except NotApplicable:
            return None
        return found if np.linalg.cond(found.noise) < CONDITION else None


def elsewhere(step: JaxStep, h: float) -> tuple[np.ndarray, np.ndarray]:
    """Some states (P, d) and normals (P, d) whose proposals are not those of the affine map of the bulk."""
    pairs = _Pairs(step)
    bulk = pairs.bulk(h)
    if bulk is None:
        return pairs.x[:0], pairs.xi[:0]
    mapped = bulk.offset + pairs.x @ bulk.matrix.T + pairs.xi @ bulk.noise.T
    ends = pairs.push(pairs.x, pairs.xi, h)
    apart = lambda other: np.abs(ends - other).max(axis=1) > SAME * (1 + np.abs(mapped).max(axis=1))
    found = np.flatnonzero(apart(mapped) & apart(pairs.x) & np.all(np.isfinite(ends), axis=1))[:OTHERS]
    return pairs.x[found], pairs.xi[found]


def unbalanced(step: JaxStep, hs: list[float], temperature: float) -> Unbalanced:
    """The worst pair at some step sizes; no pair where the proposal is no affine map of one normal a coordinate."""
    pairs, U = _Pairs(step), jax.jit(jax.vmap(step.target.flat_potential))
    x, xi = pairs.x, pairs.xi
    found = Unbalanced(0.0, "", 0)
    for h in hs:
        bulk = pairs.bulk(h)
        if bulk is None:
            continue
        y = bulk.offset + x @ bulk.matrix.T + xi @ bulk.noise.T
        back = np.linalg.solve(bulk.noise, (x - bulk.offset - y @ bulk.matrix.T).T).T
        r = (np.asarray(U(jnp.asarray(x))) - np.asarray(U(jnp.asarray(y)))) / temperature
        r += (np.sum(xi**2, axis=1) - np.sum(back**2, axis=1)) / 2
        bounds = [_bounds(pairs.every, *pair, h) for pair in ((x, y, xi), (y, x, back))]
        (low, high, known), (low_back, high_back, known_back) = bounds
        gaps = np.maximum(low - r - high_back, r + low_back - high)
        gaps = np.where(known & known_back & np.isfinite(r), gaps, -np.inf)
        k = int(np.argmax(gaps))
        found = found._replace(pairs=found.pairs + int(np.isfinite(gaps).sum()))
        if gaps[k] > max(found.gap, TOLERANCE):
            text = (
                f"x = {np.round(x[k], 3).tolist()} -> y = {np.round(y[k], 3).tolist()} at h = {h:.4g}: accepted in "
                f"{_between(low[k], high[k])} of the cases, the way back in {_between(low_back[k], high_back[k])}; "
                f"their ratio has to be exp({r[k]:.4g})"
            )
            found = found._replace(gap=float(gaps[k]), text=text)
    return found


def _bounds(every, start: np.ndarray, end: np.ndarray, noise: np.ndarray, h: float) -> tuple[np.ndarray, ...]:
    """Bounds of the logarithm of an acceptance, (P,) each, and whether there are such."""
    ends = np.asarray(every(jnp.asarray(start), jnp.asarray(noise), jnp.asarray(SHARES), h))
    near = lambda goal: np.abs(ends - goal[:, None]).max(axis=2) <= SAME * (1 + np.abs(end).max(axis=1))[:, None]
    accepted, stays = near(end), near(start)
    with np.errstate(divide="ignore"):
        low = np.log(np.where(accepted, SHARES - ROUNDED, 0.0).max(axis=1))
        high = np.log(np.where(stays, SHARES + ROUNDED, 1.0).min(axis=1))
    # an acceptance that is decided by one uniform accepts up to a share and rejects from there on
    ordered = np.all(accepted[:, 1:] <= accepted[:, :-1], axis=1)
    return low, high, ordered & np.all(accepted != stays, axis=1)


def _between(low: float, high: float) -> str:
    return f"{np.exp(low):.3g} to {np.exp(high):.3g}"
