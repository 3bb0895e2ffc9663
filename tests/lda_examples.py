"""Many chains at once on the enumerable LDA posterior: estimators of its counts, statistics with exact expectations."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from samplers.lda.driver import Given
from samplers.lda.estimator import as_generator
from samplers.lda.gibbs import sample_topics
from samplers.types import Estimate
from targets.lda.tiny import TinyLDA, tiny_lda

TINY = tiny_lda()
NAMES = ("sum phi_0k^2", "sum phi_0k phi_1k", "phi_00 phi_01", "phi_20 phi_21", "total")


def statistics(theta: np.ndarray) -> np.ndarray:
    """Functions (C, 5) of theta (C, V, K) that do not change when the topics change their names."""
    phi = theta / theta.sum(axis=1, keepdims=True)
    return np.stack(
        [
            (phi[:, 0] ** 2).sum(-1),
            (phi[:, 0] * phi[:, 1]).sum(-1),
            phi[:, 0, 0] * phi[:, 0, 1],
            phi[:, 2, 0] * phi[:, 2, 1],
            theta.sum(axis=(1, 2)),
        ],
        axis=-1,
    )


def expectations(tiny: TinyLDA = TINY) -> np.ndarray:
    """Of `statistics`, sums over all assignments."""
    m, model = tiny.moment, tiny.model
    return np.array(
        [
            m((0, 0, 2)) + m((0, 1, 2)),
            m((0, 0, 1), (1, 0, 1)) + m((0, 1, 1), (1, 1, 1)),
            m((0, 0, 1), (0, 1, 1)),
            m((2, 0, 1), (2, 1, 1)),
            model.words * model.topics * model.beta,
        ]
    )


@dataclass(frozen=True, eq=False)
class ExactCounts:
    """Expected counts of C chains, z summed out."""

    tiny: TinyLDA = TINY

    backend = "host"

    def init(self, key, position):
        return ()

    def counts(self, generator, theta):
        """(C, V, K)."""
        return self.tiny.expected_counts(theta)

    def estimate(self, key, estate, position):
        counts = self.counts(as_generator(key), np.asarray(position))
        return Estimate(self.tiny.model.gradient(np.asarray(position), counts), statistics=counts), estate


@dataclass(frozen=True, eq=False)
class DrawnCounts(ExactCounts):
    """Counts of one draw of all topics from p(z | w, phi)."""

    def counts(self, generator, theta):
        p = self.tiny.conditional(theta / theta.sum(axis=1, keepdims=True))
        chosen = (np.cumsum(p, axis=1) < generator.random((len(p), 1))).sum(axis=1)
        return self.tiny.topic_counts[np.minimum(chosen, p.shape[1] - 1)]


@dataclass(frozen=True, eq=False)
class GibbsCounts(ExactCounts):
    """D / n times the counts of a minibatch of n documents of each chain, by the Gibbs kernel."""

    batch: int = 1
    sweeps: int = 12
    burn_in: int = 6
    scale: float = 1.0

    def counts(self, generator, theta):
        chains, words, topics = theta.shape
        total, longest = len(self.tiny.documents), max(map(len, self.tiny.documents))
        padded = np.array([list(d) + [-1] * (longest - len(d)) for d in self.tiny.documents])
        order = generator.permuted(np.tile(np.arange(total), (chains, 1)), axis=1)[:, : self.batch]
        mine = padded[order] + words * np.arange(chains)[:, None, None]
        real = padded[order] >= 0
        phi = theta / theta.sum(axis=1, keepdims=True)
        found = sample_topics(
            generator, mine[real], np.concatenate([[0], np.cumsum(real.sum(axis=2).ravel())]), phi.reshape(-1, topics),
            self.tiny.model.alpha, self.sweeps, self.burn_in,
        )  # fmt: skip
        return self.scale * total / self.batch * found.words.reshape(theta.shape)


def end_statistics(sampler, estimator, step_size, num_steps, chains, seed) -> np.ndarray:
    """`statistics` of C chains that start from the posterior, after `num_steps` steps."""
    generator = np.random.default_rng(seed)
    theta = TINY.sample(generator, chains)
    if sampler.backend == "host":
        state = sampler.init(generator, theta, estimator)
        for _ in range(num_steps):
            state = sampler.step(generator, state, step_size, estimator)
        return statistics(sampler.position(state))

    def move(key, state, gradient):
        return sampler.step(key, state, step_size, Given(Estimate(gradient), state.position))

    moves = jax.jit(jax.vmap(move))
    key = jax.random.key(seed)
    keys = lambda t: jax.random.split(jax.random.fold_in(key, t), chains)
    state = jax.vmap(lambda k, x: sampler.init(k, x, NoState()))(keys(0), jnp.asarray(theta))
    for t in range(1, num_steps + 1):
        gradient = estimator.estimate(generator, (), np.asarray(state.position))[0].gradient
        state = moves(keys(t), state, jnp.asarray(gradient))
    return statistics(np.asarray(state.position))


class NoState:
    """An estimator without a state, for `init`."""

    def init(self, key, position):
        return ()


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
