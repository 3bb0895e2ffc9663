"""Steps of this suite beside BlackJAX, SGMCMCJax, posteriors, NumPyro and TFP, by pytest-benchmark.

    pytest benchmarks/test_peers_speed.py --benchmark-only

A round is one turn of every contestant; what each took, and how many times ours, is in `extra_info`. Nothing is
asserted of times. `python -m benchmarks.peers` publishes the same.
"""

import pytest

from benchmarks.peers import CHAINS, measured


@pytest.mark.parametrize("chains", CHAINS)
def test_a_step_beside_other_libraries(benchmark, chains):
    lines = benchmark.pedantic(measured, (chains,), rounds=1, iterations=1)
    for line in lines:
        benchmark.extra_info[line["contestant"]] = {k: v for k, v in line.items() if k != "contestant"}
    assert {line["contestant"] for line in lines} >= {"this suite, SGLD", "this suite, HMC of one step"}
