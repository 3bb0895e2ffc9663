"""The Potts model."""

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.targets.entry import TargetRow
from sgmcmc_verification.targets.finite.enumerated import enumerated, one_hot
from sgmcmc_verification.targets.manifolds.finite import FiniteStates
from sgmcmc_verification.targets.target import Target

EDGES = np.array([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (1, 3)])
"""A cycle of five sites with a chord: it has triangles, and sites of two and of three neighbours."""
COLOURS = 3


def potts(coupling: float = 0.7, name: str = "potts-3") -> Target:
    """Three colours on five sites, in a field.

        U(c) = -J sum_{i ~ j} [c_i = c_j] - sum_i b(i, c_i),    b(i, k) = sin(3 i + k + 1) / 2

    The code of a state has a unit vector e_i for each site, and U = -J sum e_i . e_j - sum b_i . e_i is linear in each.

    Args:
        coupling: J.
        name: of the target.
    """
    sites = int(EDGES.max()) + 1
    field = np.sin(np.arange(sites * COLOURS).reshape(sites, COLOURS) + 1) / 2

    def extension(e: jax.Array) -> jax.Array:
        return -coupling * jnp.sum(e[EDGES[:, 0]] * e[EDGES[:, 1]]) - jnp.sum(jnp.asarray(field, e.dtype) * e)

    space = FiniteStates(sites, tuple(range(COLOURS)))
    return enumerated(name, space, one_hot(COLOURS), extension, "enumeration of 243 states")


ENTRIES = (TargetRow("potts-3", potts),)
