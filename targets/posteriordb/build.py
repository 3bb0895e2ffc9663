"""From a posterior of posteriordb and the density of its model to a target."""

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.targets.datasets.files import DataError
from sgmcmc_verification.targets.manifolds.euclidean import Euclidean
from sgmcmc_verification.targets.posteriordb.expectations import standard_error
from sgmcmc_verification.targets.posteriordb.files import Posterior
from sgmcmc_verification.targets.posteriordb.model import Model
from sgmcmc_verification.targets.target import DataTerms, Moment, Target

CURVATURES = 500
"""About this many draws are looked at for the curvature."""


def posterior_target(posterior: Posterior, model: Model, name: str) -> Target:
    """The posterior in unconstrained coordinates.

        U(x) = - log |det T'(x)| - log p(T(x)) - sum_i log p(data[i] | T(x))

    Moments are expectations of the reported quantities q, `theta[1]`, and of (q - c)^2, `square theta[1]`, with c the
    mean of the reference draws; their errors are Monte Carlo standard errors of these draws, with their
    autocorrelation. The scale in `curvature` is the 99th percentile over the draws.

    Source: magnusson2024posteriordb.

    Args:
        posterior: with its reference draws.
        model: the density of its model, for its data.
        name: of the target.

    Returns:
        A target on R^d, positions (d,), without an exact sampler.

    Raises:
        DataError: if the draws do not have the quantities of the model, lie outside of its support, or do not fill it.
    """
    draws = unconstrained_draws(posterior, model)
    flat = draws.reshape(-1, model.dim)
    spread = flat.std(axis=0)
    scaled = (flat - flat.mean(axis=0)) / np.where(spread > 0, spread, 1)
    if np.linalg.matrix_rank(scaled.T @ scaled) < model.dim:
        raise DataError(
            f"{posterior.draws.where}: the draws lie in fewer than {model.dim} dimensions; put the published file there"
        )
    root = spread[:, None] * np.linalg.cholesky(scaled.T @ scaled / len(flat))
    # off the mode, where the gradient would vanish, but in the bulk however strongly the coordinates are correlated
    start = flat.mean(axis=0) + root @ (0.5 * (-1.0) ** np.arange(model.dim))

    return Target(
        name=name,
        manifold=Euclidean(model.dim),
        example=jnp.asarray(start, jnp.result_type(float)),
        potential=model.potential,
        moments=_moments(posterior, model),
        terms=DataTerms(model.prior, model.datum, model.data, len(jax.tree.leaves(model.data)[0])),
        curvature=_curvature(model, flat),
        source=f"magnusson2024posteriordb; {posterior.name}: {posterior.title}",
    )


def unconstrained_draws(posterior: Posterior, model: Model) -> np.ndarray:
    """The reference draws as positions, (chains, draws, d).

    Raises:
        DataError: if the quantities of model and draws differ in name or shape, or a draw lies outside the support.
    """
    draws = posterior.draws
    expected = jax.eval_shape(lambda x: model.quantities(model.constrain(x)), jnp.zeros(model.dim))
    for name in draws.values:
        if name not in expected:
            raise DataError(
                f"{posterior.where}: dimensions: {name}: the model {posterior.model} reports {', '.join(expected)} "
                "only; leave it out, or put it among the quantities of the model"
            )
    for name, values in expected.items():
        found = draws.values[name].shape[2:] if name in draws.values else None
        if found != values.shape:
            raise DataError(
                f"{draws.where}: {name}: the model {posterior.model} has shape {values.shape}, the draws "
                f"{found or 'lack it'}; name the right model and draws in {posterior.where}"
            )
    kept = {name: jnp.asarray(draws.values[name]) for name in expected}
    found = np.asarray(jax.vmap(jax.vmap(lambda q: model.unconstrain(model.parameters_of(q))))(kept), np.float64)
    if not np.all(np.isfinite(found)):
        chain, draw = np.argwhere(~np.isfinite(found))[0, :2]
        raise DataError(
            f"{draws.where}: draw {draw + 1} of chain {chain + 1} lies outside the support of {posterior.model}; "
            "replace the file by the published one"
        )
    return found


def _moments(posterior: Posterior, model: Model) -> dict[str, Moment]:
    moments = {}
    for name, values in posterior.draws.values.items():
        for index in np.ndindex(values.shape[2:]):
            entry = name + (f"[{','.join(str(i + 1) for i in index)}]" if index else "")
            column = values[(..., *index)]
            centre = float(column.mean())
            quantity = _quantity(model, name, index)
            moments[entry] = Moment(quantity, centre, standard_error(column))
            square = (column - centre) ** 2
            moments[f"square {entry}"] = Moment(
                lambda x, q=quantity, c=centre: (q(x) - c) ** 2, float(square.mean()), standard_error(square)
            )
    return moments


def _quantity(model: Model, name: str, index: tuple[int, ...]):
    return lambda position: model.quantities(model.constrain(position))[name][index]


def _curvature(model: Model, draws: np.ndarray) -> float:
    points = jnp.asarray(draws[:: max(1, len(draws) // CURVATURES)], jnp.result_type(float))
    hessians = jax.jit(lambda x: jax.lax.map(jax.hessian(model.potential), x, batch_size=50))(points)
    return float(np.quantile(np.linalg.eigvalsh(np.asarray(hessians))[:, -1], 0.99))
