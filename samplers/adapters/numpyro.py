"""NumPyro (0.22): HMC with energy conserving subsampling (HMCECS) and SVGD under the interface of this suite.

NumPyro takes a model and differentiates its log-density itself: the model here has one latent site, the flat position,
and its potential as a factor (SVGD), or the prior as a factor and the data as an observed site in a plate (HMCECS).
`SteinVI` approximates by a mixture of guides and claims no law for its particles; with a Delta guide and
loss_temperature = 1 / M it is `SVGD` (see UNSUPPORTED in the registry).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Literal

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers.adapters.common import PARTICLES, Foreign, PeerState, first, frozen, load, on_target
from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.samplers.interface.aliases import Estimator, Position, Scalar, Tree
from sgmcmc_verification.samplers.interface.claims import CarriedState, Claims, Composite, ExactLaw, ParticleLaw, Source
from sgmcmc_verification.samplers.interface.from_step import PositionVariable
from sgmcmc_verification.samplers.validation import require
from sgmcmc_verification.targets.target import Target

Kernel = Literal["rbf", "rbf-vector", "imq", "random-feature", "mixture"]
KERNELS: tuple[Kernel, ...] = ("rbf", "rbf-vector", "imq", "random-feature", "mixture")
SITE = "x"
PLATE = "data"


def library() -> ModuleType:
    """Import the module `numpyro`. Raises ImportError that says how to install it."""
    return load("numpyro")


def latent(target: Target, constraint: str = "real") -> jax.Array:
    """The flat position as a latent site with no density of its own; call it inside of a model.

    The library wants to draw from a site when it initialises, so that it has a law, which a factor cancels.
    """
    numpyro = library()
    law = numpyro.distributions.Normal() if constraint == "real" else numpyro.distributions.Exponential()
    prior = law.expand((target.size,)).to_event(1)
    x = numpyro.sample(SITE, prior)
    numpyro.factor("no_prior", -prior.log_prob(x))
    return x


@dataclass(frozen=True, eq=False)
class HMCECS(PositionVariable):
    """`numpyro.infer.HMCECS` around `numpyro.infer.HMC`: an update of the subsample u, then one of theta given u.

        u' is u with one block drawn anew, uniformly with replacement; min(1, exp(l(theta, u') - l(theta, u))) accepts
        r ~ N(0, I), L leapfrog steps of size h on U_0(theta) - l(theta, u); min(1, exp(-change of energy)) accepts

    With `taylor`, l is the estimate with control variates q_i, the Taylor polynomials of the log-likelihoods l_i at
    `reference`, minus half its variance, d_i = l_i - q_i:

        l(theta, u) = sum_i q_i(theta) + (N / m) sum_{i in u} d_i(theta) - (N^2 / (2 m)) var_{i in u} d_i(theta)

    (var with the divisor m), and without it the naive l(theta, u) = (N / m) sum_{i in u} l_i(theta). Whatever l is, the
    kernel leaves exp(-U_0(theta)) E_u exp(l(theta, u)) invariant at every step size, which is *not* the posterior:
    with the naive l it is exp(-U_0) [mean_i exp((N / m) l_i)]^m exactly, about as wide as the posterior of m data. For
    quadratic l_i and degree 2, d = 0 and it is the posterior.

    Conventions: unit mass, no adaptation; h is the leapfrog step; the data are summed, N / m times the subsample. The
    sampler draws its own subsamples, so that it takes no estimator. A state starts from a subsample drawn uniformly.

    Source: the modules `numpyro.infer.hmc_gibbs` and `numpyro.contrib.ecs_proxies`; quiroz2019speeding for the
    estimate, dang2019hamiltonian, Algorithm 1.

    Args:
        target: a posterior with its data.
        subsample_size: m.
        num_blocks: blocks of the subsample, of which one is updated at a time.
        num_steps: L >= 1.
        taylor: degree of the control variates, 1 or 2; 0 for none.
        reference: where the Taylor polynomials are taken, (d,); default: the target's example.
    """

    target: Target
    subsample_size: int = 2
    num_blocks: int = 1
    num_steps: int = 3
    taylor: int = 2
    reference: tuple[float, ...] | None = None

    backend = "jax"
    needs = frozenset()

    def __post_init__(self) -> None:
        terms = self.target.terms
        require(terms is not None, "target: needs its data", self.target.name)
        size = terms.size  # pyright: ignore[reportOptionalMemberAccess]
        require(1 <= self.subsample_size < size, f"subsample_size: between 1 and {size - 1}", self.subsample_size)
        require(self.num_blocks >= 1, "num_blocks: must be positive", self.num_blocks)
        require(self.num_steps >= 1, "num_steps: must be positive", self.num_steps)
        require(self.taylor in (0, 1, 2), "taylor: must be 0, 1 or 2", self.taylor)
        _ = self._kernel  # built here, outside of any trace

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return Claims(
            Source("dang2019hamiltonian", "Algorithm 1"),
            ExactLaw(),
            CarriedState("the indices of the minibatch, a part of the extended state"),
            Composite(),
            conditions=("control variates that are exact, so that the perturbed law is the posterior",),
        )

    def model(self) -> None:
        """The posterior with a subsampled plate, for the library."""
        numpyro, terms = library(), self.target.terms
        x = self.target.unravel(latent(self.target))
        numpyro.factor("prior", -terms.prior(x))  # pyright: ignore[reportOptionalMemberAccess]
        size = terms.size  # pyright: ignore[reportOptionalMemberAccess]
        with numpyro.plate(PLATE, size, subsample_size=self.subsample_size) as indices:
            batch = jax.tree.map(lambda a: jnp.asarray(a)[indices], terms.data)  # pyright: ignore
            numpyro.factor("likelihood", -jax.vmap(terms.datum, (None, 0))(x, batch))  # pyright: ignore

    @cached_property
    def _kernel(self) -> tuple[Foreign, Foreign, Callable[..., Tree]]:
        """The library's kernel, initialised (it keeps what it saw of the model), a state, and the start of a proxy."""
        infer = load("numpyro.infer")
        start = {}

        def proxy(*args: Foreign, **kwargs: Foreign) -> Foreign:
            reference = self.target.ravel(self.target.example) if self.reference is None else jnp.array(self.reference)
            parts = infer.HMCECS.taylor_proxy({SITE: reference}, degree=self.taylor)(*args, **kwargs)
            start["proxy"] = parts[1]
            return parts

        inner = infer.HMC(
            self.model,
            step_size=1.0,
            adapt_step_size=False,
            adapt_mass_matrix=False,
            num_steps=self.num_steps,
            trajectory_length=None,
        )
        kernel = infer.HMCECS(inner, num_blocks=self.num_blocks, proxy=proxy if self.taylor else None)
        position = {SITE: self.target.ravel(self.target.example)}
        state = kernel.init(jax.random.key(0), 0, position, (), {})
        return kernel, state, start.get("proxy", lambda *_: ())

    def init(self, key: jax.Array, position: Position, estimator: Estimator) -> PeerState:
        """Start a chain at a position."""
        subsample_key, estimator_key = jax.random.split(key)
        kernel, state, proxy = self._kernel
        size = self.target.terms.size  # pyright: ignore[reportOptionalMemberAccess]
        indices = jax.random.randint(subsample_key, (self.subsample_size,), 0, size, state.z[PLATE].dtype)
        flat = ravel_pytree(position)[0]
        state = state._replace(
            z={PLATE: indices, SITE: flat},
            hmc_state=state.hmc_state._replace(z={SITE: flat}),
            gibbs_state=proxy(None, {PLATE: indices}),
        )
        return PeerState(kernel.refresh(state, (), {}), estimator.init(estimator_key, position))

    def step(self, key: jax.Array, state: PeerState, step_size: Scalar, estimator: Estimator) -> PeerState:
        """Take one step."""
        del estimator
        kernel, inner = self._kernel[0], state.inner
        block_key, move_key = jax.random.split(key)
        adapted = inner.hmc_state.adapt_state
        size = jnp.asarray(step_size, adapted.step_size.dtype)
        hmc_state = inner.hmc_state._replace(rng_key=move_key, adapt_state=adapted._replace(step_size=size))
        moved = kernel.sample(inner._replace(rng_key=block_key, hmc_state=hmc_state), (), {})
        return state._replace(inner=moved)

    def position(self, state: PeerState) -> Position:
        """Position of a state."""
        return self.target.unravel(state.inner.z[SITE])


@dataclass(frozen=True)
class SVGD(PositionVariable):
    """`numpyro.contrib.einstein.SVGD`: phi(x_j) = (1/M) sum_i [k(x_i, x_j) g(x_i) + grad_{x_i} k(x_i, x_j)].

    Conventions: g = -grad U~; the step size is that of the optimiser (`sgd`: x_j' = x_j + h phi); the kernel is made
    anew in every step. `rbf` is exp(-|x - y|^2 / b) with b = (median of |x_i - x_j| over all pairs, i = j included)^2
    / log M, `rbf-vector` the same for each coordinate alone with the b of all, `imq` (1 + |x - y|^2)^(-1/2), `mixture`
    half of `rbf` and half of `imq`, and `random-feature` has M random features, always the same. All particles see the
    same minibatch. With `constraint="positive"` the site has that support, the library moves log x, and a particle is
    x, whose law should be exp(-U) on (0, inf).

    Source: the module `numpyro.contrib.einstein`; liu2016stein, Algorithm 1.

    Args:
        target: gives the exact gradient, from which the noise of an estimator is told.
        kernel: `rbf`, `rbf-vector`, `imq`, `random-feature` or `mixture`.
        optimizer: `"sgd"`, `"momentum"` (0.9) or `"adagrad"` of the library; the last divides the velocity by its size.
        constraint: support of the site, `"real"` or `"positive"`.
    """

    target: Target
    kernel: Kernel = "rbf"
    optimizer: Literal["sgd", "momentum", "adagrad"] = "sgd"
    constraint: Literal["real", "positive"] = "real"

    backend = "jax"
    needs = frozenset({"gradient"})

    def __post_init__(self) -> None:
        require(self.kernel in KERNELS, f"kernel: must be one of {', '.join(KERNELS)}", self.kernel)
        known = ("sgd", "momentum", "adagrad")
        require(self.optimizer in known, f"optimizer: must be one of {', '.join(known)}", self.optimizer)
        require(self.constraint in ("real", "positive"), "constraint: must be real or positive", self.constraint)
        library()

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return Claims(
            Source("liu2016stein", "Algorithm 1"),
            ParticleLaw(),
            None if self.optimizer == "sgd" else CarriedState("the averages of the optimiser"),
            conditions=("infinitely many particles",),
            spaces=("positive",) if self.constraint == "positive" else ("euclidean",),
        )

    def _optimizer(self, step_size: Scalar) -> Foreign:
        """The library's optimiser."""
        optim = load("numpyro.optim")
        if self.optimizer == "momentum":
            return optim.Momentum(step_size, 0.9)
        return {"sgd": optim.SGD, "adagrad": optim.Adagrad}[self.optimizer](step_size)

    def _sampler(
        self, potential: Callable[[Position], tuple], step_size: Scalar, count: int
    ) -> tuple[Foreign, Foreign]:
        """The library's sampler, initialised (it keeps what it found in the model), and a state of it."""
        numpyro, einstein = library(), load("numpyro.contrib.einstein")
        kernel = {
            "rbf": einstein.RBFKernel,
            "rbf-vector": lambda: einstein.RBFKernel(mode="vector"),
            "imq": einstein.IMQKernel,
            "random-feature": einstein.RandomFeatureKernel,
            "mixture": lambda: einstein.MixtureKernel([0.5, 0.5], [einstein.RBFKernel(), einstein.IMQKernel()]),
        }[self.kernel]()
        if self.kernel == "random-feature":  # which draws its features once, before the first step
            with jax.ensure_compile_time_eval():
                kernel.init(jax.random.key(0), (count, self.target.size))
            kernel.init = lambda *_: None
        optimizer = self._optimizer(step_size)

        def model() -> None:
            numpyro.factor("potential", -potential(self.target.unravel(latent(self.target, self.constraint)))[0])

        svgd = einstein.SVGD(model, optimizer, kernel, num_stein_particles=count)
        return svgd, svgd.init(jax.random.key(0))

    def init(self, key: jax.Array, position: Position, estimator: Estimator) -> PeerState:
        """Start a chain at a position."""
        particles = jax.vmap(lambda x: ravel_pytree(x)[0])(position)
        potential = lambda x: (self.target.potential(x), None)
        svgd, inner = self._sampler(potential, 1.0, len(particles))
        free = jnp.log(particles) if self.constraint == "positive" else particles
        inner = inner._replace(optim_state=svgd.optim.init({_PARAMETER: free}))
        return PeerState(inner, estimator.init(key, first(position)))

    def step(self, key: jax.Array, state: PeerState, step_size: Scalar, estimator: Estimator) -> PeerState:
        """Take one step."""
        particles = self.position(state)
        potential, estate = frozen(self.target, estimator, key, state.estate, first(particles))
        svgd, _ = self._sampler(potential, step_size, len(jax.tree.leaves(particles)[0]))
        inner, _ = svgd.update(state.inner)
        return PeerState(inner, estate)

    def position(self, state: PeerState) -> Position:
        """Position of a state."""
        flat = self._optimizer(1.0).get_params(state.inner.optim_state)[_PARAMETER]
        return jax.vmap(self.target.unravel)(jnp.exp(flat) if self.constraint == "positive" else flat)


_PARAMETER = f"{SITE}_auto_loc"
"""The name that the library's Delta guide gives to the particles."""


_PERTURBED: dict[str, str] = dict.fromkeys(
    ("recipe", "generator", "order", "law"),
    "an update of the subsample, then a trajectory with accept-reject: tests/samplers/adapters/test_numpyro.py "
    "holds each of the "
    "two to the perturbed law that the kernel leaves invariant",
)

ENTRIES: tuple[Row, ...] = (
    Row(
        "numpyro/hmcecs",
        on_target(HMCECS),
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
        on_target(SVGD),
        tiers=("contract", "law"),
        unsupported=PARTICLES,
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
        on_target(SVGD, constraint="positive"),
        tiers=("contract", "law"),
        unsupported=PARTICLES,
        targets=("gamma",),
    ),
)
