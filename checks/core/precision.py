"""A target in another floating-point precision."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from sgmcmc_verification.targets.target import Target


def in_dtype(target: Target, dtype: Any) -> Target:
    """The same target with positions (and data) of another float dtype."""
    cast = lambda tree: jax.tree.map(
        lambda x: jnp.asarray(x, dtype) if jnp.issubdtype(jnp.result_type(x), jnp.floating) else x, tree
    )
    terms = None if target.terms is None else target.terms._replace(data=cast(target.terms.data))
    return dataclasses.replace(target, example=cast(target.example), terms=terms)
