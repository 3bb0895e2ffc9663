"""Every reference sampler, one row each."""

import difflib

from samplers.row import Row
from samplers.sghmc import SGHMC
from samplers.sgld import SGLD

_HOT_AND_COLD = ({"temperature": 0.5}, {"temperature": 2.0})
_FRICTIONS = ({"friction": 2.0, "temperature": 0.5}, {"friction": 0.4, "temperature": 2.0})

SAMPLERS: tuple[Row, ...] = (
    Row("sgld", lambda target, **o: SGLD(**o), variants=_HOT_AND_COLD),
    Row("sghmc", lambda target, **o: SGHMC(**o), variants=_FRICTIONS, step_power=0.5),
)
"""The rows, in the order in which they are run."""


def sampler_row(name: str) -> Row:
    """The row of a reference sampler. Raises KeyError with the closest names."""
    for row in SAMPLERS:
        if row.name == name:
            return row
    near = difflib.get_close_matches(name, [row.name for row in SAMPLERS], n=3, cutoff=0.5)
    hint = f"did you mean {', '.join(map(repr, near))}?" if near else "see SAMPLERS for the names"
    raise KeyError(f"no sampler named {name!r}; {hint}")
