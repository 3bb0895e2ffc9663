"""Rows of the laws on R^n."""

from targets.euclidean.banana import ENTRIES as BANANA
from targets.euclidean.enumerable_data import ENTRIES as ENUMERABLE_DATA
from targets.euclidean.funnel import ENTRIES as FUNNEL
from targets.euclidean.gaussian import ENTRIES as GAUSSIAN
from targets.euclidean.gaussian_mixture import ENTRIES as GAUSSIAN_MIXTURE
from targets.euclidean.quartic import ENTRIES as QUARTIC
from targets.euclidean.student_t import ENTRIES as STUDENT_T

ENTRIES = (*GAUSSIAN, *QUARTIC, *BANANA, *GAUSSIAN_MIXTURE, *FUNNEL, *STUDENT_T, *ENUMERABLE_DATA)
