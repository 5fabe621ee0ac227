"""What the paper's two theorems about coverage by a hull amount to."""

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import lsq_linear
from scipy.spatial import ConvexHull

from mosaic import solve
from mosaic.program.problem import DesignProblem
from mosaic.program.working_set import solve_design
from oracles import gauge, hull_coverage

#: Four points, all of them extreme, of which the ℓ_∞ program drops the first as its strength grows.
FOUR = np.array([[2.0, 2.0], [-1.0, 4.0], [1.0, 3.0], [2.0, 0.0]])


def cast_ray(y, corners):
    """1 / the largest t with t·y in conv(corners), from its facets a·x ≤ b; the origin lies in the hull."""
    facets = ConvexHull(corners).equations
    slopes, room = facets[:, :-1] @ y, np.maximum(-facets[:, -1], 0.0)
    ahead = slopes > 1e-12
    t = (room[ahead] / slopes[ahead]).min()
    return 1.0 / t if t > 1e-12 else np.inf


@pytest.mark.parametrize("d", [2, 3, 4])
def test_gauge_matches_rays_cast_at_the_facets(rng, d):
    S, Y = rng.normal(size=(9, d)), rng.normal(size=(30, d))
    both = [cast_ray(y, np.concatenate([S, -S])) for y in Y]
    np.testing.assert_allclose(gauge(Y, S), both, rtol=1e-8)
    positive = np.abs(S)
    one_sided = [cast_ray(y, np.concatenate([positive, np.zeros((1, d))])) for y in np.concatenate([np.abs(Y), Y])]
    np.testing.assert_allclose(gauge(np.concatenate([np.abs(Y), Y]), positive, symmetric=False), one_sided, rtol=1e-8)
    assert np.isinf(one_sided).any()
    assert np.isfinite(one_sided).any()


@pytest.mark.parametrize("symmetric", [True, False])
def test_coverage_is_the_length_of_the_segments_inside_the_hull(rng, symmetric):
    Y = rng.normal(size=(25, 2))
    chosen = [0, 3, 4, 9]
    corners = np.concatenate([Y[chosen], -Y[chosen] if symmetric else np.zeros((1, 2))])
    facets = ConvexHull(corners).equations
    steps = (np.arange(4000) + 0.5) / 4000
    inside = [(facets[:, :-1] @ np.outer(y, steps) + facets[:, -1:] <= 1e-12).all(axis=0).mean() for y in Y]
    lengths = np.linalg.norm(Y, axis=1)
    expected = lengths @ inside / lengths.sum()
    assert hull_coverage(Y, chosen, symmetric=symmetric) == pytest.approx(expected, abs=1e-3)
    assert 0.1 < expected < 0.9


# --- the paper's theorems: which points the programs choose


def certified(Y, row_norm, tol=1e-8, **strength):
    encoding = solve(Y, kernel="linear", row_norm=row_norm, tol=tol, max_iter=50_000, **strength)
    assert -1e-12 <= encoding.dual_gap <= tol
    return encoding


def scores(Y, encoding):
    """‖θᵀy_j‖₁, the dual norm of ℓ_∞, θ = lam (Yᵀ − YᵀR): at most 1, and exactly 1 wherever a row is not zero."""
    A = Y @ (encoding.lam * (Y.T - Y.T @ encoding.rows(np.arange(len(Y)))))
    return np.abs(A).sum(axis=1)


def corners_and_inner_points(rng, d, n_inner=25):
    """Independent corners V and points BV strictly inside conv(±V)."""
    V = 2 * np.eye(d) + 0.5 * rng.normal(size=(d, d))
    B = rng.dirichlet(np.ones(d), size=n_inner) * rng.uniform(0.3, 0.9, size=(n_inner, 1))
    return V, np.minimum(B, 0.8) * rng.choice([-1.0, 1.0], size=B.shape)


def smallest_exact_lam(V, B):
    """From this strength on the solution is known in closed form."""
    G = np.linalg.inv(V @ V.T)
    own, cross = np.diag(G), np.abs(G - np.diag(np.diag(G))).max(axis=1)
    return max((own + cross).max(), (own / (1 - np.abs(B).max(axis=0))).max())


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("d", [2, 3, 5])
def test_independent_corners_are_exactly_the_rows_and_the_rows_are_known(d, seed):
    V, B = corners_and_inner_points(np.random.default_rng(seed), d)
    Y, lam0 = np.concatenate([V, B @ V]), smallest_exact_lam(V, B)

    def closed_form(lam):
        R = np.zeros((len(Y), len(Y)))
        R[:d, :d], R[:d, d:] = np.eye(d) - np.linalg.inv(V @ V.T) / lam, B.T
        return R

    above, below = (certified(Y, "linf", tol=1e-9, lam=t * lam0) for t in (1.2, 0.8))
    assert sorted(above.support) == list(range(d))
    np.testing.assert_allclose(above.rows(np.arange(len(Y))), closed_form(above.lam), atol=1e-6)
    assert np.abs(below.rows(np.arange(len(Y))) - closed_form(below.lam)).max() > 1e-3  # the threshold is sharp
    assert hull_coverage(Y, above.support) == pytest.approx(1.0)
    assert sorted(certified(Y, "l2", lam=5 * lam0).support) == list(range(d))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("d", [2, 3, 5])
def test_on_the_faces_of_a_simplex_euclidean_rows_find_the_corners_and_largest_entries_need_not(d, seed):
    """Lifted to height one all points lie on a face of conv(±V): Σ|b| = 1. There the ℓ_∞ program has many solutions."""
    rng = np.random.default_rng(seed)
    V = np.column_stack([3 * np.eye(d + 1)[:, :d] + 0.3 * rng.normal(size=(d + 1, d)), np.ones(d + 1)])
    B = rng.dirichlet(2 * np.ones(d + 1), size=20)
    Y = np.concatenate([V, B @ V])
    assert sorted(certified(Y, "l2", alpha=1000.0).support) == list(range(d + 1))
    largest = certified(Y, "linf", tol=1e-7, lam=2 * smallest_exact_lam(V, B))
    np.testing.assert_allclose(scores(Y, largest), 1.0, atol=1e-3)  # every point may have a row,
    assert len(largest.support) > d + 1  # and in the solution found more than the corners have,
    value = d + 1 - np.trace(np.linalg.inv(V @ V.T)) / (2 * largest.lam)
    assert largest.certificate.primal == pytest.approx(value, rel=1e-4)  # although it is no better


@pytest.mark.parametrize("row_norm", ["l2", "linf"])
@pytest.mark.parametrize("alpha", [2.0, 10.0, 50.0])
def test_only_extreme_points_have_rows_at_every_strength(rng, row_norm, alpha):
    Y = rng.normal(size=(50, 3))
    extreme = set(ConvexHull(np.concatenate([Y, -Y])).vertices % len(Y))
    support = set(certified(Y, row_norm, tol=1e-7, alpha=alpha).support)
    assert support
    assert support <= extreme
    assert len(extreme) < 40


@pytest.mark.parametrize("half", [3, 4, 5, 6])
def test_regular_polygons_get_a_row_for_every_pair_of_opposite_corners(rng, half):
    angles = np.pi * np.arange(half) / half
    V = np.column_stack([np.cos(angles), np.sin(angles)])
    B = 0.95 * rng.dirichlet(np.ones(half), size=20) * rng.choice([-1.0, 1.0], size=(20, half))
    encoding = certified(np.concatenate([V, B @ V]), "linf", lam=10.0)
    assert sorted(encoding.support) == list(range(half))
    np.testing.assert_allclose(encoding.influence[:half], encoding.influence[0], rtol=1e-4)


@pytest.mark.parametrize("corners", [5, 6, 9])
def test_lifted_polygons_get_rows_at_corners_only_with_euclidean_norms(rng, corners):
    angles = np.sort(rng.uniform(0, 2 * np.pi, size=corners))
    V = np.column_stack([np.cos(angles), np.sin(angles), np.ones(corners)])
    Y = np.concatenate([V, rng.dirichlet(np.ones(corners), size=20) @ V])
    for alpha in (5.0, 100.0):
        assert certified(Y, "l2", alpha=alpha).support.max() < corners


def test_an_extreme_point_may_stay_without_a_row():
    """ℓ_∞ rows, by exact fractions: a feasible R and a dual θ of the same value, and θ is slack at the first point."""
    R = np.array([[0, 0, 0, 0], [-6, 78, 78, -54], [120, 120, 64, 72], [105, -105, 91, 105]]) / 168
    theta = np.array([[36, -20, 0, 0], [9, 23, 0, 0]]) / 112
    np.testing.assert_allclose(FOUR.T @ R, FOUR.T, atol=1e-12)
    assert np.abs(R).max(axis=1).sum() == pytest.approx(101 / 56)
    assert np.vdot(theta, FOUR.T) == pytest.approx(101 / 56)
    np.testing.assert_allclose(np.abs(FOUR @ theta).sum(axis=1), [6 / 7, 1, 1, 1])
    assert gauge(FOUR[:1], FOUR[1:])[0] == pytest.approx(4 / 3)  # and it is extreme: outside the hull of the others
    encoding = certified(FOUR, "linf", tol=1e-9, lam=10.0)
    assert sorted(encoding.support) == [1, 2, 3]
    np.testing.assert_allclose(scores(FOUR, encoding), [6 / 7, 1, 1, 1], atol=1e-4)


def test_euclidean_rows_need_few_of_many_corners():
    """At most p(p + 1)/2 rows: four corners of a regular twelve-gon do for all, although they leave much uncovered."""
    angles = 2 * np.pi * np.arange(12) / 12
    Y = np.column_stack([np.cos(angles), np.sin(angles), np.ones(12)])
    every_third, problem = np.arange(0, 12, 3), DesignProblem(Y, Y.T @ Y, 10.0)
    few, all_of_them = (solve_design(each, tol=1e-6) for each in (problem.restrict(every_third), problem))
    assert few.primal == pytest.approx(all_of_them.primal, rel=1e-5)
    assert hull_coverage(Y, every_third) < 0.99
    assert hull_coverage(Y, np.arange(12)) == pytest.approx(1.0)


# --- the paper's theorems: coverage


def test_largest_entry_program_covers_by_a_zonotope(rng):
    """Its value is min over ρ of Σρ + lam/2 Σ_i dist²(y_i, Z(ρ)), Z(ρ) = { Σ c_j y_j : |c_j| ≤ ρ_j }."""
    Y = rng.normal(size=(15, 3))
    encoding = certified(Y, "linf", alpha=6.0)

    def value(rho):
        used = rho > 0
        fits = [lsq_linear(Y[used].T, y, bounds=(-rho[used], rho[used]), tol=1e-12).cost for y in Y]
        return rho.sum() + encoding.lam * sum(fits)

    best = value(encoding.influence)
    assert best == pytest.approx(encoding.certificate.primal, rel=1e-6)
    for _ in range(8):
        assert value(encoding.influence * np.exp(0.1 * rng.normal(size=15))) > best
        assert value(encoding.influence + 0.02 * rng.random(15)) > best


@pytest.mark.parametrize("row_norm", ["l2", "linf"])
def test_what_is_represented_lies_in_the_hull_times_its_coefficients(rng, row_norm):
    Y = rng.normal(size=(30, 3))
    encoding = certified(Y, row_norm, tol=1e-7, alpha=8.0)
    R = encoding.rows(encoding.support)
    reached = gauge(R.T @ Y[encoding.support], Y[encoding.support])
    assert (reached <= np.abs(R).sum(axis=0) + 1e-8).all()
    assert reached.max() > 0.5


def test_zonotope_covers_more_and_costs_more_as_the_strength_grows(rng):
    Y = rng.normal(size=(30, 3))
    path = [certified(Y, "linf", tol=1e-7, alpha=alpha) for alpha in (1.2, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)]
    distances = [float(((Y.T - Y.T @ e.rows(np.arange(30))) ** 2).sum()) for e in path]
    assert (np.diff(distances) < 0).all()
    assert (np.diff([e.influence.sum() for e in path]) > 0).all()


def test_hull_coverage_may_fall_as_the_strength_grows():
    """Hence minimising the program is not the same as maximising the coverage by the hull of its support."""
    early, late = (certified(FOUR, "linf", tol=1e-9, alpha=alpha) for alpha in (5.0, 50.0))
    assert (sorted(early.support), sorted(late.support)) == ([0, 1, 2, 3], [1, 2, 3])
    assert hull_coverage(FOUR, early.support) == pytest.approx(1.0)
    assert hull_coverage(FOUR, late.support) == pytest.approx(0.9416, abs=1e-4)


def test_at_equal_size_other_points_cover_more_than_those_of_the_program():
    """Hence the two differ among sets of three as well: it is not the strength that changes the number."""
    support = sorted(certified(FOUR, "linf", tol=1e-9, alpha=50.0).support)
    cover = {S: hull_coverage(FOUR, S) for S in combinations(range(4), 3)}
    assert support == [1, 2, 3]
    assert cover[1, 2, 3] == pytest.approx(0.9416, abs=1e-4)
    assert cover[0, 1, 3] == pytest.approx(0.9763, abs=1e-4)
    assert max(cover, key=cover.get) == (0, 1, 3)


@pytest.mark.parametrize("row_norm", ["l2", "linf"])
@pytest.mark.parametrize("seed", range(2))
def test_chosen_points_cover_more_than_random_ones(seed, row_norm):
    rng = np.random.default_rng(seed)
    Y = rng.normal(size=(30, 3))
    support = certified(Y, row_norm, tol=1e-6, alpha=10.0).support
    random = [hull_coverage(Y, rng.choice(30, len(support), replace=False)) for _ in range(40)]
    assert hull_coverage(Y, support) > np.quantile(random, 0.9)
