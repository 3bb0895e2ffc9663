"""Every reference sampler, one row each."""

import dataclasses
import difflib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from samplers.dynamics.complete_recipe import Dynamics, coordinate_names
from samplers.entry import MANIFOLD_TIERS, PARTICLE_TIERS, Row
from samplers.estimators.basic import Exact, FullEnergy, KnownNoise
from samplers.estimators.host import HostExact
from samplers.geodesic.chmc import CHMC
from samplers.geodesic.gmc import GMC
from samplers.geodesic.gsgnht import GSGNHT
from samplers.geodesic.sggmc import SGGMC
from samplers.overdamped.contour_sgld import ContourSGLD
from samplers.overdamped.control_variates import SGLDCV, ControlVariates
from samplers.overdamped.cyclical_sgld import CyclicalSGLD
from samplers.overdamped.host_sgld import HostSGLD
from samplers.overdamped.leimkuhler_matthews import LeimkuhlerMatthews
from samplers.overdamped.mala import MALA
from samplers.overdamped.psgld import PSGLD, RMSpropMetric
from samplers.overdamped.replica_exchange import ReplicaExchangeSGLD
from samplers.overdamped.saga import SAGA, SAGALD
from samplers.overdamped.sgfs import SGFS
from samplers.overdamped.sgld import SGLD
from samplers.overdamped.svrg import SVRG, SVRGLD
from samplers.particles.particle_flow import ParticleFlow
from samplers.particles.parvi import ParVI
from samplers.particles.psghmc import PSGHMC
from samplers.particles.rsvgd import RSVGD
from samplers.particles.rsvgd_arcsine import ArcsineRSVGD
from samplers.particles.rsvgd_embedded import EmbeddedRSVGD
from samplers.particles.svgd import SVGD
from samplers.positive.cir_euler import CIREuler
from samplers.positive.exponential_ou import ExponentialOU, LogLocation
from samplers.positive.scir import SCIR, ExactCounts
from samplers.riemannian.euler import Recipe
from samplers.riemannian.metrics import (
    DiagonalMetric,
    ExpandedNaturalMetric,
    FlatMetric,
    NonHessian2D,
    PositiveMetric,
    RecipeMetric,
    ReducedMeanMetric,
    ReducedNaturalMetric,
)
from samplers.riemannian.mmala import MMALA
from samplers.riemannian.rmhmc import RMHMC
from samplers.riemannian.sgrhmc import SGRHMC
from samplers.riemannian.sgrld import SGRLD
from samplers.thermostats.badodab import BADODAB
from samplers.thermostats.msgnht import MSGNHT
from samplers.thermostats.sgnht import SGNHT
from samplers.underdamped.amagold import AMAGOLD
from samplers.underdamped.cyclical_sghmc import CyclicalSGHMC
from samplers.underdamped.hmc import HMC
from samplers.underdamped.sghmc import SGHMC
from samplers.underdamped.splitting import ABOBA, BAOAB, OABAO, OBABO
from samplers.underdamped.ubu import BUB, UBU
from targets.simplex.parameterisations import REDUCED
from targets.target import DataTerms, Target

TEMPERATURES = ({"temperature": 0.5}, {"temperature": 2.0})
FRICTIONS = ({"friction": 2.0, "temperature": 0.5}, {"friction": 0.4, "temperature": 2.0})
DIFFUSIONS = ({"diffusion": 2.0, "temperature": 0.5}, {"diffusion": 0.4, "temperature": 2.0})
# Euler's method with the old momentum is stable for h curvature < friction only.
EXPLICIT = ({"friction": 2.0, "temperature": 0.5}, {"friction": 1.5, "temperature": 2.0})
SPLITTING = (
    {"friction": 2.0, "temperature": 0.5, "fresh_gradients": True},
    {"friction": 0.4, "temperature": 2.0},
)
# The coefficients of an exact Ornstein-Uhlenbeck flow have a formula of their own where friction x step size exceeds 1.
OVERDAMPED = ({"friction": 30.0, "temperature": 0.5}, {"friction": 0.4, "temperature": 2.0})
THERMAL = (
    {"diffusion": 2.0, "temperature": 0.5, "thermal_mass": 2.5},
    {"diffusion": 0.4, "temperature": 2.0, "thermal_mass": 0.6},
)
TRAJECTORIES = ({"num_steps": 1, "temperature": 0.5}, {"num_steps": 2, "temperature": 2.0})
# The usual Gaussian, oscillator and double well, and one-dimensional data whose minibatches can be enumerated.
FLAT = ("gaussian-1d-scaled", "gaussian-correlated-2d", "anharmonic", "double-well", "tiny-gaussian-data")
MOMENTS = (
    {"second_moment": 0.3, "regularisation": 0.5, "temperature": 0.5},
    {"second_moment": 2.0, "regularisation": 0.02, "temperature": 2.0},
)
DECAYS = (
    {"decay": 0.9, "second_moment": 0.5, "regularisation": 0.5, "temperature": 0.5},
    {"decay": 0.6, "second_moment": 2.0, "regularisation": 0.1, "temperature": 2.0},
)
SCALES = ({"scale": 0.5}, {"scale": 2.0})
# Data with Hessians of their own, without which a corrected gradient has no noise.
REGRESSION = ("tiny-regression",)
POSITIVE = ("gamma",)
CURVED = ("vmf-s1", "gaussian-correlated-2d", "vmf-s2")
# A product of spheres in one array, and V_2(R^3).
EMBEDDED = (*CURVED, "vmf-s1^2", "matrix-langevin-3-2")
# A product of a sphere and a plane as a tuple, and the flat simplex with reflections.
OTHERS = ("vmf-s2-and-gaussian", "dirichlet-concentrated")
PLANE = ("gaussian-correlated-2d",)
CONTOUR_SLOPE = 0.3
"""Of log-linear weights, per unit of energy: below 1 / (T zeta) of all rows, for a finite inner temperature."""
ENERGY_VARIANCE = 0.8
"""Of the noise in potentials: of the size that an exchange between temperatures notices."""
RECIPE_OFFSET = 1.5
"""Above minus the minimum of the double well, so that the recipe paper's metric is smooth."""


def known_noise(target: Target) -> KnownNoise:
    """Exact gradients plus N(0, V) with a correlated V of the size of the target's own scale, reported."""
    n = target.size
    return KnownNoise(target, target.curvature * (0.5 * np.eye(n) + 0.2 * np.ones((n, n))))


def plain(method: Callable[..., Any], **fixed: Any) -> Callable[..., Any]:
    """A builder for a method that does not depend on the target."""
    return lambda target, **options: method(**fixed, **options)


def cyclical(method: Callable[..., Any], row_size: float, power: float) -> Callable[..., Any]:
    """A builder whose steps explore above four and a half times the usual step size of the row, `row_size`."""
    return lambda target, **options: method(explore_above=4.5 * row_size / target.curvature**power, **options)


def contour(method: Callable[..., Any]) -> Callable[..., Any]:
    """A builder of a contour sampler that keeps log-linear weights, whose law has the temperature that is asked for."""

    def build(target: Target, temperature: float = 1.0, zeta: float = 0.75):
        del target
        inner = 1 / (1 / temperature - zeta * CONTOUR_SLOPE)
        return method(
            temperature=inner, zeta=zeta, first_edge=-30.0, width=1.0, log_weights=tuple(CONTOUR_SLOPE * np.arange(60))
        )

    return build


def learning_contour(method: Callable[..., Any]) -> Callable[..., Any]:
    """A builder of a contour sampler that learns its weights, on ten bins from the least energy of a line on."""

    def build(target: Target, **options: Any):
        if target.interval is None or target.size != 1:
            raise ValueError(f"target: the bins are laid for a law on a line, which {target.name} is not")
        line = jnp.linspace(*target.interval, 2001)[:, None]
        least = float(jnp.min(jax.vmap(target.flat_potential)(line)))
        settings = {"first_edge": least + 0.25, "width": 0.5, "log_weights": (0.0,) * 10, "rate": 2.0}
        return method(**{**settings, **options})

    return build


def noisy_energy(target: Target) -> FullEnergy:
    """Exact gradients beside potentials with Gaussian noise of variance `ENERGY_VARIANCE`."""
    return FullEnergy(Exact(target), target, ENERGY_VARIANCE)


def with_metric(
    method: Callable[..., Any], metric: Callable[[Target], Any], size: int | None = None, **fixed: Any
) -> Callable[..., Any]:
    """A builder for a method with a metric made for the target; `size` where the metric needs that many coordinates."""

    def build(target: Target, **options: Any):
        if size is not None and target.size != size:
            raise ValueError(f"target: the metric is for {size} coordinates, {target.name} has {target.size}")
        return method(metric(target), **fixed, **options)

    return build


def _recipe(target: Target) -> RecipeMetric:
    return RecipeMetric(target, offset=RECIPE_OFFSET)


def _momentum(temperature: float, size: int):
    """A start of the momentum from its law."""
    return lambda key: jnp.sqrt(temperature) * jax.random.normal(key, (size,))


def _recipe_sghmc(target: Target, friction: float = 1.0, temperature: float = 1.0) -> Any:
    """Euler's method on the dynamics of SGHMC."""
    model = SGHMC(friction=friction, temperature=temperature).dynamics
    return Recipe(model, target, temperature, auxiliary=_momentum(temperature, target.size))


def _recipe_sgrhmc(target: Target, temperature: float = 1.0) -> Any:
    """Euler's method on the dynamics of SGRHMC with a metric that is not a Hessian."""
    if target.size != 2:
        raise ValueError(f"target: the metric is for 2 coordinates, {target.name} has {target.size}")
    model = SGRHMC(NonHessian2D(), temperature=temperature).dynamics
    return Recipe(model, target, temperature, auxiliary=_momentum(temperature, 2))


def _terms(target: Target) -> DataTerms:
    """The sum over data of a target."""
    if target.terms is None:
        raise ValueError(f"target: {target.name} is not a sum over data")
    return target.terms


def full_saga(target: Target) -> SAGA:
    """SAGA with all data in every batch."""
    terms = _terms(target)
    return SAGA(terms, terms.size, replace=False)


def full_control_variates(target: Target) -> ControlVariates:
    """Control variates at a centre off the mode, with all data in every batch."""
    terms = _terms(target)
    return ControlVariates(terms, terms.size, target.example, replace=False)


def full_svrg(target: Target) -> SVRG:
    """SVRG with all data in every batch, three steps an epoch."""
    terms = _terms(target)
    return SVRG(terms, terms.size, epoch_length=3, replace=False)


def data_size(target: Target) -> int:
    """N, 1 for a target that is not a sum over data."""
    return 1 if target.terms is None else target.terms.size


def _frozen(
    target: Target,
    second_moment: float = 1.0,
    regularisation: float = 0.1,
    temperature: float = 1.0,
    method: type[PSGLD] = PSGLD,
) -> PSGLD:
    """pSGLD with a constant preconditioner, another one in each coordinate."""
    moments = second_moment * np.linspace(1.0, 3.0, target.size)
    return method(1.0, regularisation, moments, data_size(target), temperature)


def _rmsprop(
    target: Target,
    decay: float = 0.8,
    second_moment: float = 1.0,
    regularisation: float = 0.2,
    temperature: float = 1.0,
    method: type[SGRLD] = SGRLD,
) -> SGRLD:
    """SGRLD with the preconditioner of pSGLD as a function of the position, its Gamma included.

    The former mean of squares is `second_moment` times the curvature, what E (d U)^2 is for a Gaussian law.
    """
    past = second_moment * target.curvature / data_size(target) ** 2
    return method(RMSpropMetric(target, decay, regularisation, past, data_size(target)), temperature)


BATCH_FRACTION = 0.25
"""n/N of the gradient noise that Fisher scoring meets in the checks."""


def fisher_noise(target: Target) -> KnownNoise:
    """Exact gradients with the noise that batches of N / 4 data have: V = P N/n with P the precision, reported."""
    gaussian = target.gaussian
    precision = gaussian.precision if gaussian is not None else target.curvature * np.eye(target.size)
    return KnownNoise(target, precision / BATCH_FRACTION)


def _fisher_scoring(target: Target, scale: float = 1.0, method: type[SGFS] = SGFS) -> SGFS:
    """SGFS with a full matrix B."""
    n = target.size
    return method(BATCH_FRACTION, scale * (0.7 * np.eye(n) + 0.3 * np.ones((n, n)) + np.diag(np.linspace(0, 0.8, n))))


def _diagonal_scoring(target: Target, scale: float = 1.0, method: type[SGFS] = SGFS) -> SGFS:
    """SGFS with a diagonal matrix B."""
    return method(BATCH_FRACTION, scale * np.diag(np.linspace(1.5, 0.8, target.size)), diagonal=True)


def on_manifold(method: Callable[..., Any], **fixed: Any) -> Callable[..., Any]:
    """A builder for a method that takes the manifold of the target."""
    return lambda target, **options: method(target.manifold, **fixed, **options)


def _matrix_friction(target: Target, friction: float = 1.0, temperature: float = 1.0) -> Any:
    """SGGMC with a friction that is not a multiple of the identity, of size `friction`."""
    n = target.size
    return SGGMC(
        target.manifold,
        friction * (0.5 * np.eye(n) + 0.3 * np.ones((n, n)) + np.diag(np.linspace(0, 0.8, n))),
        temperature,
    )


def _log_moments(target: Target) -> tuple[float, float]:
    """Mean and standard deviation of log theta."""
    mean, square = (target.moments[name].value for name in ("log theta[0]", "log theta[0]^2"))
    return mean, float(np.sqrt(square - mean**2))


PARTICLES: dict[str, str] = dict.fromkeys(
    ("recipe", "generator", "order"), "a deterministic flow of interacting particles: its step is no diffusion"
)
PARTICLE_FLAT = ("gaussian-1d-scaled", "anharmonic", "gaussian-correlated-2d")
BANDWIDTHS = ({"bandwidth": 0.5}, {"bandwidth": "he"})


def particles(name: str, build: Callable[..., Any], targets: tuple[str, ...], *variants: Any, **more: Any) -> Row:
    """The row of a particle method."""
    return Row(name, build, PARTICLE_TIERS, PARTICLES, targets, variants, **more)


def volume_energy(target: Target) -> Exact:
    """Exact gradients of minus the log-density with respect to the volume of `NonHessian2D`, U + log |G| / 2."""
    metric = NonHessian2D()

    def potential(position):
        log_det = jnp.linalg.slogdet(metric.inverse(target.ravel(position)))[1]
        return target.potential(position) - 0.5 * log_det

    return Exact(dataclasses.replace(target, potential=potential))


def irreversible(target: Target) -> Dynamics:
    """H = U; D = G^-1 of `NonHessian2D` and Q = q J, q = 1 + sin(x + y / 2), depend on the position."""
    turn = np.array([[0.0, -1.0], [1.0, 0.0]])
    q = lambda z: 1.0 + jnp.sin(z[0] + 0.5 * z[1])
    return Dynamics(
        target.flat_potential,
        NonHessian2D().inverse,
        lambda z: q(z) * jnp.asarray(turn, z.dtype),
        coordinate_names(2),
        2,
    )


def hamiltonian(target: Target) -> Dynamics:
    """H = U + r^2 / 2, D = 0 and the canonical Q: no friction, no noise."""
    return dataclasses.replace(
        PSGHMC().dynamics(target), D=lambda z: jnp.zeros((2 * target.size, 2 * target.size), z.dtype)
    )


def as_flow(dynamics: Callable[[Target], Dynamics], size: int | None = None, **fixed: Any) -> Callable[..., Any]:
    """A builder for the flow of particles of an SDE; `size` where the dynamics needs that many coordinates."""

    def build(target: Target, **options: Any):
        if size is not None and target.size != size:
            raise ValueError(f"target: the dynamics is for {size} coordinates, {target.name} has {target.size}")
        extra = dynamics(target).dim - target.size
        start = (lambda key: jax.random.normal(key, (extra,))) if extra else None
        return ParticleFlow(dynamics, target, auxiliary=start, **fixed, **options)

    return build


SAMPLERS: tuple[Row, ...] = (
    # overdamped
    Row("sgld", plain(SGLD), targets=FLAT, variants=TEMPERATURES, diffusion="langevin"),
    Row(
        "sgld-compensated",
        plain(SGLD, compensate=True),
        targets=FLAT,
        variants=TEMPERATURES,
        estimator=known_noise,
        diffusion="langevin",
    ),
    Row("leimkuhler-matthews", plain(LeimkuhlerMatthews), targets=FLAT, variants=TEMPERATURES, diffusion="langevin"),
    Row("cyclical-sgld", cyclical(CyclicalSGLD, 0.1, 1.0), targets=FLAT, variants=TEMPERATURES, diffusion="langevin"),
    Row(
        "resgld",
        plain(ReplicaExchangeSGLD),
        targets=FLAT,
        variants=(
            {"temperature": 0.5, "ratio": 2.0, "rate": 20.0},
            {"temperature": 2.0, "ratio": 1.5, "rate": 60.0},
        ),
        diffusion="two-temperatures",
    ),
    Row(
        "resgld-noisy",
        plain(ReplicaExchangeSGLD, energy_variance=ENERGY_VARIANCE),
        targets=("gaussian-1d-scaled", "anharmonic", "double-well"),
        variants=(
            {"temperature": 0.5, "ratio": 2.0, "rate": 20.0},
            {"temperature": 2.0, "ratio": 1.5, "rate": 60.0},
        ),
        estimator=noisy_energy,
        diffusion="two-temperatures",
    ),
    Row(
        "csgld-kept",
        contour(ContourSGLD),
        targets=FLAT,
        variants=({"temperature": 0.5, "zeta": 0.3}, {"temperature": 2.0, "zeta": 1.0}),
    ),
    Row(
        "csgld",
        learning_contour(ContourSGLD),
        tiers=("contract", "law"),
        unsupported=dict.fromkeys(
            ("recipe", "generator", "order", "invariance", "noise", "convergence"),
            "it learns as it runs: csgld-kept has its law with weights that are kept",
        ),
        targets=("anharmonic", "double-well"),
        variants=(
            {"temperature": 0.5, "zeta": 0.3, "rate": 1.0},
            {"temperature": 2.0, "zeta": 1.0, "rate": 4.0},
        ),
    ),
    # underdamped
    Row("sghmc", plain(SGHMC), targets=FLAT, variants=FRICTIONS, step_power=0.5, diffusion="underdamped"),
    Row(
        "sghmc-compensated",
        plain(SGHMC, compensate=True),
        targets=FLAT,
        variants=FRICTIONS,
        step_size=0.015,  # h V^ <= 2 C T for the strongest noise that the checks feed, else it cannot be compensated
        step_power=0.5,
        estimator=known_noise,
        diffusion="underdamped",
    ),
    Row(
        "sghmc-explicit",
        plain(SGHMC, scheme="explicit"),
        targets=FLAT,
        variants=EXPLICIT,
        step_size=0.05,
        step_power=0.5,
        diffusion="underdamped",
    ),
    Row(
        "sghmc-symmetric",
        plain(SGHMC, scheme="symmetric"),
        targets=FLAT,
        variants=FRICTIONS,
        step_power=0.5,
        diffusion="underdamped",
    ),
    Row(
        "cyclical-sghmc",
        cyclical(CyclicalSGHMC, 0.1, 0.5),
        targets=FLAT,
        variants=FRICTIONS,
        step_power=0.5,
        diffusion="underdamped",
    ),
    Row("baoab", plain(BAOAB), targets=FLAT, variants=SPLITTING, step_power=0.5, diffusion="underdamped"),
    Row("aboba", plain(ABOBA), targets=FLAT, variants=FRICTIONS, step_power=0.5, diffusion="underdamped"),
    Row("obabo", plain(OBABO), targets=FLAT, variants=SPLITTING, step_power=0.5, diffusion="underdamped"),
    Row("oabao", plain(OABAO), targets=FLAT, variants=FRICTIONS, step_power=0.5, diffusion="underdamped"),
    Row("ubu", plain(UBU), targets=FLAT, variants=OVERDAMPED, step_power=0.5, diffusion="underdamped"),
    Row(
        "bub",
        plain(BUB),
        targets=FLAT,
        variants=({"fresh_gradients": True, **OVERDAMPED[0]}, OVERDAMPED[1]),
        step_power=0.5,
        diffusion="underdamped",
    ),
    # thermostats
    Row("sgnht", plain(SGNHT), targets=FLAT, variants=DIFFUSIONS, step_power=0.5, diffusion="thermostat"),
    Row(
        "sgnht-splitting",
        plain(SGNHT, scheme="splitting"),
        targets=FLAT,
        variants=DIFFUSIONS,
        step_power=0.5,
        diffusion="thermostat",
    ),
    Row("msgnht", plain(MSGNHT), targets=FLAT, variants=DIFFUSIONS, step_power=0.5, diffusion="thermostat"),
    Row(
        "msgnht-splitting",
        plain(MSGNHT, scheme="splitting"),
        targets=FLAT,
        variants=DIFFUSIONS,
        step_power=0.5,
        diffusion="thermostat",
    ),
    Row(
        "badodab",
        plain(BADODAB),
        targets=FLAT,
        variants=({**THERMAL[0], "diffusion": 30.0}, THERMAL[1]),
        step_power=0.5,
        diffusion="thermostat",
    ),
    # state-dependent metrics
    Row(
        "sgrld",
        with_metric(SGRLD, lambda target: PositiveMetric(), reflect=True),
        tiers=MANIFOLD_TIERS,
        targets=POSITIVE,
        variants=TEMPERATURES,
        step_size=0.01,
        diffusion="langevin/positive",
    ),
    Row(
        "sgrld-reduced-mean",
        with_metric(SGRLD, lambda target: ReducedMeanMetric(sum(REDUCED)), size=2),
        targets=("simplex-reduced-mean",),
        step_size=2.0,
        diffusion="langevin/reduced-mean",
    ),
    Row(
        "sgrld-reduced-natural",
        with_metric(SGRLD, lambda target: ReducedNaturalMetric(sum(REDUCED)), size=2),
        targets=("simplex-reduced-natural",),
        step_size=0.2,
        diffusion="langevin/reduced-natural",
    ),
    Row(
        "sgrld-expanded-mean",
        with_metric(SGRLD, lambda target: PositiveMetric(), reflect=True),
        tiers=MANIFOLD_TIERS,
        targets=("simplex-expanded-mean",),
        step_size=0.01,
        diffusion="langevin/positive",
    ),
    Row(
        "sgrld-expanded-natural",
        with_metric(SGRLD, lambda target: ExpandedNaturalMetric()),
        targets=("simplex-expanded-natural",),
        step_size=0.02,
        diffusion="langevin/expanded-natural",
    ),
    Row(
        "sgrld-non-hessian",
        with_metric(SGRLD, lambda target: NonHessian2D(), size=2),
        targets=PLANE,
        variants=TEMPERATURES,
        step_size=0.02,
        diffusion="langevin/non-hessian",
    ),
    Row(
        "sgrld-recipe-metric",
        with_metric(SGRLD, _recipe),
        targets=("double-well",),
        variants=TEMPERATURES,
        step_size=0.02,
        diffusion="langevin/recipe",
    ),
    Row(
        "sgrhmc",
        with_metric(SGRHMC, lambda target: PositiveMetric(), reflect=True),
        tiers=MANIFOLD_TIERS,
        targets=POSITIVE,
        variants=(
            {"temperature": 0.5},
            {"temperature": 2.0, "order": "explicit"},
            {"friction": 0.5},
            {"friction": 2.0, "temperature": 2.0},
        ),
        step_size=0.02,
        step_power=0.5,
        diffusion="underdamped/positive",
    ),
    Row(
        "sgld-reflected",
        with_metric(SGRLD, lambda target: FlatMetric(), reflect=True),
        tiers=MANIFOLD_TIERS,
        targets=("simplex-expanded-mean", "half-gaussian"),
        step_size=0.02,
        diffusion="langevin",
    ),
    Row(
        "sghmc-reflected",
        with_metric(SGRHMC, lambda target: FlatMetric(), reflect=True),
        tiers=MANIFOLD_TIERS,
        targets=("simplex-expanded-mean", "half-gaussian"),
        step_size=0.02,
        step_power=0.5,
        diffusion="underdamped/flat",
    ),
    Row(
        "sgrhmc-expanded-mean",
        with_metric(SGRHMC, lambda target: PositiveMetric(), reflect=True),
        tiers=MANIFOLD_TIERS,
        targets=("simplex-expanded-mean",),
        step_size=0.02,
        step_power=0.5,
        diffusion="underdamped/positive",
    ),
    Row(
        "sgrhmc-non-hessian",
        with_metric(SGRHMC, lambda target: NonHessian2D(), size=2),
        targets=PLANE,
        variants=(
            {"temperature": 0.5},
            {"temperature": 2.0, "order": "explicit"},
            {"friction": 0.7},
            {"friction": 1.5},
        ),
        step_size=0.05,
        step_power=0.5,
        diffusion="underdamped/non-hessian",
    ),
    Row(
        "sgrhmc-recipe-metric",
        with_metric(SGRHMC, _recipe),
        targets=("double-well",),
        variants=TEMPERATURES,
        step_size=0.05,
        step_power=0.5,
        diffusion="underdamped/recipe",
    ),
    Row(
        "sgrhmc-compensated",
        with_metric(SGRHMC, _recipe, compensate=True),
        targets=("double-well",),
        variants=TEMPERATURES,
        step_size=0.05,
        step_power=0.5,
        estimator=known_noise,
        diffusion="underdamped/recipe",
    ),
    # exact
    Row(
        "hmc",
        plain(HMC),
        targets=FLAT,
        variants=TRAJECTORIES,
        step_size=0.2,
        step_power=0.5,
    ),
    Row(
        "amagold",
        plain(AMAGOLD),
        targets=FLAT,
        variants=(
            {"num_steps": 1, "friction": 2.0, "temperature": 0.5},
            {"num_steps": 3, "friction": 0.4, "temperature": 2.0},
        ),
        step_size=0.4,
        step_power=0.5,
    ),
    Row("mala", plain(MALA), targets=FLAT, variants=TEMPERATURES, diffusion="langevin"),
    Row(
        "mmala",
        with_metric(MMALA, lambda target: NonHessian2D(), size=2),
        targets=PLANE,
        variants=TEMPERATURES,
        diffusion="langevin/non-hessian",
    ),
    Row(
        "mmala-recipe-metric",
        with_metric(MMALA, _recipe),
        targets=("double-well",),
        variants=TEMPERATURES,
        diffusion="langevin/recipe",
    ),
    Row(
        "rmhmc",
        with_metric(RMHMC, lambda target: NonHessian2D(), size=2),
        targets=PLANE,
        variants=TRAJECTORIES,
        step_size=0.2,
        step_power=0.5,
    ),
    Row(
        "rmhmc-recipe-metric",
        with_metric(RMHMC, _recipe),
        targets=("double-well",),
        variants=TRAJECTORIES,
        step_size=0.2,
        step_power=0.5,
    ),
    # from H, D and Q alone
    Row(
        "recipe-sghmc",
        _recipe_sghmc,
        targets=FLAT[:4],
        variants=EXPLICIT,
        step_size=0.05,
        step_power=0.5,
        diffusion="underdamped",
    ),
    Row(
        "recipe-sgrhmc",
        _recipe_sgrhmc,
        targets=PLANE,
        variants=TEMPERATURES,
        step_size=0.05,
        step_power=0.5,
        diffusion="underdamped/non-hessian",
    ),
    # preconditioned: a constant matrix, a function of the position, the Fisher information that the noise tells
    Row("psgld-frozen", _frozen, targets=FLAT, variants=MOMENTS, diffusion="langevin/rmsprop-constant"),
    Row("psgld-gamma", _rmsprop, targets=FLAT[1:4], variants=DECAYS, step_size=0.05, diffusion="langevin/rmsprop"),
    Row(
        "sgfs", _fisher_scoring, targets=FLAT[:4], variants=SCALES, estimator=fisher_noise, diffusion="langevin/fisher"
    ),
    Row(
        "sgfs-diagonal",
        _diagonal_scoring,
        targets=FLAT[:4],
        variants=SCALES,
        estimator=fisher_noise,
        diffusion="langevin/fisher-diagonal",
    ),
    # an estimator with a memory; all data in every batch make it exact, which is what the noise-free checks ask of it
    Row(
        "saga-ld",
        plain(SAGALD),
        targets=("tiny-gaussian-data",),
        variants=TEMPERATURES,
        estimator=full_saga,
        diffusion="langevin",
    ),
    Row(
        "sgld-cv",
        plain(SGLDCV),
        targets=REGRESSION,
        variants=TEMPERATURES,
        estimator=full_control_variates,
        diffusion="langevin",
    ),
    Row("svrg-ld", plain(SVRGLD), targets=REGRESSION, variants=TEMPERATURES, estimator=full_svrg, diffusion="langevin"),
    # conditionally conjugate: reads counts, not gradients
    Row(
        "scir",
        plain(SCIR, alpha=1.5),  # and one count in each coordinate: together the shape of the target
        tiers=("contract", "recipe", "order", "invariance", "geometry"),
        unsupported={
            "generator": "draws Poisson and Gamma variates, not normals",
            "law": "its draws are not normal; invariance is decided exactly in the order tier (defect)",
        },
        targets=POSITIVE,
        step_size=0.5,
        step_power=0.0,
        estimator=lambda target: ExactCounts(np.ones(target.size)),
    ),
    Row(
        "cir-euler",
        plain(CIREuler, alpha=1.5),
        tiers=("contract", "recipe", "generator", "order", "invariance", "geometry"),
        unsupported={"law": "a host sampler on a target that is not Gaussian"},
        targets=POSITIVE,
        step_size=0.02,
        estimator=lambda target: ExactCounts(np.ones(target.size)),
        diffusion="square-root",
    ),
    Row(
        "exponential-ou",
        lambda target: ExponentialOU(_log_moments(target)[1]),
        tiers=MANIFOLD_TIERS,
        targets=("log-normal", "log-normal-narrow"),
        step_size=0.05,  # an expectation over the noise is then resolved to round-off
        step_power=0.0,
        estimator=lambda target: LogLocation(np.full((1, target.size), _log_moments(target)[0])),
        diffusion="geometric",
    ),
    # manifolds
    Row(
        "sggmc",
        on_manifold(SGGMC),
        tiers=MANIFOLD_TIERS,
        targets=(*EMBEDDED, "dirichlet-sphere-concentrated", *OTHERS),
        variants=FRICTIONS,
        step_power=0.5,
        diffusion="geodesic",
    ),
    Row(
        "sggmc-matrix",
        _matrix_friction,
        tiers=MANIFOLD_TIERS,
        targets=CURVED,
        variants=FRICTIONS,
        step_power=0.5,
        diffusion="geodesic/matrix",
    ),
    Row(
        "sggmc-compensated",
        on_manifold(SGGMC, compensate=True),
        tiers=MANIFOLD_TIERS,
        targets=CURVED,
        variants=FRICTIONS,
        step_size=0.015,  # as for sghmc-compensated
        step_power=0.5,
        estimator=known_noise,
        diffusion="geodesic",
    ),
    Row(
        "gsgnht",
        on_manifold(GSGNHT),
        tiers=MANIFOLD_TIERS,
        targets=(*EMBEDDED, "dirichlet-concentrated"),
        variants=THERMAL,
        step_power=0.5,
        diffusion="geodesic-thermostat",
    ),
    Row(
        "gmc",
        on_manifold(GMC),
        tiers=MANIFOLD_TIERS,
        targets=(*EMBEDDED, "dirichlet-sphere-concentrated", *OTHERS),
        variants=TRAJECTORIES,
        step_size=0.2,
        step_power=0.5,
    ),
    Row(
        "chmc",
        on_manifold(CHMC),
        tiers=MANIFOLD_TIERS,
        targets=(*EMBEDDED, "vmf-s2-and-gaussian"),
        variants=TRAJECTORIES,
        step_size=0.2,
        step_power=0.5,
    ),
    # particles
    particles(
        "svgd",
        plain(SVGD),
        PARTICLE_FLAT,
        {"bandwidth": 0.5},
        {"bandwidth": "he"},
        {"bandwidth": (0.3, 1.0, 10.0)},
        {"bandwidth": 2.0, "adagrad": True},
    ),
    particles("rsvgd", with_metric(RSVGD, lambda target: NonHessian2D(), size=2), (*PLANE, "banana"), *BANDWIDTHS),
    particles(
        "rsvgd-diagonal",
        with_metric(RSVGD, lambda target: DiagonalMetric()),
        PARTICLE_FLAT,
        {"bandwidth": 0.5},
        {"bandwidth": (0.5, 2.0)},
    ),
    particles(
        "rsvgd-volume",
        with_metric(RSVGD, lambda target: NonHessian2D(), size=2, density="volume"),
        PLANE,
        {"bandwidth": 0.5},
        {"bandwidth": 2.0},
        estimator=volume_energy,
    ),
    particles(
        "rsvgd-embedded",
        on_manifold(EmbeddedRSVGD),
        EMBEDDED[:1] + EMBEDDED[2:],
        {"concentration": 0.5},
        {"concentration": 2.0},
    ),
    particles("rsvgd-arcsine", on_manifold(ArcsineRSVGD), (CURVED[0], CURVED[2]), {"scale": 0.3}, {"scale": 0.5}),
    particles("gfsd", plain(ParVI, density="gfsd"), PARTICLE_FLAT, *BANDWIDTHS),
    particles(
        "gfsf",
        plain(ParVI, density="gfsf"),
        PARTICLE_FLAT[:2],
        {"ridge": 1e-3, "bandwidth": 0.5},
        {"ridge": 1e-1, "bandwidth": "he"},
    ),
    particles("blob", plain(ParVI), PARTICLE_FLAT, *BANDWIDTHS),
    particles("w-sgld", plain(ParVI, density="jko"), PARTICLE_FLAT, *BANDWIDTHS),
    particles(
        "psghmc-det",
        plain(PSGHMC),
        PARTICLE_FLAT,
        {"friction": 2.0, "mass": 0.5, "bandwidth": 0.5, "density": "gfsd"},
        {"friction": 0.4, "mass": 3.0, "bandwidth": "he", "density": "gfsf", "joint": True},
    ),
    particles(
        "psghmc-fgh",
        plain(PSGHMC, form="fgh"),
        PARTICLE_FLAT,
        {"friction": 2.0, "mass": 0.5, "bandwidth": 0.5, "density": "gfsd"},
        {"friction": 0.4, "mass": 3.0, "bandwidth": "he", "density": "gfsf", "joint": True},
    ),
    particles("flow-det", as_flow(irreversible, size=2), PLANE, *BANDWIDTHS),
    particles("flow-fgh", as_flow(irreversible, size=2, form="fgh"), PLANE, *BANDWIDTHS),
    particles("flow-hamiltonian", as_flow(hamiltonian, form="fgh", joint=True), PARTICLE_FLAT[:2], *BANDWIDTHS),
    # another framework's way
    Row(
        "host-sgld", plain(HostSGLD), targets=FLAT[:4], variants=TEMPERATURES, estimator=HostExact, diffusion="langevin"
    ),
)
"""The rows, in the order in which they are run."""


def sampler_row(name: str) -> Row:
    """The row of a reference sampler. Raises KeyError with the closest names."""
    for row in SAMPLERS:
        if row.name == name:
            return row
    near = difflib.get_close_matches(name, [row.name for row in SAMPLERS], n=3, cutoff=0.5)
    hint = f"did you mean {', '.join(map(repr, near))}?" if near else "see SAMPLERS for the names"
    raise KeyError(f"no sampler named {name!r}; {hint}")
