"""Types of numbers and arrays; their shapes are named where they are used."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Array, Float, PyTree

AnyArray = Array | np.ndarray
"""An array of JAX, traced or not, or of NumPy."""
Real = float | Float[AnyArray, ""]
"""A real number, traced or not."""
ArrayLike = float | AnyArray | Sequence[object]
"""A value that `numpy.asarray` takes; numpy.typing's type of this name refuses tuples at run time."""
if TYPE_CHECKING:  # pyright does not know the inside of a PyTree
    Tree = Any
else:
    Tree = PyTree[float | Float[AnyArray, "..."]]
"""Any tree of real arrays: a point, a velocity, a momentum."""
