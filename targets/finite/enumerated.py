"""A target on finitely many states from the extension of its potential."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from sgmcmc_verification.targets.manifolds.finite import FiniteStates
from sgmcmc_verification.targets.numerics.quadrature import coordinate
from sgmcmc_verification.targets.target import FiniteLaw, Moment, Position, Target


def enumerated(
    name: str,
    space: FiniteStates,
    relaxed: Callable[[Position], jax.Array],
    extension: Callable[[jax.Array], jax.Array],
    source: str,
) -> Target:
    """The law exp(-U) on the states of a space, by enumeration, with draws by their probabilities.

    Args:
        name: of the target.
        space: whose states are listed.
        relaxed: position -> code.
        extension: code -> U.
        source: of the law.
    """
    states = space.states
    potential = lambda x: extension(relaxed(x))
    energies = np.asarray(jax.vmap(potential)(jnp.asarray(states)), np.float64)
    probabilities = special.softmax(-energies)

    def sample(key: jax.Array, n: int) -> jax.Array:
        return jnp.asarray(states)[jax.random.choice(key, len(states), (n,), p=jnp.asarray(probabilities))]

    return Target(
        name=name,
        manifold=space,
        example=jnp.asarray(states[int(np.argmax(probabilities))]),
        potential=potential,
        sample=sample,
        moments={f"x[{i}]": Moment(coordinate(i), float(probabilities @ states[:, i])) for i in range(space.sites)},
        finite=FiniteLaw(states, probabilities, space.index, relaxed, extension),
        source=source,
    )


def one_hot(categories: int) -> Callable[[Position], jax.Array]:
    """Position (n,) of numbers 0 .. K - 1 -> (n, K), a unit vector for each site."""
    return lambda x: jax.nn.one_hot(x, categories, dtype=float)
