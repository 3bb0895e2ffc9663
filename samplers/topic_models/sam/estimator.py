"""The gradient of the posterior of the topics from a batch of documents with sampled weights."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers.interface.sampler import Estimate, Stateless
from sgmcmc_verification.samplers.topic_models.sam.weights import WeightSettings, sample_weights
from sgmcmc_verification.targets.numerics.ragged import SparseRows
from sgmcmc_verification.targets.topic_models.sam.documents import matrix
from sgmcmc_verification.targets.topic_models.sam.model import SAM

Tensor = np.ndarray | jax.Array
"""An array of the host or of a device."""


class Batch(NamedTuple):
    """Documents with their weights.

    Attributes:
        documents: v (S, V), dense.
        weights: theta (S, N, K).
        scale: D / (S N), the documents that each pair stands for.
    """

    documents: Tensor
    weights: Tensor
    scale: Tensor


@dataclass(frozen=True, eq=False)
class BatchEstimator(Stateless):
    """Gradient and potential with documents and weights held fixed, whatever the position.

        grad_k U~ = -A_V(|mbar|) sigma mbar / |mbar| - kappa D / (S N) sum_sn theta_snk w_sn
        w_sn = v_s / |b_sn| - b_sn (b_sn . v_s) / |b_sn|^3,   b_sn = sum_k theta_snk beta_k

    The sum over pairs is never formed in V dimensions: with |b|^2 = theta . G theta and b . v = theta . p it is

        P^T X - M beta,   P_sk = sum_n theta_snk / |b_sn| (S, K),   M = sum_sn theta theta^T (b . v) / |b|^3 (K, K)

    which costs O(V K S + V K^2 + S N K^2).

    Source: liu2016stochastic, equation (10), where the second term lacks its gradient sign. Differs from the source in:
        1. the collapse of the sum.

    Unbiased for the gradient at the topics that the weights were drawn at, if they come from their exact law and the
    documents are a uniform subset. A trajectory with a batch held fixed follows the potential
    log c_V(|mbar|) - kappa D / (S N) sum_sn v . b / |b|, whose value is returned as well.
    """

    model: SAM
    batch: Batch

    def estimate(self, key: jax.Array | None, estate: tuple[()], position: jax.Array) -> tuple[Estimate, tuple[()]]:
        """Gradient and potential at topics (K, V)."""
        del key
        X, theta, scale = self.batch
        gram, products = position @ position.T, X @ position.T
        K = gram.shape[0]
        flat = theta.reshape(-1, K)
        inverse = jax.lax.rsqrt(jnp.sum((flat @ gram) * flat, axis=1)).reshape(theta.shape[:2])
        cosines = jnp.einsum("snk,sk->sn", theta, products) * inverse
        share = jnp.einsum("snk,sn->sk", theta, inverse)
        moment = (flat * (cosines * inverse * inverse).reshape(-1, 1)).T @ flat
        strength = jnp.asarray(self.model.concentration, position.dtype) * scale
        prior = self.model.prior_gradient(position)
        gradient = prior - strength * (share.T @ X - moment @ position)
        potential = self.model.prior(position) - strength * jnp.sum(cosines)
        return Estimate(gradient, potential), estate


def draw_batch(
    generator: np.random.Generator,
    model: SAM,
    rows: SparseRows,
    beta: np.ndarray,
    batch_size: int,
    settings: WeightSettings,
    dense: Tensor | None = None,
) -> Batch:
    """Documents without replacement and weights drawn at the given topics, for each of C sets of topics.

    Args:
        generator: of both.
        model: the model.
        rows: all documents.
        beta: (C, K, V), C sets of topics (chains, or particles).
        batch_size: S; all documents, in order, if it is their number.
        settings: of the weights.
        dense: all documents as an array (D, V), of the dtype of the batch, where they are kept so.

    Returns:
        A `Batch` with a leading axis C.
    """
    D, C = rows.size, len(beta)
    full = batch_size == D
    numbers = np.tile(np.arange(D), (C, 1))
    if not full:
        numbers = generator.permuted(numbers, axis=1)[:, :batch_size]
    kind = beta.dtype
    exact = beta.astype(np.float64)
    if C == 1:
        part = rows if full else rows.take(numbers[0])
        documents = part.dense().astype(kind)[None] if dense is None else dense[None]
        products = (matrix(part) @ exact[0].T)[None]
    else:  # many small problems: dense
        table = rows.dense()[numbers]
        documents, products = table.astype(kind), np.matmul(table, exact.transpose(0, 2, 1))
    return weighted(generator, model, documents, products, exact, settings, D / batch_size)


def weighted(
    generator: np.random.Generator,
    model: SAM,
    documents: Tensor,
    products: np.ndarray,
    beta: np.ndarray,
    settings: WeightSettings,
    each: float,
) -> Batch:
    """A `Batch` of given documents, which may be others for each set of topics.

    Args:
        generator: of the weights.
        model: the model.
        documents: (C, S, V), or (S, V) for all sets, of the dtype of the batch.
        products: v . beta_k (C, S, K).
        beta: (C, K, V), float64.
        settings: of the weights.
        each: D / S, the documents that each stands for.
    """
    C, S, K = products.shape
    grams = np.matmul(beta, beta.transpose(0, 2, 1))
    weights, _ = sample_weights(
        generator,
        products.reshape(-1, K),
        grams,
        model.alpha,
        model.concentration,
        settings,
        np.repeat(np.arange(C), S),
    )
    kind = documents.dtype
    return Batch(documents, weights.reshape(C, S, -1, K).astype(kind), np.full(C, each / settings.kept, kind))
