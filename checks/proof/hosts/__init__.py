"""Steps that Python takes, read as programs: run once with symbols in place of the numbers of the state and the draws.

A sampler with `backend == "host"` has no jaxpr. Here its own code runs with objects that stand for numbers, and what it
does with them is recorded by JAX, one operation after the other (`recorded.Recorded`). The record is a sampler of JAX:
all that is proved of those is proved of it by the same code. It is about the step that runs, which is seen to beside
it: real steps have to give the numbers of the record, and may change nothing but the state (`guard`).
"""
