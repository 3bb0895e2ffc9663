"""Methods for the topics of the spherical admixture model on S^1 and S^2, against quadrature."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from checks.statistics.geweke import joint_test
from checks.statistics.outcome import Outcome
from checks.tiers.workload.trial import EXTRAPOLATED, JOINT, LAW, LIMIT, MEAN, UNIT, Moments, Trial
from samplers.geodesic.gmc import GMC
from samplers.geodesic.gsgnht import GSGNHT
from samplers.geodesic.sggmc import SGGMC
from samplers.interface.sampler import Sampler
from samplers.topic_models.sam.estimator import BatchEstimator, weighted
from samplers.topic_models.sam.methods import Method, build
from samplers.topic_models.sam.weights import WeightSettings
from targets.manifolds.spheres import ProductOfSpheres
from targets.numerics.ragged import SparseRows
from targets.numerics.spherical import sample_vmf
from targets.target import Target
from targets.topic_models.sam import tiny
from targets.topic_models.sam.documents import as_rows
from targets.topic_models.sam.model import SAM, unit_rows

NODES = {2: 72, 3: 16}
"""Of the rule whose points stand for exact draws: their expectations are those of the law for smooth functions."""
FRICTION = 10.0
QUADRATURE = "quadrature over the topics and the weights"


def words_of(law: Target) -> int:
    """V of `sam-s1` or `sam-s2`."""
    return np.shape(law.example)[-1]


@cache
def model_of(words: int) -> SAM:
    """One object, so that what is compiled for it is found again."""
    return tiny.tiny_model(words)


@cache
def rows_of(words: int) -> SparseRows:
    """The three documents."""
    return as_rows(tiny.tiny_documents(words))


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


@cache
def _sampler(make: Callable[[ProductOfSpheres], Sampler], words: int) -> Sampler:
    return make(ProductOfSpheres(2, words))


def sggmc(manifold: ProductOfSpheres) -> Sampler:
    """SGGMC."""
    return SGGMC(manifold, FRICTION)


def gsgnht(manifold: ProductOfSpheres) -> Sampler:
    """gSGNHT."""
    return GSGNHT(manifold, FRICTION)


def gmc(manifold: ProductOfSpheres) -> Sampler:
    """GMC, trajectories of four steps."""
    return GMC(manifold, 4)


@partial(jax.jit, static_argnums=0)
def _gradients(model: SAM, beta, batch):
    return jax.vmap(lambda x, b: BatchEstimator(model, b).estimate(None, (), x)[0].gradient)(beta, batch)


@dataclass(frozen=True, eq=False)
class Topics:
    """A method with batches of documents and sampled weights, `samplers.topic_models.sam.methods.Method`, as h -> 0.

    Batch and weights are held for three steps, as in the figure: their noise is of order h, and so is its effect.

    Args:
        posterior: `sam-s1` or `sam-s2`.
        sampler: manifold -> sampler.
        documents: of a batch, 3 for all.
        samples: of a chain with the largest step.
        method: how the method is made.
    """

    posterior: Target
    sampler: Callable[[ProductOfSpheres], Sampler]
    documents: int = 2
    samples: int = 8
    method: Callable[..., Method] = Method

    backend = "jax"

    def made(self, step_size: float) -> Method:
        """The method."""
        words = words_of(self.posterior)
        return self.method(
            model_of(words), _sampler(self.sampler, words), rows_of(words), self.documents, step_size, num_steps=3,
            weights=WeightSettings(12, 4, 4, 0.2),
        )  # fmt: skip

    def trials(self, step_size):
        return {
            LIMIT: Trial(partial(self.limit, step_size), 2000, 0.7, UNIT, EXTRAPOLATED, 21 * self.samples),
            MEAN: Trial(partial(self.estimates, step_size), 8000, 0.15, UNIT, QUADRATURE, 1),
        }

    def estimates(self, step_size: float, seed: int, count: int) -> list[Outcome]:
        """The tangent gradient at a point, against automatic differentiation of the potential by quadrature.

        Weights forget their start over 60 transitions.
        """
        method, law = replace(self.made(step_size), weights=WeightSettings(60, 1, 4, 0.2)), self.posterior
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

    def limit(self, step_size: float, seed: int, count: int) -> list[Outcome]:
        """End points at h, h/2, h/4 of chains that share their starts."""
        return _limit(self.posterior, self.made(step_size), [self.samples * 2**k for k in range(3)], 1, seed, count)


def vmf(rng: np.random.Generator, axes: np.ndarray, concentration: float) -> np.ndarray:
    """A draw of the von Mises-Fisher law about each of axes (n, V)."""
    key = jax.random.key(int(rng.integers(2**63)))
    return np.asarray(sample_vmf(key, jnp.asarray(axes), jnp.full(len(axes), float(concentration))))


@dataclass(frozen=True, eq=False)
class OwnDocuments(Method):
    """A method whose chains have documents of their own, (C, D, V): `batch_size` of them in a batch."""

    documents: Any = None

    def draw(self, generator, state):
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


@dataclass(frozen=True, eq=False)
class ByBlocks:
    """GMC with one weight a document: Gibbs sampling by blocks, which keeps the posterior at any step size.

    Args:
        posterior: `sam-s1` or `sam-s2`.
        samples: of a chain.
    """

    posterior: Target
    samples: int = 10

    backend = "jax"

    def trials(self, step_size):
        return {
            LAW: Trial(partial(self.law, step_size), 4000, 0.3, UNIT, QUADRATURE, 4 * self.samples),
            JOINT: Trial(partial(self.joint, step_size), 2000, 0.4, UNIT, "the joint law of topics and documents", 12),
        }

    def joint(self, step_size: float, seed: int, count: int) -> list[Outcome]:
        """Geweke's test with three documents of its own for each chain."""
        words = words_of(self.posterior)
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

    def law(self, step_size: float, seed: int, count: int) -> list[Outcome]:
        """End points of chains that start from the posterior."""
        method = metropolis("gmc-bgibbs", words_of(self.posterior), step_size)
        start = starts(self.posterior, np.random.default_rng([seed, 3]), count)
        return moments(self.posterior).law(_ends(self.posterior, method, start, self.samples, seed))


@dataclass(frozen=True, eq=False)
class MeanPotential:
    """GMC-apprMH, whose law tends to the posterior with the length of its trajectories.

    The mean of the potentials of N weights has the slope of U at the start of a trajectory alone: over a length of
    order h what is accepted is off by O(h^2). A trajectory carries the topics by O(h), so that times are of order h^2.

    Args:
        posterior: `sam-s1` or `sam-s2`.
        samples: of a chain with the largest step; four times as many at half of it.
    """

    posterior: Target
    samples: int = 2

    backend = "jax"

    def trials(self, step_size):
        return {LIMIT: Trial(partial(self.limit, step_size), 3000, 0.7, UNIT, EXTRAPOLATED, 84 * self.samples)}

    def limit(self, step_size: float, seed: int, count: int) -> list[Outcome]:
        """End points at h, h/2, h/4 of chains that share their starts."""
        method = metropolis("gmc-apprmh", words_of(self.posterior), step_size)
        return _limit(self.posterior, method, [self.samples * 4**k for k in range(3)], 2, seed, count)


DRAWN = 20
"""Weights a document of GMC-apprMH."""


def metropolis(name: str, words: int, step_size: float, num_steps: int = 1, burn_in: int = 12) -> Method:
    """A Metropolis method with `num_steps` trajectories a sample."""
    weights = WeightSettings(burn_in, 1 if name == "gmc-bgibbs" else DRAWN, 4, 0.2)
    return build(
        name, model_of(words), rows_of(words), sampler=_sampler(gmc, words), step_size=step_size, num_steps=num_steps,
        weights=weights,
    )  # fmt: skip


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
