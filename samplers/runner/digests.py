"""Digests of runs: short texts by which a checkpoint knows the run that it belongs to."""

import hashlib
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def digest(value: object) -> str:
    """Hash the text of a value, without addresses in memory."""
    return hashlib.sha256(re.sub(r"0x[0-9a-f]+", "", str(value)).encode()).hexdigest()[:16]


def digest_arrays(arrays: Any) -> str:
    """Hash the contents of all leaves of a pytree."""
    h = hashlib.sha256()
    for leaf in jax.tree.leaves(arrays):
        array = np.asarray(jax.random.key_data(leaf) if is_key(leaf) else leaf)
        h.update(f"{array.dtype}{array.shape}".encode())
        h.update(np.ascontiguousarray(array).tobytes())
    return h.hexdigest()[:16]


def is_key(a: object) -> bool:
    """Decide if an object is an array of typed keys."""
    return isinstance(a, jax.Array) and jnp.issubdtype(a.dtype, jax.dtypes.prng_key)
