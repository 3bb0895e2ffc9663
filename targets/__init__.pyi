from .datasets.files import DataError as DataError
from .directional.bingham import bingham as bingham
from .directional.matrix_langevin import matrix_langevin as matrix_langevin
from .directional.product_laws import independent as independent
from .directional.uniform import uniform_sphere as uniform_sphere
from .directional.uniform import uniform_spheres as uniform_spheres
from .directional.uniform import uniform_stiefel as uniform_stiefel
from .directional.vmf_mixture import vmf_mixture as vmf_mixture
from .directional.von_mises_fisher import von_mises_fisher as von_mises_fisher
from .euclidean.banana import banana as banana
from .euclidean.funnel import funnel as funnel
from .euclidean.gaussian import gaussian as gaussian
from .euclidean.gaussian_mixture import gaussian_mixture as gaussian_mixture
from .euclidean.student_t import student_t as student_t
from .manifolds.base import Manifold as Manifold
from .manifolds.euclidean import Euclidean as Euclidean
from .manifolds.open_simplex import Corner as Corner
from .manifolds.orthant import Positive as Positive
from .manifolds.product import Product as Product
from .manifolds.simplex import Simplex as Simplex
from .manifolds.sphere import Sphere as Sphere
from .manifolds.spheres import ProductOfSpheres as ProductOfSpheres
from .manifolds.stiefel import Stiefel as Stiefel
from .positive.gamma import gamma as gamma
from .positive.log_normal import log_normal as log_normal
from .positive.truncated_gaussian import truncated_gaussian as truncated_gaussian
from .posteriordb.registry import posteriordb_target as posteriordb_target
from .regression.logistic import logistic_regression as logistic_regression
from .simplex.dirichlet import dirichlet as dirichlet
from .simplex.dirichlet import dirichlet_sphere as dirichlet_sphere
from .target import Cdf as Cdf
from .target import DataTerms as DataTerms
from .target import GaussianLaw as GaussianLaw
from .target import Moment as Moment
from .target import Target as Target

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
    "truncated_gaussian",
    "uniform_sphere",
    "uniform_spheres",
    "uniform_stiefel",
    "vmf_mixture",
    "von_mises_fisher",
]
