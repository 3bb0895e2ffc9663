"""The Ising model."""

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.targets.entry import TargetRow
from sgmcmc_verification.targets.finite.enumerated import enumerated
from sgmcmc_verification.targets.manifolds.finite import FiniteStates
from sgmcmc_verification.targets.target import Target


def ising(side: int = 3, coupling: float = 0.4, name: str = "ising-3x3") -> Target:
    """Spins -1 and 1 on a square lattice with free boundary, in a field that differs from site to site.

        U(s) = -J sum_{i ~ j} s_i s_j - sum_i b_i s_i,    b_i = (i - 2) / 10

    Each s_i may be any real number: the gradient at a state is -J times the sum of the neighbours less b_i, and the
    difference of U by a flip is exactly -2 s_i dU / ds_i.

    Args:
        side: of the lattice.
        coupling: J.
        name: of the target.
    """
    field = (np.arange(side * side) - 2) / 10

    def extension(s: jax.Array) -> jax.Array:
        grid = s.reshape(side, side)
        bonds = jnp.sum(grid[1:] * grid[:-1]) + jnp.sum(grid[:, 1:] * grid[:, :-1])
        return -coupling * bonds - jnp.sum(jnp.asarray(field, s.dtype) * s)

    space = FiniteStates(side * side, (-1, 1))
    return enumerated(name, space, lambda s: jnp.asarray(s, float), extension, "enumeration of 512 states")


ENTRIES = (TargetRow("ising-3x3", ising),)
