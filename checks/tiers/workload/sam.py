"""Methods for the topics of the spherical admixture model on S^1 and S^2, against quadrature."""

from dataclasses import dataclass, fields, replace
from functools import cache, partial
from typing import Any

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
from sgmcmc_verification.samplers.topic_models.sam.enumerated import (
    ByBlocks,
    MeanPotential,
    Topics,
    metropolis,
    model_of,
    words_of,
)
from sgmcmc_verification.samplers.topic_models.sam.estimator import BatchEstimator, weighted
from sgmcmc_verification.samplers.topic_models.sam.methods import Method
from sgmcmc_verification.samplers.topic_models.sam.weights import WeightSettings
from sgmcmc_verification.targets.numerics.spherical import sample_vmf
from sgmcmc_verification.targets.target import Target
from sgmcmc_verification.targets.topic_models.sam.model import SAM, unit_rows

NODES = {2: 72, 3: 16}
"""Of the rule whose points stand for exact draws: their expectations are those of the law for smooth functions."""
QUADRATURE = "quadrature over the topics and the weights"


@cache
def points(law: Target) -> tuple[np.ndarray, np.ndarray]:
    """Topics (m, 2, V) and their probabilities."""
    assert law.quadrature is not None
    nodes, weights = law.quadrature(NODES[words_of(law)])
    return np.asarray(nodes).reshape(-1, 2, words_of(law)), weights / weights.sum()


@cache
def _functions(law: Target):
    return jax.jit(jax.vmap(lambda beta: jnp.stack([jnp.asarray(m.function(beta)) for m in law.moments.values()])))


@cache
def moments(law: Target) -> Moments:
    """Those of the target: coordinates, squares and the product of the topics."""
    nodes, weights = points(law)
    values = np.asarray(_functions(law)(jnp.asarray(nodes)))
    mean = weights @ values
    known = law.moments.values()
    # what the rule of the starts leaves is granted too
    error = np.array([m.error for m in known]) + np.abs(mean - [m.value for m in known])
    scale = np.sqrt(weights @ (values - mean) ** 2)
    return Moments(list(law.moments), np.array([m.value for m in known]), scale, error)


def starts(law: Target, generator: np.random.Generator, count: int) -> np.ndarray:
    """Topics (C, 2, V)."""
    nodes, weights = points(law)
    return nodes[generator.choice(len(nodes), count, p=weights)]


@partial(jax.jit, static_argnums=0)
def _gradients(model: SAM, beta, batch):
    return jax.vmap(lambda x, b: BatchEstimator(model, b).estimate(None, (), x)[0].gradient)(beta, batch)


def vmf(rng: np.random.Generator, axes: np.ndarray, concentration: float) -> np.ndarray:
    """A draw of the von Mises-Fisher law about each of axes (n, V)."""
    key = jax.random.key(int(rng.integers(2**63)))
    return np.asarray(sample_vmf(key, jnp.asarray(axes), jnp.full(len(axes), float(concentration))))


@dataclass(frozen=True, eq=False)
class OwnDocuments(Method):
    """A method whose chains have documents of their own, (C, D, V): `batch_size` of them in a batch."""

    documents: Any = None

    def draw(self, generator, state):
        """Batch of documents with their weights."""
        beta, documents = self.topics(state), self.documents
        chains, total, _ = documents.shape
        if self.batch_size < total:
            numbers = generator.permuted(np.tile(np.arange(total), (chains, 1)), axis=1)[:, : self.batch_size]
            documents = np.take_along_axis(documents, numbers[:, :, None], axis=1)
        products = np.matmul(documents, beta.transpose(0, 2, 1))
        return weighted(generator, self.model, documents, products, beta, self.weights, total / self.batch_size)


def with_documents(method: Method, documents: np.ndarray) -> OwnDocuments:
    """The method with documents (C, D, V)."""
    return OwnDocuments(**{f.name: getattr(method, f.name) for f in fields(Method)}, documents=documents)


def _limit(law: Target, method: Method, samples: list[int], order: int, seed: int, count: int) -> list[Outcome]:
    start = starts(law, np.random.default_rng([seed, 3]), count)
    values = [
        _ends(law, replace(method, step_size=method.step_size / 2**k), start, n, seed + k)
        for k, n in enumerate(samples)
    ]
    return moments(law).limit(np.stack(values), order)


def _ends(law: Target, method: Method, start: np.ndarray, samples: int, seed: int) -> np.ndarray:
    """The functions of `moments` (C, K) after so many samples."""
    return np.asarray(_functions(law)(jnp.asarray(advanced(method, start, samples, seed))))


def advanced(method: Method, start: np.ndarray, samples: int, seed: int) -> np.ndarray:
    """Topics (C, 2, V) of independent chains after so many samples."""
    rng = np.random.default_rng(seed)
    state = method.init(rng, start)
    for _ in range(samples):
        state = method.sample(rng, state)
    return method.topics(state)


@trials.register
def topic_trials(kernel: Topics, step_size: float) -> dict[str, Trial]:
    """Trials of `Topics`."""
    return {
        LIMIT: Trial(partial(_topic_limit, kernel, step_size), 2000, 0.7, UNIT, EXTRAPOLATED, 21 * kernel.samples),
        MEAN: Trial(partial(_topic_estimates, kernel, step_size), 8000, 0.15, UNIT, QUADRATURE, 1),
    }


def _topic_estimates(kernel: Topics, step_size: float, seed: int, count: int) -> list[Outcome]:
    """The tangent gradient at a point, against automatic differentiation of the potential by quadrature.

    Weights forget their start over 60 transitions.
    """
    method, law = replace(kernel.made(step_size), weights=WeightSettings(60, 1, 4, 0.2)), kernel.posterior
    (beta,) = starts(law, np.random.default_rng(0), 1)  # the same point for all seeds
    rng = np.random.default_rng(seed)
    tiled = np.tile(beta, (count, 1, 1))
    batch = jax.tree.map(jnp.asarray, method.draw(rng, method.init(rng, tiled)))
    values = np.asarray(_gradients(method.model, jnp.asarray(tiled), batch))
    project = lambda g: law.manifold.tangent(jnp.asarray(beta), g)
    exact = np.asarray(project(jax.grad(law.potential)(jnp.asarray(beta)))).ravel()
    values = np.asarray(jax.vmap(project)(jnp.asarray(values))).reshape(count, -1)
    names = [f"dU / d beta[{k},{i}]" for k in range(beta.shape[0]) for i in range(beta.shape[1])]
    return Moments(names, exact, values.std(axis=0), np.zeros(len(exact))).law(values)


def _topic_limit(kernel: Topics, step_size: float, seed: int, count: int) -> list[Outcome]:
    """End points at h, h/2, h/4 of chains that share their starts."""
    return _limit(kernel.posterior, kernel.made(step_size), [kernel.samples * 2**k for k in range(3)], 1, seed, count)


@trials.register
def blocks_trials(kernel: ByBlocks, step_size: float) -> dict[str, Trial]:
    """Trials of `ByBlocks`."""
    return {
        LAW: Trial(partial(_blocks_law, kernel, step_size), 4000, 0.3, UNIT, QUADRATURE, 4 * kernel.samples),
        JOINT: Trial(
            partial(_blocks_joint, kernel, step_size), 2000, 0.4, UNIT, "the joint law of topics and documents", 12
        ),
    }


def _blocks_joint(kernel: ByBlocks, step_size: float, seed: int, count: int) -> list[Outcome]:
    """Geweke's test with three documents of its own for each chain."""
    words = words_of(kernel.posterior)
    model, method = model_of(words), metropolis("gmc-bgibbs", words, step_size)

    def prior(rng, n):
        axes = vmf(rng, np.tile(model.direction, (n, 1)), model.prior_concentration)
        return vmf(rng, np.repeat(axes, 2, axis=0), model.topic_concentration).reshape(n, 2, words)

    def data(rng, beta):
        b = np.einsum("nsk,nkv->nsv", rng.dirichlet(model.alpha, (len(beta), 3)), beta)
        return vmf(rng, unit_rows(b).reshape(-1, words), model.concentration).reshape(-1, 3, words)

    def transition(rng, beta, documents):
        return method.topics(with_documents(method, documents).sample(rng, jnp.asarray(beta)))

    def functions(beta, documents):
        ahead, both = beta[:, 0] @ model.direction, np.sum(beta[:, 0] * beta[:, 1], axis=1)
        near = np.einsum("nv,nsv->n", beta[:, 0], documents)
        return np.stack([ahead, ahead**2, both, near], axis=1)

    names = ["m . beta_0", "its square", "beta_0 . beta_1", "sum of v . beta_0"]
    return joint_test(prior, data, transition, functions, seed=seed, replicates=count, sweeps=3, names=names)


def _blocks_law(kernel: ByBlocks, step_size: float, seed: int, count: int) -> list[Outcome]:
    """End points of chains that start from the posterior."""
    method = metropolis("gmc-bgibbs", words_of(kernel.posterior), step_size)
    start = starts(kernel.posterior, np.random.default_rng([seed, 3]), count)
    return moments(kernel.posterior).law(_ends(kernel.posterior, method, start, kernel.samples, seed))


@trials.register
def mean_potential_trials(kernel: MeanPotential, step_size: float) -> dict[str, Trial]:
    """Trials of `MeanPotential`."""
    return {
        LIMIT: Trial(
            partial(_mean_potential_limit, kernel, step_size), 3000, 0.7, UNIT, EXTRAPOLATED, 84 * kernel.samples
        )
    }


def _mean_potential_limit(kernel: MeanPotential, step_size: float, seed: int, count: int) -> list[Outcome]:
    """End points at h, h/2, h/4 of chains that share their starts."""
    method = metropolis("gmc-apprmh", words_of(kernel.posterior), step_size)
    return _limit(kernel.posterior, method, [kernel.samples * 4**k for k in range(3)], 2, seed, count)
