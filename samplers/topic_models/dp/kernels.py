"""Compiled loops over users: labels given slices, and the likelihood of a mixture.

Random numbers come in as arrays, so that a chain goes on bit for bit from the state of its generator.
"""

import numba
import numpy as np


@numba.njit(cache=True)
def reassigned(
    starts: np.ndarray,
    columns: np.ndarray,
    counts: np.ndarray,
    log_theta: np.ndarray,
    log_weights: np.ndarray,
    log_slices: np.ndarray,
    uniforms: np.ndarray,
    labels: np.ndarray,
) -> np.ndarray:
    """New labels: P(z_i = j) ~ 1[w_j > u_i] prod_k theta_jk^x_ik.

    A user whom no component above its slice can have made (all theta_jk = 0) keeps its label.

    Args:
        starts: (n + 1,) of the rows.
        columns: (entries,).
        counts: (entries,).
        log_theta: (K, d), normalised rows.
        log_weights: log w (K,).
        log_slices: log u (n,).
        uniforms: (n,) in [0, 1).
        labels: (n,) old ones.
    """
    n, components = len(starts) - 1, len(log_weights)
    found = labels.copy()
    scores = np.empty(components)
    candidates = np.empty(components, np.int64)
    for i in range(n):
        allowed = 0
        top = -np.inf
        for j in range(components):
            if log_weights[j] >= log_slices[i]:
                score = 0.0
                for e in range(starts[i], starts[i + 1]):
                    score += counts[e] * log_theta[j, columns[e]]
                scores[allowed] = score
                candidates[allowed] = j
                allowed += 1
                if score > top:
                    top = score
        if top == -np.inf:
            continue
        total = 0.0
        for a in range(allowed):
            total += np.exp(scores[a] - top)
            scores[a] = total
        at = uniforms[i] * total
        a = 0
        while a < allowed - 1 and scores[a] <= at:
            a += 1
        found[i] = candidates[a]
    return found


@numba.njit(cache=True)
def log_mixture(
    starts: np.ndarray, columns: np.ndarray, counts: np.ndarray, log_theta: np.ndarray, log_weights: np.ndarray
) -> np.ndarray:
    """log sum_j w_j prod_k theta_jk^x_ik (n,) of each user; arguments as in `reassigned`."""
    n, components = len(starts) - 1, len(log_weights)
    found = np.empty(n)
    scores = np.empty(components)
    for i in range(n):
        top = -np.inf
        for j in range(components):
            score = log_weights[j]
            for e in range(starts[i], starts[i + 1]):
                score += counts[e] * log_theta[j, columns[e]]
            scores[j] = score
            if score > top:
                top = score
        if top == -np.inf:
            found[i] = -np.inf
            continue
        total = 0.0
        for j in range(components):
            total += np.exp(scores[j] - top)
        found[i] = top + np.log(total)
    return found
