"""A uniform variate for kernels that run compiled and in plain Python, like those of `samplers.cir`."""

from numba.extending import overload

from samplers.cir import _uniform


def draw_uniform(source):
    """Uniform on (0, 1], from a NumPy generator; compiled, from a stream."""
    return 1.0 - source.random()


@overload(draw_uniform)
def _(source):
    return lambda source: _uniform(source)
