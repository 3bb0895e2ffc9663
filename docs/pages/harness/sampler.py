"""SGLD in NumPy behind the protocol of lines: x' = x - h grad U(x) + sqrt(2 h) N(0, I)."""

import json
import sys

import numpy as np


def ask(kind: str, **what: object) -> np.ndarray:
    """Values that the suite gives: gradients, and draws."""
    print(json.dumps({"ask": kind, **what}), flush=True)
    return np.array(json.loads(sys.stdin.readline())["values"])


def step(x: np.ndarray, h: float) -> np.ndarray:
    """A step of size h."""
    gradient = ask("gradient", x=x.tolist())
    return x - h * gradient + np.sqrt(2 * h) * ask("normal", n=len(x))


for line in sys.stdin:
    request = json.loads(line)
    if request["op"] == "describe":
        answer = {"protocol": 1, "draws": "given"}
    elif request["op"] == "init":
        answer = {"z": request["x"]}
    elif request["op"] == "step":
        answer = {"z": step(np.array(request["z"]), request["h"]).tolist()}
    else:
        break
    print(json.dumps(answer), flush=True)
