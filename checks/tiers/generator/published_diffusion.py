"""The diffusion of the code is that of the published equation, written down a second time.

A metric or a friction that is wrong in the step and in the declared dynamics alike is another diffusion with the same
stationary law: no check of the law sees it, and none that compares the code with what the sampler declares.
"""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from checks.core.check import Case, NotApplicable, check
from checks.core.finding import Finding, Tolerance
from checks.core.selection import informative
from checks.exact_laws.claimed_law_quadrature import generic_points
from checks.tiers.generator.drift_and_diffusion import code_generator
from checks.tiers.generator.proposal import proposal_limits, proposes
from checks.tracing.one_step_moments import step_sizes
from checks.tracing.step_map import JaxStep, step_map
from samplers.interface.claims import Composite
from samplers.registry import RECIPE_OFFSET
from targets.simplex.parameterisations import REDUCED
from targets.target import Target

Options = Mapping[str, Any]
Matrix = Callable[[np.ndarray, Target, Options], np.ndarray]
"""A flat position (d,), the target and the options of the row that differ from the defaults -> (d, d)."""
Published = Callable[[np.ndarray, Target, Options], np.ndarray]
"""z (n,), the target and the options -> D(z) (n, n)."""


@check(
    tier="generator",
    equation="Cov(z') / h -> 2 D as h -> 0 with the D of the method's paper",
    targets=lambda subject: informative(subject) if subject.row.diffusion else (),
    cost=0.3,
    decides="dynamics",
    about=("samplers.riemannian.metrics",),
)
def published_diffusion(case: Case) -> Finding:
    """Cov(z') / h -> 2 D as h -> 0 with the D of the method's paper (for a Metropolis kernel, that of its proposal).

    D is computed in NumPy from the position and the options of the row, not from what the sampler declares. Where it
    is right, drift and Q follow from the law and from the other checks of the generator and the recipe.
    """
    if case.subject.row.diffusion not in DIFFUSIONS:
        raise NotApplicable("no published diffusion is on file for this row")
    step = step_map(case.subject, case.target)
    if Composite in step.sampler.claims:
        raise NotApplicable("a composite step has no generator in the full variable")
    points, hs = generic_points(step), step_sizes(case.subject, case.target)
    if isinstance(step, JaxStep) and not step.exchanging and proposes(step):
        *_, found, error = proposal_limits(step, points, hs)
    else:
        _, _, found, error, _ = code_generator(case.subject, case.target, points)
    published = DIFFUSIONS[case.subject.row.diffusion]
    expected = np.stack([published(z, case.target, case.subject.options) for z in points])
    scale = 1 + np.abs(expected).max()
    gap = np.abs(found - expected)
    p, i, j = np.unravel_index(np.argmax(gap), gap.shape)
    # (z' - z) / h at the smallest h loses |z| eps / h; the extrapolation amplifies it by a small factor.
    roundoff = 100 * np.finfo(float).eps * (1 + np.abs(points).max()) / hs[-1]
    allowance = float(10 * error.max() / scale + roundoff)
    return Finding(
        effect=float(gap.max() / scale),
        tolerance=Tolerance(allowance, "error of the extrapolation to h = 0 and round-off"),
        reason=f"D[{i}, {j}] at z = {np.round(points[p], 3).tolist()}: the code has {found[p, i, j]:.6g}, "
        f"the published equation ({case.subject.row.diffusion}) {expected[p, i, j]:.6g}",
        statistic="largest gap of the diffusion",
        unit="relative to the largest entry plus one",
        minimum_detectable_effect=2 * allowance,
        required_sensitivity=1e-4,
        step_size=float(hs[0]),
    )


DEFAULTS: dict[str, Any] = {"temperature": 1.0, "friction": 1.0, "diffusion": 1.0, "scale": 1.0, "ratio": 3.0}
"""What the options of the rows are by their documentation where a variant does not set them."""


def _option(options: Options, name: str) -> float:
    return options.get(name, DEFAULTS[name])


# Matrices of the position --------------------------------------------------------------------------------------------


def _identity(x, target, options):
    del target, options
    return np.eye(len(x))


def _positive(x, target, options):
    """diag theta (patterson2013stochastic, section 4, expanded mean)."""
    del target, options
    return np.diag(x)


def _reduced_mean(x, target, options):
    """(diag theta - theta theta^T) / N (patterson2013stochastic, section 4)."""
    del target, options
    return (np.diag(x) - np.outer(x, x)) / sum(REDUCED)


def _reduced_natural(x, target, options):
    """(diag 1 / pi + 1 1^T / pi_K) / N for theta_k = log(pi_k / pi_K) (patterson2013stochastic, section 4)."""
    del target, options
    pi = np.append(np.exp(x), 1.0) / (1 + np.exp(x).sum())
    return (np.diag(1 / pi[:-1]) + 1 / pi[-1]) / sum(REDUCED)


def _expanded_natural(x, target, options):
    """diag e^-theta (patterson2013stochastic, section 4)."""
    del target, options
    return np.diag(np.exp(-x))


def _non_hessian(x, target, options):
    """B B, B = [[3/2 + sin((x + y) / 2) / 2, c], [c, 6/5 + 2/5 cos(y / 2)]], c = 3/10 cos((x - y) / 2)."""
    del target, options
    u, v = x
    c = 3 / 10 * np.cos((u - v) / 2)
    B = np.array([[3 / 2 + np.sin((u + v) / 2) / 2, c], [c, 6 / 5 + 2 / 5 * np.cos(v / 2)]])
    return B @ B


def _recipe(x, target, options):
    """3/2 sqrt |U + C| (ma2015complete, section 4.1)."""
    del options
    return 3 / 2 * np.sqrt(abs(float(target.flat_potential(jnp.asarray(x))) + RECIPE_OFFSET)) * np.eye(len(x))


def _rmsprop(x, target, options):
    """diag 1 / (lambda + sqrt V), V = alpha V_0 + (1 - alpha) g^2, g = grad U / N (li2016preconditioned, Algorithm 1).

    V_0 is the option `second_moment` times the curvature, over N^2.
    """
    o = {"decay": 0.8, "second_moment": 1.0, "regularisation": 0.2, **options}  # the defaults of the row
    size = 1 if target.terms is None else target.terms.size
    g = np.asarray(jax.grad(target.flat_potential)(jnp.asarray(x))) / size
    V = o["decay"] * o["second_moment"] * target.curvature / size**2 + (1 - o["decay"]) * g**2
    return np.diag(1 / (o["regularisation"] + np.sqrt(V)))


def _rmsprop_constant(x, target, options):
    """diag 1 / (lambda + sqrt V) with V fixed at `second_moment` times 1 to 3 (li2016preconditioned, Algorithm 1)."""
    del target
    o = {"second_moment": 1.0, "regularisation": 0.1, **options}  # the defaults of the row
    return np.diag(1 / (o["regularisation"] + np.sqrt(o["second_moment"] * np.linspace(1, 3, len(x)))))


def _fisher(x, target, options):
    """B^-1 (ahn2012bayesian, Algorithm 1: (gamma N I + 4 B / eps)^-1 with noise of covariance 4 B / eps)."""
    del target
    n = len(x)
    return np.linalg.inv(_option(options, "scale") * (0.7 * np.eye(n) + 0.3 + np.diag(np.linspace(0, 0.8, n))))


def _fisher_diagonal(x, target, options):
    """The same with a diagonal B."""
    del target
    return np.diag(1 / (_option(options, "scale") * np.linspace(1.5, 0.8, len(x))))


def _squares(x, target, options):
    """sigma^2 diag theta^2, sigma the standard deviation of log theta (baker2018large, section 2.3)."""
    del options
    mean, square = (target.moments[name].value for name in ("log theta[0]", "log theta[0]^2"))
    return (square - mean**2) * np.diag(x**2)


def _tangent(x, target):
    """The projection P on the tangent space, of which the manifold of the target gives the columns."""
    map_of = lambda u: target.ravel(target.manifold.tangent(target.unravel(jnp.asarray(x)), target.unravel(u)))
    return np.asarray(jax.jacobian(map_of)(jnp.zeros(len(x))))


# Where they stand in D ----------------------------------------------------------------------------------------------


def _langevin(matrix: Matrix) -> Published:
    """T G^-1: d theta = .. + sqrt(2 T G^-1) dW (ma2015complete, section 3.1: SGLD, SGRLD)."""
    return lambda z, target, options: _option(options, "temperature") * matrix(z[: target.size], target, options)


def _momentum(friction: Matrix) -> Published:
    """T C for the momentum and 0 elsewhere: d r = .. - C r dt + sqrt(2 C T) dW (ma2015complete, section 3.1)."""

    def D(z, target, options):
        n, out = target.size, np.zeros((len(z), len(z)))
        out[n : 2 * n, n : 2 * n] = _option(options, "temperature") * friction(z[:n], target, options)
        return out

    return D


def _number(name: str) -> Matrix:
    """An option times the identity."""
    return lambda x, target, options: _option(options, name) * np.eye(len(x))


def _riemannian(matrix: Matrix) -> Published:
    """`_momentum` with the friction G^-1 (ma2015complete, section 3.2: gSGRHMC), or the number that is given."""
    given = lambda options: options.get("friction") is not None
    return _momentum(lambda x, target, o: (_number("friction") if given(o) else matrix)(x, target, o))


def _geodesic(friction: Matrix) -> Published:
    """T P C P for the velocity (liu2016stochastic, equations (5) and (6))."""

    def C(x, target, options):
        P = _tangent(x, target)
        return P @ friction(x, target, options) @ P

    return _momentum(C)


def _ambient_friction(x, target, options):
    """A matrix that is not a multiple of the identity, as the row has it."""
    del target
    n = len(x)
    return _option(options, "friction") * (0.5 * np.eye(n) + 0.3 + np.diag(np.linspace(0, 0.8, n)))


def _two_temperatures(z, target, options):
    """diag(T, T'), T' = T times the ratio (deng2020nonconvex, Algorithm 1)."""
    del z
    T = _option(options, "temperature")
    return np.diag(np.repeat([T, _option(options, "ratio") * T], target.size))


METRICS: dict[str, Matrix] = {
    "flat": _identity,
    "positive": _positive,
    "reduced-mean": _reduced_mean,
    "reduced-natural": _reduced_natural,
    "expanded-natural": _expanded_natural,
    "non-hessian": _non_hessian,
    "recipe": _recipe,
    "rmsprop": _rmsprop,
    "rmsprop-constant": _rmsprop_constant,
    "fisher": _fisher,
    "fisher-diagonal": _fisher_diagonal,
}
"""G^-1 by name."""
DIFFUSIONS: dict[str, Published] = {
    "langevin": _langevin(_identity),
    **{f"langevin/{name}": _langevin(matrix) for name, matrix in METRICS.items()},
    "two-temperatures": _two_temperatures,
    "underdamped": _momentum(_number("friction")),
    **{f"underdamped/{name}": _riemannian(matrix) for name, matrix in METRICS.items()},
    "thermostat": _momentum(_number("diffusion")),
    "square-root": _langevin(_positive),  # baker2018large, equation (2.1): d theta = .. + sqrt(2 theta) dW
    "geometric": _langevin(_squares),
    "geodesic": _geodesic(_number("friction")),
    "geodesic/matrix": _geodesic(_ambient_friction),
    "geodesic-thermostat": _geodesic(_number("diffusion")),
}
"""D of a row by the name that the row gives."""
