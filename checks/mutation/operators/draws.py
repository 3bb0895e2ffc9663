"""Mistakes of what is drawn: of rare draws, of some coordinates or leaves, in single precision."""

import ast
from collections.abc import Iterator

from sgmcmc_verification.checks.mutation.operators.tree import Edit, Scope, called, expressions, parsed, replace

ARRAYS = frozenset({"normal", "standard_normal"})
"""Calls that draw one array of standard normals."""
WHITE = ARRAYS | {"normal_like"}
"""Calls that draw standard normals, an array or a tree of them."""
DRAWS = WHITE | {"momentum_like", "injected_noise", "correlated_like", "projected_noise"}
"""Calls that draw normals of any covariance."""

LATER = "[n if i == 0 else 0.5 * n for i, n in enumerate(jax.tree.leaves(tree))]"


def _of_leaves(operator: str, scope: Scope, calls: frozenset[str], text: str) -> Iterator[Edit]:
    """A function of each array `n` that is drawn; `np` in its text is the library that the draw is of."""
    for node, _ in expressions(scope):
        if isinstance(node, ast.Call) and called(node) in calls:
            library = "np" if called(node) == "standard_normal" else "jax.numpy"
            function = parsed(f"lambda n: {text.replace('np.', f'{library}.')}")
            over = [] if called(node) in ARRAYS else [function]
            yield replace(operator, node, ast.Call(parsed("jax.tree.map") if over else function, [*over, node], []))


def clipped_draw(scope: Scope) -> Iterator[Edit]:
    """n -> clip(n, -4, 4): one normal in 16,000 is beyond."""
    return _of_leaves("clipped-draw", scope, WHITE, "np.clip(n, -4.0, 4.0)")


def one_for_all(scope: Scope) -> Iterator[Edit]:
    """The draw of the first coordinate serves for all coordinates of an array."""
    return _of_leaves("one-for-all", scope, DRAWS, "np.broadcast_to(np.ravel(n)[0], np.shape(n))")


def one_for_rows(scope: Scope) -> Iterator[Edit]:
    """The draws of the first row serve for all rows of a matrix: noise of shape x.shape[-1:]."""
    return _of_leaves("one-for-rows", scope, DRAWS, "np.broadcast_to(n[:1], n.shape) if n.ndim > 1 else n")


def first_coordinates(scope: Scope) -> Iterator[Edit]:
    """Only the first ten coordinates of an array have noise."""
    return _of_leaves("first-coordinates", scope, DRAWS, "np.where(np.arange(n.size).reshape(n.shape) < 10, n, 0.0)")


def later_leaves(scope: Scope) -> Iterator[Edit]:
    """Half of the noise in all leaves of a tree but the first."""
    halved = parsed(f"lambda tree: jax.tree.unflatten(jax.tree.structure(tree), {LATER})")
    for node, _ in expressions(scope):
        if isinstance(node, ast.Call) and called(node) in DRAWS - ARRAYS:
            yield replace("later-leaves", node, ast.Call(halved, [node], []))


def half_in_single(scope: Scope) -> Iterator[Edit]:
    """Half of the noise in single precision, all of it in double precision."""
    return _of_leaves("half-in-single", scope, WHITE, "0.5 * n if n.dtype == 'float32' else n")
