"""Laws on the product of a curved or bounded space and a line, as tuples of a point and an array of one number."""

from sgmcmc_verification.targets.directional.product_laws import independent
from sgmcmc_verification.targets.directional.von_mises_fisher import von_mises_fisher
from sgmcmc_verification.targets.entry import TargetRow
from sgmcmc_verification.targets.euclidean.gaussian import scaled
from sgmcmc_verification.targets.positive.truncated_gaussian import truncated_gaussian
from sgmcmc_verification.targets.simplex.dirichlet import concentrated
from sgmcmc_verification.targets.target import Target


def sphere_and_line() -> Target:
    """A von Mises-Fisher law on S^2 and a Gaussian one on R."""
    return independent((von_mises_fisher(), scaled()), "vmf-s2-and-line")


def positive_and_line() -> Target:
    """N(1, 1) given x > 0, whose density has a slope at 0, and a Gaussian law on R."""
    return independent((truncated_gaussian([1.0], [[1.0]], "positive part"), scaled()), "positive-and-line")


def simplex_and_line() -> Target:
    """A Dirichlet law on three probabilities and a Gaussian one on R."""
    return independent((concentrated(), scaled()), "dirichlet-and-line")


ENTRIES = (
    TargetRow("vmf-s2-and-line", sphere_and_line),
    TargetRow("positive-and-line", positive_and_line),
    TargetRow("dirichlet-and-line", simplex_and_line),
)
