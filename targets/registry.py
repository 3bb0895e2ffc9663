"""The registry of targets: an explicit tuple of names and builders."""

import difflib
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import jax

from targets.directional import bingham, circle_posterior, matrix_langevin, product_laws, uniform, vmf_mixture
from targets.directional import von_mises_fisher as vmf
from targets.euclidean import banana, enumerable_data, funnel, gaussian, gaussian_mixture, quartic, student_t
from targets.positive import gamma, log_normal, truncated_gaussian
from targets.posteriordb.registry import ROWS, posteriordb_target
from targets.regression import benchmarks
from targets.simplex import dirichlet, parameterisations
from targets.target import Target
from targets.topic_models.sam import tiny


class TargetRow(NamedTuple):
    """A target under a name.

    Attributes:
        name: registry name; equals `build().name`.
        build: () -> Target.
    """

    name: str
    build: Callable[[], Target]


TARGETS: tuple[TargetRow, ...] = (
    TargetRow("gaussian-standard", gaussian.standard),
    TargetRow("gaussian-1d-scaled", gaussian.scaled),
    TargetRow("gaussian-anisotropic", gaussian.anisotropic),
    TargetRow("gaussian-correlated-2d", gaussian.correlated_2d),
    TargetRow("gaussian-correlated-3d", gaussian.correlated_3d),
    TargetRow("gaussian-pytree", gaussian.pytree),
    TargetRow("double-well", quartic.double_well),
    TargetRow("anharmonic", quartic.anharmonic),
    TargetRow("banana", banana.banana),
    TargetRow("gaussian-mixture", gaussian_mixture.mixture_1d),
    TargetRow("gaussian-mixture-2d", gaussian_mixture.mixture_2d),
    TargetRow("funnel", funnel.funnel),
    TargetRow("student-t", student_t.student_t),
    TargetRow("gamma", gamma.gamma_smooth),
    TargetRow("gamma-sparse", gamma.gamma_sparse),
    TargetRow("log-normal", log_normal.log_normal),
    TargetRow("log-normal-narrow", log_normal.narrow),
    TargetRow("uniform-s2", uniform.uniform_sphere),
    TargetRow("vmf-s1", vmf.circle),
    TargetRow("vmf-s2", vmf.von_mises_fisher),
    TargetRow("vmf-s2-concentrated", vmf.concentrated),
    TargetRow("vmf-s49", vmf.sphere_49),
    TargetRow("vmf-s4999", vmf.sphere_4999),
    TargetRow("vmf-mixture-s1", vmf_mixture.circle_mixture),
    TargetRow("vmf-mixture-s2", vmf_mixture.sphere_mixture),
    TargetRow("bingham-s2", bingham.bingham_s2),
    TargetRow("bingham-s9", bingham.bingham_s9),
    TargetRow("uniform-s2^3", uniform.uniform_spheres),
    TargetRow("vmf-s1^2", product_laws.circles),
    TargetRow("vmf-s2-and-gaussian", product_laws.sphere_and_plane),
    TargetRow("uniform-stiefel-3-2", uniform.uniform_stiefel),
    TargetRow("matrix-langevin-3-2", matrix_langevin.langevin_3_2),
    TargetRow("dirichlet", dirichlet.dense),
    TargetRow("dirichlet-sparse", dirichlet.sparse),
    TargetRow("dirichlet-concentrated", dirichlet.concentrated),
    TargetRow("dirichlet-sphere", dirichlet.dense_sphere),
    TargetRow("dirichlet-sphere-concentrated", dirichlet.concentrated_sphere),
    TargetRow("dirichlet-sphere-sparse", dirichlet.sparse_sphere),
    TargetRow("simplex-reduced-mean", parameterisations.reduced_mean),
    TargetRow("simplex-reduced-natural", parameterisations.reduced_natural),
    TargetRow("simplex-expanded-mean", parameterisations.expanded_mean),
    TargetRow("simplex-expanded-natural", parameterisations.expanded_natural),
    TargetRow("truncated-gaussian", truncated_gaussian.truncated_2d),
    TargetRow("half-gaussian", truncated_gaussian.half_gaussian),
    TargetRow("circle-posterior-mean-e1", circle_posterior.circle_posterior),
    TargetRow("circle-posterior-pair-e2", circle_posterior.printed),
    TargetRow("tiny-gaussian-data", enumerable_data.tiny_gaussian_data),
    TargetRow("tiny-regression", enumerable_data.tiny_regression),
    TargetRow("tiny-logistic", enumerable_data.tiny_logistic),
)

POSTERIORS: tuple[TargetRow, ...] = (
    TargetRow("logistic-synthetic", benchmarks.logistic_synthetic),
    TargetRow("logistic-splice", benchmarks.logistic_splice),
    TargetRow("logistic-covertype", benchmarks.logistic_covertype),
    TargetRow("sam-s1", tiny.circle_topics),
    TargetRow("sam-s2", tiny.sphere_topics),
    *(TargetRow(name, build) for name, build in ROWS),
)
"""Posteriors without an exact sampler, known by expectations. Building one may read data and raise
`targets.datasets.files.DataError`; listing them does not."""


def target(name: str) -> Target:
    """The target of a name, built once per precision; `FOLDER:NAME` is a posterior of a folder of posteriordb's layout.

    Raises:
        ValueError: if there is no such target.
        DataError: if it needs data that cannot be had.
    """
    # The dtype of `example` follows the precision that jax is set to, so a cached target must not outlive a change.
    return _build(name, jax.dtypes.canonicalize_dtype(float).name)


@cache
def _build(name: str, dtype: str) -> Target:
    del dtype
    for row in TARGETS + POSTERIORS:
        if row.name == name:
            return row.build()
    if ":" in name:
        folder, _, posterior = name.rpartition(":")
        return posteriordb_target(folder, posterior)
    known = [row.name for row in TARGETS + POSTERIORS]
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise ValueError(f"name: no target {name!r}{hint} Known targets: {', '.join(known)}")
