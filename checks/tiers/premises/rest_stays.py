"""Rest of a position of which a part moves: the law of the part given the rest is one only where the rest stays."""

from typing import Any

import jax
import numpy as np

from sgmcmc_verification.checks.core.check import Case, NotApplicable, statement
from sgmcmc_verification.checks.core.finding import Finding, Tolerance
from sgmcmc_verification.checks.core.selection import structured_targets
from sgmcmc_verification.samplers.interface.capabilities import PartSampler, on_host
from sgmcmc_verification.samplers.interface.claims import Moves

CHAINS, STEPS = 64, 64
HOST_CHAINS, HOST_STEPS = 4, 32
EPS = float(np.finfo(float).eps)


@statement(
    tier="contract",
    equation="r_(n+1) = r_n for the rest r of the position",
    targets=lambda subject: tuple(dict.fromkeys((*subject.row.targets, *structured_targets(subject)))),
    cost=0.5,
    decides="dynamics",
)
def rest_stays(case: Case, seed: int, claim: Moves) -> Finding:
    """Numbers that are not of the part which the sampler claims to move are moved by no step.

    Along chains from the example of the target; each step starts with the rest where it was, so that what is measured
    is what one step makes of it. What the other statements decide is the law of the part where the rest is kept.
    """
    del claim
    sampler, estimator, h = case.subject.sampler(case.target), case.subject.estimator(case.target), case.step_size
    if not isinstance(sampler, PartSampler):
        raise NotApplicable("the claim is not that of a sampler whose positions are known")
    start = case.target.example
    if on_host(sampler):
        generator, moved = np.random.default_rng(seed % 2**31), []
        for _ in range(HOST_CHAINS):
            state = sampler.init(generator, jax.tree.map(np.array, start), estimator)
            for _ in range(HOST_STEPS):
                state = sampler.step(generator, state, h, estimator)
                moved.append(np.asarray(sampler.rest(state)))
        rests = np.array(moved)
    else:

        def chain(key: jax.Array) -> jax.Array:
            state = sampler.init(key, start, estimator)

            def advance(state: Any, key: jax.Array) -> tuple[Any, Any]:
                state = sampler.step(key, state, h, estimator)
                return state, sampler.rest(state)

            return jax.lax.scan(advance, state, jax.random.split(key, STEPS))[1]

        keys = jax.random.split(jax.random.key(seed % 2**31), CHAINS)
        rests = np.asarray(jax.jit(jax.vmap(chain))(keys)).reshape(CHAINS * STEPS, -1)
    sizes = np.abs(rests).max(axis=0)
    allowance = 10 * EPS
    return Finding(
        effect=float(sizes.max()),
        tolerance=Tolerance(allowance, "round-off of numbers below two"),
        reason=(
            f"{np.count_nonzero(sizes > allowance)} of {sizes.size} numbers of the rest move, the farthest by "
            f"{sizes.max():.3g} in a step"
        ),
        statistic="largest move of the rest in a step",
        unit="of the position",
        required_sensitivity=1e-6,
        step_size=h,
        samples=len(rests),
        gradients=len(rests),
    )
