"""Contestants in selection, each against an answer that is known: brute force, another solver, a worked example."""

from __future__ import annotations

import sys
import warnings
from itertools import combinations

import numpy as np
import pytest
from scipy.linalg import qr
from scipy.optimize import linprog
from scipy.sparse.csgraph import floyd_warshall
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import kneighbors_graph

from experiments.methods import CannotRun, _ds3_program, all_selectors, ds3, smrs
from experiments.methods import facility_location as fl
from experiments.methods import geosketch as sketch
from experiments.methods import manifold_kmeans as mk
from experiments.methods import precis as pr
from experiments.methods import rrqr_cur as rc
from experiments.methods import simple as si
from experiments.methods import ted as td
from experiments.methods._selecting import completed, gaussian, generator, ranking
from mosaic import solve
from oracles import exact_factor, lasso_solution, objective

pytestmark = pytest.mark.slow

TIERS = {
    "SMRS": "paper",
    "DS3": "paper",
    "SSM": "paper",
    "K-medoids": "paper",
    "M-kmeans": "surrogate",
    "Précis": "peer",
    "TED": "peer",
    "RRQR": "peer",
    "CUR": "peer",
    "random": "peer",
    "k-means": "peer",
    "farthest point": "peer",
    "k-means++": "peer",
    "facility location": "peer",
    "facility location with exchanges": "peer",
    "geosketch": "peer",
    "herding": "peer",
    "RPCholesky": "peer",
}
SELECTORS = {name: method for name, method in all_selectors().items() if method.tier != "ours"}
SETTINGS = [pytest.param(m, g, id=f"{m.name} {g}") for m in SELECTORS.values() for g in m.grid]


def needs_its_package(name):
    """Comparisons may bring packages of their own; without them there is nothing to test."""
    if name == "K-medoids":
        pytest.importorskip("kmedoids")


def run(name, X, k, seed=0, **settings):
    return SELECTORS[name].run(X, k, seed, **settings).indices


def blobs(rng, centres=4, size=8, spread=0.05):
    """Well separated clusters, rows mixed, and the cluster of every row."""
    labels = rng.permutation(np.repeat(np.arange(centres), size))
    corners = 10.0 * np.column_stack([np.cos(np.arange(centres)), np.sin(np.arange(centres))])
    return corners[labels] + spread * rng.normal(size=(len(labels), 2)), labels


# All of them


def test_every_contestant_has_its_name_and_tier():
    assert {name: method.tier for name, method in SELECTORS.items()} == TIERS


@pytest.mark.parametrize(("method", "settings"), SETTINGS)
def test_k_distinct_rows_are_chosen_and_the_same_ones_again(rng, method, settings):
    needs_its_package(method.name)
    X = rng.normal(size=(24, 3))
    cases = {"points": X, "copies": np.repeat(X[:5], 4, axis=0), "equal": np.ones((8, 2)), "one": X[:1]}
    for name, data in cases.items():
        before = data.copy()
        for k in {1, min(6, len(data)), len(data)}:
            found = method.run(data, k, 3, **settings).indices
            assert found.dtype == np.intp, name
            assert len(found) == k, name
            assert len(set(found.tolist())) == k, name
            assert 0 <= found.min() <= found.max() < len(data), name
            np.testing.assert_array_equal(method.run(data, k, 3, **settings).indices, found)
        np.testing.assert_array_equal(data, before)


@pytest.mark.parametrize("method", SELECTORS.values(), ids=SELECTORS)
def test_more_points_than_a_method_can_take_are_refused_with_the_number(method):
    X = np.broadcast_to(0.0, (method.largest + 1, 2))
    with pytest.raises(CannotRun, match=f"{method.largest:,} at most"):
        method.run(X, 2, 0)


@pytest.mark.parametrize("method", SELECTORS.values(), ids=SELECTORS)
def test_more_picks_than_points_are_refused(method):
    with pytest.raises(CannotRun, match="6 picks of 5"):
        method.run(np.eye(5), 6, 0)


COVERING = [
    "DS3", "K-medoids", "M-kmeans", "k-means", "farthest point", "facility location", "facility location with exchanges",
    "geosketch", "SSM",
]  # fmt: skip


@pytest.mark.parametrize("name", COVERING)
def test_methods_that_cover_take_one_point_of_every_cluster(rng, name):
    needs_its_package(name)
    X, labels = blobs(rng)
    assert sorted(labels[run(name, X, 4)]) == [0, 1, 2, 3]


def test_gaussian_kernel_has_the_median_distance_for_its_width(rng):
    X = rng.normal(size=(30, 3))
    D = cdist(X, X)
    median = np.median(D[np.triu_indices(30, 1)] ** 2)
    K = gaussian(X, 10.0, 0).block(slice(None), np.arange(30))
    np.testing.assert_allclose(K, np.exp(-(D**2) / (10.0 * median)), rtol=1e-12)


def test_ranking_puts_large_values_first_and_equal_ones_in_random_order():
    values = np.array([0.0, 2.0, 0.0, 1.0, 0.0])
    orders = {tuple(ranking(values, seed).tolist()) for seed in range(40)}
    assert {order[:2] for order in orders} == {(1, 3)}
    assert len({order[2:] for order in orders}) == 6


def test_a_set_is_completed_by_the_best_that_are_not_in_it():
    np.testing.assert_array_equal(completed([4, 2], [2, 0, 4, 1], 3), [4, 2, 0])
    np.testing.assert_array_equal(completed([4, 2, 3], [0], 2), [4, 2])


# SMRS


def smrs_by_admm(X, alpha, steps):
    """The authors' iteration, with the constraint 1ᵀC = 1ᵀ as it is and without their early stop."""
    Y = (X - X.mean(axis=0)).T
    n = Y.shape[1]
    G = Y.T @ Y
    weight, penalty = alpha / np.linalg.norm(G, axis=1).max(), alpha
    inverse = np.linalg.inv(weight * G + penalty * (np.eye(n) + 1.0))
    C, multiplier, sums = np.zeros((n, n)), np.zeros((n, n)), np.zeros(n)
    for _ in range(steps):
        Z = inverse @ (weight * G + penalty * C - multiplier + penalty + sums)
        V = Z + multiplier / penalty
        C = V * np.maximum(0.0, 1.0 - 1.0 / (penalty * np.linalg.norm(V, axis=1)))[:, None]
        multiplier += penalty * (Z - C)
        sums += penalty * (1.0 - Z.sum(axis=0))
    return C, weight


@pytest.mark.parametrize("alpha", [2.0, 5.0, 20.0])
def test_smrs_solves_the_affine_program(rng, alpha):
    X = rng.normal(size=(30, 3)) + 5.0
    C, weight = smrs_by_admm(X, alpha, 6000)
    Y = X - X.mean(axis=0)
    np.testing.assert_allclose(C.sum(axis=0), 1.0, atol=1e-4)
    expected = np.linalg.norm(C, axis=1)
    found, scores = smrs.row_norms(X, alpha)
    np.testing.assert_allclose(found, expected, atol=5e-3 * expected.max())
    np.testing.assert_array_equal(np.flatnonzero(found > 1e-3), np.flatnonzero(expected > 1e-3))
    # Optimality: the multiplier ν of the constraint is the same for all rows that are used.
    gradient = weight * Y @ (Y.T @ (np.eye(30) - C))
    used = int(expected.argmax())
    ν = C[used] / expected[used] - gradient[used]
    np.testing.assert_allclose(scores, np.linalg.norm(gradient + ν, axis=1), atol=2e-2)


def test_smrs_program_is_ours_with_a_constant_added_to_the_kernel(rng):
    X = rng.normal(size=(25, 3))
    Y = X - X.mean(axis=0)
    K = Y @ Y.T
    lam = 5.0 / np.linalg.norm(K, axis=1).max()
    R = lasso_solution(K + 1e3, lam)
    np.testing.assert_allclose(np.abs(1.0 - R.sum(axis=0)).max(), 0.0, atol=1e-3)
    found, _ = smrs.row_norms(X, 5.0)
    expected = np.linalg.norm(R, axis=1)
    np.testing.assert_allclose(found, expected, atol=5e-3 * expected.max())


def test_smrs_keeps_the_shortest_prefix_that_exceeds_the_share():
    norms = np.array([5.0, 1.0, 3.0, 1.0])  # 5, 8, 9, 10
    np.testing.assert_array_equal(smrs.holding(norms, 0.79), [0, 2])
    np.testing.assert_array_equal(smrs.holding(norms, 0.8), [0, 2, 1])  # 8 does not exceed 8
    np.testing.assert_array_equal(smrs.holding(norms, 0.4), [0])
    np.testing.assert_array_equal(smrs.holding(norms, 0.99), [0, 2, 1, 3])


def test_smrs_thins_by_the_worked_example():
    """From 0: 11, 21 > 0.95 · 22, so the second farthest, at 10, and all nearer ones leave. 11 stays, and finds nobody."""
    places = np.array([[0.0], [10.0], [1.0], [11.0]])
    np.testing.assert_array_equal(smrs.prune_similar(cdist(places, places), smrs.DISTANCES), [0, 3])
    assert smrs.prune_similar(np.zeros((1, 1)), smrs.DISTANCES).tolist() == [0]


def test_smrs_takes_thinned_ones_by_rank_and_then_the_others_by_norm(rng):
    X = rng.normal(size=(40, 4))
    norms, scores = smrs.row_norms(X, 10.0)
    found = smrs.holding(norms, 0.99)
    kept = [int(j) for j in found[smrs.prune_similar(cdist(X[found], X[found]), 0.95)]]
    assert 2 < len(kept) < len(found) < 30
    used = [j for j in np.argsort(-norms) if norms[j] > 0 and j not in kept]
    unused = [j for j in np.argsort(-scores) if norms[j] == 0]
    np.testing.assert_array_equal(run("SMRS", X, 2, alpha=10.0), kept[:2])
    np.testing.assert_array_equal(run("SMRS", X, 40, alpha=10.0), kept + used + unused)
    assert scores[unused[0]] < 1.0 + 1e-3


# DS3


def ds3_by_linear_program(D, strength):
    """min ρ Σ t_i + Σ d_ij z_ij, z_ij ≤ t_i, Σ_i z_ij = 1."""
    n = len(D)
    costs = np.concatenate([D.ravel(), np.full(n, strength)])
    below = np.hstack([np.eye(n * n), -np.repeat(np.eye(n), n, axis=0)])
    sums = np.hstack([np.tile(np.eye(n), n), np.zeros((n, n))])
    return linprog(costs, A_ub=below, b_ub=np.zeros(n * n), A_eq=sums, b_eq=np.ones(n)).fun


def scaled_distances(X):
    D = cdist(X, X)
    return D / D.max()


@pytest.mark.parametrize("share", [0.5, 0.1, 0.02])
def test_ds3_reaches_the_value_of_the_linear_program_and_proves_it(rng, share):
    D = scaled_distances(rng.normal(size=(20, 2)))
    strength = share * _ds3_program.largest_strength(D)[0]
    found = _ds3_program.solve(D, strength, tol=1e-6, rounds=50)
    assert found.Z.min() >= 0
    assert not found.e.any()
    np.testing.assert_allclose(found.Z.sum(axis=0), 1.0, rtol=1e-9)
    assert found.value == pytest.approx(strength * found.Z.max(axis=1).sum() + (D * found.Z).sum(), rel=1e-9)
    optimum = ds3_by_linear_program(D, strength)
    assert found.value == pytest.approx(optimum, rel=1e-6)
    assert optimum * (1 - 1e-6) <= found.bound <= optimum * (1 + 1e-9)


def test_ds3_is_as_close_to_the_optimum_as_it_says_with_many_points(rng):
    D = scaled_distances(rng.normal(size=(150, 3)))
    for share in (0.1, 0.01):
        strength = share * _ds3_program.largest_strength(D)[0]
        found, closer = _ds3_program.solve(D, strength), _ds3_program.solve(D, strength, tol=1e-5, rounds=50)
        assert found.gap <= _ds3_program.GAP
        assert closer.gap <= 1e-5
        assert closer.bound <= found.value * (1 + 1e-9)
        assert found.bound <= closer.value * (1 + 1e-9)


def test_ds3_bound_holds_for_any_prices(rng):
    D = scaled_distances(rng.normal(size=(12, 2)))
    strength = 0.1 * _ds3_program.largest_strength(D)[0]
    optimum = ds3_by_linear_program(D, strength)
    bounds = [
        _ds3_program.lower_bound(D, strength, scale * rng.uniform(size=12)) for scale in np.geomspace(0.01, 10, 60)
    ]
    assert 0.5 * optimum < max(bounds) <= optimum


def test_ds3_incomes_written_out():
    D = np.array([[0.0, 0.7], [0.7, 0.0]])
    np.testing.assert_allclose(_ds3_program.incomes(D, np.array([0.2, 1.0])), [0.2 + 0.3, 1.0])


@pytest.mark.parametrize("factor", [1.0001, 3.0])
def test_ds3_has_one_representative_from_the_largest_strength_on(rng, factor):
    D = scaled_distances(rng.normal(size=(15, 3)))
    strength, medoid = _ds3_program.largest_strength(D)
    assert medoid == min(range(15), key=lambda i: D[i].sum())
    assert strength == pytest.approx(max(0.5 * np.abs(D[i] - D[medoid]).sum() for i in range(15)))
    Z = _ds3_program.solve(D, factor * strength, tol=1e-6).Z
    assert ds3.representatives(Z).tolist() == [medoid]
    np.testing.assert_allclose(Z[medoid], 1.0)


def test_ds3_makes_every_point_its_own_representative_below_the_smallest_distance(rng):
    D = scaled_distances(rng.normal(size=(12, 2)))
    strength = 0.9 * D[~np.eye(12, dtype=bool)].min()
    np.testing.assert_allclose(_ds3_program.solve(D, strength, tol=1e-6).Z, np.eye(12), atol=1e-9)


def test_ds3_lets_one_of_equal_points_stand_for_them(rng):
    X = np.repeat(rng.normal(size=(4, 2)), 6, axis=0)
    found, _ = ds3.reach(scaled_distances(X), 4)
    assert sorted(ds3.representatives(found.Z) // 6) == [0, 1, 2, 3]


def test_ds3_finds_a_strength_with_about_k_representatives(rng):
    D = scaled_distances(rng.normal(size=(40, 2)))
    for k in (3, 8, 20):
        found, alpha = ds3.reach(D, k)
        assert k <= len(ds3.representatives(found.Z)) <= max(k + 2, 1.2 * k)  # halves: from 2 it leaps to 5
        again = _ds3_program.solve(D, alpha * _ds3_program.largest_strength(D)[0])
        assert found.value == pytest.approx(again.value, rel=2 * _ds3_program.GAP)


def test_ds3_counts_rows_by_their_largest_entry_and_ranks_them_by_length():
    Z = np.array([[0.3, 0.4, 0.3], [0.65, 0.0, 0.0], [0.05, 0.6, 0.7], [0.04, 0.04, 0.04]])
    assert ds3.representatives(Z).tolist() == [2, 1, 0]


# Pivots: SSM, RRQR, RPCholesky


def test_ssm_takes_what_the_span_of_the_picks_misses_most(roll):
    K = gaussian(roll, 1.0, 0).block(slice(None), np.arange(len(roll)))
    found = run("SSM", roll, 15, width=1.0).tolist()
    for size in range(1, 15):
        S = found[:size]
        left = np.diagonal(K) - np.einsum("ij,ij->j", K[S], np.linalg.solve(K[np.ix_(S, S)], K[S]))
        assert found[size] == left.argmax()


def test_ssm_is_pivoted_qr_in_the_space_of_the_kernel(roll):
    K = gaussian(roll, 1.0, 0).block(slice(None), np.arange(len(roll)))
    F = exact_factor(K).T
    first, *others = run("SSM", roll, 12, width=1.0)
    left = F - np.outer(F[:, first], F[:, first] @ F) / K[first, first]  # all columns have the same length at first
    np.testing.assert_array_equal(qr(left, pivoting=True)[2][:11], others)


def test_second_point_of_ssm_is_the_farthest_from_the_first(rng):
    X = rng.normal(size=(30, 2))
    firsts = set()
    for seed in range(5):
        first, second = run("SSM", X, 2, seed)
        assert second == cdist(X, X)[first].argmax()
        firsts.add(int(first))
    assert len(firsts) > 1  # by lot


def test_pivots_go_into_another_round_when_the_rank_is_used_up():
    X = np.repeat([[0.0], [1.0], [5.0]], 3, axis=0)
    for name in ("SSM", "RPCholesky"):
        found = SELECTORS[name].run(X, 7, 0)
        assert {j // 3 for j in found.indices[:3].tolist()} == {0, 1, 2}
        assert {j // 3 for j in found.indices[3:6].tolist()} == {0, 1, 2}
        assert "3 rounds" in found.note


def gram_schmidt_order(A, k):
    left, order = A.copy(), []
    for _ in range(k):
        j = int(np.linalg.norm(left, axis=0).argmax())
        q = left[:, j] / np.linalg.norm(left[:, j])
        left = left - np.outer(q, q @ left)
        order.append(j)
    return order


def test_rrqr_takes_the_longest_residual_as_scipy_and_gram_schmidt_do(rng):
    X = rng.normal(size=(40, 8)) + 1.0
    for centred, A in ((True, (X - X.mean(axis=0)).T), (False, X.T)):
        found = run("RRQR", X, 8, centred=centred)
        np.testing.assert_array_equal(found, gram_schmidt_order(A, 8))
        np.testing.assert_array_equal(found, qr(A, pivoting=True)[2][:8])


def test_rrqr_starts_anew_with_the_points_left_when_they_are_spanned(rng):
    X = rng.normal(size=(30, 3))
    found, rounds = rc.pivoted(X.T, 8)
    rest = np.delete(np.arange(30), found[:3])
    np.testing.assert_array_equal(found[3:6], rest[gram_schmidt_order(X[rest].T, 3)])
    assert rounds == 3


def test_randomly_pivoted_cholesky_draws_by_what_is_left_of_each_point():
    X = np.array([[0.0], [1.0], [3.0]])
    draws = np.array([run("RPCholesky", X, 2, seed) for seed in range(600)])
    K = gaussian(X, 1.0, 0).block(slice(None), np.arange(3))
    np.testing.assert_allclose(np.bincount(draws[:, 0]) / 600, 1 / 3, atol=0.08)
    left = 1.0 - K[0] ** 2
    seconds = draws[draws[:, 0] == 0, 1]
    np.testing.assert_allclose(np.bincount(seconds, minlength=3) / len(seconds), left / left.sum(), atol=0.12)


# K-medoids


def distance_loss(D, chosen):
    return D[:, list(chosen)].min(axis=1).sum()


def test_k_medoids_cannot_be_improved_by_a_swap_and_beats_chance(rng):
    needs_its_package("K-medoids")
    X = rng.normal(size=(40, 2))
    D = cdist(X, X)
    found = run("K-medoids", X, 5)
    best = distance_loss(D, found)
    for i in range(5):
        for j in range(40):
            assert distance_loss(D, [*np.delete(found, i), j]) >= best - 1e-9
    assert best < min(distance_loss(D, rng.choice(40, 5, replace=False)) for _ in range(50))


def test_k_medoids_finds_the_optimum_of_a_small_case(rng):
    needs_its_package("K-medoids")
    X = rng.normal(size=(12, 2))
    D = cdist(X, X)
    best = min(combinations(range(12), 3), key=lambda chosen: distance_loss(D, chosen))
    assert sorted(run("K-medoids", X, 3)) == list(best)


def test_k_medoids_keeps_the_best_of_its_starts(rng):
    kmedoids = pytest.importorskip("kmedoids")
    X = rng.normal(size=(80, 2))
    D = cdist(X, X)
    losses = []
    for seed in generator(0).integers(2**31, size=5):
        losses.append(kmedoids.fasterpam(D, 8, random_state=int(seed), n_cpu=1).loss)
    assert min(losses) < max(losses)
    assert distance_loss(D, run("K-medoids", X, 8)) == pytest.approx(min(losses), rel=1e-9)


def test_k_medoids_without_its_package_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "kmedoids", None)
    with pytest.raises(CannotRun, match="not installed"):
        run("K-medoids", np.eye(5), 2)


# M-kmeans and Précis


def test_geodesics_are_shortest_paths_of_the_neighbour_graph(roll):
    lengths = kneighbors_graph(roll, 8, mode="distance").toarray()
    graph = np.maximum(lengths, lengths.T)
    expected = floyd_warshall(np.where(graph > 0, graph, np.inf), directed=False)
    assert np.isfinite(expected).all()  # connected, no bridges needed
    np.testing.assert_allclose(mk.geodesics(roll, 8), expected, rtol=1e-9)


def test_geodesics_go_round_a_circle_and_over_the_shortest_bridge():
    angles = 2 * np.pi * np.arange(20) / 20
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    chord = 2 * np.sin(np.pi / 20)
    assert mk.geodesics(circle, 2)[0, 10] == pytest.approx(10 * chord)
    line = np.array([[0.0], [1.0], [2.0], [2.0], [7.0], [8.0], [9.0], [30.0], [31.0]])
    D = mk.geodesics(line, 1)
    np.testing.assert_allclose(D, np.abs(line - line.T), atol=1e-9)


def test_manifold_k_means_ends_where_every_centre_is_best_in_its_cell(roll):
    D = mk.geodesics(roll, 8)
    start = mk.seeding(D, 6, np.random.default_rng(0))
    centres = mk.lloyd(D, start)
    cells, loss = mk.assigned(D, centres)
    assert loss < mk.assigned(D, start)[1]
    assert loss == pytest.approx((D[centres] ** 2).min(axis=0).sum())
    for number, centre in enumerate(centres):
        cell = np.flatnonzero(cells == number)
        assert centre == min(cell, key=lambda c: (D[cell, c] ** 2).sum())


def test_manifold_k_means_keeps_the_best_start(roll):
    D = mk.geodesics(roll, 10)
    rng = generator(0)
    losses = [mk.assigned(D, mk.lloyd(D, mk.seeding(D, 6, rng)))[1] for _ in range(mk.STARTS)]
    assert min(losses) < max(losses)
    assert mk.assigned(D, run("M-kmeans", roll, 6))[1] == pytest.approx(min(losses))


def test_tangent_coordinates_of_flat_data_are_its_inner_products(rng):
    X = rng.normal(size=(20, 3))
    Y = X - X.mean(axis=0)
    np.testing.assert_allclose(pr.tangent_gram(cdist(X, X)), Y @ Y.T, atol=1e-10)


def test_precis_ratio_is_that_of_the_volumes_before_and_after_a_swap(rng):
    A = rng.normal(size=(6, 12))
    G, chosen = A.T @ A, np.array([3, 0, 7, 9])
    β = pr.volume_ratios(G, chosen)

    def volume(picks):
        return np.sqrt(np.linalg.det(G[np.ix_(picks, picks)]))

    for i in range(4):
        for j in set(range(12)) - set(chosen.tolist()):
            swapped = chosen.copy()
            swapped[i] = j
            assert β[i, j] == pytest.approx(volume(swapped) / volume(chosen), rel=1e-6)


def test_precis_swaps_until_no_swap_gains_the_wanted_volume(rng):
    A = rng.normal(size=(8, 40))
    G, start = A.T @ A, np.arange(5)
    assert pr.volume_ratios(G, start).max() > 1.5
    found = pr.more_diverse(G, start, 1.5)
    β = pr.volume_ratios(G, found)
    β[:, found] = 0.0
    assert β.max() <= 1.5
    np.testing.assert_array_equal(pr.more_diverse(G, start, np.inf), start)


def test_precis_ends_between_the_most_diverse_and_the_most_representative_set(roll):
    D = mk.geodesics(roll, 10)
    found = run("Précis", roll, 6)
    diverse = pr.more_diverse(pr.tangent_gram(D), found, 1.0)
    assert mk.assigned(D, found)[1] < mk.assigned(D, diverse)[1]


# TED


def ted_value(K, chosen, ridge):
    S = list(chosen)
    return np.trace(K[:, S] @ np.linalg.solve(K[np.ix_(S, S)] + ridge * np.eye(len(S)), K[S]))


def test_sequential_ted_takes_the_largest_gain_of_its_objective(roll_kernel):
    K = roll_kernel[:40, :40]
    found = td.design(K, 8, 0.3).tolist()
    assert found[0] == np.argmax((K**2).sum(axis=0) / (np.diagonal(K) + 0.3))
    for size in range(8):
        gains = [-np.inf if j in found[:size] else ted_value(K, [*found[:size], j], 0.3) for j in range(40)]
        assert found[size] == int(np.argmax(gains))


def test_ted_uses_the_gaussian_kernel_and_its_ridge(roll):
    K = gaussian(roll, 10.0, 0).block(slice(None), np.arange(len(roll)))
    np.testing.assert_array_equal(run("TED", roll, 9, width=10.0), td.design(K, 9, 0.1))


def test_convex_ted_is_our_program_with_the_inverse_square_of_the_strength(rng):
    K = rbf_kernel(rng.normal(size=(20, 2)), gamma=0.5)
    lam = 4.0 / np.linalg.norm(K, axis=1).max()
    γ = lam**-2
    β = np.ones(20)
    for _ in range(20_000):  # A = (diag(β)⁻¹ + K)⁻¹ K, β_j = ‖a_j‖/√γ
        A = β[:, None] * np.linalg.solve(np.eye(20) + K * β, K)
        β = np.linalg.norm(A, axis=1) / np.sqrt(γ)
    encoding = solve(K, kernel="precomputed", lam=lam, tol=1e-10)
    R = encoding.rows(np.arange(20))
    assert objective(K, A, lam) == pytest.approx(objective(K, R, lam), rel=1e-6)
    np.testing.assert_allclose(np.linalg.norm(A, axis=1), encoding.influence, atol=1e-3)
    np.testing.assert_array_equal(np.argsort(-β)[:3], encoding.support[:3])


@pytest.mark.parametrize(("share", "used"), [(0.999, False), (1.01, True)])
def test_our_program_uses_nobody_up_to_the_critical_strength(roll_kernel, share, used):
    critical = 1.0 / np.linalg.norm(roll_kernel, axis=1).max()
    encoding = solve(roll_kernel, kernel="precomputed", lam=share * critical, tol=1e-8)
    assert bool(len(encoding.support)) is used


# CUR


def test_leverages_are_squared_singular_vectors_of_linear_and_kernel_features(rng):
    X = rng.normal(size=(25, 6))
    V = np.linalg.svd((X - X.mean(axis=0)).T)[2]
    np.testing.assert_allclose(rc.leverages(X, 3), (V[:3] ** 2).mean(axis=0), atol=1e-10)
    kernel = gaussian(X, 1.0, 0)
    V = np.linalg.svd(kernel.block(slice(None), np.arange(25)))[2]
    np.testing.assert_allclose(rc.leverages(X, 4, kernel), (V[:4] ** 2).mean(axis=0), atol=1e-10)
    assert rc.leverages(X, 25).sum() == pytest.approx(1.0)


def test_cur_draws_with_probabilities_proportional_to_leverage():
    X = np.array([[3.0], [-3.0], [1.0], [-1.0], [0.0]])
    draws = np.array([run("CUR", X, 4, seed, width=None) for seed in range(600)])
    np.testing.assert_allclose(np.bincount(draws[:, 0], minlength=5) / 600, [0.45, 0.45, 0.05, 0.05, 0.0], atol=0.08)
    assert 4 not in draws  # the mean has no leverage


# Simple ones


def test_farthest_point_is_the_one_farthest_from_all_picks(rng):
    X = rng.normal(size=(30, 2))
    D = cdist(X, X)
    found = run("farthest point", X, 10).tolist()
    for size in range(1, 10):
        rest = [i for i in range(30) if i not in found[:size]]
        assert found[size] == max(rest, key=lambda i: D[i, found[:size]].min())


def test_k_means_takes_the_points_nearest_to_its_means_each_once(rng):
    X, labels = blobs(rng)
    found = run("k-means", X, 4)
    for j in found:
        cluster = np.flatnonzero(labels == labels[j])
        mean = X[cluster].mean(axis=0)
        assert j == min(cluster, key=lambda i: np.linalg.norm(X[i] - mean))
    np.testing.assert_array_equal(si.nearest_to(np.zeros((2, 1)), np.array([[2.0], [0.5], [-1.0]])), [1, 2])


@pytest.mark.parametrize("name", ["k-means", "K-medoids", "M-kmeans"])
def test_larger_clusters_come_first(name):
    needs_its_package(name)
    X = np.concatenate([np.zeros((3, 1)), np.full((9, 1), 5.0), np.full((5, 1), 20.0)]) + 1e-3 * np.arange(17)[:, None]
    assert (X[run(name, X, 3), 0] // 5).tolist() == [1, 4, 0]


def test_seeds_of_k_means_are_drawn_by_squared_distance():
    X = np.array([[0.0], [0.0], [1.0], [3.0]])
    draws = np.array([run("k-means++", X, 3, seed) for seed in range(100)])
    assert not any({0, 1} <= set(row) for row in draws.tolist())  # a copy has distance 0 and is never drawn


@pytest.mark.parametrize("name", ["random", "k-means++", "farthest point", "geosketch", "CUR", "RPCholesky"])
def test_another_seed_is_another_draw(rng, name):
    X = rng.normal(size=(200, 2))
    assert len({tuple(run(name, X, 5, seed).tolist()) for seed in range(5)}) > 1


def test_random_picks_are_uniform():
    draws = np.concatenate([run("random", np.zeros((10, 1)), 3, seed) for seed in range(1000)])
    np.testing.assert_allclose(np.bincount(draws, minlength=10) / 1000, 0.3, atol=0.06)


# Facility location


@pytest.mark.parametrize("similarity", ["distance", "squared distance", "rbf"])
def test_facility_location_takes_the_largest_gain(roll, similarity):
    if similarity == "rbf":
        S = gaussian(roll, 1.0, 0).block(slice(None), np.arange(len(roll)))
    else:
        D = cdist(roll, roll, "euclidean" if similarity == "distance" else "sqeuclidean")
        S = D.max() - D
    found = run("facility location", roll, 12, similarity=similarity).tolist()
    for size in range(12):
        values = [-np.inf if j in found[:size] else S[:, [*found[:size], j]].max(axis=1).sum() for j in range(len(S))]
        assert found[size] == int(np.argmax(values))


def test_lazy_greedy_takes_the_first_of_equals():
    np.testing.assert_array_equal(fl.greedy(np.eye(5), 5), np.arange(5))


def test_facility_location_is_what_apricot_chooses_by_default(roll):
    apricot = pytest.importorskip("apricot")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = apricot.FacilityLocationSelection(8).fit(roll).ranking
    np.testing.assert_array_equal(run("facility location", roll, 8, similarity="squared distance"), expected)


def covered(S, chosen):
    """Σ_i max_{j∈chosen} s_ij, with nothing for nobody."""
    return S[:, chosen].max(axis=1).sum()


@pytest.mark.parametrize("k", [1, 2, 5])
def test_gains_of_exchanges_are_those_of_each_exchange_by_itself(rng, k):
    X = rng.normal(size=(25, 3))
    X[20:] = X[:5]  # copies, and with them ties
    S = rbf_kernel(X)
    for chosen in (rng.choice(25, k, replace=False), np.arange(25 - k, 25)):
        first, s1, s2 = fl.nearest_two(S, chosen)
        np.testing.assert_array_equal(s1, S[:, chosen].max(axis=1))
        np.testing.assert_array_equal(s2, np.sort(S[:, chosen])[:, -2] if k > 1 else 0.0)
        gains = fl.exchange_gains(S, first, s1, s2, k)
        for candidate, place in np.ndindex(25, k):
            after = chosen.copy()
            after[place] = candidate
            assert gains[candidate, place] == pytest.approx(covered(S, after) - covered(S, chosen), abs=1e-12)


@pytest.mark.parametrize("k", [1, 2, 4, 7])
def test_no_exchange_raises_the_sum_after_the_last(k):
    better = 0
    for seed in range(10):
        X = np.random.default_rng(seed).normal(size=(30, 2))
        S = rbf_kernel(X, gamma=fl.bandwidth(X, k, 0))
        found, greedy = run("facility location with exchanges", X, k), fl.greedy(S, k)
        reached = covered(S, found)
        assert reached >= covered(S, greedy) - 1e-12
        better += reached > covered(S, greedy) + 1e-9
        for place, candidate in np.ndindex(k, 30):
            after = found.copy()
            after[place] = candidate
            assert covered(S, after) <= reached + 1e-9
        if k <= 4:  # the best set of all is rarely better, and never by much
            assert reached >= 0.97 * max(covered(S, list(chosen)) for chosen in combinations(range(30), k))
    assert (better > 0) == (k > 1)  # a single pick is the best one from the start


def test_exchanges_undo_a_greedy_mistake():
    """A single pick is best in the middle. Of two it serves nobody well, and one at either end is better."""
    ends = np.concatenate([np.linspace(-1.2, -0.8, 9), np.linspace(0.8, 1.2, 9)])
    S = rbf_kernel(np.concatenate([ends, [0.0]])[:, None], gamma=0.5)
    greedy = fl.greedy(S, 2)
    assert 18 in greedy
    found, count = fl.exchanged(S, greedy)
    assert count >= 1
    assert 0 <= min(found) < 9 <= max(found) < 18
    assert covered(S, found) == pytest.approx(max(covered(S, list(pair)) for pair in combinations(range(19), 2)))
    assert greedy.tolist()[0] == 18  # what was given stays as it was


@pytest.mark.parametrize(("k", "wanted"), [(1, 30.0), (2, 30.0), (6, 10.0), (30, 2.0), (50, 1.5)])
def test_bandwidth_is_that_at_which_a_typical_point_resembles_as_many_as_a_pick_stands_for(rng, k, wanted):
    X = rng.normal(size=(60, 3))
    K = rbf_kernel(X, gamma=fl.bandwidth(X, k, 0))
    assert np.median((K**2).sum(axis=0)) == pytest.approx(wanted, rel=1e-6)


def test_bandwidth_with_more_copies_than_a_pick_stands_for_is_that_of_the_median_distance(rng):
    X = np.repeat(rng.normal(size=(6, 2)), 5, axis=0)
    assert fl.bandwidth(X, 10, 0) == pytest.approx(1 / np.median(cdist(X, X)[np.triu_indices(30, 1)] ** 2))
    assert len(set(map(tuple, X[run("facility location with exchanges", X, 6)]))) == 6


# Geometric sketching


def test_boxes_are_equal_cubes_and_tell_points_apart_that_a_plain_count_does(rng):
    X = rng.normal(size=(300, 3))
    box = sketch.boxes(X, 0.7)
    cells = [tuple(cell) for cell in np.floor((X - X.min(axis=0)) / 0.7).astype(int).tolist()]
    assert len(set(zip(cells, box.tolist(), strict=True))) == len(set(cells)) == box.max() + 1


@pytest.mark.parametrize("wanted", [1, 5, 30, 150, 300])
def test_side_of_boxes_is_found_for_a_wanted_number(rng, wanted):
    X = rng.normal(size=(300, 2))
    assert abs(sketch.covering(X, wanted).max() + 1 - wanted) <= max(1, 0.05 * wanted)


def test_boxes_lie_along_the_main_directions_which_keep_distances_and_the_largest_variance(rng):
    X = rng.normal(size=(50, 5)) @ rng.normal(size=(5, 5))
    np.testing.assert_allclose(cdist(*[sketch.along_main_directions(X)] * 2), cdist(X, X), atol=1e-9)
    wide = rng.normal(size=(150, 130)) * np.linspace(2.0, 0.1, 130)
    values = np.linalg.svd(wide - wide.mean(axis=0))[1]
    found = sketch.along_main_directions(wide)
    np.testing.assert_allclose(np.linalg.norm(found, axis=0), values[:100], rtol=1e-9)


def test_counts_are_covered_by_about_the_wanted_number_of_boxes(rng):
    X = rng.integers(0, 17, size=(500, 30)).astype(float)
    note = SELECTORS["geosketch"].run(X, 40, 0).note
    assert 20 <= int(note.split()[0]) <= 80


def test_picks_are_spread_evenly_over_boxes_that_can_give_them(rng):
    box = np.repeat(np.arange(6), [1, 2, 40, 40, 100, 400])
    found = sketch.evenly(box, 40, rng)
    assert np.bincount(box[found]).tolist()[:2] == [1, 2]
    counts = np.bincount(box[found])[2:]
    assert counts.sum() == 37
    assert np.ptp(counts) <= 1
    np.testing.assert_array_equal(np.sort(box[found[:6]]), np.arange(6))  # one of each box comes first


def test_sketch_of_dense_and_sparse_regions_has_as_many_of_both(rng):
    dense, sparse = rng.uniform(0, 1, size=(2000, 2)), rng.uniform(5, 6, size=(100, 2))
    found = run("geosketch", np.concatenate([dense, sparse]), 40)
    assert 12 <= (found < 2000).sum() <= 28


# Herding


def test_herding_starts_at_the_densest_point_and_then_reduces_the_discrepancy_most(roll):
    K = gaussian(roll, 1.0, 0).block(slice(None), np.arange(len(roll)))
    found = run("herding", roll, 10).tolist()
    assert found[0] == K.mean(axis=1).argmax()

    def discrepancy(S):  # squared distance between the mean of all and the mean of S, in the space of the kernel
        return K.mean() - 2 * K[:, S].mean() + K[np.ix_(S, S)].mean()

    for size in range(10):
        rest = [j for j in range(len(K)) if j not in found[:size]]
        assert found[size] == min(rest, key=lambda j: discrepancy([*found[:size], j]))
