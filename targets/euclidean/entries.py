"""Rows of the laws on R^n."""

from sgmcmc_verification.targets.euclidean.banana import ENTRIES as BANANA
from sgmcmc_verification.targets.euclidean.enumerable_data import ENTRIES as ENUMERABLE_DATA
from sgmcmc_verification.targets.euclidean.funnel import ENTRIES as FUNNEL
from sgmcmc_verification.targets.euclidean.gaussian import ENTRIES as GAUSSIAN
from sgmcmc_verification.targets.euclidean.gaussian_mixture import ENTRIES as GAUSSIAN_MIXTURE
from sgmcmc_verification.targets.euclidean.quartic import ENTRIES as QUARTIC
from sgmcmc_verification.targets.euclidean.student_t import ENTRIES as STUDENT_T

ENTRIES = (*GAUSSIAN, *QUARTIC, *BANANA, *GAUSSIAN_MIXTURE, *FUNNEL, *STUDENT_T, *ENUMERABLE_DATA)
