"""Functions of a draw whose expectation is known exactly, by which the law of draws is judged."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.draws.answers import Draws
from sgmcmc_verification.checks.exact_laws.claimed_law_quadrature import at_temperature, position_rule
from sgmcmc_verification.checks.exact_laws.exact_draws import line_grid
from sgmcmc_verification.targets.euclidean.gaussian import gaussian
from sgmcmc_verification.targets.target import Cdf, Target

DECILES = np.arange(1, 10) / 10


class Function(NamedTuple):
    """A function of a draw.

    Attributes:
        name: of it.
        values: draws -> (chains, draws).
        expected: E f, exact.
        error: bound of the error of `expected`.
        scale: in which an error is measured; None for the standard deviation of the values.
    """

    name: str
    values: Callable[[Draws], np.ndarray]
    expected: float
    error: float = 0.0
    scale: float | None = None


@lru_cache(maxsize=64)
def law_at(target: Target, temperature: float) -> Target:
    """The target with the moments and distribution functions of exp(-U / T), and the potential that it had.

    Raises:
        OutOfReach: if they are not known at this temperature.
    """
    if temperature == 1:
        return target
    if target.gaussian is not None:
        covariance = temperature * np.linalg.inv(target.gaussian.precision)
        law = gaussian(target.gaussian.mean, (covariance + covariance.T) / 2, target.name)
        # the name of the quadratic form stands for U, which is not that of the other law
        cdfs = {name: cdf for name, cdf in law.cdfs.items() if name != "squared distance"}
        return replace(target, moments=law.moments, cdfs=cdfs)
    if target.tempered is not None:
        law = at_temperature(target, temperature)
        return replace(target, moments=law.moments, cdfs={k: v for k, v in law.cdfs.items() if k.startswith("theta")})
    (points, weights), (finer, finer_weights) = (position_rule(target, temperature, refine) for refine in (0, 1))
    x, mass = line_grid(target, temperature)
    moments = {}
    for name, moment in target.moments.items():
        f = _on_points(target, moment.function)
        value = float(finer_weights @ f(finer))
        moments[name] = moment._replace(value=value, error=abs(value - float(weights @ f(points))))
    cdfs = {name: Cdf(cdf.function, lambda v: np.interp(v, x, mass)) for name, cdf in target.cdfs.items()}
    return replace(target, moments=moments, cdfs=cdfs)


@lru_cache(maxsize=512)
def _on_points(target: Target, f: Callable[[Any], jax.Array]) -> Callable[[np.ndarray], np.ndarray]:
    """f as a function of points (.., d)."""
    one = jax.jit(jax.vmap(lambda flat: f(target.unravel(flat))))

    def values(points: np.ndarray) -> np.ndarray:
        flat = np.asarray(one(jnp.asarray(points.reshape(-1, target.size))))
        return flat.reshape(points.shape[:-1] + flat.shape[1:])

    return values


def moments(law: Target) -> Iterator[Function]:
    """Moments of coordinates and their products."""
    for name, moment in law.moments.items():
        f = _on_points(law, moment.function)
        yield Function(_renamed(name), lambda draws, f=f: f(draws.x), moment.value, moment.error)


def deciles(law: Target) -> Iterator[Function]:
    """Events F(s) <= k / 10 of statistics s with a known distribution function F: what a histogram shows."""
    for name, cdf in law.cdfs.items():
        f = _on_points(law, cdf.function)
        for q in DECILES:
            event = lambda draws, f=f, cdf=cdf, q=q: (cdf.cdf(f(draws.x)) <= q).astype(float)
            yield Function(f"F({_renamed(name)}) <= {q:.1f}", event, float(q), scale=float(np.sqrt(q * (1 - q))))


def levels(law: Target) -> Iterator[tuple[str, Callable[[Draws], np.ndarray]]]:
    """(name, draws -> F(s)), uniform under the law, of each statistic with a known distribution function F."""
    for name, cdf in law.cdfs.items():
        f = _on_points(law, cdf.function)
        yield _renamed(name), lambda draws, f=f, cdf=cdf: np.clip(cdf.cdf(f(draws.x)), 0.0, 1.0)


def configurational(law: Target, temperature: float) -> Iterator[Function]:
    """Configurational temperatures, of all coordinates and of each: by parts under exp(-U / T),

        E (d_i U)^2 = T E d_i d_i U,    E |grad U|^2 = T E tr Hess U.

    With g and k the two sides of one of them but for T, the function is T + (g - T k)/mean k, whose mean over the draws
    is mean g/mean k.

    Source: rugh1997dynamical; butler1998configurational.
    """
    both = _sides(law)

    def ratio(draws: Draws, chosen: slice) -> np.ndarray:
        g, k = np.moveaxis(both(draws.x)[..., chosen].sum(axis=-1), -1, 0)
        return temperature + (g - temperature * k) / k.mean()

    yield Function("configurational temperature", lambda draws: ratio(draws, slice(None)), temperature)
    if law.size > 1:
        for i in range(law.size):
            name = f"configurational temperature of x_{i + 1}"
            yield Function(name, lambda draws, i=i: ratio(draws, slice(i, i + 1)), temperature)


@lru_cache(maxsize=64)
def _sides(law: Target) -> Callable[[np.ndarray], np.ndarray]:
    """Points (.., d) -> (d_i U)^2 and d_i d_i U of all i, (.., 2, d)."""
    gradient = jax.grad(law.flat_potential)

    def sides(position: Any) -> jax.Array:
        flat = law.ravel(position)
        diagonal = jax.vmap(lambda e: jax.jvp(gradient, (flat,), (e,))[1] @ e)(jnp.eye(law.size))
        return jnp.stack([gradient(flat) ** 2, diagonal])

    return _on_points(law, sides)


def kinetic(size: int, temperature: float) -> Iterator[Function]:
    """Moments of momenta p ~ N(0, T I), independent of x: the kinetic temperature |p|^2 / d = T, equipartition."""
    t = temperature
    yield Function("kinetic temperature |p|^2 / d", lambda draws: (_momenta(draws) ** 2).mean(axis=-1), t)
    for i in range(size):
        n = i + 1
        yield Function(f"p_{n}", lambda draws, i=i: _momenta(draws)[..., i], 0.0)
        yield Function(f"p_{n}^2", lambda draws, i=i: _momenta(draws)[..., i] ** 2, t)
        yield Function(f"p_{n}^4", lambda draws, i=i: _momenta(draws)[..., i] ** 4, 3 * t**2)
        yield Function(f"x_{n} p_{n}", lambda draws, i=i: draws.x[..., i] * _momenta(draws)[..., i], 0.0)


def _momenta(draws: Draws) -> np.ndarray:
    assert draws.p is not None  # the caller has looked
    return draws.p


def energy(law: Target) -> Callable[[Draws], np.ndarray]:
    """Draws -> U."""
    u = _on_points(law, law.potential)
    return lambda draws: u(draws.x)


def _renamed(name: str) -> str:
    """`theta[0]` of the suite as `x_1`, which the columns are called."""
    for i in range(name.count("theta") and 100):
        name = name.replace(f"theta[{i}]", f"x_{i + 1}")
    return name
