"""Distribution of the checks over the processes of pytest-xdist: all items of a sampler to one process, in their order.

The last item of a sampler runs what the results of the others leave open, and so has to stand where they were found;
and what one item compiles is used by the next. The groups of `--dist loadgroup` do not serve: workers send them as a
part of the name of an item, which no longer arrives from pytest 9.2 on (pytest-xdist, issue 1386).
"""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling


class BySampler(LoadScopeScheduling):
    """A scheduler that gives each process whole samplers, one after the other.

    Args:
        config: of the controller.
        log: of pytest-xdist.
        samplers: identifier of each item -> name of its sampler.
    """

    def __init__(self, config: pytest.Config, log: Any, samplers: Mapping[str, str]) -> None:
        super().__init__(config, log)
        self._samplers = samplers

    def _split_scope(self, nodeid: str) -> str:
        """The sampler of an item `checks/test_law.py::test_law[sgld-weak_order-anharmonic]`; others are alone."""
        _, _, identifier = nodeid.partition("[")
        return self._samplers.get(identifier.rpartition("]")[0], nodeid)


def samplers_of(checks: Iterable[Any]) -> dict[str, str]:
    """The name of the sampler of each item of a plan, by the identifier as pytest writes it: in ASCII."""
    return {check.id.encode("unicode_escape").decode("ascii"): check.subject.row.name for check in checks}
