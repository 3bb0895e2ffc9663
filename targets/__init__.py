"""Targets: manifolds, analytic laws with exact answers, posteriors of data, and access to data.

A user may import the names of `__all__` from here; every other name may move. A name is loaded when it is first used,
so that `import targets` stays fast. The package imports nothing from `samplers`, `checks` or `reports`.
"""

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from targets.datasets.files import DataError as DataError
    from targets.directional.bingham import bingham as bingham
    from targets.directional.matrix_langevin import matrix_langevin as matrix_langevin
    from targets.directional.product_laws import independent as independent
    from targets.directional.uniform import uniform_sphere as uniform_sphere
    from targets.directional.uniform import uniform_spheres as uniform_spheres
    from targets.directional.uniform import uniform_stiefel as uniform_stiefel
    from targets.directional.vmf_mixture import vmf_mixture as vmf_mixture
    from targets.directional.von_mises_fisher import von_mises_fisher as von_mises_fisher
    from targets.euclidean.banana import banana as banana
    from targets.euclidean.funnel import funnel as funnel
    from targets.euclidean.gaussian import gaussian as gaussian
    from targets.euclidean.gaussian_mixture import gaussian_mixture as gaussian_mixture
    from targets.euclidean.student_t import student_t as student_t
    from targets.manifolds.base import Manifold as Manifold
    from targets.manifolds.euclidean import Euclidean as Euclidean
    from targets.manifolds.open_simplex import Corner as Corner
    from targets.manifolds.orthant import Positive as Positive
    from targets.manifolds.product import Product as Product
    from targets.manifolds.simplex import Simplex as Simplex
    from targets.manifolds.sphere import Sphere as Sphere
    from targets.manifolds.spheres import ProductOfSpheres as ProductOfSpheres
    from targets.manifolds.stiefel import Stiefel as Stiefel
    from targets.positive.gamma import gamma as gamma
    from targets.positive.log_normal import log_normal as log_normal
    from targets.positive.truncated_gaussian import truncated_gaussian as truncated_gaussian
    from targets.posteriordb.registry import posteriordb_target as posteriordb_target
    from targets.registry import target as target
    from targets.regression.logistic import logistic_regression as logistic_regression
    from targets.simplex.dirichlet import dirichlet as dirichlet
    from targets.simplex.dirichlet import dirichlet_sphere as dirichlet_sphere
    from targets.target import Cdf as Cdf
    from targets.target import DataTerms as DataTerms
    from targets.target import GaussianLaw as GaussianLaw
    from targets.target import Moment as Moment
    from targets.target import Target as Target

__all__ = [
    "Cdf",
    "Corner",
    "DataError",
    "DataTerms",
    "Euclidean",
    "GaussianLaw",
    "Manifold",
    "Moment",
    "Positive",
    "Product",
    "ProductOfSpheres",
    "Simplex",
    "Sphere",
    "Stiefel",
    "Target",
    "banana",
    "bingham",
    "dirichlet",
    "dirichlet_sphere",
    "funnel",
    "gamma",
    "gaussian",
    "gaussian_mixture",
    "independent",
    "log_normal",
    "logistic_regression",
    "matrix_langevin",
    "posteriordb_target",
    "student_t",
    "target",
    "truncated_gaussian",
    "uniform_sphere",
    "uniform_spheres",
    "uniform_stiefel",
    "vmf_mixture",
    "von_mises_fisher",
]

_EXPORTS = {
    "targets.datasets.files": ("DataError",),
    "targets.directional.bingham": ("bingham",),
    "targets.directional.matrix_langevin": ("matrix_langevin",),
    "targets.directional.product_laws": ("independent",),
    "targets.directional.uniform": (
        "uniform_sphere",
        "uniform_spheres",
        "uniform_stiefel",
    ),
    "targets.directional.vmf_mixture": ("vmf_mixture",),
    "targets.directional.von_mises_fisher": ("von_mises_fisher",),
    "targets.euclidean.banana": ("banana",),
    "targets.euclidean.funnel": ("funnel",),
    "targets.euclidean.gaussian": ("gaussian",),
    "targets.euclidean.gaussian_mixture": ("gaussian_mixture",),
    "targets.euclidean.student_t": ("student_t",),
    "targets.manifolds.base": ("Manifold",),
    "targets.manifolds.euclidean": ("Euclidean",),
    "targets.manifolds.open_simplex": ("Corner",),
    "targets.manifolds.orthant": ("Positive",),
    "targets.manifolds.product": ("Product",),
    "targets.manifolds.simplex": ("Simplex",),
    "targets.manifolds.sphere": ("Sphere",),
    "targets.manifolds.spheres": ("ProductOfSpheres",),
    "targets.manifolds.stiefel": ("Stiefel",),
    "targets.positive.gamma": ("gamma",),
    "targets.positive.log_normal": ("log_normal",),
    "targets.positive.truncated_gaussian": ("truncated_gaussian",),
    "targets.posteriordb.registry": ("posteriordb_target",),
    "targets.registry": ("target",),
    "targets.regression.logistic": ("logistic_regression",),
    "targets.simplex.dirichlet": (
        "dirichlet",
        "dirichlet_sphere",
    ),
    "targets.target": (
        "Cdf",
        "DataTerms",
        "GaussianLaw",
        "Moment",
        "Target",
    ),
}
_HOMES = {name: module for module, names in _EXPORTS.items() for name in names}


class _Package(ModuleType):
    """The package, in which `target` is the function of the registry, not the submodule of that name."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
