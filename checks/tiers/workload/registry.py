"""The rows of the tier `workload`: kernels of topic and mixture models, each on posteriors that are known exactly."""

from checks.tiers.workload import dp, lda, sam
from samplers.entry import WORKLOAD, Row
from samplers.positive.gamma_updates import CIRUpdate, ExpandedMeanUpdate
from samplers.riemannian.metrics import FlatMetric, PositiveMetric
from samplers.riemannian.sgrhmc import SGRHMC
from samplers.riemannian.sgrld import SGRLD
from samplers.topic_models.lda.scir import TopicSCIR
from targets.topic_models.registry import enumerated


def _row(name: str, build, *targets: str, step_size: float = 1.0, variants=()) -> Row:
    # the posteriors of the admixture model are targets with a curvature: their step sizes are meant as they stand
    return Row(name, build, (WORKLOAD,), targets=targets, step_size=step_size, step_power=0.0, variants=variants)


def _topics(name: str, sampler, step_size: float) -> Row:
    """One object a sampler: what is compiled for it is found again."""
    build = lambda posterior, **options: lda.Topics(posterior, sampler, **options)
    return _row(name, build, "lda-tiny", step_size=step_size, variants=({"counts": "expected"},))


_BETA = enumerated("lda-tiny").law.model.beta

WORKLOADS: tuple[Row, ...] = (
    _row("lda/gibbs", lda.DocumentSweep, "lda-tiny"),
    _row("lda/collapsed", lda.CollapsedSweep, "lda-tiny"),
    _topics("lda/sgld", SGRLD(FlatMetric(), reflect=True), 0.1),
    _topics("lda/sghmc", SGRHMC(FlatMetric(), reflect=True), 0.2),
    _topics("lda/sgrld", SGRLD(PositiveMetric(), reflect=True), 0.1),
    _topics("lda/sgrhmc", SGRHMC(PositiveMetric(), reflect=True), 0.2),
    _row(
        "lda/scir",
        lambda posterior, **options: lda.ExactTopics(posterior, TopicSCIR(_BETA), **options),
        "lda-tiny",
        step_size=0.1,
        variants=({"counts": "drawn"},),
    ),
    _row(
        "lda/scir-stored",
        lambda posterior, **options: lda.ExactTopics(
            posterior, TopicSCIR(posterior.law.model.beta), counts="stored", **options
        ),
        "lda-tiny",
        "lda-tiny-peaked",
        step_size=0.1,
    ),
    _row("dp/gibbs", dp.Slices, "dp-tiny", "dp-tiny-fixed"),
    _row(
        "dp/scir",
        lambda posterior, **options: dp.Slices(posterior, update=CIRUpdate(), steps=1, chains=4000, **options),
        "dp-tiny-fixed",
        step_size=3.0,
    ),
    _row(
        "dp/scir-batch",
        lambda posterior, **options: dp.Batches(posterior, CIRUpdate(), **options),
        "dp-tiny-smooth",
        step_size=0.2,
    ),
    _row(
        "dp/sgrld-batch",
        lambda posterior, **options: dp.Batches(posterior, ExpandedMeanUpdate(), **options),
        "dp-tiny-smooth",
        step_size=0.1,
    ),
    *(
        _row(
            f"sam/{name}",
            lambda posterior, sampler=sampler, **options: sam.Topics(posterior, sampler, **options),
            "sam-s1",
            "sam-s2",
            step_size=0.02,
            variants=({"documents": 3},),
        )
        for name, sampler in (("sggmc", sam.sggmc), ("gsgnht", sam.gsgnht))
    ),
    _row("sam/gmc-bgibbs", sam.ByBlocks, "sam-s1", "sam-s2", step_size=0.15),
    _row("sam/gmc-apprmh", sam.MeanPotential, "sam-s1", "sam-s2", step_size=0.2),
)
"""Their targets are names of `targets.topic_models.registry`, or targets that are known by quadrature."""
