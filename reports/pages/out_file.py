"""File of lines that a page is made of, and the page beside it: the ends of every command that publishes one."""

import argparse
from pathlib import Path


def require_lines(parser: argparse.ArgumentParser, out: Path) -> None:
    """End the command with one line unless `out` is named as a file of lines."""
    if out.suffix != ".jsonl":
        parser.error(f"--out {out}: the name must end in .jsonl; the page is written beside it")


def publish(text: str, out: Path) -> int:
    """Write a page beside its lines, print it, and return the exit code 0."""
    out.with_suffix(".md").write_text(text, encoding="utf-8")
    print(text)
    return 0
