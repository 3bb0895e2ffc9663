"""Methods for the posterior of the topics: any sampler on spheres, with weights drawn anew for every sample.

A sample of a chain is: draw a batch of documents, draw weights of each at the current topics, then take `num_steps`
steps of a sampler of the suite with documents and weights held fixed.

    sggmc, gsgnht         SGGMC or gSGNHT with a batch; the velocity (and the thermostat) persist from sample to sample
    sggmc-full, ...       the same with all documents
    gmc-bgibbs            GMC with all documents and one weight each: blockwise Gibbs sampling, exact
    gmc-apprmh            GMC with all documents and N > 1 weights each, the mean of whose potentials stands for U

The last is not exact: the mean over weights drawn at the start of a trajectory, E[U(beta', theta) | beta], has the
slope of U at beta'= beta alone, so that its law is wrong for any trajectory of finite length.

Source: liu2016stochastic, section 5.3 and, for `gmc-apprmh`, appendix B as its released program has it. Differs
from the source in:
    1. the dimension of gSGNHT is that of the manifold, K (V - 1); the released program has K V;
    2. the step size of the weights, by default that of `samplers.topic_models.sam.weights.default_step`; the released
       program has 1e-6, with which the weights stay where they start.
"""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from sgmcmc_verification.samplers.geodesic.gmc import GMC
from sgmcmc_verification.samplers.geodesic.gsgnht import GSGNHT
from sgmcmc_verification.samplers.geodesic.sggmc import SGGMC
from sgmcmc_verification.samplers.interface.sampler import Sampler, State
from sgmcmc_verification.samplers.topic_models.common import NoEstimator
from sgmcmc_verification.samplers.topic_models.sam.estimator import Batch, BatchEstimator, draw_batch
from sgmcmc_verification.samplers.topic_models.sam.weights import USUAL, WeightSettings
from sgmcmc_verification.samplers.validation import require
from sgmcmc_verification.targets.numerics.ragged import SparseRows
from sgmcmc_verification.targets.topic_models.sam.documents import as_rows
from sgmcmc_verification.targets.topic_models.sam.model import SAM


@dataclass(frozen=True, eq=False)
class Method:
    """A sampler of topics.

    Args:
        model: the model.
        sampler: of the suite, on `model.manifold`.
        rows: all documents.
        batch_size: S documents a sample.
        step_size: of the sampler, SDE time.
        num_steps: steps a sample.
        weights: how weights are drawn.
        dtype: of topics and steps; weights are always drawn in float64.

    Raises:
        ValueError: if an argument is out of its range, or the documents have not V words.
    """

    model: SAM
    sampler: Sampler
    rows: SparseRows
    batch_size: int
    step_size: float
    num_steps: int = 10
    weights: WeightSettings = USUAL
    dtype: DTypeLike = np.float64

    def __post_init__(self):
        words = self.model.words
        require(self.rows.width == words, f"rows: must have the {words} words of the model", self.rows.width)
        require(1 <= self.batch_size <= self.size, f"batch_size: must lie in 1..{self.size}", self.batch_size)
        require(0 < self.step_size < np.inf, "step_size: must be positive and finite", self.step_size)
        require(self.num_steps >= 1, "num_steps: must be at least 1", self.num_steps)
        self.weights.check()

    @property
    def size(self) -> int:
        """D."""
        return self.rows.size

    @cached_property
    def _dense(self) -> jax.Array | None:
        """All documents (D, V), on the device, where every batch is all of them."""
        return jnp.asarray(self.rows.dense().astype(self.dtype)) if self.batch_size == self.size else None

    @property
    def restarts(self) -> bool:
        """True if the sampler forgets its velocity (a Metropolis method) and needs the potential anew."""
        return "potential" in self.sampler.needs

    def start(self, generator: np.random.Generator) -> State:
        """State of one chain about m."""
        return self.init(generator, self.model.start(generator)[None])

    def init(self, generator: np.random.Generator, beta: np.ndarray) -> State:
        """State of C chains that start at topics (C, K, V)."""
        keys = jax.random.split(jax.random.key(int(generator.integers(2**63))), len(beta))
        start = jnp.asarray(np.asarray(beta).astype(self.dtype))
        if self.restarts:
            return start
        return _init(self.sampler, keys, start)

    def topics(self, state: State) -> np.ndarray:
        """beta (C, K, V)."""
        return np.asarray(state if self.restarts else self.sampler.position(state))

    def draw(self, generator: np.random.Generator, state: State) -> Batch:
        """The batch of a sample."""
        topics = self.topics(state)
        return draw_batch(generator, self.model, self.rows, topics, self.batch_size, self.weights, self._dense)

    def sample(self, generator: np.random.Generator, state: State, number: int = 0) -> State:
        """The state after one sample; its number does not matter."""
        del number
        batch = self.draw(generator, state)
        keys = jax.random.split(jax.random.key(int(generator.integers(2**63))), len(self.topics(state)))
        batch = jax.tree.map(jnp.asarray, batch)
        step = jnp.asarray(self.step_size, self.dtype)
        return _advance(self.sampler, self.model, self.num_steps, self.restarts, keys, state, step, batch)


@partial(jax.jit, static_argnums=0)
def _init(sampler: Sampler, keys: jax.Array, beta: jax.Array) -> State:
    return jax.vmap(lambda key, x: sampler.init(key, x, NoEstimator()))(keys, beta)


@partial(jax.jit, static_argnums=(0, 1, 2, 3))
def _advance(sampler, model, num_steps, restarts, keys, state, step_size, batch):
    """`num_steps` steps of each chain with its own batch."""

    def chain(key, state, batch):
        estimator = BatchEstimator(model, batch)
        if restarts:
            first, *rest = jax.random.split(key, num_steps + 1)
            state, rest = sampler.init(first, state, estimator), jnp.stack(rest)
        else:
            rest = jax.random.split(key, num_steps)
        body = lambda state, key: (sampler.step(key, state, step_size, estimator), None)
        state = jax.lax.scan(body, state, rest)[0]
        return sampler.position(state) if restarts else state

    if len(keys) == 1:  # no batched products of one
        first = lambda tree: jax.tree.map(lambda a: a[0], tree)
        return jax.tree.map(lambda a: a[None], chain(keys[0], first(state), first(batch)))
    return jax.vmap(chain)(keys, state, batch)


METHODS = ("sggmc", "gsgnht", "sggmc-full", "gsgnht-full", "gmc-apprmh", "gmc-bgibbs")


def build(name: str, model: SAM, rows: SparseRows | np.ndarray, **options: Any) -> Method:
    """A method with the settings of the paper for 20News-different; `options` replace arguments of `Method`.

    `decay` is the friction times the step size, 0.01 by default.

    SGGMC and gSGNHT: 50 documents, 10 steps of sqrt(0.01 / D), decay 0.01; with all documents one step.
    GMC: step 1e-4 (apprmh: 15 dropped and 10 kept weights) or 2e-5 (bgibbs: 15 and 1, trajectories of 5 steps).

    Raises:
        ValueError: if the name is unknown.
    """
    require(name in METHODS, f"name: must be one of {', '.join(METHODS)}", name)
    rows, manifold = as_rows(rows), model.manifold
    D = rows.size
    if name.startswith("gmc"):
        approximate = name == "gmc-apprmh"
        settings: dict[str, Any] = {
            "sampler": GMC(manifold, num_steps=1 if approximate else 5),
            "batch_size": D,
            "step_size": 1e-4 if approximate else 2e-5,
            "num_steps": 1,
            "weights": WeightSettings(15, 10 if approximate else 1),
        }
    else:
        step = float(options.get("step_size", np.sqrt(0.01 / D)))
        require(0 < step < np.inf, "step_size: must be positive and finite", step)
        friction = float(options.pop("decay", 0.01)) / step
        kind, full = name.partition("-")[0], name.endswith("full")
        settings = {
            "sampler": SGGMC(manifold, friction) if kind == "sggmc" else GSGNHT(manifold, friction),
            "batch_size": D if full else min(50, D),
            "step_size": step,
            "num_steps": 1 if full else 10,
        }
    return Method(model, rows=rows, **(settings | options))
