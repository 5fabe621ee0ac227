"""The bound of the cover, against every set of small problems and against an integer program of larger ones."""

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, milp

from mosaic.choosing.bound import bound_of, bounds_for_all
from mosaic.choosing.cover import FacilityLocation, Slots


def random_similarities(rng, n, m):
    """Similarities of some kind: of points on a line or in space, in clusters, with ties, without structure, negative."""
    kind, d = rng.integers(6), int(rng.integers(1, 4))
    X, Y = rng.normal(size=(n, d)), rng.normal(size=(m, d))
    if kind == 1:
        X, Y = np.round(X), np.round(Y)
    if kind == 2:
        Y[:n] = X[:m]
    distances = np.sqrt(((X[:, None] - Y) ** 2).sum(-1))
    S = np.exp(-distances * 10.0 ** rng.uniform(-1, 1))
    if kind == 3:
        S = rng.integers(0, 4, (n, m)) / 3.0
    elif kind == 4:
        S = -distances
    elif kind == 5:
        S = rng.random((n, m)) * 10.0 ** rng.uniform(-6, 3, (n, 1))
    return S.astype(rng.choice([np.float32, np.float64]))


def random_problem(rng, n, m, most):
    """Similarities, weights, slots and picks: in some cases with groups, with copies, with rows that must be chosen or that must
    not; the picks are those of the search, or any, even such as may not be chosen.
    """
    S = random_similarities(rng, n, m)
    weights = rng.choice([np.ones(n), rng.uniform(0, 3, n), rng.integers(0, 3, n).astype(float), 10.0 ** rng.uniform(-4, 4, n)])
    k, twins, of = int(rng.integers(1, most + 1)), np.arange(m), np.zeros(m, np.intp)
    room = np.array([k])
    if rng.random() < 0.4:
        twins = rng.integers(0, max(m - 2, 1), m)
        S = S[:, twins]
    if rng.random() < 0.4:
        of = rng.integers(0, 3, m)
        room = np.array([rng.integers(0, min(2, most // 2) + 1), 1, rng.integers(0, 2)])
    elif rng.random() < 0.3:
        of, room = (rng.random(m) < 0.3).astype(np.intp), np.array([k, 0])  # the second group may not be chosen
    forced = []
    for candidate in rng.permutation(m)[: rng.integers(0, 3)]:
        taken = [*forced, candidate]
        if (np.bincount(of[taken], minlength=len(room)) <= room).all() and len({twins[j] for j in taken}) == len(taken):
            forced = taken
    slots = Slots(of, room, twins, [int(j) for j in forced])
    objective = FacilityLocation(S, weights)
    found = objective.ranked(slots)[0]
    if found and rng.random() < 0.7:
        return S, weights, slots, objective.exchanged(found, slots)
    return S, weights, slots, [int(j) for j in rng.permutation(m)[: max(1, int(room.sum()))]]


def cover(S, weights, sets):
    """Σ_i ω_i max_{j∈J} s_ij of every set J, in more than double precision."""
    return weights.astype(np.longdouble) @ S[:, sets].astype(np.longdouble).max(axis=-1)


def sets_that_may_be_chosen(slots, size):
    m = len(slots.of)
    sets = np.array(list(combinations(range(m), size)), np.intp).reshape(-1, size)
    fits = np.ones(len(sets), dtype=bool)
    for slot, room in enumerate(slots.room):
        fits &= (slots.of[sets] == slot).sum(axis=1) <= room
    for twin in np.unique(slots.twins):
        fits &= (slots.twins[sets] == twin).sum(axis=1) <= 1
    for candidate in slots.forced:
        fits &= (sets == candidate).any(axis=1)
    return sets[fits]


def check_against_every_set(seed):
    rng = np.random.default_rng([39, seed])
    S, weights, slots, picks = random_problem(rng, int(rng.integers(2, 15)), int(rng.integers(2, 13)), 4)
    found = bound_of(S, weights, slots, picks)
    own = cover(S, weights, np.array(picks)[None])[0]
    assert abs(found.value - own) <= 1e-9 * (weights @ np.abs(S).max(axis=1))
    for size in range(1, int(slots.room.sum()) + 1):
        sets = sets_that_may_be_chosen(slots, size)
        if not len(sets):
            continue
        values = cover(S, weights, sets)
        assert values.max() <= found.bound
        as_good = sets[values >= own]
        assert not found.in_no_better[as_good].any()
        assert all(np.isin(np.flatnonzero(found.in_every_best), chosen).all() for chosen in as_good)
        if found.is_only_best and size == len(picks):
            assert {tuple(chosen) for chosen in as_good.tolist()} <= {tuple(sorted(picks))}
        assert values.max() <= bounds_for_all(found.prices, weights, found.thresholds)[size - 1]
    return found


@pytest.mark.parametrize("start", range(0, 300, 50))
def test_no_set_covers_more_than_the_bound(start):
    found = [check_against_every_set(seed) for seed in range(start, start + 50)]
    assert sum(bound.is_only_best for bound in found) >= 5
    assert sum(bound.in_no_better.any() for bound in found) >= 10
    assert sum(bound.in_every_best.any() for bound in found) >= 5


@pytest.mark.slow
@pytest.mark.parametrize("start", range(300, 2300, 100))
def test_no_set_covers_more_than_the_bound_in_many_problems(start):
    for seed in range(start, start + 100):
        check_against_every_set(seed)


def best_set(S, weights, slots):
    """max Σ_ij ω_i s_ij x_ij, x_ij ≤ y_j, Σ_j x_ij = 1, y within the slots: an integer program, solved by HiGHS."""
    n, m = S.shape
    gains = (weights[:, None] * S).ravel()
    choose = sp.kron(np.ones((n, 1)), sp.eye(m))
    within = sp.csr_array((np.ones(m), (slots.of, np.arange(m))), shape=(len(slots.room), m))
    constraints = [
        LinearConstraint(sp.hstack([sp.eye(n * m), -choose]), -np.inf, 0.0),
        LinearConstraint(sp.hstack([sp.kron(sp.eye(n), np.ones((1, m))), sp.csr_array((n, m))]), 1.0, 1.0),
        LinearConstraint(sp.hstack([sp.csr_array((len(slots.room), n * m)), within]), 0.0, slots.room),
    ]
    least = np.zeros(n * m + m)
    least[n * m + np.asarray(slots.forced, np.intp)] = 1.0
    is_whole = np.repeat([0, 1], [n * m, m])
    scale = 1.0 / gains.max()
    found = milp(np.append(-scale * gains, np.zeros(m)), integrality=is_whole, bounds=Bounds(least, 1.0), constraints=constraints)
    assert found.success
    return np.flatnonzero(found.x[n * m :] > 0.5)


def check_against_the_integer_program(seed):
    rng = np.random.default_rng([40, seed])
    n, k = int(rng.integers(20, 61)), int(rng.integers(2, 9))
    X = rng.normal(size=(n, int(rng.integers(1, 5)))) + 4.0 * rng.integers(0, int(rng.integers(1, 5)), (n, 1))
    distances = np.sqrt(((X[:, None] - X) ** 2).sum(-1))
    S = np.exp(-distances / np.median(distances) * rng.uniform(0.5, 4)).astype(rng.choice([np.float32, np.float64]))
    weights = np.ones(n) if rng.random() < 0.5 else rng.uniform(0.1, 3, n)
    of, room = np.zeros(n, np.intp), np.array([k])
    if rng.random() < 0.4:
        of, room = rng.integers(0, 2, n), np.array([k // 2, k - k // 2])
    forced = [] if rng.random() < 0.7 else [int(np.flatnonzero(of == 0)[0])]
    slots = Slots(of, room, np.arange(n), forced)
    objective = FacilityLocation(S, weights)
    picks = objective.exchanged(objective.ranked(slots)[0], slots)
    found, best = bound_of(S, weights, slots, picks), best_set(S.astype(float), weights, slots)
    value = cover(S, weights, best[None])[0]
    assert value <= found.bound
    assert not found.in_no_better[best].any() or value < cover(S, weights, np.array(picks)[None])[0]
    if found.is_only_best:
        assert sorted(picks) == best.tolist()
    return float(found.bound / value - 1.0), found.is_only_best


def test_the_bound_is_true_and_tight_beside_an_integer_program():
    excess, is_only_best = zip(*(check_against_the_integer_program(seed) for seed in range(20)), strict=True)
    assert np.median(excess) < 1e-3
    assert max(excess) < 0.02
    assert sum(is_only_best) >= 5


@pytest.mark.slow
@pytest.mark.parametrize("start", range(20, 520, 50))
def test_the_bound_is_true_and_tight_beside_many_integer_programs(start):
    excess, _ = zip(*(check_against_the_integer_program(seed) for seed in range(start, start + 50)), strict=True)
    assert np.median(excess) < 1e-3
    assert max(excess) < 0.02


@pytest.mark.parametrize("seed", range(20))
def test_any_thresholds_bound_every_number_of_picks(seed):
    rng = np.random.default_rng([41, seed])
    S, weights = random_similarities(rng, 9, 8), rng.uniform(0, 2, 9)
    u = rng.normal(size=9)
    bounds = bounds_for_all(weights @ np.maximum(S - u[:, None], 0.0), weights, u)
    for k in range(1, 9):
        sets = np.array(list(combinations(range(8), k)))
        assert cover(S, weights, sets).max() <= bounds[k - 1]


def test_the_price_of_a_candidate_is_what_it_has_above_the_thresholds():
    rng = np.random.default_rng(0)
    S, weights = rng.random((30, 20)), rng.uniform(0, 2, 30)
    found = bound_of(S, weights, Slots.free(20, 3), [0, 1, 2])
    np.testing.assert_allclose(found.prices, weights @ np.maximum(S - found.thresholds[:, None], 0.0), rtol=1e-12)


def test_similarities_that_differ_by_the_last_bit_are_told_apart():
    for seed in range(300):
        rng = np.random.default_rng([42, seed])
        n, m, k = int(rng.integers(3, 9)), int(rng.integers(4, 8)), int(rng.integers(2, 4))
        S = (0.5 + rng.integers(0, 4, (n, m)) * 2.0**-24).astype(np.float32)
        found = bound_of(S, np.ones(n), Slots.free(m, k), rng.permutation(m)[:k].tolist())
        assert cover(S, np.ones(n), np.array(list(combinations(range(m), k)))).max() <= found.bound


def test_one_pick_of_one_candidate_is_the_only_best():
    found = bound_of(np.array([[0.5], [1.0]]), np.ones(2), Slots.free(1, 1), [0])
    assert found.is_only_best
    assert found.value == 1.5
    assert 0 <= found.gap < 1e-12


def test_without_weight_nothing_is_missed():
    found = bound_of(np.random.default_rng(0).random((5, 4)), np.zeros(5), Slots.free(4, 2), [0, 1])
    assert (found.value, found.bound, found.gap) == (0, 0, 0)


def test_equal_rows_all_cover_the_same():
    found = bound_of(np.ones((5, 4)), np.ones(5), Slots.free(4, 2), [0, 1])
    assert 0 <= found.gap < 1e-12
    assert not found.is_only_best
