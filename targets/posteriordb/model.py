"""The density of a model: its constrained parameters, its prior, and the likelihood of one datum."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.targets.posteriordb.bijections import Bijection

Values = Mapping[str, jax.Array]
"""Constrained parameters, or reported quantities, by name."""


class Parameter(NamedTuple):
    """Domain and shape of a parameter."""

    bijection: Bijection
    shape: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """The number of its entries."""
        return math.prod(self.shape)


@dataclass(frozen=True, eq=False)
class Model:
    """A model with its data.

        log p(x | data) = log_prior(y) + sum_i log_likelihood(y, data[i]) + log |det T'(x)|,  y = T(x)

    Densities are normalised, with respect to Lebesgue measure of the constrained parameters y; flat priors are 0.

    Attributes:
        parameters: by name, in the order of the position x in R^d.
        log_prior: y -> scalar.
        log_likelihood: (y, datum) -> scalar; the floating-point arrays of the datum come in the dtype of y.
        data: pytree of NumPy arrays with a common leading axis.
        quantities: y -> what the reference draws hold, by name.
        parameters_of: its inverse.
    """

    parameters: Mapping[str, Parameter]
    log_prior: Callable[[Values], jax.Array]
    log_likelihood: Callable[[Values, Any], jax.Array]
    data: Any
    quantities: Callable[[Values], Values] = lambda values: values
    parameters_of: Callable[[Values], Values] = lambda values: values

    @property
    def dim(self) -> int:
        """d."""
        return sum(parameter.size for parameter in self.parameters.values())

    def constrain(self, position: jax.Array) -> Values:
        """y = T(x) for a position (d,)."""
        return {name: p.bijection.forward(x) for name, p, x in self._blocks(position)}

    def log_jacobian(self, position: jax.Array) -> jax.Array:
        """log |det T'(x)|."""
        return sum(
            (p.bijection.log_jacobian(x) for _, p, x in self._blocks(position)),
            jnp.zeros((), jnp.result_type(position)),
        )

    def unconstrain(self, values: Values) -> jax.Array:
        """x = T^-1(y), (d,)."""
        return jnp.concatenate([jnp.ravel(p.bijection.inverse(values[name])) for name, p in self.parameters.items()])

    def prior(self, position: jax.Array) -> jax.Array:
        """- log_prior(T(x)) - log |det T'(x)|."""
        return -self.log_prior(self.constrain(position)) - self.log_jacobian(position)

    def datum(self, position: jax.Array, row: Any) -> jax.Array:
        """- log_likelihood(T(x), row)."""
        return -self.log_likelihood(self.constrain(position), _in_dtype(row, jnp.result_type(position)))

    def potential(self, position: jax.Array) -> jax.Array:
        """U(x) = - log p(x | data), `prior` plus the sum of `datum`."""
        values, rows = self.constrain(position), _in_dtype(self.data, jnp.result_type(position))
        return self.prior(position) - jnp.sum(jax.vmap(self.log_likelihood, (None, 0))(values, rows))

    def _blocks(self, position: jax.Array):
        position, start = jnp.asarray(position), 0
        for name, parameter in self.parameters.items():
            yield name, parameter, position[start : start + parameter.size].reshape(parameter.shape)
            start += parameter.size


def _in_dtype(rows: Any, dtype: Any) -> Any:
    """Floating-point arrays in the dtype of the position; indices as they are."""
    cast = lambda leaf: jnp.asarray(leaf, dtype if jnp.issubdtype(jnp.result_type(leaf), jnp.floating) else None)
    return jax.tree.map(cast, rows)
