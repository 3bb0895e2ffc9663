"""Why a mutant that is not equivalent survives the checks: what no check looks at, in one sentence each."""

UNCOMPENSATED = (
    "gradient noise that is not compensated is of the order that the scheme claims anyway; the covariance of a step "
    "is compared exactly only where a closed form is claimed on a Gaussian target"
)
REFLECTION = (
    "the mirror at zero is met by paths to which the target gives next to no mass, less than the error of the "
    "quadrature at the step sizes in use; a target with mass at zero would show it"
)
REASONS: dict[str, str] = {
    "sgnht/SGNHT._euler/swapped-stages/c19f05c5": (
        "another Euler scheme of the same equation, of the same order 1; nothing is claimed of its leading error"
    ),
    "sgrhmc/SGRHMC.injected/drop-term/ac18914b": UNCOMPENSATED,
    "sgrhmc/SGRHMC.injected/ignored-option/51a54ad0": UNCOMPENSATED,
    "sgrhmc/SGRHMC.step/dropped-stage/6379885a": REFLECTION,
    "sgrhmc/SGRHMC.step/stale-value/6fad09be": REFLECTION,
    "sgrhmc/SGRHMC.step/flip-term/08c37fc0": REFLECTION,
    "svgd/SVGD.step/flip-term/109e57bc": (
        "the law is a fixed point of the reversed flow too; that it attracts is what no deterministic check asks"
    ),
}
"""Change of a mutant -> the reason. A test fails when a published survivor has none."""
