"""Every manifold: its flow, projection, dimension and curvature against its constraint; bad sizes are refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sgmcmc_verification.targets.manifolds.base import Manifold
from sgmcmc_verification.targets.manifolds.box import Box
from sgmcmc_verification.targets.manifolds.euclidean import Euclidean
from sgmcmc_verification.targets.manifolds.open_simplex import Corner
from sgmcmc_verification.targets.manifolds.orthant import Positive
from sgmcmc_verification.targets.manifolds.product import Product
from sgmcmc_verification.targets.manifolds.simplex import Simplex
from sgmcmc_verification.targets.manifolds.sphere import Sphere
from sgmcmc_verification.targets.manifolds.spheres import ProductOfSpheres
from sgmcmc_verification.targets.manifolds.stiefel import Stiefel
from tests.helpers.manifold_examples import EPS, Space, flow_violations, jet_violations, simplex, spaces, spheres

pytestmark = pytest.mark.xdist_group("manifolds")
EXAMPLES = settings(deadline=None, max_examples=12, derandomize=True)
NAMES = sorted(spaces())
seeds = st.integers(0, 2**31 - 1)
TYPICAL = ["positive(2)", "sphere(4)", "sphere(2)^2", "simplex(4)", "stiefel(3,2)"]
every_space = pytest.mark.parametrize("name", NAMES)


@pytest.mark.parametrize(
    ("manifold", "name", "dim"),
    [
        (Euclidean(3), "euclidean(3)", 3),
        (Positive(2), "positive(2)", 2),
        (Box(2), "box(2)", 2),
        (Sphere(3), "sphere(2)", 2),
        (ProductOfSpheres(4, 3), "sphere(2)^4", 8),
        (Simplex(4), "simplex(3)", 3),
        (Stiefel(3, 2), "stiefel(3,2)", 3),
        (Stiefel(4, 4), "stiefel(4,4)", 6),
        (Product((Sphere(3), Positive(2))), "product(sphere(2),positive(2))", 4),
    ],
)
def test_manifolds_follow_the_protocol_with_their_intrinsic_dimension(manifold, name, dim):
    assert isinstance(manifold, Manifold)
    assert (manifold.name, manifold.dim) == (name, dim)
    assert hash(manifold) == hash(type(manifold)(*vars(manifold).values()))


@pytest.mark.parametrize(
    ("manifold", "linear", "positive", "boundary"),
    [
        (Euclidean(2), True, False, False),
        (Positive(2), False, True, True),
        (Box(2), False, False, True),
        (Corner(2), False, False, False),
        (Sphere(3), False, False, False),
        (Simplex(3), False, False, True),
        (Product((Sphere(3), Euclidean(2))), False, False, False),
        (Product((Sphere(3), Positive(2))), False, False, True),
        (Product((Euclidean(1), Euclidean(2))), True, False, False),
    ],
)
def test_a_manifold_says_what_kind_of_space_it_is(manifold, linear, positive, boundary):
    assert (manifold.is_linear, manifold.is_positive, manifold.has_boundary) == (linear, positive, boundary)


@pytest.mark.parametrize(
    ("build", "argument"),
    [
        (lambda: Euclidean(0), "dim"),
        (lambda: Euclidean(2.5), "dim"),  # type: ignore[arg-type]
        (lambda: Positive(0), "dim"),
        (lambda: Sphere(1), "n"),
        (lambda: ProductOfSpheres(0, 3), "count"),
        (lambda: ProductOfSpheres(2, 1), "n"),
        (lambda: Simplex(1), "size"),
        (lambda: Simplex(3, -1), "max_reflections"),
        (lambda: Stiefel(1, 1), "n"),
        (lambda: Stiefel(3, 0), "p"),
        (lambda: Stiefel(3, 4), "p"),
        (lambda: Product(()), "factors"),
        (lambda: Product([Sphere(3)]), "factors"),  # type: ignore[arg-type]
        (lambda: Product((Sphere(3), 3)), "factors"),  # type: ignore[arg-type]
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_a_size_out_of_range_is_refused_by_name(build, argument):
    with pytest.raises(ValueError, match=f"^{argument}: "):
        build()


@every_space
@EXAMPLES
@given(seeds, st.floats(-6, 2), st.floats(-20, 20))
def test_geodesics_keep_constraint_tangency_and_speed_run_backwards_and_compose(name, seed, exponent, length):
    found = flow_violations(spaces()[name], seed, 10**exponent, length)
    assert {prop: v for prop, v in found.items() if not v.holds} == {}


@pytest.mark.parametrize("at", [0.0, 0.03, 0.7])
@pytest.mark.parametrize("name", TYPICAL)
def test_acceleration_is_normal_and_the_exponential_map_is_smooth_at_zero_velocity(name, at):
    found = jet_violations(spaces()[name], 7, at)
    assert {prop: v for prop, v in found.items() if not v.holds} == {}


@every_space
def test_the_projection_is_onto_the_null_space_of_the_constraint_whose_dimension_is_dim(name):
    space = spaces()[name]
    for seed in range(3):
        x = space.draw(seed)
        basis = space.tangent_basis(x)
        projection = np.stack([space.point_maps(x, e)[1] for e in np.eye(len(x))], axis=1)
        np.testing.assert_allclose(projection, basis.T @ basis, rtol=0, atol=16 * len(x) * EPS)
        assert space.manifold.dim == len(basis) == np.linalg.matrix_rank(projection)


@every_space
def test_mean_curvature_is_the_trace_of_the_second_fundamental_form(name):
    space = spaces()[name]
    for seed in range(3):
        x = space.draw(seed)
        trace = sum(space.acceleration(x, e) for e in space.tangent_basis(x))
        np.testing.assert_allclose(space.point_maps(x, x)[2], trace, rtol=0, atol=64 * len(x) ** 2 * EPS)


@every_space
def test_roundoff_projection_returns_to_the_constraint_and_moves_a_valid_point_by_roundoff(name):
    space = spaces()[name]
    rng = np.random.default_rng(5)
    x = space.draw(5)
    moved, _, _, inside = space.point_maps(x, x)
    assert inside
    assert not space.point_maps(x * np.nan, x)[3]
    assert np.max(np.abs(moved - x)) <= 4 * len(x) * EPS
    drifted = x + 1e-9 * rng.uniform(0.5, 1, size=len(x)) * np.sign(x)
    assert bool(space.point_maps(drifted, x)[3]) == (len(space.constraint(x)) == 0)
    again = space.point_maps(drifted, x)[0]
    assert space.point_maps(again, x)[3]
    assert np.max(np.abs(space.constraint(again)), initial=0) <= 4 * len(x) * EPS
    # no further than twice the distance of the nearest point, which is no further than x
    assert np.linalg.norm(again - drifted) <= 2 * np.linalg.norm(drifted - x)


@pytest.mark.parametrize("name", TYPICAL)
def test_single_precision_stays_single_and_agrees_with_double(name):
    space = spaces()[name]
    x = space.draw(4)
    v = space.tangent_vector(x, 5, 1.0)
    exact = space.flow(x, v, 0.75)
    point, velocity = (space.unravel(part).astype(jnp.float32) for part in (x, v))
    with jax.numpy_dtype_promotion("strict"):
        m = space.manifold

        @jax.jit
        def step(point, velocity):
            point, velocity = m.geodesic(point, m.tangent(point, velocity), 0.75)
            return m.project_roundoff(point), velocity, m.mean_curvature(point), m.contains(point)

        *parts, inside = step(point, velocity)
    assert {part.dtype for part in parts} == {jnp.dtype("float32")}
    assert bool(inside)
    for part, value in zip(parts[:2], exact, strict=True):
        allowance = 16 * len(x) * float(np.finfo(np.float32).eps) * (1 + np.abs(x).max()) * space.growth(0.75)
        assert np.max(np.abs(np.ravel(part) - value)) <= allowance


class Renormalised(Sphere):
    """Planted: a retraction in place of the exponential."""

    def geodesic(self, point, velocity, time):
        end = self.project_roundoff(point + time * velocity)
        w = self.tangent(end, velocity)
        return end, w * jnp.sqrt((velocity @ velocity) / (w @ w))


class AmbientDimension(Sphere):
    """Planted: the number of coordinates."""

    @property
    def dim(self):
        return self.n


class FlatAtZero(Sphere):
    """Planted: the cosine is constant at zero speed, so the second derivative there is lost."""

    def geodesic(self, point, velocity, time):
        squared = velocity @ velocity
        moving = squared > 0
        speed = jnp.sqrt(jnp.where(moving, squared, 1))
        cosine = jnp.where(moving, jnp.cos(speed * time), 1)
        sine = jnp.where(moving, jnp.sin(speed * time) / speed, time)
        return point * cosine + velocity * sine, velocity * cosine - point * (squared * sine)


class AmbientReflection(Simplex):
    """Planted: the reflection of R^K in x_j = 0, then projected: the factor 2 / K in place of 2 / (K - 1)."""

    def reflected(self, velocity, hit):
        return self.tangent(velocity, jnp.where(hit, -velocity, velocity))


@pytest.mark.parametrize(
    ("space", "broken"),
    [
        (Space(Renormalised(3), spheres(1, 3)), {"composed point", "composed velocity"}),
        (Space(AmbientReflection(3), simplex(3)), {"speed", "reversed velocity", "inverse point"}),
    ],
    ids=["retraction", "reflection"],
)
def test_a_flow_that_is_no_geodesic_is_seen(space, broken):
    found = [flow_violations(space, seed, 1.0, 1.5) for seed in range(4)]
    assert broken <= {prop for violations in found for prop, v in violations.items() if not v.holds}


def test_derivatives_that_are_lost_and_a_dimension_that_is_ambient_are_seen():
    wrong = Space(FlatAtZero(3), spheres(1, 3))
    assert not jet_violations(wrong, 0, 0.0)["acceleration"].holds
    assert AmbientDimension(3).dim != len(wrong.tangent_basis(wrong.draw(0)))
