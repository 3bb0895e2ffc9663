"""Adapters: samplers of other libraries under the interface of this suite, one module a library.

A library is imported when one of its samplers is built, never before. Each adapter calls the library's own step and
says in its docstring what the library multiplies by its step size, what its noise is, and where gradient noise enters.
"""
