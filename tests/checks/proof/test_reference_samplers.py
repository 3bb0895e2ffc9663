"""All reference samplers: each agrees with its claims or is undecided with a reason, and none is refuted."""

import pytest

from sgmcmc_verification.checks.proof.prove import prove
from sgmcmc_verification.samplers.registry import SAMPLERS

# A ratchet: names may be added to these two, and none taken away.
# fmt: off
PROVED = {
    "sgld", "sgld-compensated", "leimkuhler-matthews", "cyclical-sgld", "sghmc", "sghmc-compensated",
    "sghmc-explicit", "sghmc-symmetric", "baoab", "aboba", "obabo", "oabao", "ubu", "bub", "sgnht",
    "sgnht-splitting", "msgnht", "msgnht-splitting", "badodab", "sgrld", "sgrld-expanded-mean",
    "sgrld-expanded-natural", "sgrld-non-hessian", "sgrhmc", "sgld-reflected", "sghmc-reflected",
    "sgrhmc-expanded-mean", "sgrhmc-non-hessian", "mala", "recipe-sghmc", "psgld-frozen", "psgld-gamma",
    "sggmc", "gsgnht", "saga-ld", "sgld-cv", "svrg-ld", "sgbd", "pcn",
}
# fmt: on
"""Every statement is proved in two dimensions."""
# fmt: off
PASSED = {
    "hmc", "sggmc-compensated", "gmc", "sgrld-recipe-metric", "sgrhmc-recipe-metric",
    "sgrhmc-compensated", "recipe-sgrhmc", "amagold", "mmala", "mmala-recipe-metric", "chmc", "gfsf", "w-sgld",
    "rsvgd-volume", "barker", "makla",
}
# fmt: on
"""Every statement holds in two dimensions, some of them to 50 digits at random points."""


@pytest.mark.parametrize("row", SAMPLERS, ids=lambda row: row.name)
def test_a_reference_sampler_agrees_with_its_claims_or_is_undecided(row):
    proof = prove(row.build, 2, row.estimator)
    assert proof.verdict != "fail", str(proof)
    assert proof.verdict == "pass" or proof.reason, str(proof)
    if row.name in PROVED:
        assert proof.is_proved, str(proof)
    if row.name in PASSED:
        assert proof.verdict == "pass", str(proof)


def test_names_of_the_ratchet_are_rows():
    assert {*PROVED, *PASSED} <= {row.name for row in SAMPLERS}
