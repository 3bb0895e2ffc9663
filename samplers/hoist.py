"""Take the random draws of a step out of the loop over steps."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax


class Parts(NamedTuple):
    """A step in two parts: `step(key, state, h) = update(consts, draw(consts, key), state, h)`.

    Attributes:
        consts: arrays that the step refers to, such as data.
        draw: what depends on the key alone; None if the step is not split, and then `update` takes the key.
        update: the rest.
        draw_bytes: memory of the value of `draw`.
        jaxpr: the traced step.
    """

    consts: list
    draw: Callable[[list, jax.Array], Any] | None
    update: Callable[[list, Any, Any, Any], Any]
    draw_bytes: int
    jaxpr: Any


def whole(step: Callable, key: Any, state: Any, step_size: Any) -> Parts:
    """The step as one part, with its constants taken out."""
    closed, shape = jax.make_jaxpr(step, return_shape=True)(key, state, step_size)
    out = jax.tree.structure(shape)

    def update(consts, draws, state, h):
        return jax.tree.unflatten(out, jax.core.eval_jaxpr(closed.jaxpr, consts, *jax.tree.leaves((draws, state, h))))

    return Parts(list(closed.consts), None, update, 0, closed.jaxpr)


split = whole
