"""Revision of the suite that a result comes from."""

import subprocess

from sgmcmc_verification.checks.core.error_origin import SUITE


def commit() -> str:
    """Commit of the checkout, with `+` if the code that decides has changed since; `unknown` outside of one."""
    git = ["git", "-C", str(SUITE)]
    try:
        head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        status = [*git, "status", "--porcelain", "--", "targets", "samplers", "checks"]
        changed = subprocess.run(status, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head + ("+" if changed else "")
