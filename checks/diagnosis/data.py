"""Factors of prior and likelihood in the mean drift of a step on a sum over data."""

import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.checks.diagnosis.cause import CLOSE, Diagnosis, factor
from sgmcmc_verification.checks.diagnosis.evidence import Evidence


def factors_of_data(evidence: Evidence) -> Diagnosis | None:
    """a and b with E[force] = -(a grad U_0 + b sum_i grad U_i), averaged over the minibatches, unless both are 1."""
    target, d, n = evidence.target, evidence.target.size, evidence.step.size
    terms = target.terms
    if terms is None or n not in (d, 2 * d):
        return None
    unravel = ravel_pytree(target.example)[1]
    prior = evidence.at_positions(jax.grad(lambda x: terms.prior(unravel(x))))
    columns = [-prior, prior - evidence.gradient, *([evidence.points[:, d:]] if n > d else [])]
    basis = np.stack([column.ravel() for column in columns], axis=1)
    force = evidence.drift[:, n - d :].ravel()
    if np.linalg.matrix_rank(basis) < basis.shape[1]:
        return None
    found = np.linalg.lstsq(basis, force, rcond=None)[0]
    if np.abs(force - basis @ found).max() > 10 * CLOSE * evidence.scale:
        return None
    known = {**evidence.known, **{f"{k}/N": k / terms.size for k in range(2, terms.size)}}
    pairs = zip(("prior", "likelihood"), found, strict=False)
    wrong = [f"the {name} has the factor {factor(float(c), known)}" for name, c in pairs if abs(c - 1) > CLOSE]
    both = len(wrong) == 2 and abs(found[0] - found[1]) < CLOSE
    return Diagnosis("data", "; ".join(wrong)) if wrong and not both else None
