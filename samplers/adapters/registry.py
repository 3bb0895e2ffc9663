"""Samplers of other libraries, one row each, named `library/name`. Building one imports its library."""

from collections.abc import Callable, Mapping
from typing import Any

from samplers.adapters import blackjax, numpyro, optax, tfp
from samplers.adapters.isolated.entries import BRIDGED
from samplers.adapters.torch import devinterp, geoopt, posteriors
from samplers.entry import SAMPLED_TIERS, Row
from samplers.estimators.host import HostExact

_COMPOSITE = {
    "recipe": "the state is the position alone: the momentum is drawn afresh in every step",
    "generator": "a step of several inner iterations with a full refresh has no generator; its limit h -> 0 counts",
    "order": "a step of several inner iterations with a full refresh has no local expansion in the step size",
}
_FLATTENED = "with zeta > 0 the positions follow an adaptively flattened law; the target is had only by reweighting"
_ADAPTIVE: dict[str, str] = dict.fromkeys(("recipe", "generator", "order", "law"), _FLATTENED)
_PERTURBED: dict[str, str] = dict.fromkeys(
    ("recipe", "generator", "order", "law"),
    "an update of the subsample, then a trajectory with accept-reject: tests/samplers/adapters/test_numpyro.py "
    "holds each of the "
    "two to the perturbed law that the kernel leaves invariant",
)
_PARTICLES = {
    "recipe": "a particle method: no diffusion is declared",
    "generator": "a particle method: no diffusion is declared",
    "order": "a particle method: no invariant law for finitely many particles",
}


def _plain(adapter: Callable[..., Any]) -> Callable[..., Any]:
    """A builder for an adapter that does not depend on the target."""
    return lambda target, **options: adapter(**options)


def _on(adapter: Callable[..., Any], **fixed: Any) -> Callable[..., Any]:
    """A builder for an adapter that needs the exact gradient of the target."""
    return lambda target, **options: adapter(target, **fixed, **options)


def _torch(name: str, adapter: Callable[..., Any], fixed: Mapping[str, Any] | None = None, **more: Any) -> Row:
    """A row of a torch library: a host sampler, run once a path in Python, on few targets."""
    return Row(name, _on(adapter, **(fixed or {})), targets=_FEW, estimator=HostExact, **more)


_TEMPERATURES = ({"temperature": 0.5}, {"temperature": 2.0})
_VOLATILITIES = ({"volatility": "constant"}, {"volatility": "position"})
_LEAPFROG = ({"num_leapfrog_steps": 1}, {"num_leapfrog_steps": 2})
_FLAT = ("gaussian-1d-scaled", "gaussian-correlated-2d", "double-well", "tiny-gaussian-data")
# each step of TFP compiles for seconds, and one of torch runs for a millisecond
_FEW = ("gaussian-1d-scaled", "gaussian-correlated-2d", "double-well")
_TEMPERED_LOSS = ({"nbeta": 2.0, "noise_level": 0.8}, {"nbeta": 0.8, "noise_level": 1.2})
_LOCALISED = {"localization": 5.0, "weight_decay": 3.0}
_REMEMBERED: dict[str, str] = dict.fromkeys(
    ("recipe", "generator", "order", "law"),
    "a moving average over a fixed number of steps has no limit h -> 0 in the full variable, and no affine step",
)

ADAPTERS: tuple[Row, ...] = (
    Row(
        "blackjax/sgld",
        _plain(blackjax.SGLD),
        variants=({"temperature": 0.5}, {"temperature": 2.0}),
    ),
    Row(
        "blackjax/sghmc",
        _on(blackjax.SGHMC),
        tiers=("contract", "law", *SAMPLED_TIERS),
        unsupported=_COMPOSITE,
        variants=(
            {"num_integration_steps": 1, "alpha": 1.0, "beta": 0.2},
            {"num_integration_steps": 5, "alpha": 0.5, "beta": 0.1, "temperature": 2.0},
            {"temperature": 0.5},
        ),
        step_power=0.5,
    ),
    Row(
        "blackjax/sgnht",
        _plain(blackjax.SGNHT),
        variants=(
            {"alpha": 1.0, "beta": 0.2, "temperature": 0.5, "init_xi": 0.3},
            {"alpha": 0.5, "beta": 0.1, "temperature": 2.0, "init_xi": 0.7},
        ),
        step_power=0.5,
    ),
    Row(
        "blackjax/csgld",
        _on(blackjax.ContourSGLD),
        tiers=("contract",),
        unsupported=_ADAPTIVE,
        # each value has to show beside the other defaults too: min_energy by at least one energy_gap of 100
        variants=(
            {
                "zeta": 0.75,
                "num_partitions": 50,
                "energy_gap": 50.0,
                "min_energy": -150.0,
                "step_size_stoch": 0.01,
                "temperature": 0.5,
            },
            {
                "zeta": 0.5,
                "num_partitions": 20,
                "energy_gap": 20.0,
                "min_energy": -250.0,
                "step_size_stoch": 0.02,
                "temperature": 2.0,
            },
        ),
    ),
    # its docs: "If `zeta=0` the function reduces to the SGLD step function"
    Row(
        "blackjax/csgld-without-contour",
        _on(blackjax.ContourSGLD, zeta=0.0),
        variants=({"temperature": 0.5}, {"temperature": 2.0}),
    ),
    Row(
        "blackjax/svgd",
        _on(blackjax.SVGD),
        tiers=("contract", "law"),
        unsupported=_PARTICLES,
        variants=({"length_scale": 0.5, "optimizer": "adagrad"}, {"length_scale": 2.0}),
    ),
    Row(
        "numpyro/hmcecs",
        _on(numpyro.HMCECS),
        tiers=("contract",),
        unsupported=_PERTURBED,
        # where the log-likelihoods are not quadratic, so that every option matters
        targets=("tiny-logistic",),
        variants=(
            {"subsample_size": 3, "num_blocks": 3, "num_steps": 1, "taylor": 1, "reference": (0.1, 0.4)},
            {"subsample_size": 4, "num_blocks": 2, "num_steps": 2, "taylor": 0, "reference": (1.0, 0.5)},
        ),
        step_size=0.3,
        step_power=0.5,
    ),
    Row(
        "numpyro/svgd",
        _on(numpyro.SVGD),
        tiers=("contract", "law"),
        unsupported=_PARTICLES,
        variants=(
            {"kernel": "imq", "optimizer": "momentum"},
            {"kernel": "rbf-vector"},
            {"kernel": "mixture"},
            {"kernel": "random-feature"},
        ),
    ),
    # a site with support (0, inf), which the library moves in log coordinates
    Row(
        "numpyro/svgd-positive",
        _on(numpyro.SVGD, constraint="positive"),
        tiers=("contract", "law"),
        unsupported=_PARTICLES,
        targets=("gamma",),
    ),
    Row(
        "tfp/uncalibrated_langevin",
        _on(tfp.UncalibratedLangevin),
        targets=_FEW,
        variants=_VOLATILITIES,
    ),
    Row("tfp/mala", _on(tfp.MALA), targets=_FEW, variants=_VOLATILITIES),
    Row(
        "tfp/uncalibrated_hmc",
        _on(tfp.UncalibratedHMC),
        tiers=("contract", "law", *SAMPLED_TIERS),
        unsupported=_COMPOSITE,
        targets=_FEW,
        variants=_LEAPFROG,
        step_size=0.2,
        step_power=0.5,
    ),
    Row("tfp/hmc", _on(tfp.HMC), targets=_FEW, variants=_LEAPFROG, step_size=0.2, step_power=0.5),
    # not samplers by claim: at the settings of samplers/adapters/optax.py they are SGLD and SGHMC
    Row("optax/noisy_sgd", _plain(optax.NoisySGD), targets=_FLAT, variants=_TEMPERATURES),
    Row(
        "optax/differentially_private_aggregate",
        _plain(optax.DifferentiallyPrivate),
        targets=_FLAT,
        variants=_TEMPERATURES,
    ),
    Row(
        "optax/add_noise-momentum",
        _plain(optax.AddNoise),
        targets=_FLAT,
        variants=({"friction": 2.0, "temperature": 0.5}, {"friction": 0.4, "temperature": 2.0}),
        step_power=0.5,
    ),
    _torch(
        "posteriors/sgld",
        posteriors.SGLD,
        variants=({"beta": 0.2, "temperature": 0.5}, {"beta": 0.1, "temperature": 2.0}),
    ),
    # steps at which its probabilities are not clipped where the target has mass
    _torch("posteriors/sglrw", posteriors.SGLRW, variants=_TEMPERATURES, step_size=0.02),
    _torch(
        "posteriors/sghmc",
        posteriors.SGHMC,
        variants=(
            {"alpha": 2.0, "beta": 0.2, "sigma": 0.8, "temperature": 0.5, "momenta": 0.3},
            {"alpha": 2.5, "beta": 0.1, "sigma": 1.3, "temperature": 2.0, "momenta": -0.5},
        ),
        step_size=0.05,
        step_power=0.5,
    ),
    _torch(
        "posteriors/sgnht",
        posteriors.SGNHT,
        variants=(
            {"alpha": 1.0, "beta": 0.2, "sigma": 0.8, "temperature": 0.5, "momenta": 0.3, "xi": 0.3},
            {"alpha": 0.5, "beta": 0.1, "sigma": 1.3, "temperature": 2.0, "momenta": -0.5, "xi": 0.7},
        ),
        step_power=0.5,
    ),
    _torch(
        "posteriors/baoa",
        posteriors.BAOA,
        variants=(
            {"alpha": 2.0, "sigma": 0.8, "temperature": 0.5, "momenta": 0.3},
            {"alpha": 0.4, "sigma": 1.3, "temperature": 2.0, "momenta": -0.5},
        ),
        step_power=0.5,
    ),
    _torch("geoopt/rsgld", geoopt.RSGLD),
    _torch(
        "geoopt/sgrhmc",
        geoopt.SGRHMC,
        tiers=("contract", "law", *SAMPLED_TIERS),
        unsupported=_COMPOSITE,
        variants=({"n_steps": 3, "alpha": 0.5}, {"n_steps": 5, "alpha": 0.8}),
        step_power=0.5,
    ),
    _torch("geoopt/rhmc", geoopt.RHMC, variants=({"n_steps": 2}, {"n_steps": 3}), step_size=0.2, step_power=0.5),
    _torch("devinterp/sgmcmc-sgld", devinterp.SGMCMCSGLD, variants=_TEMPERED_LOSS),
    # the loss for which the localised law is the target
    _torch("devinterp/sgmcmc-sgld-localised", devinterp.SGMCMCSGLD, _LOCALISED, variants=_TEMPERED_LOSS),
    _torch(
        "devinterp/sgmcmc-rmsprop",
        devinterp.SGMCMCRMSprop,
        tiers=("contract", *SAMPLED_TIERS),
        unsupported=_REMEMBERED,
        variants=({"alpha": 0.9, "eps": 0.5, **_TEMPERED_LOSS[0]}, {"alpha": 0.5, "eps": 0.2, **_TEMPERED_LOSS[1]}),
    ),
    _torch(
        "devinterp/sgmcmc-sgnht",
        devinterp.SGMCMCSGNHT,
        variants=({"nbeta": 2.0, "diffusion_factor": 0.1}, {"nbeta": 0.5, "diffusion_factor": 0.25}),
    ),
    _torch("devinterp/sgld", devinterp.SGLD, variants=_TEMPERED_LOSS),
    _torch("devinterp/sgld-localised", devinterp.SGLD, _LOCALISED, variants=_TEMPERED_LOSS),
    _torch(
        "devinterp/sgnht",
        devinterp.SGNHT,
        variants=({"nbeta": 2.0, "diffusion": 1.0}, {"nbeta": 0.5, "diffusion": 0.5}),
        step_power=0.5,
    ),
    *BRIDGED,
)
"""The rows, in the order in which they are run."""

_TENSORFLOW = "an optimiser of TensorFlow's graph mode (tf_keras legacy), absent from tfp.substrates.jax"
UNSUPPORTED: Mapping[str, str] = {
    "tfp/stochastic_gradient_langevin_dynamics": _TENSORFLOW,
    "tfp/variational_sgd": f"{_TENSORFLOW}; constant SGD, whose law is a fitted approximation by claim",
    "numpyro/steinvi": "a mixture of guides fitted to the posterior: no law is claimed for its particles; with a Delta "
    "guide and loss_temperature = 1 / M it is numpyro/svgd",
    "numpyro/asvgd": "numpyro/svgd while a temperature is annealed; its last cycle is numpyro/svgd",
}
"""Public samplers of the libraries above that have no row, each with its reason."""
