"""Particle methods for the posterior of the topics: sets of topics that move together, such as those of RSVGD."""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers.interface.sampler import Estimate, State
from sgmcmc_verification.samplers.topic_models.common import NoEstimator
from sgmcmc_verification.samplers.topic_models.sam.estimator import Batch, BatchEstimator, Tensor, weighted
from sgmcmc_verification.samplers.topic_models.sam.methods import Method
from sgmcmc_verification.samplers.validation import require
from sgmcmc_verification.targets.topic_models.sam.documents import matrix
from sgmcmc_verification.targets.topic_models.sam.model import SAM


@dataclass(frozen=True, eq=False)
class ParticleTopics(Method):
    """M sets of topics, the particles of a method on the product of spheres.

    A sample is: draw a batch of documents, the same for all particles, draw weights of each document at the topics of
    each particle, then take `num_steps` steps of size step_size / (t + 1)^decay, t = 0, 1, .. the number of the sample,
    with documents and weights held fixed.

    Source: liu2018riemannian, section 5.2 (RSVGD: M = 20, all documents, 15 dropped and 10 kept weights, decay 0.7).
    Differs from its released program in:
        1. the sign: that one gives the gradient of U to a routine that needs that of -U.

    Args:
        model, rows, batch_size, step_size, num_steps, weights, dtype: of `Method`.
        sampler: a particle method of the suite, on `model.manifold`.
        particles: M.
        decay: of the step size.

    Raises:
        ValueError: as `Method`, and if the sampler is no particle method, M < 2 or `decay` is negative.
    """

    particles: int = 20
    decay: float = 0.0

    def __post_init__(self):
        super().__post_init__()
        kind = self.sampler.claims.law.kind
        require(kind == "particle", "sampler: must be a particle method", kind)
        require(self.particles >= 2, "particles: must be at least 2", self.particles)
        require(self.decay >= 0, "decay: must not be negative", self.decay)

    def start(self, generator: np.random.Generator) -> State:
        """State of M particles about m."""
        return self.init(generator, np.stack([self.model.start(generator) for _ in range(self.particles)]))

    def init(self, generator: np.random.Generator, beta: np.ndarray) -> State:
        """State of M particles at topics (M, K, V)."""
        key = jax.random.key(int(generator.integers(2**63)))
        return self.sampler.init(key, jnp.asarray(beta, self.dtype), NoEstimator())

    def topics(self, state: State) -> np.ndarray:
        """beta (M, K, V)."""
        return np.asarray(self.sampler.position(state))

    def draw(self, generator: np.random.Generator, state: State) -> Batch:
        """The batch of a sample: documents (S, V), weights (M, S, N, K), scale (M,)."""
        beta = self.topics(state).astype(np.float64)
        M, K, V = beta.shape
        part = self.rows
        if self.batch_size < self.size:
            part = part.take(generator.choice(self.size, self.batch_size, replace=False))
        documents = part.dense().astype(self.dtype) if self._dense is None else self._dense
        products = (matrix(part) @ beta.reshape(M * K, V).T).reshape(-1, M, K).swapaxes(0, 1)
        each = self.size / self.batch_size
        return weighted(generator, self.model, documents, products, beta, self.weights, each)

    def sample(self, generator: np.random.Generator, state: State, number: int = 0) -> State:
        """The state after sample `number`."""
        batch = jax.tree.map(jnp.asarray, self.draw(generator, state))
        key = jax.random.key(int(generator.integers(2**63)))
        step = jnp.asarray(self.step_size / (number + 1) ** self.decay, self.dtype)
        return _together(self.sampler, self.model, self.num_steps, key, state, step, batch)


class _Own(NamedTuple):
    """An estimator whose state is the weights (S, N, K) and the scale () of a particle."""

    model: SAM
    documents: Tensor

    def estimate(
        self, key: jax.Array, estate: tuple[jax.Array, jax.Array], position: jax.Array
    ) -> tuple[Estimate, Any]:
        """Gradient and potential of a particle at topics (K, V)."""
        found, _ = BatchEstimator(self.model, Batch(self.documents, *estate)).estimate(key, (), position)
        return found, estate


@partial(jax.jit, static_argnums=(0, 1, 2))
def _together(sampler, model, num_steps, key, state, step_size, batch):
    """`num_steps` steps of all particles."""
    estimator = _Own(model, batch.documents)
    body = lambda state, key: (sampler.step(key, state, step_size, estimator), None)
    state = state._replace(estate=(batch.weights, batch.scale))
    return jax.lax.scan(body, state, jax.random.split(key, num_steps))[0]._replace(estate=())
