"""An ensemble of walkers with proposals from a normal law that the other walkers define.

Walker k proposes y ~ N(m_k, s S_k), where m_k and S_k are mean and covariance of the ensemble without walker k. The proposal does not depend
on where walker k is, so that its acceptance ratio is that of an independence sampler,

    pi(y) q_k(x_k) / (pi(x_k) q_k(y)).

It needs no gradients, no step size and no tuning, and follows any linear change of coordinates.
"""

from typing import NamedTuple

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


class Ensemble(NamedTuple):
    walkers: np.ndarray  # (K, ...), each of the shape of a position
    energies: np.ndarray  # (K,)


def _energies(estimator, rng, points):
    return np.array([float(estimator.estimate(rng, (), point)[0].potential) for point in points])


def _leave_one_out(flat, inflation, ridge):
    """Means (K, d) and Cholesky factors (K, d, d) of the ensemble without each of its walkers."""
    count, dim = flat.shape
    means, roots = np.empty((count, dim)), np.empty((count, dim, dim))
    for k in range(count):
        others = np.delete(flat, k, axis=0)
        means[k] = others.mean(axis=0)
        centred = others - means[k]
        covariance = inflation * centred.T @ centred / (count - 2)
        roots[k] = np.linalg.cholesky(covariance + ridge * np.eye(dim))
    return means, roots


def _log_normal(points, means, roots):
    whitened = np.linalg.solve(roots, (points - means)[..., None])[..., 0]
    return -0.5 * np.sum(whitened**2, axis=-1) - np.sum(np.log(np.diagonal(roots, axis1=-2, axis2=-1)), axis=-1)


def ensemble_independence(walkers_per_dimension=2, inflation=1.0, ridge=1e-6):
    """`walkers_per_dimension` (d + 1) walkers; `inflation` multiplies the covariance of proposals."""
    if walkers_per_dimension < 2 or inflation <= 0:
        raise ValueError("two walkers per dimension or more, and a positive inflation")

    def init(rng, position, estimator):
        count = walkers_per_dimension * (position.size + 1)
        walkers = rng.standard_normal((count, *position.shape))
        walkers[0] = position
        return Ensemble(walkers, _energies(estimator, rng, walkers))

    def step(rng, state, step_size, estimator):
        walkers, energies = state
        flat = walkers.reshape(len(walkers), -1)
        means, roots = _leave_one_out(flat, inflation, ridge)
        noise = rng.standard_normal(flat.shape)
        proposals = means + (roots @ noise[..., None])[..., 0]
        proposed = _energies(estimator, rng, proposals.reshape(walkers.shape))
        log_ratio = energies - proposed + _log_normal(flat, means, roots) - _log_normal(proposals, means, roots)
        accepted = np.log(rng.random(len(flat))) < log_ratio
        return Ensemble(
            np.where(accepted[:, None], proposals, flat).reshape(walkers.shape), np.where(accepted, proposed, energies)
        )

    return simple_sampler(
        step,
        init=init,
        position=lambda state: state.walkers[0],
        backend="host",
        claims=Claims(Source("", "own"), ExactLaw()),
    )
