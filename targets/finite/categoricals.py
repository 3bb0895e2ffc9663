"""Independent categorical variables."""

import jax.numpy as jnp
import numpy as np
from scipy import special

from sgmcmc_verification.targets.entry import TargetRow
from sgmcmc_verification.targets.finite.enumerated import enumerated, one_hot
from sgmcmc_verification.targets.manifolds.finite import FiniteStates
from sgmcmc_verification.targets.target import Target


def categoricals(sites: int = 3, categories: int = 4, name: str = "categoricals") -> Target:
    """A product of categorical laws: site i has the value k with the probability p(i, k).

        U(x) = -sum_i log p(i, x_i),    log p(i, k) = sin(i K + k) + constant

    Args:
        sites: n.
        categories: K.
        name: of the target.
    """
    logs = special.log_softmax(np.sin(np.arange(sites * categories).reshape(sites, categories)), axis=1)
    space = FiniteStates(sites, tuple(range(categories)))
    extension = lambda e: -jnp.sum(jnp.asarray(logs, e.dtype) * e)
    return enumerated(name, space, one_hot(categories), extension, "closed form: a product")


ENTRIES = (TargetRow("categoricals", categoricals),)
