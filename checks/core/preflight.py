"""Preconditions of every check of a sampler: finite gradients, states of one shape."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.core.bad_input import BadInput
from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.error_origin import RAISED, one_line, place
from sgmcmc_verification.checks.core.start_position import start_position
from sgmcmc_verification.checks.programs.evaluation import evaluated
from sgmcmc_verification.samplers.estimators.basic import Exact, compiled_gradient
from sgmcmc_verification.samplers.estimators.host import Unintercepted
from sgmcmc_verification.samplers.interface.capabilities import on_host
from sgmcmc_verification.samplers.interface.claims import ParticleLaw
from sgmcmc_verification.targets.target import Target


def dtype_of(target: Target | None) -> str | None:
    """Name of the dtype of the positions of a target."""
    if target is None:
        return None
    return str(jnp.result_type(*jax.tree.leaves(target.example)))


def signature(tree: Any) -> tuple[Any, tuple[tuple[tuple[int, ...], str], ...]]:
    """Structure, shapes and dtypes of a pytree, comparable and printable."""
    leaves, structure = jax.tree.flatten(tree)
    return structure, tuple((tuple(np.shape(x)), str(getattr(x, "dtype", type(x).__name__))) for x in leaves)


def difference(before: Any, after: Any) -> str | None:
    """One phrase that says how the shapes of two pytrees differ; None if they do not."""
    (s1, l1), (s2, l2) = signature(before), signature(after)
    if s1 != s2:
        return f"structure {s1} became {s2}"
    paths = [jax.tree_util.keystr(path) or "the value" for path, _ in jax.tree_util.tree_flatten_with_path(before)[0]]
    for path, (shape1, dtype1), (shape2, dtype2) in zip(paths, l1, l2, strict=True):
        if shape1 != shape2:
            return f"{path} had shape {shape1}, has {shape2}"
        if dtype1 != dtype2:
            return f"{path} had dtype {dtype1}, has {dtype2}"
    return None


NOT_FINITE = "the gradient of the potential is not finite at the example position"


@functools.lru_cache(maxsize=512)
def _gradient_error(row: Any, target: Target) -> str | None:
    """Reason why the estimator of a row has no usable gradient at the example position of a target."""
    estimator = row.estimator(target)
    if type(estimator) is Exact:
        gradient = compiled_gradient(target)(target.example)[1]
        return None if _finite(gradient) else NOT_FINITE
    first = lambda key: estimator.estimate(key, estimator.init(key, target.example), target.example)[0]
    estimate = first(np.random.default_rng(0)) if on_host(estimator) else evaluated(first)(jax.random.key(0))
    if estimate.gradient is None:  # counts instead, for conditionally conjugate samplers
        return None
    changed = difference(target.relaxed(target.example), estimate.gradient)
    if changed and "dtype" not in changed:
        return f"the gradient of the estimator is not shaped like the position ({changed})"
    return None if _finite(estimate.gradient) else NOT_FINITE


@functools.lru_cache(maxsize=512)
def _problem(subject: Subject, target: Target, step: bool) -> str | None:
    where = f"{subject.name} on {target.name}"
    try:
        problem = _gradient_error(subject.row, target)
    except RAISED as error:
        return f"{where}: the gradient cannot be evaluated ({one_line(error)}{place(error)})"
    if problem:
        return f"{where}: {problem}"
    sampler, estimator = subject.sampler(target), subject.estimator(target)
    h = subject.step_size(target)
    host = on_host(sampler)
    start = start_position(sampler, target)
    init = lambda key: sampler.init(key, start, estimator)
    move = lambda key, state: sampler.step(key, state, h, estimator)
    try:
        if host:
            state = init(np.random.default_rng(0))
            after = move(np.random.default_rng(1), state)
        elif step:
            state = init(jax.random.key(0))
            after = evaluated(move)(jax.random.key(1), state)
        else:
            state = jax.eval_shape(init, jax.random.key(0))
            after = jax.eval_shape(move, jax.random.key(1), state)
    except Unintercepted:  # no obstacle to asking: each verdict says it
        return None
    except RAISED as error:
        return f"{where}: init or step raises {one_line(error)}{place(error)}"
    changed = difference(state, after)
    if changed and "dtype" not in changed:  # a changed dtype is a verdict of the contract tier
        if isinstance(after, tuple) and after and not difference(state, after[0]):
            return f"{where}: step returns a state and more beside it; return the state alone, as in `return state`"
        return f"{where}: step must return a state shaped like the one it gets, but {changed}"
    read = sampler.position if host or step else (lambda s: jax.eval_shape(sampler.position, s))
    changed = difference(target.example, read(after))
    if changed and "dtype" not in changed and ParticleLaw not in sampler.claims:
        return f"{where}: position(state) must be shaped like a position of the target, but {changed}"
    if _discrete(read(after)) and not _discrete(target.example):
        return (
            f"{where}: its positions are whole numbers; the target is a density on a continuous space"
            " (for a finite one claim spaces=('finite',))"
        )
    if (host or step) and not _finite(read(after)):
        return f"{where}: the position is not finite after one step of size {h:g} from the example position"
    return None


def _discrete(tree: Any) -> bool:
    """True if a leaf holds whole numbers."""
    return any(not jnp.issubdtype(jnp.result_type(leaf), jnp.inexact) for leaf in jax.tree.leaves(tree))


def _finite(tree: Any) -> bool:
    return all(np.all(np.isfinite(np.asarray(leaf))) for leaf in jax.tree.leaves(tree))


def preflight(subject: Subject, target: Target | None, step: bool = False) -> None:
    """Raise BadInput, with one line, if the sampler cannot be checked on the target at all.

    Args:
        subject: the sampler.
        target: where.
        step: take one real step (compiles it), else only trace shapes.
    """
    if target is None:
        return
    problem = _problem(subject, target, step)
    if problem:
        raise BadInput(problem)
