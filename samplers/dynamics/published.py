"""Diffusions as the papers of the samplers print them, in NumPy: a second writing, for the rows to name.

A row carries the one of its sampler (`Row.diffusion`), to which the check `published_diffusion` holds the code. Nothing
here is taken from the code of a step or from the dynamics that a sampler declares.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.targets.simplex.parameterisations import REDUCED
from sgmcmc_verification.targets.target import Target

Options = Mapping[str, Any]
Matrix = Callable[[np.ndarray, Target, Options], np.ndarray]
"""A position (d,) or z (n,), flat, the target and the options of the row that differ from the defaults -> a matrix."""


@dataclass(frozen=True, eq=False)
class PublishedDiffusion:
    """D(z) of a published equation.

    Attributes:
        name: what a finding calls it.
        matrix: z (n,), the target and the options -> D(z) (n, n).
    """

    name: str
    matrix: Matrix


RECIPE_OFFSET = 1.5
"""Above minus the minimum of the double well, so that the recipe paper's metric is smooth."""

DEFAULTS: dict[str, Any] = {"temperature": 1.0, "friction": 1.0, "diffusion": 1.0, "scale": 1.0, "ratio": 3.0}
"""Documented defaults of the options of the rows, for variants that do not set them."""


def _option(options: Options, name: str) -> float:
    return options.get(name, DEFAULTS[name])


# Matrices of the position --------------------------------------------------------------------------------------------


def flat(x: np.ndarray, target: Target, options: Options) -> np.ndarray:
    """I."""
    del target, options
    return np.eye(len(x))


def positive(x: np.ndarray, target: Target, options: Options) -> np.ndarray:
    """diag theta (patterson2013stochastic, section 4, expanded mean)."""
    del target, options
    return np.diag(x)


def reduced_mean(x: np.ndarray, target: Target, options: Options) -> np.ndarray:
    """(diag theta - theta theta^T) / N (patterson2013stochastic, section 4)."""
    del target, options
    return (np.diag(x) - np.outer(x, x)) / sum(REDUCED)


def reduced_natural(x: np.ndarray, target: Target, options: Options) -> np.ndarray:
    """(diag 1 / pi + 1 1^T / pi_K) / N for theta_k = log(pi_k / pi_K) (patterson2013stochastic, section 4)."""
    del target, options
    pi = np.append(np.exp(x), 1.0) / (1 + np.exp(x).sum())
    return (np.diag(1 / pi[:-1]) + 1 / pi[-1]) / sum(REDUCED)


def expanded_natural(x: np.ndarray, target: Target, options: Options) -> np.ndarray:
    """diag e^-theta (patterson2013stochastic, section 4)."""
    del target, options
    return np.diag(np.exp(-x))


def non_hessian(x: np.ndarray, target: Target, options: Options) -> np.ndarray:
    """B B, B = [[3/2 + sin((x + y) / 2) / 2, c], [c, 6/5 + 2/5 cos(y / 2)]], c = 3/10 cos((x - y) / 2)."""
    del target, options
    u, v = x
    c = 3 / 10 * np.cos((u - v) / 2)
    B = np.array([[3 / 2 + np.sin((u + v) / 2) / 2, c], [c, 6 / 5 + 2 / 5 * np.cos(v / 2)]])
    return B @ B


def recipe(x: np.ndarray, target: Target, options: Options) -> np.ndarray:
    """3/2 sqrt |U + C| (ma2015complete, section 4.1)."""
    del options
    return 3 / 2 * np.sqrt(abs(float(target.flat_potential(jnp.asarray(x))) + RECIPE_OFFSET)) * np.eye(len(x))


def rmsprop(x: np.ndarray, target: Target, options: Options) -> np.ndarray:
    """diag 1 / (lambda + sqrt V), V = alpha V_0 + (1 - alpha) g^2, g = grad U / N (li2016preconditioned, Algorithm 1).

    V_0 is the option `second_moment` times the curvature, over N^2.
    """
    o = {"decay": 0.8, "second_moment": 1.0, "regularisation": 0.2, **options}  # the defaults of the row
    size = 1 if target.terms is None else target.terms.size
    g = np.asarray(jax.grad(target.flat_potential)(jnp.asarray(x))) / size
    V = o["decay"] * o["second_moment"] * target.curvature / size**2 + (1 - o["decay"]) * g**2
    return np.diag(1 / (o["regularisation"] + np.sqrt(V)))


def rmsprop_constant(x: np.ndarray, target: Target, options: Options) -> np.ndarray:
    """diag 1 / (lambda + sqrt V) with V fixed at `second_moment` times 1 to 3 (li2016preconditioned, Algorithm 1)."""
    del target
    o = {"second_moment": 1.0, "regularisation": 0.1, **options}  # the defaults of the row
    return np.diag(1 / (o["regularisation"] + np.sqrt(o["second_moment"] * np.linspace(1, 3, len(x)))))


def fisher(x: np.ndarray, target: Target, options: Options) -> np.ndarray:
    """B^-1 (ahn2012bayesian, Algorithm 1: (gamma N I + 4 B / eps)^-1 with noise of covariance 4 B / eps)."""
    del target
    n = len(x)
    return np.linalg.inv(_option(options, "scale") * (0.7 * np.eye(n) + 0.3 + np.diag(np.linspace(0, 0.8, n))))


def fisher_diagonal(x: np.ndarray, target: Target, options: Options) -> np.ndarray:
    """The same with a diagonal B."""
    del target
    return np.diag(1 / (_option(options, "scale") * np.linspace(1.5, 0.8, len(x))))


def _squares(x: np.ndarray, target: Target, options: Options) -> np.ndarray:
    """sigma^2 diag theta^2, sigma the standard deviation of log theta (baker2018large, section 2.3)."""
    del options
    mean, square = (target.moments[name].value for name in ("log theta[0]", "log theta[0]^2"))
    return (square - mean**2) * np.diag(x**2)


def _tangent(x: np.ndarray, target: Target) -> np.ndarray:
    """The projection P on the tangent space, of which the manifold of the target gives the columns."""
    map_of = lambda u: target.ravel(target.manifold.tangent(target.unravel(jnp.asarray(x)), target.unravel(u)))
    return np.asarray(jax.jacobian(map_of)(jnp.zeros(len(x))))


# Where they stand in D ----------------------------------------------------------------------------------------------


def _tempered(matrix: Matrix) -> Matrix:
    """T G^-1: d theta = .. + sqrt(2 T G^-1) dW (ma2015complete, section 3.1: SGLD, SGRLD)."""
    return lambda z, target, options: _option(options, "temperature") * matrix(z[: target.size], target, options)


def _momentum(friction: Matrix) -> Matrix:
    """T C for the momentum and 0 elsewhere: d r = .. - C r dt + sqrt(2 C T) dW (ma2015complete, section 3.1)."""

    def D(z: np.ndarray, target: Target, options: Options) -> np.ndarray:
        n, out = target.size, np.zeros((len(z), len(z)))
        out[n : 2 * n, n : 2 * n] = _option(options, "temperature") * friction(z[:n], target, options)
        return out

    return D


def _number(name: str) -> Matrix:
    """An option times the identity."""
    return lambda x, target, options: _option(options, name) * np.eye(len(x))


def _riemannian(matrix: Matrix) -> Matrix:
    """`_momentum` with the friction G^-1 (ma2015complete, section 3.2: gSGRHMC), or the number that is given."""
    given = lambda options: options.get("friction") is not None
    return _momentum(lambda x, target, o: (_number("friction") if given(o) else matrix)(x, target, o))


def _geodesic(friction: Matrix) -> Matrix:
    """T P C P for the velocity (liu2016stochastic, equations (5) and (6))."""

    def C(x: np.ndarray, target: Target, options: Options) -> np.ndarray:
        P = _tangent(x, target)
        return P @ friction(x, target, options) @ P

    return _momentum(C)


def _ambient_friction(x: np.ndarray, target: Target, options: Options) -> np.ndarray:
    """A matrix that is not a multiple of the identity, as the row has it."""
    del target
    n = len(x)
    return _option(options, "friction") * (0.5 * np.eye(n) + 0.3 + np.diag(np.linspace(0, 0.8, n)))


def _two_temperatures(z: np.ndarray, target: Target, options: Options) -> np.ndarray:
    """diag(T, T'), T' = T times the ratio (deng2020nonconvex, Algorithm 1)."""
    del z
    T = _option(options, "temperature")
    return np.diag(np.repeat([T, _option(options, "ratio") * T], target.size))


def langevin(metric: Matrix) -> PublishedDiffusion:
    """Overdamped dynamics with an inverse metric; its name is that of the function."""
    return PublishedDiffusion(f"langevin/{_name(metric)}", _tempered(metric))


def underdamped(metric: Matrix) -> PublishedDiffusion:
    """Dynamics with a momentum whose friction is an inverse metric; its name is that of the function."""
    return PublishedDiffusion(f"underdamped/{_name(metric)}", _riemannian(metric))


def _name(metric: Matrix) -> str:
    return metric.__name__.replace("_", "-")


LANGEVIN = PublishedDiffusion("langevin", _tempered(flat))
TWO_TEMPERATURES = PublishedDiffusion("two-temperatures", _two_temperatures)
UNDERDAMPED = PublishedDiffusion("underdamped", _momentum(_number("friction")))
THERMOSTAT = PublishedDiffusion("thermostat", _momentum(_number("diffusion")))
# baker2018large, equation (2.1): d theta = .. + sqrt(2 theta) dW
SQUARE_ROOT = PublishedDiffusion("square-root", _tempered(positive))
GEOMETRIC = PublishedDiffusion("geometric", _tempered(_squares))
GEODESIC = PublishedDiffusion("geodesic", _geodesic(_number("friction")))
GEODESIC_MATRIX = PublishedDiffusion("geodesic/matrix", _geodesic(_ambient_friction))
GEODESIC_THERMOSTAT = PublishedDiffusion("geodesic-thermostat", _geodesic(_number("diffusion")))
