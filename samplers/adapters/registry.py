"""Samplers of other libraries, named `library/name`. Building one imports its library.

The rows stand beside the adapters.
"""

from collections.abc import Mapping

from sgmcmc_verification.samplers.adapters.ase import ENTRIES as ASE
from sgmcmc_verification.samplers.adapters.blackjax import ENTRIES as BLACKJAX
from sgmcmc_verification.samplers.adapters.blackjax_mcmc import ENTRIES as BLACKJAX_MCMC
from sgmcmc_verification.samplers.adapters.fortuna import ENTRIES as FORTUNA
from sgmcmc_verification.samplers.adapters.jax_sgmc import ENTRIES as JAX_SGMC
from sgmcmc_verification.samplers.adapters.numpyro import ENTRIES as NUMPYRO
from sgmcmc_verification.samplers.adapters.numpyro_mcmc import ENTRIES as NUMPYRO_MCMC
from sgmcmc_verification.samplers.adapters.optax import ENTRIES as OPTAX
from sgmcmc_verification.samplers.adapters.sgmcmcjax import ENTRIES as SGMCMCJAX
from sgmcmc_verification.samplers.adapters.tfp import ENTRIES as TFP
from sgmcmc_verification.samplers.adapters.torch.devinterp import ENTRIES as DEVINTERP
from sgmcmc_verification.samplers.adapters.torch.geoopt import ENTRIES as GEOOPT
from sgmcmc_verification.samplers.adapters.torch.posteriors import ENTRIES as POSTERIORS
from sgmcmc_verification.samplers.entry import Row

ADAPTERS: tuple[Row, ...] = (
    *BLACKJAX,
    *BLACKJAX_MCMC,
    *NUMPYRO,
    *NUMPYRO_MCMC,
    *TFP,
    *OPTAX,
    *POSTERIORS,
    *GEOOPT,
    *DEVINTERP,
    *SGMCMCJAX,
    *JAX_SGMC,
    *FORTUNA,
    *ASE,
)
"""The rows, in the order in which they are run."""

_TENSORFLOW = "an optimiser of TensorFlow's graph mode (tf_keras legacy), absent from tfp.substrates.jax"
_LAPLACE = "a Laplace approximation integrates latent variables out: the law that it keeps is the approximation's"
_SEQUENCE = "weighted particles of a sequence of laws, not a kernel of one law"
_FIT = "fits an approximation, and claims no law for a chain"
_MODEL = "takes a model with discrete sites or conditional draws of the user's, not a density"
_POPULATION = "its state is a population of points that move one another, not a chain"
_AROUND = "a transition around another kernel, without a law of its own"
_LAPLACE_NAMES = ("laplace_hmc", "laplace_mhmc", "laplace_dhmc", "laplace_dmhmc")
_SEQUENCE_NAMES = (
    *("adaptive_persistent_sampling_smc", "adaptive_tempered_smc", "tempered_smc", "persistent_sampling_smc"),
    *("inner_kernel_tuning", "partial_posteriors_smc", "pretuning", "nss", "nsswig"),
)
_FIT_NAMES = ("fullrank_vi", "meanfield_vi", "pathfinder", "schrodinger_follmer")
_MODEL_NAMES = ("customgibbs", "discretegibbs", "discretehmcgibbs", "gibbs", "hmcgibbs", "mixedhmc")
_CELL = "a law of a periodic cell and of the atoms in it: a target has no cell"
_CELL_NAMES = ("melchionnanpt", "isotropic-mtknpt", "mtknpt", "masked-mtknpt", "npt", "npt-berendsen")
_AROUND_NAMES = (
    *("metropolis_hastings", "replica_exchange_mc", "transformed_transition_kernel", "transition_kernel"),
    *("dual_averaging_step_size_adaptation", "simple_step_size_adaptation"),
)


def _because(library: str, names: tuple[str, ...], reason: str) -> dict[str, str]:
    return {f"{library}/{name}": reason for name in names}


UNSUPPORTED: Mapping[str, str] = {
    **_because("blackjax", _LAPLACE_NAMES, _LAPLACE),
    **_because("blackjax", _SEQUENCE_NAMES, _SEQUENCE),
    **_because("blackjax", _FIT_NAMES, _FIT),
    "blackjax/orbital_hmc": "its state is a weighted orbit: there is no position without the weights",
    **_because("numpyro", _MODEL_NAMES, _MODEL),
    **_because("numpyro", ("aies", "ess", "sa"), _POPULATION),
    **_because("tfp", _AROUND_NAMES, _AROUND),
    "tfp/uncalibrated_random_walk": "a random walk without an accept step: no law on a space that is not bounded",
    "tfp/stochastic_gradient_langevin_dynamics": _TENSORFLOW,
    "tfp/variational_sgd": f"{_TENSORFLOW}; constant SGD, whose law is a fitted approximation by claim",
    "numpyro/steinvi": "a mixture of guides fitted to the posterior: no law is claimed for its particles; with a Delta "
    "guide and loss_temperature = 1 / M it is numpyro/svgd",
    **_because("ase", (*_CELL_NAMES, "inhomogeneous-npt-berendsen"), _CELL),
    "ase/velocity-verlet": "moves at a constant energy: there is no temperature",
    "ase/nose-hoover-chain-nvt": "counts three degrees of freedom for each atom, whatever is held fixed; draws "
    "nothing, and is not ergodic on the Gaussians of the checks",
    "ase/switch-langevin": "ase/langevin while the potential is changed along the run: no law is claimed",
    "numpyro/asvgd": "numpyro/svgd while a temperature is annealed; its last cycle is numpyro/svgd",
}
"""Public samplers of the libraries above that have no row, each with its reason."""
