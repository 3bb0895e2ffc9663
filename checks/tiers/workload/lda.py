"""Kernels of LDA on a corpus whose topics are enumerated: both Gibbs samplers, and every sampler of topics."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.statistics.geweke import joint_test
from sgmcmc_verification.checks.statistics.outcome import Outcome
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
from sgmcmc_verification.samplers.interface.sampler import Estimate, Sampler
from sgmcmc_verification.samplers.positive.cir_transition import streams
from sgmcmc_verification.samplers.topic_models.lda.collapsed import collapsed_state
from sgmcmc_verification.samplers.topic_models.lda.enumerated import (
    CollapsedSweep,
    DocumentSweep,
    ExactCounts,
    ExactTopics,
    GibbsCounts,
    Topics,
)
from sgmcmc_verification.samplers.topic_models.lda.gibbs import Sweeps, Weights
from sgmcmc_verification.samplers.topic_models.lda.run import Given
from sgmcmc_verification.targets.datasets.corpus import Corpus, from_documents
from sgmcmc_verification.targets.datasets.tokenise import Vocabulary
from sgmcmc_verification.targets.topic_models.lda.model import LDA
from sgmcmc_verification.targets.topic_models.lda.tiny import TinyLDA, tiny_lda

NAMES = ("sum phi_0k^2", "sum phi_0k phi_1k", "phi_00 phi_01", "phi_20 phi_21", "exp(-total / 10)")
PHI = np.array([[0.6, 0.1], [0.3, 0.2], [0.1, 0.7]])
"""Topics (3, 2) that are given where the sampler of a document is looked at."""
ENUMERATION = "sums over all topics of all words"
STICKY = TinyLDA(LDA(2, 3, alpha=0.05, beta=2.5), tiny_lda().documents)
"""Documents that keep to one topic: a chain that forgets its start slowly."""


def statistics(theta: np.ndarray) -> np.ndarray:
    """Functions (C, 5) of theta (C, V, K) that do not change when the topics change their names."""
    phi = theta / theta.sum(axis=1, keepdims=True)
    return np.stack(
        [
            (phi[:, 0] ** 2).sum(-1),
            (phi[:, 0] * phi[:, 1]).sum(-1),
            phi[:, 0, 0] * phi[:, 0, 1],
            phi[:, 2, 0] * phi[:, 2, 1],
            np.exp(-theta.sum(axis=(1, 2)) / 10),  # of Euler's method the total itself has no moments
        ],
        axis=-1,
    )


def expectations(tiny: TinyLDA) -> np.ndarray:
    """Of `statistics`, sums over all assignments."""
    m, model = tiny.moment, tiny.model
    return np.array(
        [
            m((0, 0, 2)) + m((0, 1, 2)),
            m((0, 0, 1), (1, 0, 1)) + m((0, 1, 1), (1, 1, 1)),
            m((0, 0, 1), (0, 1, 1)),
            m((2, 0, 1), (2, 1, 1)),
            1.1 ** -(model.words * model.topics * model.beta),
        ]
    )


@cache
def moments(tiny: TinyLDA) -> Moments:
    """`statistics` with their expectations; the scale, a mere unit, is from exact draws."""
    scale = statistics(tiny.sample(np.random.default_rng(0), 4000)).std(axis=0)
    return Moments(NAMES, expectations(tiny), scale, np.zeros(len(NAMES)))


@cache
def _moves(sampler: Sampler):
    """The step of many chains, compiled once a sampler."""

    def move(key, state, step_size, gradient):
        return sampler.step(key, state, step_size, Given(Estimate(gradient), state.position))

    return jax.jit(jax.vmap(move, in_axes=(0, 0, None, 0)))


class _NoState:
    """An estimator without a state, for `init`."""

    def init(self, key, position):
        del key, position
        return ()


def end_points(sampler, estimator, start: np.ndarray, step_size: float, num_steps: int, seed: int) -> np.ndarray:
    """theta (C, V, K) of chains after `num_steps` steps from `start`, by the step and the estimate of the driver."""
    generator = np.random.default_rng(seed)
    if sampler.backend == "host":
        state = sampler.init(generator, start, estimator)
        for _ in range(num_steps):
            state = sampler.step(generator, state, step_size, estimator)
        return np.asarray(sampler.position(state))
    key = jax.random.key(seed)
    keys = lambda t: jax.random.split(jax.random.fold_in(key, t), len(start))
    state = jax.vmap(lambda k, x: sampler.init(k, x, _NoState()))(keys(0), jnp.asarray(start))
    for t in range(1, num_steps + 1):
        gradient = estimator.estimate(generator, (), np.asarray(state.position))[0].gradient
        state = _moves(sampler)(keys(t), state, step_size, jnp.asarray(gradient))
    return np.asarray(state.position)


@trials.register
def topic_trials(kernel: Topics, step_size: float) -> dict[str, Trial]:
    """Trials of `Topics`."""
    found = {LIMIT: Trial(partial(_topic_limit, kernel, step_size), 10_000, 0.5, UNIT, EXTRAPOLATED, 7 * kernel.steps)}
    if kernel.counts == "minibatch":
        source = "the sweeps' bias, from their transition matrix by enumeration"
        found[MEAN] = Trial(partial(_topic_estimates, kernel), 10_000, 0.5, UNIT, source, 1)
    return found


def _topic_estimates(kernel: Topics, seed: int, count: int) -> list[Outcome]:
    """The gradient at a draw of the posterior, against automatic differentiation of the enumerated potential."""
    tiny, rng = kernel.posterior.law, np.random.default_rng(seed)
    (theta,) = tiny.sample(np.random.default_rng(0), 1)  # the same point for all seeds
    estimator = kernel.estimator()
    found, _ = estimator.estimate(rng, (), np.tile(theta, (count, 1, 1)))
    values = np.asarray(found.gradient).reshape(count, -1)
    exact = np.asarray(jax.grad(tiny.target().potential)(jnp.asarray(theta.ravel())))
    finite = tiny.model.gradient(theta, counts_after(tiny, theta, estimator)).ravel()
    names = [f"dU / d theta[{w},{k}]" for w in range(theta.shape[0]) for k in range(theta.shape[1])]
    return Moments(names, exact, values.std(axis=0), np.abs(finite - exact)).law(values)


def _topic_limit(kernel: Topics, step_size: float, seed: int, count: int) -> list[Outcome]:
    """End points at h, h/2, h/4 of chains that share their starts, exact draws of the posterior."""
    start = kernel.posterior.law.sample(np.random.default_rng([seed, 3]), count)
    values = [
        statistics(
            end_points(kernel.sampler, kernel.estimator(), start, step_size / 2**k, kernel.steps * 2**k, seed + k)
        )
        for k in range(3)
    ]
    return moments(kernel.posterior.law).limit(np.stack(values), 1)


@trials.register
def exact_trials(kernel: ExactTopics, step_size: float) -> dict[str, Trial]:
    """Trials of `ExactTopics`."""
    return {LAW: Trial(partial(_exact_law, kernel, step_size), 40_000, 0.1, UNIT, ENUMERATION, 2 * kernel.steps)}


def _exact_law(kernel: ExactTopics, step_size: float, seed: int, count: int) -> list[Outcome]:
    """End points of chains that start from exact draws."""
    found = []
    for k, h in enumerate((step_size, 100 * step_size)):
        start = kernel.posterior.law.sample(np.random.default_rng([seed, k]), count)
        ends = end_points(kernel.sampler, kernel.estimator(), start, h, kernel.steps, seed + k)
        # totals are drawn in the same step from a law of their own
        found += moments(kernel.posterior.law).law(statistics(ends))[:-1]
    return found


# The Gibbs sampler of a document -----------------------------------------------------------------------------------


def sweep_matrix(tiny: TinyLDA, phi: np.ndarray, document: int) -> tuple[np.ndarray, np.ndarray]:
    """Transition matrix of one sweep over the topics of a document, and its states (S, n): from the joint law alone.

    Word by word z_i is drawn from p(z_i | the others), which is read off the enumerated joint law p(z, w | phi).
    """
    one = TinyLDA(tiny.model, (tiny.documents[document],))
    law, states = one.conditional(phi), one.assignments
    matrix = np.eye(len(states))
    for i in range(states.shape[1]):
        others = np.delete(states, i, axis=1)
        same = np.all(others[:, None] == others[None], axis=-1)
        move = same * law[None]
        matrix = matrix @ (move / move.sum(axis=1, keepdims=True))
    return matrix, states


def mean_after(tiny: TinyLDA, phi: np.ndarray, document: int, sweeps: int, burn_in: int) -> np.ndarray:
    """Exact mean (n, K) of the average indicator of topics over the sweeps after `burn_in`, from uniform topics."""
    matrix, states = sweep_matrix(tiny, phi, document)
    law = np.full(len(states), 1 / len(states))
    total = np.zeros(len(states))
    for sweep in range(sweeps):
        law = law @ matrix
        if sweep >= burn_in:
            total += law
    return np.einsum("s,snk->nk", total / (sweeps - burn_in), np.eye(tiny.model.topics)[states])


def counts_after(tiny: TinyLDA, theta: np.ndarray, estimator: ExactCounts) -> np.ndarray:
    """Exact mean (V, K) of the counts of `GibbsCounts`, finite sweeps included; a planted scale is not."""
    usual = estimator if isinstance(estimator, GibbsCounts) else GibbsCounts(tiny)
    phi = theta / theta.sum(axis=0)
    counts = np.zeros_like(theta)
    for d, document in enumerate(tiny.documents):
        np.add.at(counts, np.asarray(document), mean_after(tiny, phi, d, usual.sweeps, usual.burn_in))
    return counts


@trials.register
def document_trials(kernel: DocumentSweep, step_size: float) -> dict[str, Trial]:
    """Trials of `DocumentSweep`."""
    del step_size
    return {
        LAW: Trial(
            partial(_document_law, kernel),
            20_000,
            0.1,
            UNIT,
            "the transition matrix of a sweep by enumeration",
            kernel.sweeps,
        ),
        JOINT: Trial(partial(_document_joint, kernel), 20_000, 0.15, UNIT, "the joint law of topics and words", 3),
    }


def _weights() -> Weights:
    """PHI as the compiled kernels take it."""
    values = np.ascontiguousarray(PHI, np.float32)
    return Weights(values, np.cumsum(values, axis=1, dtype=np.float64))


def _document_law(kernel: DocumentSweep, seed: int, count: int) -> list[Outcome]:
    """Average counts of topics over the sweeps that are kept, of each word of the document."""
    words, rng = np.asarray(STICKY.documents[1]), np.random.default_rng(seed)
    weights = _weights()
    shape = len(words), STICKY.model.topics
    found = np.zeros((count, *shape))
    for row, state in zip(found, streams(rng, count), strict=True):
        visits = np.zeros(shape, np.uint16)
        z = rng.integers(shape[1], size=len(words)).astype(np.uint32)
        kernel.sweep(state, words, z, weights, Sweeps(STICKY.model.alpha, kernel.sweeps, kernel.burn_in), visits)
        row[:] = visits / (kernel.sweeps - kernel.burn_in)
    exact = mean_after(STICKY, PHI, 1, kernel.sweeps, kernel.sweeps // 2)[:, 0]
    names = [f"word {i} in topic 0" for i in range(len(words))]
    return Moments(names, exact, np.sqrt(exact * (1 - exact)), np.zeros(len(exact))).law(found[:, :, 0])


def _document_joint(kernel: DocumentSweep, seed: int, count: int) -> list[Outcome]:
    """Geweke's test of sweeps over z of one document of three words, for given topics."""
    length, alpha = 3, 0.4
    weights = _weights()

    def prior(rng, n):
        shares = rng.dirichlet([alpha, alpha], n)
        return (rng.random((n, length)) > shares[:, :1]).astype(np.int64)

    def data(rng, z):
        return (np.cumsum(PHI, axis=0).T[z] < rng.random(z.shape)[..., None]).sum(axis=-1)

    def transition(rng, z, words):
        moved, states = z.astype(np.uint32), streams(rng, len(z))
        visits = np.zeros((length, 2), np.uint16)
        for row, word, state in zip(moved, words, states, strict=True):
            kernel.sweep(state, word, row, weights, Sweeps(alpha, 1, 0), visits)
        return moved.astype(np.int64)

    def functions(z, words):
        first = z.sum(axis=1)
        return np.stack([first, first**2, np.log(PHI)[words, z].sum(axis=1), (z[:, 0] == z[:, 1])], axis=1)

    names = ["words in topic 1", "its square", "log likelihood", "two words together"]
    return joint_test(prior, data, transition, functions, seed=seed, replicates=count, sweeps=3, names=names)


# Collapsed Gibbs ---------------------------------------------------------------------------------------------------


def corpus_of(documents) -> Corpus:
    """A corpus over three words."""
    return from_documents([np.asarray(d) for d in documents], Vocabulary(("a", "b", "c")))


@trials.register
def collapsed_trials(kernel: CollapsedSweep, step_size: float) -> dict[str, Trial]:
    """Trials of `CollapsedSweep`."""
    del step_size
    return {
        LAW: Trial(partial(_collapsed_law, kernel), 12_000, 0.2, UNIT, ENUMERATION, 2),
        JOINT: Trial(partial(_collapsed_joint, kernel), 5000, 0.25, UNIT, "the joint law of topics and words", 2),
    }


def _collapsed_law(kernel: CollapsedSweep, seed: int, count: int) -> list[Outcome]:
    """The eight most probable assignments after two sweeps from exact draws of z."""
    tiny, rng = kernel.posterior.law, np.random.default_rng(seed)
    corpus = corpus_of(tiny.documents)
    ends = np.empty((count, len(tiny.words)), np.int64)
    for r, start in enumerate(rng.choice(len(tiny.posterior), count, p=tiny.posterior)):
        state = collapsed_state(corpus, tiny.model, tiny.assignments[start])
        for _ in range(2):
            kernel.sweep(rng, corpus, tiny.model, state)
        ends[r] = state.topics
    common = np.argsort(tiny.posterior)[-8:]
    p = tiny.posterior[common]
    names = ["z = " + "".join(map(str, z)) for z in tiny.assignments[common]]
    same = np.all(ends[:, None] == tiny.assignments[common], axis=2).astype(float)
    return Moments(names, p, np.sqrt(p * (1 - p)), np.zeros(len(p))).law(same)


def _collapsed_joint(kernel: CollapsedSweep, seed: int, count: int) -> list[Outcome]:
    """Geweke's test of a sweep over all words of two documents, with phi drawn again in every transition."""
    model, lengths = LDA(2, 3, 0.5, 0.7), (2, 3)

    def prior(rng, n):
        z = [(rng.random((n, m)) > rng.dirichlet([model.alpha] * 2, n)[:, :1]) for m in lengths]
        phi = rng.dirichlet([model.beta] * 3, (n, 2))
        return {"z": np.concatenate(z, axis=1).astype(np.int64), "phi": phi}

    def data(rng, theta):
        shares = np.take_along_axis(theta["phi"], theta["z"][:, :, None], axis=1)
        return (np.cumsum(shares, axis=2) < rng.random((*theta["z"].shape, 1))).sum(axis=2)

    def transition(rng, theta, words):
        z, phi = theta["z"].copy(), np.empty_like(theta["phi"])
        for r in range(len(z)):
            corpus = corpus_of(np.split(words[r], [lengths[0]]))
            state = collapsed_state(corpus, model, z[r])
            kernel.sweep(rng, corpus, model, state)
            z[r] = state.topics
            phi[r] = [rng.dirichlet(model.beta + state.in_words[:, k]) for k in range(2)]
        return {"z": z, "phi": phi}

    def functions(theta, words):
        z, phi = theta["z"], theta["phi"]
        likelihood = np.log(np.take_along_axis(phi, z[:, :, None], axis=1) + 1e-300)
        picked = np.take_along_axis(likelihood, words[:, :, None], axis=2)[..., 0]
        together = (z[:, 0] == z[:, 1]) & (words[:, 0] == words[:, 1])
        return np.stack([np.maximum(picked, -20).sum(axis=1), z[:, :2].sum(axis=1) ** 2, together], axis=1)

    names = ["log likelihood", "square of words in topic 1", "two words together"]
    return joint_test(prior, data, transition, functions, seed=seed, replicates=count, sweeps=2, names=names)
