"""Why a mutant that is not equivalent survives the checks: what no check looks at, in one sentence each."""

EULER = "another Euler scheme of the same equation, of the same order 1; nothing is claimed of its leading error"
LARGE_ARGUMENT = (
    "the branch for a quarter of friction x step size above one, which no setting reaches at which limits in the step "
    "size can still be taken"
)
BANDWIDTH = "another bandwidth of the kernel: any positive one leaves the target a fixed point that attracts"
ANOTHER_DIFFUSION = (
    "friction and noise change together, in the code and in what is declared: other dynamics with the same law"
)
SYMPLECTIC = "another map that is reversible and keeps the volume: the Metropolis test makes its law exact as well"
LENGTH = "one leapfrog step more: another trajectory, whose acceptance is its own; nothing is claimed of its length"
MINIBATCHES = "batches with replacement for those without: unbiased as well, so that the law has the same limit"
NOTICED = "noticed, and not decided: a check that the unmutated sampler passes is inconclusive"
METRIC = "another metric, for the sampler and for the checks alike: with any one the target is a fixed point"
RUNNING_MEAN = (
    "the running mean of the reported covariances, of which checks of single steps see the first value alone; three "
    "changes of the same lines die in the statistical tiers, through which this one has not been put"
)
ONE_DIMENSION = "a branch for more than one dimension; the law of this row is decided in one, that of others in more"
RIDGE = "another ridge: its limit is zero, and the estimate is compared at the default options, which have none"
WHOLE_FISHER = "the whole covariance where the row takes its diagonal: the method of which this is the approximation"
REASONS: dict[str, str] = {
    "hamiltonian/TrajectoryMixin.trajectory/wrong-size/e793e678": LENGTH,
    "hamiltonian/solve/flip-term/0ccb2391": NOTICED,
    "saga/SAGA.minibatch/ignored-option/ecd9f8f4": MINIBATCHES,
    "density_gradients/density_gradient/scale-term/7e44560a": BANDWIDTH,
    "sgnht/SGNHT._euler/swapped-stages/c19f05c5": EULER,
    "sgnht/SGNHT._euler/stale-value/8a98cec5": EULER,
    "sgrhmc/SGRHMC.step/stale-value/96240f1a": EULER,
    "ornstein/tanh_excess/flip-term/681b3b93": LARGE_ARGUMENT,
    "ornstein/tanh_excess/flip-term/6641b597": LARGE_ARGUMENT,
    "bandwidths/median_bandwidth/drop-term/e0be164d": BANDWIDTH,
    "metrics/RecipeMetric.inverse/scale-term/2fd27168": ANOTHER_DIFFUSION,
    "metrics/NonHessian2D.inverse/drop-factor/288fb2a2": ANOTHER_DIFFUSION,
    "embedded/friction_matrix/scale-term/fa1cee11": ANOTHER_DIFFUSION,
    "hmc/HMC.trajectory/scale-term/7d62bec4": SYMPLECTIC,
    "bandwidths/median_bandwidth/scale-term/979aa694": BANDWIDTH,
    "replica_exchange/ReplicaExchangeSGLD.temperatures/ignored-option/d174c13b": NOTICED,
    "replica_exchange/ReplicaExchangeSGLD.log_ratio/scale-term/bb2af8d6": NOTICED,
    "psgld/RMSpropMetric._diagonal/flip-term/e03fc371": ANOTHER_DIFFUSION,
    "psgld/RMSpropMetric._diagonal/scale-term/50085e78": ANOTHER_DIFFUSION,
    "psgld/rmsprop/flip-term/d11cb888": ANOTHER_DIFFUSION,
    "metrics/wave/flip-term/431296e8": METRIC,
    "metrics/wave/flip-term/196ca56a": METRIC,
    "metrics/wave/drop-term/ec82f10e": METRIC,
    "sgfs/SGFS.fisher/ignored-option/2b4edaad": WHOLE_FISHER,
    "sgfs/SGFS.step/drop-term/5d3ab892": RUNNING_MEAN,
    "sgfs/SGFS.step/scale-term/b0c504b2": RUNNING_MEAN,
    "sgfs/SGFS.step/flip-term/88ee25f0": RUNNING_MEAN,
    "sgfs/SGFS.step/flip-term/7f9acb61": RUNNING_MEAN,
    "replica_exchange/ReplicaExchangeSGLD.temperatures/scale-term/bc612f7b": ANOTHER_DIFFUSION,
    "psgld/RMSpropMetric._diagonal/ignored-option/1ab3a74a": ANOTHER_DIFFUSION,
    "psgld/rmsprop/missing-root/a69f69e8": ANOTHER_DIFFUSION,
    "density_gradients/density_gradient/scale-term/44851914": RIDGE,
    "positive_definite/_ldl/scale-term/996a0ab7": ONE_DIMENSION,
    "metrics/wave/scale-term/cef25a3f": METRIC,
}
"""Change of a mutant -> the reason. A test fails when a published survivor has none."""
