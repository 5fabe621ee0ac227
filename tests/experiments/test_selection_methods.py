"""Contestants in selection, each against an answer that is known: brute force, another solver, a worked example."""

from itertools import combinations

import numpy as np
import pytest
from scipy.linalg import qr
from scipy.optimize import linprog
from scipy.sparse.csgraph import floyd_warshall
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import kneighbors_graph

from experiments.methods import CannotRun, _ds3_program, all_selectors, detect_smrs, ds3, smrs
from experiments.methods import facility_location as fl
from experiments.methods import manifold_kmeans as mk
from experiments.methods import precis as pr
from experiments.methods import rrqr_cur as rc
from experiments.methods import simple as si
from experiments.methods import ted as td
from experiments.methods._selecting import gaussian
from mosaic import solve

pytestmark = pytest.mark.slow

#: With k picks, these take one point of each of k clear clusters.
COVERING = ["DS3", "K-medoids", "M-kmeans", "k-means", "farthest point", "facility location"]
COVERING += ["facility location with exchanges", "SSM"]
OTHERS = ["SMRS", "Précis", "TED", "RRQR", "CUR", "random", "k-means++", "herding", "RPCholesky"]
TIERS = dict.fromkeys([*COVERING, *OTHERS], "peer") | dict.fromkeys(("SMRS", "DS3", "SSM", "K-medoids"), "paper")
TIERS |= {"M-kmeans": "surrogate", "K-medoids (unit rows)": "peer"}
SELECTORS = {name: method for name, method in all_selectors().items() if method.tier != "ours"}
SETTINGS = [pytest.param(m, g, id=f"{m.name} {g}") for m in SELECTORS.values() for g in m.grid]


def run(name, X, k, seed=0, **settings):
    if name == "K-medoids":  # comparisons may bring packages of their own; without them there is nothing to test
        pytest.importorskip("kmedoids")
    return SELECTORS[name].run(X, k, seed, **settings).indices


def blobs(rng, centres=4, size=8, spread=0.05):
    """Well separated clusters, rows mixed, and the cluster of every row."""
    labels = rng.permutation(np.repeat(np.arange(centres), size))
    corners = 10.0 * np.column_stack([np.cos(np.arange(centres)), np.sin(np.arange(centres))])
    return corners[labels] + spread * rng.normal(size=(len(labels), 2)), labels


# All of them


def test_every_contestant_has_its_name_and_tier_and_refuses_more_points_than_it_can_take():
    assert {name: method.tier for name, method in SELECTORS.items()} == TIERS
    for method in SELECTORS.values():
        with pytest.raises(CannotRun, match=f"{method.largest:,} at most"):
            method.run(np.broadcast_to(0.0, (method.largest + 1, 2)), 2, 0)


@pytest.mark.parametrize("name", COVERING)
def test_methods_that_cover_take_one_point_of_every_cluster(rng, name):
    X, labels = blobs(rng)
    assert sorted(labels[run(name, X, 4)]) == [0, 1, 2, 3]


@pytest.mark.parametrize(("method", "settings"), SETTINGS)
def test_k_distinct_rows_are_chosen_and_the_same_ones_again(rng, method, settings):
    X = rng.normal(size=(24, 3))
    cases = {"points": X, "copies": np.repeat(X[:5], 4, axis=0), "equal": np.ones((8, 2)), "one": X[:1]}
    for name, data in cases.items():
        before = data.copy()
        for k in {1, min(6, len(data)), len(data)}:
            found = run(method.name, data, k, 3, **settings)
            assert found.dtype == np.intp, name
            assert len(found) == k, name
            assert len(set(found.tolist())) == k, name
            assert 0 <= found.min() <= found.max() < len(data), name
            np.testing.assert_array_equal(method.run(data, k, 3, **settings).indices, found)
        np.testing.assert_array_equal(data, before)


# SMRS


def smrs_by_admm(X, alpha, steps):
    """The authors' iteration on n × n matrices, with the constraint 1ᵀC = 1ᵀ as it is and without their early stop."""
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


@pytest.mark.parametrize("alpha", [2.0, 20.0])
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
    # The detector goes the authors' way, in few columns.
    for steps in (1, 2, 40):
        same = detect_smrs.self_representation(X, alpha, max_iter=steps)
        assert same.B.shape == (30, 4)
        np.testing.assert_allclose(same.rows(slice(None)), smrs_by_admm(X, alpha, steps)[0], atol=1e-10)
    last = detect_smrs.self_representation(X, alpha, max_iter=20_000, tolerance=1e-12)
    assert last.converged
    np.testing.assert_allclose(last.rows(slice(None)), C, atol=1e-3)
    # Both are the core program with a large constant added to the similarities.
    core = solve(Y @ Y.T + 1e4, kernel="precomputed", lam=weight, tol=1e-12)
    np.testing.assert_array_equal(np.flatnonzero(last.rows(slice(None)).any(axis=1)), np.sort(core.support))
    np.testing.assert_allclose(last.rows(slice(None)), core.rows(np.arange(30)), atol=5e-4)


def test_smrs_row_sparsity_index_by_hand():
    rows = np.array([[0.0, 0.0, -2.0, 0.0], [3.0, 3.0, 3.0, 3.0], [1.0, 1.0, 2.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    np.testing.assert_allclose(detect_smrs.row_sparsity_index(rows), [1.0, 0.0, (4 * 2 - 4) / (3 * 4), -1.0])


def test_smrs_keeps_the_shortest_prefix_that_exceeds_the_share():
    norms = np.array([5.0, 1.0, 3.0, 1.0])  # 5, 8, 9, 10
    for share, kept in ((0.4, [0]), (0.79, [0, 2]), (0.8, [0, 2, 1]), (0.99, [0, 2, 1, 3])):  # 8 does not exceed 8
        np.testing.assert_array_equal(smrs.holding(norms, share), kept)


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


@pytest.fixture
def dissimilarities(rng):
    X = rng.normal(size=(12, 2))
    X[0] = 9.0
    D = cdist(X, X)
    return D / D.max()


@pytest.mark.parametrize(("price", "rho"), [(0.3, 0.1), (0.2, 0.5), (2.0, 0.2), (None, 0.1), (None, 1.0)])
def test_ds3_reaches_the_value_of_the_linear_program_and_proves_it(dissimilarities, rng, price, rho):
    """min ρ Σ t_i + Σ d_ij z_ij + Σ w_j e_j, z_ij ≤ t_i, Σ_i z_ij + e_j = 1; without a price nobody is an outlier."""
    D, n = dissimilarities, 12
    w = None if price is None else price * rng.uniform(0.5, 1.0, size=n)
    # Unknowns: Z (row by row), e, and a bound for every row of Z.
    cost = np.concatenate([D.ravel(), np.full(n, 1e3) if w is None else w, np.full(n, rho)])
    below = np.hstack([np.eye(n * n), np.zeros((n * n, n)), -np.repeat(np.eye(n), n, axis=0)])
    sums = np.hstack([np.tile(np.eye(n), n), np.eye(n), np.zeros((n, n))])
    best = linprog(cost, A_ub=below, b_ub=np.zeros(n * n), A_eq=sums, b_eq=np.ones(n)).fun
    found = _ds3_program.solve(D, rho, w, tol=1e-6, rounds=50)
    assert min(found.Z.min(), found.e.min()) >= 0
    assert price is not None or not found.e.any()
    np.testing.assert_allclose(found.Z.sum(axis=0) + found.e, 1.0, atol=1e-9)
    value = rho * found.Z.max(axis=1).sum() + (D * found.Z).sum() + (0.0 if w is None else w @ found.e)
    assert value == pytest.approx(found.value, rel=1e-9)
    assert value == pytest.approx(best, rel=1e-6)
    assert best * (1 - 1e-6) <= found.bound <= best * (1 + 1e-9)


@pytest.mark.parametrize("factor", [1.0001, 3.0])
def test_ds3_has_one_representative_from_the_largest_strength_on(dissimilarities, factor):
    D = dissimilarities
    strength, medoid = _ds3_program.largest_strength(D)
    assert medoid == min(range(12), key=lambda i: D[i].sum())
    assert strength == pytest.approx(max(0.5 * np.abs(D[i] - D[medoid]).sum() for i in range(12)))
    Z = _ds3_program.solve(D, factor * strength, tol=1e-6).Z
    assert ds3.representatives(Z).tolist() == [medoid]
    np.testing.assert_allclose(Z[medoid], 1.0)


def test_ds3_finds_a_strength_with_about_k_representatives(rng):
    X = rng.normal(size=(40, 2))
    D = cdist(X, X) / cdist(X, X).max()
    for k in (3, 8, 20):
        found, alpha = ds3.reach(D, k)
        assert k <= len(ds3.representatives(found.Z)) <= max(k + 2, 1.2 * k)  # halves: from 2 it leaps to 5
        again = _ds3_program.solve(D, alpha * _ds3_program.largest_strength(D)[0])
        assert found.value == pytest.approx(again.value, rel=2 * _ds3_program.GAP)


# Pivots: SSM, RRQR, RPCholesky


def test_ssm_takes_what_the_span_of_the_picks_misses_most(roll):
    K = gaussian(roll, 1.0, 0).block(slice(None), np.arange(len(roll)))
    found = run("SSM", roll, 15, width=1.0).tolist()
    for size in range(1, 15):
        S = found[:size]
        left = np.diagonal(K) - np.einsum("ij,ij->j", K[S], np.linalg.solve(K[np.ix_(S, S)], K[S]))
        assert found[size] == left.argmax()


def test_rrqr_takes_the_longest_residual_as_scipy_does(rng):
    X = rng.normal(size=(40, 8)) + 1.0
    for centred, A in ((True, (X - X.mean(axis=0)).T), (False, X.T)):
        np.testing.assert_array_equal(run("RRQR", X, 8, centred=centred), qr(A, pivoting=True)[2][:8])


def test_randomly_pivoted_cholesky_draws_by_what_is_left_of_each_point():
    X = np.array([[0.0], [1.0], [3.0]])
    draws = np.array([run("RPCholesky", X, 2, seed) for seed in range(600)])
    K = gaussian(X, 1.0, 0).block(slice(None), np.arange(3))
    np.testing.assert_allclose(np.bincount(draws[:, 0]) / 600, 1 / 3, atol=0.08)
    left = 1.0 - K[0] ** 2
    seconds = draws[draws[:, 0] == 0, 1]
    np.testing.assert_allclose(np.bincount(seconds, minlength=3) / len(seconds), left / left.sum(), atol=0.12)


# K-medoids


def test_k_medoids_finds_the_optimum_of_a_small_case(rng):
    X = rng.normal(size=(12, 2))
    D = cdist(X, X)
    best = min(combinations(range(12), 3), key=lambda chosen: D[:, chosen].min(axis=1).sum())
    assert sorted(run("K-medoids", X, 3)) == list(best)


# M-kmeans and Précis


def test_manifold_k_means_ends_where_every_centre_is_best_in_its_cell(roll):
    lengths = kneighbors_graph(roll, 8, mode="distance").toarray()
    graph = np.maximum(lengths, lengths.T)
    D = mk.geodesics(roll, 8)
    np.testing.assert_allclose(D, floyd_warshall(np.where(graph > 0, graph, np.inf), directed=False), rtol=1e-9)
    start = mk.seeding(D, 6, np.random.default_rng(0))
    centres = mk.lloyd(D, start)
    cells, loss = mk.assigned(D, centres)
    assert loss < mk.assigned(D, start)[1]
    assert loss == pytest.approx((D[centres] ** 2).min(axis=0).sum())
    for number, centre in enumerate(centres):
        cell = np.flatnonzero(cells == number)
        assert centre == min(cell, key=lambda c: (D[cell, c] ** 2).sum())


def test_precis_ratio_is_that_of_the_volumes_before_and_after_a_swap(rng):
    A = rng.normal(size=(8, 40))
    G, chosen = A.T @ A, np.arange(5)
    β = pr.volume_ratios(G, chosen)

    def volume(picks):
        return np.sqrt(np.linalg.det(G[np.ix_(picks, picks)]))

    for i in range(5):
        for j in range(5, 40):
            swapped = chosen.copy()
            swapped[i] = j
            assert β[i, j] == pytest.approx(volume(swapped) / volume(chosen), rel=1e-6)
    assert β.max() > 1.5
    found = pr.more_diverse(G, chosen, 1.5)  # swaps until no swap gains as much
    β = pr.volume_ratios(G, found)
    β[:, found] = 0.0
    assert β.max() <= 1.5
    np.testing.assert_array_equal(pr.more_diverse(G, chosen, np.inf), chosen)


# TED


def test_sequential_ted_takes_the_largest_gain_of_its_objective(roll_kernel):
    K = roll_kernel[:40, :40]

    def value(S):
        return np.trace(K[:, S] @ np.linalg.solve(K[np.ix_(S, S)] + 0.3 * np.eye(len(S)), K[S]))

    found = td.design(K, 8, 0.3).tolist()
    for size in range(8):
        gains = [-np.inf if j in found[:size] else value([*found[:size], j]) for j in range(40)]
        assert found[size] == int(np.argmax(gains))


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


def test_farthest_point_is_farthest_from_all_picks_and_k_means_takes_the_points_nearest_to_its_means(rng):
    X, labels = blobs(rng)
    found = run("farthest point", X, 10)
    for size in range(1, 10):
        assert found[size] == cdist(X, X[found[:size]]).min(axis=1).argmax()
    found = run("k-means", X, 4)
    for j in found:
        cluster = np.flatnonzero(labels == labels[j])
        mean = X[cluster].mean(axis=0)
        assert j == min(cluster, key=lambda i: np.linalg.norm(X[i] - mean))
    np.testing.assert_array_equal(si.nearest_to(np.zeros((2, 1)), np.array([[2.0], [0.5], [-1.0]])), [1, 2])


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


def covered(S, chosen):
    """Σ_i max_{j∈chosen} s_ij."""
    return S[:, chosen].max(axis=1).sum()


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


@pytest.mark.parametrize(("k", "wanted"), [(1, 30.0), (2, 30.0), (6, 10.0), (30, 2.0), (50, 1.5)])
def test_bandwidth_is_that_at_which_a_typical_point_resembles_as_many_as_a_pick_stands_for(rng, k, wanted):
    X = rng.normal(size=(60, 3))
    K = rbf_kernel(X, gamma=fl.bandwidth(X, k, 0))
    assert np.median((K**2).sum(axis=0)) == pytest.approx(wanted, rel=1e-6)


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
