"""Theorem 2 of the recipe paper: stationarity from a drift and a diffusion alone, and Q where it is unique.

A process dz = f dt + sqrt(2 D) dW has the stationary law p = exp(-H) iff the flux F_i = f_i p - sum_j d_j (D_ij p) is
free of divergence; then F_i = sum_j d_j W_ij for a skew W = Q p. In two dimensions W_01 is the stream function, unique
once it vanishes at infinity. In three or more it is not: there compare drifts, never Qs [ma2015complete, theorem 2].
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers.dynamics.complete_recipe import MatrixField, ScalarField, VectorField, row_divergence

ROUND_OFF = 256.0
"""k of the round-off allowance k n eps (sum of the magnitudes of the terms), n the dimension: sums of at most n^2
terms, each a few dozen operations deep, with an error that grows like the square root of their number."""


class NotStationary(Exception):
    """The drift does not leave exp(-H) invariant; the message says by how much."""


class Residual(NamedTuple):
    """Fokker-Planck residual at points and the round-off scale of it.

    Attributes:
        value: (m,), (1/p) [div(f p) - sum_ij d_i d_j (D_ij p)].
        scale: (m,), sum of the magnitudes of its terms.
        sensitivity: (m,), change of the value for a unit error in every component of f and of its gradient.
    """

    value: np.ndarray
    scale: np.ndarray
    sensitivity: np.ndarray

    @property
    def relative(self) -> float:
        """max |value| / scale."""
        return float(np.max(np.abs(self.value) / np.maximum(self.scale, np.finfo(float).tiny)))


def residual_at(drift: VectorField, D: MatrixField, H: ScalarField, points: np.ndarray) -> Residual:
    """The Fokker-Planck residual in its expanded form, term by term, so that its round-off is known.

    R = div f - f . grad H - sum d_i d_j D_ij + 2 sum (d_j D_ij) d_i H - sum D_ij (d_i H d_j H - d_i d_j H)

    Zero everywhere iff exp(-H) is stationary; `samplers.dynamics.complete_recipe.fokker_planck_residual` is the short
    form.

    Args:
        drift: z (n,) -> (n,), jax-traceable.
        D: z -> (n, n).
        H: z -> scalar.
        points: (m, n), where to evaluate.
    """

    def at(z):
        f, jacobian = drift(z), jax.jacfwd(drift)(z)
        g, hessian = jax.grad(H)(z), jax.hessian(H)(z)
        matrix, divergence = D(z), row_divergence(D, z)
        second = jnp.diag(jax.jacfwd(lambda y: row_divergence(D, y))(z))
        terms = (
            jnp.diag(jacobian),
            -f * g,
            -second,
            2 * divergence * g,
            -(matrix * jnp.outer(g, g)).ravel(),
            (matrix * hessian).ravel(),
        )
        value = sum(jnp.sum(t) for t in terms)
        scale = sum(jnp.sum(jnp.abs(t)) for t in terms) + jnp.sum(jnp.abs(jacobian))
        return value, scale, z.shape[0] + jnp.sum(jnp.abs(g))

    with jax.enable_x64(True):
        value, scale, sensitivity = jax.jit(jax.vmap(at))(jnp.asarray(points, jnp.float64))
    return Residual(np.asarray(value), np.asarray(scale), np.asarray(sensitivity))


class Construction(NamedTuple):
    """Q_01 on a grid.

    Attributes:
        axes: two arrays (k,), the coordinates of the grid.
        Q: (k, k), Q_01; Q_10 is minus it.
        error: (k, k), error estimate of Q: that of the stream function divided by p.
        density: (k, k), p / max p.
        mismatch: (k, k), |f recovered from D, H and Q - f|, the larger of both components.
        stream_error: error estimate of the stream function, in units where max p = 1.
    """

    axes: tuple[np.ndarray, ...]
    Q: np.ndarray
    error: np.ndarray
    density: np.ndarray
    mismatch: np.ndarray
    stream_error: float


def bounding_box(H: ScalarField, centre: np.ndarray, depth: float = 40.0) -> tuple[tuple[float, float], ...]:
    """A box on whose edges exp(-H) is below e^-depth of its maximum; e^-40 is 4e-18.

    Args:
        H: z (2,) -> scalar.
        centre: a point in the bulk.
        depth: how far H has to rise above its minimum.

    Raises:
        ValueError: if H does not rise within 200 times the unit length.
    """
    centre = np.asarray(centre, float)
    half = np.ones((2, 2))  # distance to the edge: [axis, side]
    with jax.enable_x64(True):
        values = jax.jit(jax.vmap(H))
        for _ in range(60):
            low, high = centre - half[:, 0], centre + half[:, 1]
            lines = [np.linspace(low[a], high[a], 201) for a in range(2)]
            grid = np.stack(np.meshgrid(*lines, indexing="ij"), -1)
            h = np.asarray(values(jnp.asarray(grid.reshape(-1, 2)))).reshape(201, 201)
            h = h - np.nanmin(h)
            edges = np.array([[h[0].min(), h[-1].min()], [h[:, 0].min(), h[:, -1].min()]])
            if np.all(edges > depth):
                return (low[0], high[0]), (low[1], high[1])
            half = np.where(edges > depth, half, half * 1.15)
            if half.max() > 200:
                break
    raise ValueError("H: does not grow on every side, so that the law has no bounded bulk")


def construct_q(
    drift: VectorField,
    D: MatrixField,
    H: ScalarField,
    box: tuple[tuple[float, float], ...] | None = None,
    centre: np.ndarray | None = None,
    points: int = 256,
) -> Construction:
    """The unique Q of a stationary process in two dimensions, from f, D and H alone.

    psi with F_0 = d_1 psi and F_1 = -d_0 psi solves Laplace psi = d_1 F_0 - d_0 F_1, in Fourier space
    psi^ = (i k_1 F_0^ - i k_0 F_1^) / -|k|^2; its mean is fixed by psi -> 0 on the boundary; Q_01 = psi / p.

    The error is spectral in the grid as long as F is smooth and vanishes at the edges of the box; it is estimated by
    the highest quarter of the Fourier modes and by how far psi is from constant on the boundary, and grows like 1 / p.

    Source: ma2015complete, theorem 2 (equation (5)), in two dimensions. Differs from the source in:
        1. psi vanishes at infinity by its boundary value, not through the mode k = 0.

    Args:
        drift: z (2,) -> (2,).
        D: z -> (2, 2).
        H: z -> scalar.
        box: ((low, high), (low, high)); found by `bounding_box` if None.
        centre: a point in the bulk, for `bounding_box`; the origin if None.
        points: grid points an axis, even.

    Raises:
        NotStationary: if the divergence of the flux does not vanish.
    """
    if box is None:
        box = bounding_box(H, np.zeros(2) if centre is None else centre)
    if points < 16 or points % 2:
        raise ValueError(f"points: must be even and at least 16, got {points}")
    axes, psi, recovered, f, density, numerical = _stream(drift, D, H, box, points)
    bulk = density.ravel() > 1e-6
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 2)[bulk]
    chosen = grid[:: max(1, len(grid) // 64)]
    residual = residual_at(drift, D, H, chosen)
    allowance = 2 * ROUND_OFF * np.finfo(float).eps
    if residual.relative > allowance:
        raise NotStationary(
            f"the flux has a divergence: Fokker-Planck residual up to {residual.relative:.2g} of its terms "
            f"(round-off: {allowance:.2g})"
        )
    boundary = np.concatenate([psi[0], psi[:, 0], psi[-1], psi[:, -1]])
    stream_error = max(numerical, float(np.max(np.abs(boundary))))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        Q, error = psi / density, stream_error / density
        mismatch = np.max(np.abs(recovered - f), axis=0)
    return Construction(axes, Q, error, density, mismatch, stream_error)


def _stream(drift, D, H, box, points):
    """Grid, stream function, recovered drift, drift, relative density, error of the stream function."""
    axes = tuple(low + (high - low) * np.arange(points) / points for low, high in box)
    flat = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 2)

    def at(z):
        f, matrix = drift(z), D(z)
        outflow = row_divergence(D, z) - matrix @ jax.grad(H)(z)  # (1/p) div (D p)
        return f, outflow, H(z)

    with jax.enable_x64(True):
        f, outflow, h = (np.asarray(a) for a in jax.jit(jax.vmap(at))(jnp.asarray(flat, jnp.float64)))
    shape = (points, points)
    h = h.reshape(shape)
    p = np.exp(-(h - np.nanmin(h)))
    f, outflow = (a.T.reshape(2, *shape) for a in (f, outflow))
    with np.errstate(invalid="ignore", over="ignore"):
        flux = np.where(p > 0, (f - outflow) * p, 0.0)
    frequencies = [2 * np.pi * np.fft.fftfreq(points, (high - low) / points) for low, high in box]
    for k in frequencies:
        k[points // 2] = 0.0  # the Nyquist mode has no derivative on the grid
    k0, k1 = np.meshgrid(*frequencies, indexing="ij")
    square = k0**2 + k1**2
    square[square == 0] = np.inf
    transformed = (1j * k1 * np.fft.fft2(flux[0]) - 1j * k0 * np.fft.fft2(flux[1])) / -square
    psi = np.fft.ifft2(transformed).real
    high = (np.abs(k0) > 0.75 * np.abs(k0).max()) | (np.abs(k1) > 0.75 * np.abs(k1).max())
    truncation = float(np.sum(np.abs(transformed[high]))) / points**2
    width = max(high - low for low, high in box)
    with np.errstate(invalid="ignore", over="ignore"):
        round_off = np.finfo(float).eps * width * float(np.nanmax((np.abs(f) + np.abs(outflow)) * p))
    psi -= psi[0, 0]
    curl = np.stack([np.fft.ifft2(1j * k1 * transformed).real, np.fft.ifft2(-1j * k0 * transformed).real])
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        recovered = curl / p + outflow
    return axes, psi, recovered, f, p, max(truncation, round_off)
