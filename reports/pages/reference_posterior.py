"""Make a stored reference posterior of a logistic regression: long HMC, machine-checked, with provenance.

    python -m sgmcmc_verification.reports.pages.reference_posterior splice|covertype|synthetic
        [--chains 4] [--draws 10000] ...

HMC runs in whitened coordinates, w = mode + L z with L L^T the inverse Hessian at the mode, where the posterior is
close to N(0, I); chains start from N(0, 4 I). The result is written only if every expectation meets the thresholds
of `targets.reference` and agrees with two samplers that share no code with it: importance sampling from the Laplace
approximation with Pareto-smoothed weights, in NumPy, and (unless `--nuts 0`) BlackJAX's NUTS.
"""

import argparse
import datetime
import importlib.metadata
import json
import platform
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from sgmcmc_verification.samplers.estimators.basic import Exact
from sgmcmc_verification.samplers.underdamped.hmc import HMC
from sgmcmc_verification.targets.reference import FOLDER, SCHEMA, THRESHOLDS, failures, validate
from sgmcmc_verification.targets.regression.benchmarks import WORKLOADS, Workload, labels_digest
from sgmcmc_verification.targets.regression.logistic import expectations, laplace, logistic_regression
from sgmcmc_verification.targets.target import GaussianLaw, Target

ALPHA = 1e-6
"""Two-sided false-alarm rate of a whole cross-check (Bonferroni over its expectations)."""
Statistics = dict[str, np.ndarray]
"""Name -> values of a statistic, (chains, draws)."""


def whitened(target: Target, law: GaussianLaw) -> tuple[Target, np.ndarray]:
    """The target of z with w = mean + R z, R R^T = precision^-1, and R."""
    root = np.linalg.inv(np.linalg.cholesky(law.precision)).T

    def potential(z):
        return target.potential(jnp.asarray(law.mean, z.dtype) + jnp.asarray(root, z.dtype) @ z)

    return replace(target, potential=potential, terms=None, quadrature=None, moments={}), root


def hmc(target: Target, law: GaussianLaw, seed: int, options: dict[str, Any]) -> tuple[np.ndarray, float]:
    """Draws of w (chains, draws, d) after the warm-up, and the share of accepted proposals.

    Args:
        target: the posterior.
        law: its Laplace approximation.
        seed: of the key.
        options: chains, draws, warmup, num_steps, step_size.
    """
    white, root = whitened(target, law)
    sampler, estimator = HMC(num_steps=options["num_steps"]), Exact(white)
    start_key, init_key, run_key = jax.random.split(jax.random.key(seed), 3)
    starts = 2 * jax.random.normal(start_key, (options["chains"], white.size), jnp.float64)
    states = jax.vmap(lambda key, x: sampler.init(key, x, estimator))(
        jax.random.split(init_key, options["chains"]), starts
    )

    @jax.jit
    def run(states, keys):
        def body(states, key):
            keys = jax.random.split(key, options["chains"])
            new = jax.vmap(lambda k, s: sampler.step(k, s, options["step_size"], estimator))(keys, states)
            moved = jnp.any(new.position != states.position, axis=1)
            return new, (new.position, moved)

        return jax.lax.scan(body, states, keys)[1]

    z, moved = run(states, jax.random.split(run_key, options["warmup"] + options["draws"]))
    z, moved = np.asarray(z)[options["warmup"] :], np.asarray(moved)[options["warmup"] :]
    return np.moveaxis(law.mean + z @ root.T, 0, 1), float(moved.mean())


def evaluate(functions, draws: np.ndarray) -> Statistics:
    """The statistics at draws (chains, draws, d)."""
    flat = jnp.asarray(draws.reshape(-1, draws.shape[-1]))
    run = jax.jit(lambda w: jax.lax.map(lambda x: {k: f(x) for k, f in functions.items()}, w, batch_size=32))
    return {name: np.asarray(values).reshape(draws.shape[:2]) for name, values in run(flat).items()}


def summarise(statistics: Statistics) -> dict[str, dict[str, float]]:
    """Mean, standard error, R-hat and effective sample sizes of each statistic [vehtari2021rank], by ArviZ."""
    rows = {}
    for name, values in statistics.items():
        rows[name] = {
            "value": float(values.mean()),
            "mcse": _standard_error(values),
            "sd": float(values.std(ddof=1)),
            "rhat": _of_chains("rhat", values, method="rank"),
            "ess_bulk": _of_chains("ess", values, method="bulk"),
            "ess_tail": _of_chains("ess", values, method="tail", prob=(0.05, 0.95)),
        }
    return rows


def _of_chains(name: str, values: np.ndarray, **options: Any) -> float:
    """A diagnostic of ArviZ of (chains, draws)."""
    from arviz_stats.base import array_stats

    return float(getattr(array_stats, name)(values, chain_axis=0, draw_axis=1, **options))


def _standard_error(values: np.ndarray) -> float:
    """Monte Carlo standard error of the mean of (chains, draws), by ArviZ."""
    return _of_chains("mcse", values, method="mean")


def importance(functions, workload: Workload, law: GaussianLaw, n: int, seed: int) -> tuple[dict, float]:
    """Expectations and standard errors by importance sampling from N(mode, H^-1), with the Pareto k of the weights.

    Pareto-smoothed, self-normalised [vehtari2024pareto]: value = sum w f, error^2 = sum w^2 (f - value)^2.
    U is written again here, in NumPy.
    """
    from arviz_stats.base import array_stats

    train = workload.load().train
    signs = 2 * train.labels - 1
    random = np.random.RandomState(seed)
    z = random.standard_normal((n, law.mean.size))
    w = law.mean + np.linalg.solve(np.linalg.cholesky(law.precision).T, z.T).T
    log_ratio = (
        np.concatenate(
            [
                -np.logaddexp(0, -(part @ train.features.T) * signs).sum(axis=1)
                - (part**2).sum(axis=1) / (2 * workload.prior_variance)
                for part in np.array_split(w, max(1, n * len(signs) // 20_000_000))
            ]
        )
        + (z**2).sum(axis=1) / 2
    )
    log_weights, k = array_stats.psislw(-log_ratio)  # it takes log likelihoods, which are left out by 1 / p
    weights = np.exp(np.asarray(log_weights))
    weights /= weights.sum()
    result = {}
    for name, values in evaluate(functions, w[None]).items():
        value = float(weights @ values[0])
        result[name] = (value, float(np.sqrt(np.sum(weights**2 * (values[0] - value) ** 2))))
    return result, float(k)


def nuts(functions, target: Target, law: GaussianLaw, draws: int, seed: int) -> dict:
    """Expectations and standard errors by BlackJAX's NUTS, 4 chains, window-adapted from the whitened coordinates."""
    import blackjax

    white, root = whitened(target, law)
    log_density = lambda z: -white.potential(z)
    adapt_key, start_key, run_key = jax.random.split(jax.random.key(seed), 3)
    adaptation = blackjax.window_adaptation(blackjax.nuts, log_density)
    (_, parameters), _ = adaptation.run(adapt_key, jnp.zeros(white.size), num_steps=300)  # pyright: ignore[reportCallIssue]
    kernel = blackjax.nuts(log_density, **parameters)
    starts = jax.vmap(lambda z: kernel.init(z))(  # pyright: ignore[reportCallIssue]
        jax.random.normal(start_key, (4, white.size), jnp.float64)
    )

    @jax.jit
    def run(states, keys):
        def body(states, key):
            states = jax.vmap(lambda k, s: kernel.step(k, s)[0])(jax.random.split(key, 4), states)
            return states, states.position  # pyright: ignore[reportAttributeAccessIssue]

        return jax.lax.scan(body, states, keys)[1]

    z = np.asarray(run(starts, jax.random.split(run_key, draws + 100)))[100:]
    statistics = evaluate(functions, np.moveaxis(law.mean + z @ root.T, 0, 1))
    return {name: (float(v.mean()), _standard_error(v)) for name, v in statistics.items()}


def compare(rows: dict[str, dict[str, float]], other: dict, method: str, **details: Any) -> dict[str, Any]:
    """Largest difference in combined standard errors, against the normal quantile at rate `ALPHA` (Bonferroni)."""
    scores = {k: abs(r["value"] - other[k][0]) / np.hypot(r["mcse"], other[k][1]) for k, r in rows.items()}
    worst = max(scores, key=lambda k: scores[k])
    relative = max(other[k][1] / r["sd"] for k, r in rows.items())
    return {
        "method": method,
        **details,
        "expectations": len(scores),
        "largest_z": round(float(scores[worst]), 3),
        "at": worst,
        "limit": round(float(stats.norm.isf(ALPHA / (2 * len(scores)))), 3),
        "rate": ALPHA,
        "largest_standard_error_over_sd": float(f"{relative:.3g}"),
    }


def make(workload: Workload, options: dict[str, Any], command: str) -> dict[str, Any]:
    """The document of a reference posterior; see `targets.reference`."""
    began = time.perf_counter()
    split = workload.load()
    law = laplace(*split.train, workload.prior_variance)
    target = logistic_regression(*split.train, workload.prior_variance, workload.name)
    functions = expectations(split.train, split.test, law.mean)
    draws, acceptance = hmc(target, law, options["seed"], options)
    rows = summarise(evaluate(functions, draws))
    print(f"{workload.name}: HMC took {time.perf_counter() - began:.0f} s, accepted {acceptance:.3f}", flush=True)
    checks = []
    n = options["importance"]
    other, k = importance(functions, workload, law, n, options["seed"] + 1)
    checks.append(
        compare(rows, other, "Pareto-smoothed importance sampling from the Laplace approximation", n=n, pareto_k=k)
    )
    if options["nuts"]:
        other = nuts(functions, target, law, options["nuts"], options["seed"] + 2)
        checks.append(compare(rows, other, "BlackJAX NUTS, 4 chains", n=4 * options["nuts"]))
    packages = ("jax", "numpy", "scipy", "arviz-stats", "blackjax")
    provenance = {
        "data": {file.name: file.sha256 for file in workload.files}
        or "generated from the model, see sgmcmc_verification.targets.regression.benchmarks",
        "labels_sha256": labels_digest(split),
        "rows": [len(split.train.labels), len(split.test.labels)],
        "columns": int(law.mean.size),
        "prior_variance": workload.prior_variance,
        "sampler": {
            "name": "sgmcmc_verification.samplers.underdamped.hmc.HMC",
            "num_steps": options["num_steps"],
            "step_size": options["step_size"],
            "coordinates": "whitened by the Laplace approximation",
            "start": "N(0, 4 I)",
            "dtype": "float64",
        },
        "chains": options["chains"],
        "draws": options["draws"],
        "warmup": options["warmup"],
        "seed": options["seed"],
        "acceptance": round(acceptance, 4),
        "versions": {p: importlib.metadata.version(p) for p in packages} | {"python": platform.python_version()},
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "seconds": round(time.perf_counter() - began, 1),
        "command": command,
        "cross_checks": checks,
    }
    return {"schema": SCHEMA, "name": workload.name, "expectations": rows, "provenance": provenance}


def problems(document: dict[str, Any]) -> list[str]:
    """Obstacles to storing a document: missed thresholds, and cross-checks that disagree or are unreliable."""
    lines = failures(document)
    for check in document["provenance"]["cross_checks"]:
        if not check["largest_z"] < check["limit"]:
            lines.append(f"{check['method']}: {check['at']} is {check['largest_z']} standard errors away")
        # above 0.7 the importance estimate has no useful error [vehtari2024pareto]
        if not check.get("pareto_k", 0) < 0.7:
            lines.append(f"{check['method']}: Pareto k is {check['pareto_k']:.2f}")
    return lines


def main(arguments: list[str] | None = None) -> int:
    """Command line; 0 when the reference was written, 1 when it was refused."""
    parser = argparse.ArgumentParser(
        prog="python -m sgmcmc_verification.reports.pages.reference_posterior", description=__doc__
    )
    parser.add_argument("workload", choices=sorted(WORKLOADS))
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--draws", type=int, default=10_000, help="kept transitions of a chain")
    parser.add_argument("--warmup", type=int, default=500, help="discarded transitions of a chain")
    parser.add_argument("--num-steps", type=int, default=8, help="leapfrog steps of a transition")
    parser.add_argument("--step-size", type=float, default=0.2, help="in whitened coordinates")
    parser.add_argument("--seed", type=int, default=2018)
    parser.add_argument("--importance", type=int, default=20_000, help="draws of the importance sampler")
    parser.add_argument("--nuts", type=int, default=1000, help="kept draws of a chain of NUTS, 0 for none")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    options = vars(parser.parse_args(arguments))
    for name in ("chains", "draws", "num_steps", "importance"):
        if options[name] < (2 if name == "chains" else 1):
            parser.error(f"--{name.replace('_', '-')}: too small")
    if not options["step_size"] > 0:
        parser.error("--step-size: must be positive")
    jax.config.update("jax_enable_x64", True)
    name, folder = options.pop("workload"), options.pop("folder")
    flags = " ".join(f"--{k.replace('_', '-')} {v}" for k, v in options.items())
    document = make(
        WORKLOADS[name], options, f"python -m sgmcmc_verification.reports.pages.reference_posterior {name} {flags}"
    )
    validate(document, name)
    for key in ("rhat", "ess_bulk", "ess_tail"):
        pick = max if key == "rhat" else min
        print(f"{key}: {pick(r[key] for r in document['expectations'].values()):.5g} (threshold {THRESHOLDS[key]})")
    print(f"largest mcse / sd: {max(r['mcse'] / r['sd'] for r in document['expectations'].values()):.3g}")
    print(json.dumps(document["provenance"]["cross_checks"], indent=1))
    bad = problems(document)
    if bad:
        print("not stored:", *bad, sep="\n  ", file=sys.stderr)
        return 1
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{document['name']}.json"
    path.write_text(dumps(document))
    print(path)
    return 0


def dumps(document: dict[str, Any]) -> str:
    """JSON with one expectation a line; diagnostics to the digits that they have."""
    digits = {"value": 12, "mcse": 4, "sd": 6, "rhat": 6, "ess_bulk": 6, "ess_tail": 6}
    rows = {
        name: {key: float(f"{value:.{digits[key]}g}") for key, value in row.items()}
        for name, row in document["expectations"].items()
    }
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
    provenance = json.dumps(document["provenance"], indent=1).replace("\n", "\n ")
    head = f'{{\n "schema": {document["schema"]},\n "name": {json.dumps(document["name"])},'
    return f'{head}\n "expectations": {{\n{lines}\n }},\n "provenance": {provenance}\n}}\n'


if __name__ == "__main__":
    sys.exit(main())
