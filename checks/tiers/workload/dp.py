"""Samplers of the Dirichlet-process mixture against the enumerated posterior, and Geweke's joint test."""

from collections.abc import Sequence
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.statistics.geweke import joint_test
from sgmcmc_verification.checks.statistics.moments import mean_test
from sgmcmc_verification.checks.statistics.outcome import Outcome, bonferroni
from sgmcmc_verification.checks.statistics.proportion import proportion_test
from sgmcmc_verification.checks.tiers.workload.trial import (
    EXTRAPOLATED,
    JOINT,
    LAW,
    LIMIT,
    MEAN,
    UNIT,
    Moments,
    Trial,
    trials,
)
from sgmcmc_verification.samplers.positive.gamma_updates import CIRUpdate, GammaUpdate, log_gamma_draws
from sgmcmc_verification.samplers.topic_models.dp.enumerated import Batches, Slices
from sgmcmc_verification.samplers.topic_models.dp.slice import DPSlice, DPState, Users, normalised
from sgmcmc_verification.targets.numerics.ragged import SparseRows, sparse_rows
from sgmcmc_verification.targets.topic_models.dp_mixture import PartitionPosterior, canonical

RARE = 5
"""Partitions of which fewer than this number of replicates are expected are one class."""


def partition_test(
    sampler: DPSlice, posterior: PartitionPosterior, step_size, *, seed: int, replicates: int, sweeps: int = 2
) -> list[Outcome]:
    """Test that steps with all users keep p(partition, alpha | x), from independent exact starts.

        P(partition after the steps = s) = p(s | x) for every s;   E alpha = E(alpha | x) where alpha is random

    Every replicate starts from its own exact draw of (alpha, z), with sticks and atoms from their Gamma laws given z:
    the ends are independent, and nothing is said of mixing. From there one step of SCIR is exact at any step size
    (`DPSlice`, Error); of more steps only a sampler that forgets where it was keeps the posterior exactly.

    Source: the enumeration of `targets.topic_models.dp_mixture.PartitionPosterior`; the tail of
    `checks.statistics.moments`.

    Args:
        sampler: with `ExactGamma`, or with `CIRUpdate` and one step.
        posterior: the tiny model and its users.
        step_size: of the sampler.
        seed: of the starts and the steps.
        replicates: number of independent chains.
        sweeps: steps of each.

    Returns:
        One outcome for the partition, and one for the mean of a random alpha.
    """
    generator = np.random.default_rng(seed)
    users, labels, alphas = Users(posterior.rows), [], []
    for alpha, z in posterior.draw(generator, replicates):
        state = conditional(sampler, generator, alpha, z, posterior.rows)
        for _ in range(sweeps):
            state = sampler.step(generator, state, step_size, users)
        labels.append(state.labels)
        alphas.append(state.concentration)
    outcomes = [bonferroni("law of the partition", partition_outcomes(np.array(labels), posterior))]
    if posterior.model.concentration is None:
        mean, deviation = posterior.concentration_moments()
        unit = "standard deviations"
        outcomes.append(mean_test(np.array(alphas), mean, name="mean of alpha", unit=unit, scale=deviation))
    return outcomes


def partition_outcomes(labels: np.ndarray, posterior: PartitionPosterior) -> list[Outcome]:
    """A test for every partition that is not `RARE`, and one of all others, from independent labels (R, n)."""
    count, p = len(labels), posterior.probabilities
    common = p * count >= RARE
    match = np.all(canonical(labels)[:, None, :] == posterior.strings[common], axis=2)
    counts = [*match.sum(axis=0), count - match.sum()]
    names = [*("".join(map(str, s)) for s in posterior.strings[common]), "all others"]
    chances = [*p[common], 1 - p[common].sum()]
    return [
        proportion_test(int(k), count, float(chance), name=f"partition {name}")
        for k, name, chance in zip(counts, names, chances, strict=True)
        if chance > 1e-9  # nothing is rare: what is left over is round-off
    ]


NAMES = ("alpha", "log alpha", "components in use", "z*", "largest component", "log likelihood")


def joint_outcomes(
    sampler: DPSlice, lengths: Sequence[int], step_size, *, seed: int, replicates: int, sweeps: int = 3
) -> list[Outcome]:
    """Geweke's joint test of (alpha, z, v, theta) and data of users with `lengths` visits, `NAMES` being looked at.

    Args:
        sampler: an exact one with a random alpha.
        lengths: visits of each user.
        step_size: of the sampler.
        seed: of the test.
        replicates: number of independent chains.
        sweeps: steps of each, with new data between them.
    """
    model, sizes = sampler.model, np.asarray(lengths)

    def prior(generator, count):
        states = []
        for _ in range(count):
            alpha, z, _ = model.simulate(generator, sizes)
            states.append(conditional(sampler, generator, alpha, z))
        return states

    def data(generator, states):
        return [observed(generator, state, sizes) for state in states]

    def transition(generator, states, rows):
        return [sampler.step(generator, s, step_size, Users(x)) for s, x in zip(states, rows, strict=True)]

    def functions(states, rows):
        return np.array([summary(s, x) for s, x in zip(states, rows, strict=True)])

    return joint_test(prior, data, transition, functions, seed=seed, replicates=replicates, sweeps=sweeps, names=NAMES)


def conditional(
    sampler: DPSlice, generator: np.random.Generator, alpha: float, z: np.ndarray, rows: SparseRows | None = None
) -> DPState:
    """The state given alpha, z and data: sticks Gamma((1 + m_j, alpha + M_j)), atoms Gamma(a + visits).

    Without `rows` the atoms are those of the prior.
    """
    state = sampler.start(generator, alpha, z)
    used = np.bincount(z)
    shape = np.stack([1.0 + used, alpha + len(z) - np.cumsum(used)], axis=1)
    state = state._replace(log_sticks=log_gamma_draws(generator, shape))
    if rows is None:
        return state
    visits = np.zeros_like(state.log_atoms)
    np.add.at(visits, z, rows.dense())
    return state._replace(log_atoms=log_gamma_draws(generator, sampler.model.base + visits))


def observed(generator: np.random.Generator, state: DPState, lengths: np.ndarray):
    """x given z and theta."""
    theta = np.exp(normalised(state.log_atoms))[state.labels]
    return sparse_rows(generator.multinomial(lengths, theta / theta.sum(axis=1, keepdims=True)))


def summary(state: DPState, rows) -> list[float]:
    """The functions `NAMES`; of the likelihood the terms that depend on theta."""
    used = np.bincount(state.labels)
    log_theta = normalised(state.log_atoms)[state.labels]
    x = rows.dense()
    likelihood = float(np.sum(np.where(x > 0, x * log_theta, 0.0)))
    alpha = state.concentration
    return [alpha, np.log(alpha), float(np.count_nonzero(used)), float(len(used)), float(used.max()), likelihood]


def mean_after(update: GammaUpdate, theta: np.ndarray, prior: np.ndarray, counts: np.ndarray, h: float) -> np.ndarray:
    """E theta' (K, d) of an update: e^-h theta + (1 - e^-h) (a + n) of the CIR process; of Euler's method

    theta + h (1 - diag(theta) grad U),  U = sum theta - sum (a - 1) log theta - sum n log(theta / theta_.).
    """
    if isinstance(update, CIRUpdate):
        return np.exp(-h) * theta - np.expm1(-h) * (prior + counts)

    def potential(x):
        share = jnp.log(x) - jnp.log(jnp.sum(x, axis=-1, keepdims=True))
        return jnp.sum(x) - jnp.sum((prior - 1) * jnp.log(x)) - jnp.sum(counts * share)

    return theta + h * (1 - theta * np.asarray(jax.grad(potential)(jnp.asarray(theta))))


def functions(strings: np.ndarray) -> np.ndarray:
    """Functions (R, n (n - 1) / 2 + 1) of partitions (R, n): which pairs are together, and how many components."""
    first, second = np.triu_indices(strings.shape[1], 1)
    return np.column_stack([strings[:, first] == strings[:, second], strings.max(axis=1) + 1]).astype(float)


@cache
def moments(law: PartitionPosterior) -> Moments:
    """`functions` with their expectations."""
    values, p = functions(law.strings), law.probabilities
    mean = p @ values
    pairs = [f"users {i} and {j} together" for i, j in zip(*np.triu_indices(law.rows.size, 1), strict=True)]
    return Moments([*pairs, "components"], mean, np.sqrt(p @ (values - mean) ** 2), np.zeros(len(mean)))


# Kernels -----------------------------------------------------------------------------------------------------------

PARTITIONS = "the sum over all partitions of the users"
LENGTHS = (3, 2, 1, 3)
"""Visits of the users of Geweke's test."""


@trials.register
def slice_trials(kernel: Slices, step_size: float) -> dict[str, Trial]:
    """Trials of `Slices`."""
    unit = "probability"
    found = {LAW: Trial(partial(_slice_law, kernel, step_size), kernel.chains, 0.12, unit, PARTITIONS, kernel.steps)}
    if kernel.update.exact and kernel.posterior.law.model.concentration is None:
        found[JOINT] = Trial(
            partial(_slice_joint, kernel, step_size), 2000, 0.4, UNIT, "the joint law of everything and the data", 3
        )
    return found


def _slice_law(kernel: Slices, step_size: float, seed: int, count: int) -> list[Outcome]:
    """The partition, and the mean of a random alpha, from exact starts."""
    return partition_test(
        kernel.made(), kernel.posterior.law, step_size, seed=seed, replicates=count, sweeps=kernel.steps
    )


def _slice_joint(kernel: Slices, step_size: float, seed: int, count: int) -> list[Outcome]:
    """Geweke's test."""
    return joint_outcomes(kernel.made(), LENGTHS, step_size, seed=seed, replicates=count)


@trials.register
def batch_trials(kernel: Batches, step_size: float) -> dict[str, Trial]:
    """Trials of `Batches`."""
    return {
        LIMIT: Trial(partial(_batch_limit, kernel, step_size), 1500, 1.0, UNIT, EXTRAPOLATED, 7 * kernel.steps),
        MEAN: Trial(
            partial(_batch_estimates, kernel), 20_000, 0.1, UNIT, "the mean of the step for the counts of all users", 1
        ),
    }


def _batch_estimates(kernel: Batches, seed: int, count: int) -> list[Outcome]:
    """Sticks and atoms after one step from far inside, where no step is mirrored at zero."""
    law, h, generator = kernel.posterior.law, 0.2, np.random.default_rng(seed)
    sampler, users = DPSlice(law.model, kernel.update), kernel.users(law.rows, kernel.batch)
    labels = np.array([0, 1, 0, 1])
    sticks, atoms = np.array([[40.0, 25.0], [30.0, 50.0]]), np.array([[30.0, 40.0, 25.0], [50.0, 25.0, 30.0]])
    drawn = [users.draw(generator) for _ in range(count)]
    counted = [sampler.counts(labels[b], law.rows.take(b), 2, users.scale) for b in drawn]
    everyone = sampler.counts(labels, law.rows, 2, 1.0)
    values, expected = [], []
    for part, (theta, prior) in enumerate(
        ((sticks, np.array([1.0, law.model.concentration])), (atoms, np.full(3, law.model.base)))
    ):
        n = np.array([c[part] for c in counted])
        moved = kernel.update(generator, np.log(np.tile(theta, (count, 1, 1))), prior, n, h)
        values.append(np.exp(moved).reshape(count, -1))
        expected.append(mean_after(kernel.update, theta, prior, everyone[part], h).ravel())
    found, mean = np.concatenate(values, axis=1), np.concatenate(expected)
    names = [f"stick {i}" for i in range(4)] + [f"atom {i}" for i in range(6)]
    return Moments(names, mean, found.std(axis=0), np.zeros(len(mean))).law(found)


def _batch_limit(kernel: Batches, step_size: float, seed: int, count: int) -> list[Outcome]:
    """Pairs of users together, and the number of components, at h, h/2, h/4, from shared exact starts."""
    law = kernel.posterior.law
    sampler, users = DPSlice(law.model, kernel.update), kernel.users(law.rows, kernel.batch)
    generator = np.random.default_rng([seed, 3])
    starts = [conditional(sampler, generator, alpha, z, law.rows) for alpha, z in law.draw(generator, count)]
    values = []
    for k in range(3):
        generator = np.random.default_rng([seed, k])
        labels = np.empty((count, law.rows.size), np.int64)
        for row, start in zip(labels, starts, strict=True):
            state = start
            for _ in range(kernel.steps * 2**k):
                state = sampler.step(generator, state, step_size / 2**k, users)
            row[:] = state.labels
        values.append(functions(canonical(labels)))
    return moments(law).limit(np.stack(values), 1)
