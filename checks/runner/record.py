"""The first line of a file of results: what was to be run, by which command, on what, and when."""

import datetime
import platform
from dataclasses import asdict
from typing import Any

from sgmcmc_verification.checks.core.result import SCHEMA
from sgmcmc_verification.checks.core.revision import commit
from sgmcmc_verification.checks.runner.execute import versions_of
from sgmcmc_verification.checks.runner.plan import Plan


def record_of(plan: Plan, command: str) -> dict[str, Any]:
    """The line: the plan of each sampler, so that a part of a run cannot look like the whole."""
    return {
        "plan": {name: asdict(record) for name, record in plan.records.items()},
        "check_set": plan.check_set.name,
        "shard": plan.shard,
        "law_only": plan.law_only,
        "chains": plan.chains,
        "command": command,
        "commit": commit(),
        "versions": versions_of(("jax", "jaxlib", "numpy", "scipy")),
        "platform": platform.platform(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "schema": SCHEMA,
    }
