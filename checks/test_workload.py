"""The workload tier: one item a sampler, check and target; the work is in the checks, not here."""


def test_workload(case, run_case):
    run_case(case)
