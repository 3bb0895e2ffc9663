"""Planted bugs of the kernels of LDA."""

import importlib
import inspect
import re
from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar

import numpy as np
from numba import njit

from sgmcmc_verification.checks.faults.fault import Defect, Kill, planted
from sgmcmc_verification.samplers.interface.sampler import Estimate
from sgmcmc_verification.samplers.positive.cir_transition import streams
from sgmcmc_verification.samplers.riemannian.metrics import PositiveMetric
from sgmcmc_verification.samplers.riemannian.sgrld import SGRLD
from sgmcmc_verification.samplers.topic_models.lda.enumerated import (
    CollapsedSweep,
    DocumentSweep,
    ExactCounts,
    ExactTopics,
    GibbsCounts,
    StoredCounts,
    Topics,
)
from sgmcmc_verification.samplers.topic_models.lda.estimator import as_generator
from sgmcmc_verification.samplers.topic_models.lda.scir import TopicSCIR
from sgmcmc_verification.samplers.topic_models.lda.stored_assignments import StoredGibbs, places_of, recount


@cache
def changed(module: str, function: str, before: str, after: str) -> Callable[..., Any]:
    """A compiled kernel with one change of its source.

    Raises:
        ValueError: if `before` is not, or not once, in the source.
    """
    loaded = importlib.import_module(module)
    source = inspect.getsource(getattr(loaded, function).py_func)
    if source.count(before) != 1:
        raise ValueError(f"before: {before!r} is in the source of {function} {source.count(before)} times, not once")
    body = re.sub(r"@njit\(.*\)\n", "", source.replace(before, after))
    space = dict(vars(loaded))
    exec(compile(body, f"{function}, changed", "exec"), space)
    return njit(space[function])


def _sweep(name: str, error: str, before: str, after: str, check: str = "joint_distribution") -> Defect:
    equation = "p(z, w) is kept" if check == "joint_distribution" else "E n_k after sweeps from uniform topics"
    build = lambda posterior: DocumentSweep(
        posterior, changed("sgmcmc_verification.samplers.topic_models.lda.gibbs", "sweep_document", before, after)
    )
    return planted(name, "lda/gibbs", build, error, Kill(check, "lda-tiny", equation), "latent")


def _counted(generator, corpus, model, state) -> None:
    """`collapsed_sweep` with the word itself in the counts of its word."""
    wrong = changed(
        "sgmcmc_verification.samplers.topic_models.lda.collapsed",
        "sweep_corpus",
        "in_words[word, k] -= 1.0\n",
        "in_words[word, k] -= 0.0\n",
    )
    words = np.asarray(corpus.tokens, np.int64)
    wrong(streams(generator, 1)[0], words, corpus.offsets, state, float(model.alpha), float(model.beta))


class Unscaled(Topics):
    """Counts of one of two documents without D / n."""

    def estimator(self):
        return GibbsCounts(self.posterior.law, scale=0.5)


class Averaged(ExactTopics):
    """Counts averaged over z for those of one draw of z."""

    def estimator(self):
        return ExactCounts(self.posterior.law)


class UnscaledExact(ExactTopics):
    """Counts of the last sweep halved."""

    def estimator(self):
        return GibbsCounts(self.posterior.law, batch=2, sweeps=12, burn_in=11, scale=0.5)


class Forgotten(StoredGibbs):
    """Each visit starts from topics drawn uniformly."""

    def estimate(self, key, estate, position):
        corpus = self.batches.corpus
        places, _ = places_of(corpus.offsets, np.unique(self.batches.numbers(int(estate.number))))
        uniform = as_generator(key).integers(self.model.topics, size=len(places)).astype(estate.topics.dtype)
        recount(np.asarray(corpus.tokens[places]), estate.topics[places], uniform, estate.counts)
        estate.topics[places] = uniform
        return super().estimate(key, estate, position)


class ScaledAgain(StoredGibbs):
    """Counts of all documents times D / n."""

    def estimate(self, key, estate, position):
        found, state = super().estimate(key, estate, position)
        scale = len(self.batches.corpus) / len(self.batches.numbers(int(estate.number)))
        return found._replace(statistics=scale * np.asarray(found.statistics)), state


class NeverReduced(StoredGibbs):
    """Words stay in the topics that they had before."""

    def estimate(self, key, estate, position):
        before = estate.counts.copy()
        _, state = super().estimate(key, estate, position)
        np.maximum(state.counts, before, out=state.counts)
        return Estimate(None, statistics=state.counts.copy()), state


class Stored(ExactTopics):
    """`TopicSCIR` with a wrong estimator of stored topics."""

    wrong: ClassVar[type[StoredGibbs]]

    def estimator(self):
        return StoredCounts(self.posterior.law, self.wrong)


class StoredForgotten(Stored):
    """Topics that are not kept."""

    wrong = Forgotten


class StoredScaled(Stored):
    """Counts scaled as those of a minibatch."""

    wrong = ScaledAgain


class StoredNeverReduced(Stored):
    """Counts that only grow."""

    wrong = NeverReduced


SGRLD_TOPICS = SGRLD(PositiveMetric(), reflect=True)
BETA = 2.5
"""Of `lda-tiny`."""

DEFECTS: tuple[Defect, ...] = (
    _sweep(
        "lda-word-stays-counted",
        "alpha + n_dk with the word itself",
        "total += count[k] *",
        "total += (count[k] + 1.0) *",
    ),
    _sweep(
        "lda-alpha-halved",
        "alpha / 2 for alpha",
        "alpha * cumulative[row, topics - 1]",
        "0.5 * alpha * cumulative[row, topics - 1]",
    ),
    _sweep(
        "lda-topics-of-another-word",
        "phi_k of the first word for that of the word",
        "* weights[row, k]",
        "* weights[0, k]",
    ),
    _sweep(
        "lda-prior-gives-first-topic",
        "the part of the prior always gives the first topic",
        "at = (at - total) / alpha",
        "at = 0.0",
    ),
    # the joint law is kept by a word that is never moved
    _sweep(
        "lda-word-never-moved",
        "the last word of a document keeps its first topic",
        "range(size):\n            row",
        "range(size - 1):\n            row",
        "enumerated_law",
    ),
    planted(
        "lda-burn-in-kept",
        "lda/gibbs",
        lambda posterior: DocumentSweep(posterior, burn_in=0),
        "sweeps that should be left out are averaged too",
        Kill("enumerated_law", "lda-tiny", "E n_k after sweeps from uniform topics"),
        "latent",
    ),
    planted(
        "lda-collapsed-word-stays-counted",
        "lda/collapsed",
        lambda posterior: CollapsedSweep(posterior, _counted),
        "beta + n_wk with the word itself",
        Kill("joint_distribution", "lda-tiny", "p(z, w) is kept"),
        "latent",
    ),
    planted(
        "lda-unscaled-batch",
        "lda/sgrld",
        lambda posterior: Unscaled(posterior, SGRLD_TOPICS),
        "counts of a minibatch without D / n",
        Kill("unbiased_estimates", "lda-tiny", "E g = grad U of the enumerated posterior"),
        "data",
    ),
    planted(
        "lda-scir-unscaled-counts",
        "lda/scir",
        lambda posterior: UnscaledExact(posterior, TopicSCIR(BETA)),
        "shape beta + n_wk / 2",
        Kill("enumerated_law", "lda-tiny", "E phi phi by enumeration"),
        "data",
    ),
    planted(
        "lda-scir-averaged-counts",
        "lda/scir",
        lambda posterior: Averaged(posterior, TopicSCIR(BETA)),
        "shape beta + E[n_wk | phi] for beta + n_wk: at large h a law with too little variance",
        Kill("enumerated_law", "lda-tiny", "E phi phi by enumeration"),
        "variance",
    ),
    planted(
        "lda-stored-forgotten",
        "lda/scir-stored",
        lambda posterior: StoredForgotten(posterior, TopicSCIR(posterior.law.model.beta)),
        "a visit starts from topics drawn uniformly instead of those of the last visit",
        Kill("enumerated_law", "lda-tiny-peaked", "E phi phi by enumeration"),
        "latent",
    ),
    planted(
        "lda-stored-scaled",
        "lda/scir-stored",
        lambda posterior: StoredScaled(posterior, TopicSCIR(BETA)),
        "counts of all documents, times D / n as those of a minibatch",
        Kill("enumerated_law", "lda-tiny", "E phi phi by enumeration"),
        "data",
    ),
    planted(
        "lda-stored-never-reduced",
        "lda/scir-stored",
        lambda posterior: StoredNeverReduced(posterior, TopicSCIR(BETA)),
        "the topics before a visit stay in the counts",
        Kill("enumerated_law", "lda-tiny", "E phi phi by enumeration"),
        "data",
    ),
)
