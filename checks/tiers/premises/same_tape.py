"""Single precision: the same draws lead to the same states in float32 and in float64, for fifty steps."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.core.check import Case, NotApplicable, OutOfReach, statement
from sgmcmc_verification.checks.core.error_origin import RAISED, one_line
from sgmcmc_verification.checks.core.finding import Finding, Tolerance
from sgmcmc_verification.checks.core.precision import in_dtype
from sgmcmc_verification.checks.core.selection import informative
from sgmcmc_verification.checks.core.start_position import start_state
from sgmcmc_verification.checks.proof.hosts.generators import KeyedGenerator
from sgmcmc_verification.checks.proof.hosts.tensors import is_of_torch
from sgmcmc_verification.checks.tracing.noise_tape import Noise, record, require_fed
from sgmcmc_verification.checks.tracing.step_map import host_ravel, ravel_floats
from sgmcmc_verification.samplers.interface.capabilities import MappedSampler, on_host
from sgmcmc_verification.samplers.interface.claims import Claims, ParticleLaw
from sgmcmc_verification.samplers.interface.sampler import Sampler

EPS = float(np.finfo(np.float32).eps)
STEPS = 50
"""Steps of the longer comparison."""
GROWTH = 16.0
"""Factor by which a run may enlarge a shift of one unit of its start; beyond, round-off alone leads it elsewhere."""
UNITS = 256.0
"""Units in the last place of a state that a step may lose: sums over data and coordinates, solvers, exponentials."""


@statement(
    tier="contract",
    equation="z_t in float32 = z_t in float64 at the same draws, to round-off",
    targets=lambda subject: informative(subject)[-1:],
    cost=0.7,
    decides="dynamics",
    once=True,
    about=("half-in-single",),
)
def same_tape(case: Case) -> Finding:
    """At the same values of all draws a run in float32 is the run in float64, to the round-off of single precision.

    They are compared for as long as the run in float64 from a start that is a unit of single precision away stays near
    it: the walkers of an ensemble, which jump by multiples of their differences, part within a few steps.
    """
    sampler = case.subject.sampler(case.target)
    if isinstance(sampler.claims, Claims) and ParticleLaw in sampler.claims:
        raise NotApplicable("a particle method draws no noise")
    single, double, shifted = (_runs_of_host if on_host(sampler) else _runs)(case, sampler)
    if not np.all(np.isfinite(double)):
        raise OutOfReach("the run in float64 is not finite")
    scale = 1 + np.abs(double).max(axis=1)
    parted = ~(np.abs(shifted - double).max(axis=1) <= GROWTH * EPS * scale)
    compared = max(1, int(np.argmax(parted))) if parted.any() else STEPS
    gaps = np.abs(single - double)[:compared].max(axis=1) / scale[:compared]
    steps = np.arange(1, compared + 1)
    excess = gaps / (UNITS * EPS * (1 + steps))
    k = int(np.argmax(np.where(np.isfinite(excess), excess, np.inf)))
    tolerance = UNITS * EPS * (1 + steps[k])
    return Finding(
        effect=float(gaps[k]),
        tolerance=Tolerance(float(tolerance), f"{UNITS:.0f} units of single precision a step"),
        required_sensitivity=0.1,
        reason=f"after {steps[k]} steps float32 and float64 differ by {gaps[k]:.3g}",
        statistic="difference of z and position at the same draws",
        unit="relative to 1 + the largest entry",
        step_size=case.step_size,
    )


def _is_real(leaf: Any) -> bool:
    return jnp.issubdtype(jnp.result_type(leaf), jnp.floating)


def _shifted(tree: Any) -> Any:
    """All real numbers of a tree, each a unit of single precision away."""
    return jax.tree.map(lambda x: x + EPS * (1 + abs(x)) if _is_real(x) else x, tree)


def _runs(case: Case, sampler: Sampler) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(STEPS, n + d): z and position along runs in float32, in float64 and from a shifted start, at given draws."""
    start = start_state(sampler, jax.random.key(0), case.target.example, case.subject.estimator(case.target))
    # one z for both: what of a state is a cache is found out by running, and may come out otherwise in float32
    read = lambda state: [ravel_floats(tree)[0] for tree in (sampler.unpack(state), sampler.position(state))]
    single, double = (_run(case, name, start, read) for name in ("float32", "float64"))
    return single, double, _run(case, "float64", _shifted(start), read)


def _runs_of_host(case: Case, sampler: Sampler) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The positions (STEPS, d) of a sampler whose draws are those of the generator of NumPy it is given."""
    if isinstance(sampler, MappedSampler) or is_of_torch(sampler):
        raise OutOfReach("the draws of the sampler are not those of a generator of NumPy")
    single, double, again = (_run_on_host(case, name) for name in ("float32", "float64", "float64"))
    if not np.array_equal(double, again, equal_nan=True):
        raise OutOfReach("the sampler has draws, or a memory, of its own")
    return single, double, _run_on_host(case, "float64", _shifted)


def _run_on_host(case: Case, dtype: str, moved: Callable[[Any], Any] = lambda position: position) -> np.ndarray:
    target = in_dtype(case.target, dtype)
    try:
        sampler, estimator = case.subject.sampler(target), case.subject.estimator(target)
        first, *keys = jax.random.split(jax.random.key(0), STEPS + 1)
        position = moved(jax.tree.map(np.array, target.example))
        state, rows = sampler.init(KeyedGenerator(first), position, estimator), []
        with np.errstate(all="ignore"):  # what overflows in single precision is what is looked for
            for key in keys:
                state = sampler.step(KeyedGenerator(key), state, case.step_size, estimator)
                rows.append(host_ravel(sampler.position(state)).astype(float))
    except RAISED as error:
        raise OutOfReach(f"no step can be taken in this precision ({one_line(error, 120)})") from None
    return np.stack(rows)


def _cast(tree: Any, like: Any) -> Any:
    """The leaves in the dtypes of `like`, or all numbers among them in one dtype."""
    if isinstance(like, str):
        return jax.tree.map(lambda leaf: jnp.asarray(leaf, like) if _is_real(leaf) else leaf, tree)
    return jax.tree.map(lambda leaf, other: leaf.astype(other.dtype) if hasattr(leaf, "astype") else leaf, tree, like)


def _run(case: Case, dtype: str, start: Any, read: Callable[[Any], Any]) -> np.ndarray:
    """(STEPS, n + d): z and position along a run from a state, at given draws."""
    target = in_dtype(case.target, dtype)
    sampler, estimator = case.subject.sampler(target), case.subject.estimator(target)
    try:
        state = jax.tree.map(jnp.asarray, _cast(start, dtype))
        h = jnp.asarray(case.step_size, dtype)
        program = record(lambda s: sampler.step(jax.random.key(0), s, h, estimator), state)
    except Exception as error:
        raise OutOfReach(f"the step cannot be traced in this precision ({one_line(error, 120)})") from None
    require_fed(program)
    draws = np.random.default_rng(0)
    tape = Noise(
        draws.standard_normal((STEPS, program.count("normal"))),
        draws.uniform(size=(STEPS, program.count("uniform"))),
        draws.integers(0, np.maximum(program.ranges, 1), (STEPS, len(program.ranges))),
    )

    @jax.jit
    def step(state: Any, noise: Noise) -> tuple[Any, list[jax.Array]]:
        after = _cast(program(noise, state), state)
        return after, read(after)

    rows = []
    for t in range(STEPS):
        state, parts = step(state, Noise(*(values[t] for values in tape)))
        rows.append(np.concatenate([np.asarray(part, float) for part in parts]))
    return np.stack(rows)
