"""Samplers of other libraries, named `library/name`. Building one imports its library.

The rows stand beside the adapters.
"""

from collections.abc import Mapping

from sgmcmc_verification.samplers.adapters.blackjax import ENTRIES as BLACKJAX
from sgmcmc_verification.samplers.adapters.fortuna import ENTRIES as FORTUNA
from sgmcmc_verification.samplers.adapters.jax_sgmc import ENTRIES as JAX_SGMC
from sgmcmc_verification.samplers.adapters.numpyro import ENTRIES as NUMPYRO
from sgmcmc_verification.samplers.adapters.optax import ENTRIES as OPTAX
from sgmcmc_verification.samplers.adapters.sgmcmcjax import ENTRIES as SGMCMCJAX
from sgmcmc_verification.samplers.adapters.tfp import ENTRIES as TFP
from sgmcmc_verification.samplers.adapters.torch.devinterp import ENTRIES as DEVINTERP
from sgmcmc_verification.samplers.adapters.torch.geoopt import ENTRIES as GEOOPT
from sgmcmc_verification.samplers.adapters.torch.posteriors import ENTRIES as POSTERIORS
from sgmcmc_verification.samplers.entry import Row

ADAPTERS: tuple[Row, ...] = (
    *BLACKJAX,
    *NUMPYRO,
    *TFP,
    *OPTAX,
    *POSTERIORS,
    *GEOOPT,
    *DEVINTERP,
    *SGMCMCJAX,
    *JAX_SGMC,
    *FORTUNA,
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
