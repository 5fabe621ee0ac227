"""Choosing: lazy greedy against plain greedy and the true optimum, shares against the metrics, rules written out again."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from mosaic.choosing.cover import (
    DOUBLE,
    ExplainedShare,
    Slots,
    _exchange_gains,
    _nearest_picks,
    cover,
    fill_slots,
    improve,
    knee,
    prune_similar,
    similarities,
)
from mosaic.exceptions import InvalidInputError
from mosaic.kernels import make_kernel
from mosaic.metrics import explained_share, unexplained

# Similarities


@pytest.mark.parametrize("name", ["rbf", "laplacian", "linear", "polynomial"])
def test_similarity_is_twice_the_kernel_over_both_lengths_and_never_negative(rng, name):
    X = rng.normal(size=(30, 3))
    kernel = make_kernel(X, name)
    K = kernel.block(slice(None), np.arange(30))
    rows, columns = np.array([3, 1, 29]), np.array([0, 1, 7, 8])
    expected = [[max(2 * K[i, j] / (K[i, i] + K[j, j]), 0.0) for j in columns] for i in rows]
    np.testing.assert_allclose(similarities(kernel, rows, columns), expected, rtol=1e-12)


def test_similarity_of_a_point_to_itself_is_one_and_to_its_opposite_zero():
    kernel = make_kernel(np.array([[1.0, 2.0], [-1.0, -2.0]]), "linear")
    np.testing.assert_allclose(similarities(kernel, np.arange(2), np.arange(2)), np.eye(2))


def test_points_without_length_share_nothing_even_with_one_another():
    kernel = make_kernel(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]]), "linear")
    np.testing.assert_array_equal(similarities(kernel, np.arange(3), np.arange(3)), np.diag([0.0, 1.0, 0.0]))


def test_similarities_do_not_depend_on_blocks(rng, monkeypatch):
    kernel = make_kernel(rng.normal(size=(40, 2)), "linear")
    at_once = similarities(kernel, np.arange(40), np.arange(0, 40, 3))
    monkeypatch.setattr(
        "mosaic.choosing.cover.row_blocks", lambda n, _: (slice(i, min(i + 3, n)) for i in range(0, n, 3))
    )
    np.testing.assert_allclose(similarities(kernel, np.arange(40), np.arange(0, 40, 3)), at_once, rtol=1e-12)


@pytest.mark.parametrize("name", ["rbf", "linear"])
def test_columns_of_similarities_are_contiguous_and_many_are_kept_in_single_precision(rng, name, monkeypatch):
    kernel = make_kernel(rng.normal(size=(40, 3)), name)
    few = similarities(kernel, np.arange(40), np.arange(10))
    monkeypatch.setattr("mosaic.choosing.cover.DOUBLE", 399)
    many = similarities(kernel, np.arange(40), np.arange(10))
    assert (few.dtype, many.dtype) == (np.float64, np.float32)
    assert few.flags.f_contiguous
    assert many.flags.f_contiguous
    np.testing.assert_allclose(many, few, atol=1e-6)
    assert DOUBLE == 2**20


# Cover


def value(S, weights, chosen):
    return float(weights @ S[:, list(chosen)].max(axis=1, initial=0.0))


def plain_greedy(S, weights, slots, twins, forced=(), last=None, too_similar=None):
    """Every gain recomputed in every step; the first of the best is taken."""
    chosen, room = [], slots.room.tolist()
    forced = list(forced)
    while True:
        if forced:
            open_ones = [forced.pop(0)]
        else:
            open_ones = [
                c
                for c in range(S.shape[1])
                if room[slots.of[c]] > 0
                and all(twins[c] != twins[d] for d in chosen)
                and (too_similar is None or not any(too_similar[d, c] for d in chosen))
            ]
        if last is not None and not all(last[c] for c in open_ones):
            open_ones = [c for c in open_ones if not last[c]]
        if not open_ones:
            return chosen
        best = max(open_ones, key=lambda c: value(S, weights, [*chosen, c]))
        room[slots.of[best]] -= 1
        chosen.append(best)


def instance(seed, n_targets=25, n_candidates=12):
    rng = np.random.default_rng(seed)
    S = rng.uniform(size=(n_targets, n_candidates)) ** 3
    return S, rng.uniform(0.5, 2.0, n_targets), rng


def picks_of(S, weights, slots, **wishes):
    wishes.setdefault("twins", np.arange(S.shape[1]))
    return list(cover(S, weights, slots, **wishes))


@pytest.mark.parametrize("seed", range(20))
def test_lazy_greedy_chooses_what_plain_greedy_chooses(seed):
    S, weights, rng = instance(seed)
    slots = Slots(rng.permutation(np.repeat([0, 1, 2], 4)), np.array([2, 1, 4]))
    twins = rng.integers(0, 9, 12)
    near = rng.uniform(size=(12, 12)) < 0.08
    too_similar = near | near.T
    for wishes in (
        {},
        {"twins": twins},
        {"too_similar": too_similar},
        {"last": rng.uniform(size=12) < 0.5},
        {"twins": twins, "too_similar": too_similar, "forced": [int(np.flatnonzero(slots.of == 2)[0])]},
    ):
        found = picks_of(S, weights, slots, **wishes)
        expected = plain_greedy(S, weights, slots, **({"twins": np.arange(12)} | wishes))
        assert [pick.candidate for pick in found] == expected


@pytest.mark.parametrize("seed", range(10))
def test_gain_is_what_the_pick_changes(seed):
    S, weights, _ = instance(seed)
    chosen = []
    for pick in picks_of(S, weights, Slots.free(12, 6), forced=[3]):
        gained = value(S, weights, [*chosen, pick.candidate]) - value(S, weights, chosen)
        assert pick.gain == pytest.approx(gained)
        chosen.append(pick.candidate)
    assert len(chosen) == 6


@pytest.mark.parametrize("seed", range(20))
def test_greedy_reaches_its_guaranteed_share_of_the_optimum(seed):
    S, weights, _ = instance(seed, n_candidates=10)
    for k in (1, 2, 3, 4):
        best = max(value(S, weights, chosen) for chosen in combinations(range(10), k))
        found = value(S, weights, [pick.candidate for pick in picks_of(S, weights, Slots.free(10, k))])
        assert (1 - 1 / np.e) * best <= found <= best * (1 + 1e-12)
        if k == 1:
            assert found == pytest.approx(best)


@pytest.mark.parametrize("seed", range(5))
def test_gains_never_grow_and_a_shorter_answer_is_the_beginning_of_a_longer_one(seed):
    S, weights, _ = instance(seed, n_candidates=40)
    long = picks_of(S, weights, Slots.free(40, 30))
    assert (np.diff([pick.gain for pick in long]) <= 0).all()
    assert picks_of(S, weights, Slots.free(40, 7)) == long[:7]


def test_slots_are_filled_and_never_overfilled():
    S, weights, rng = instance(0, n_candidates=30)
    of = rng.permutation(np.arange(30) % 4)
    room = np.array([3, 0, 5, 2])
    found = picks_of(S, weights, Slots(of, room))
    np.testing.assert_array_equal(np.bincount(of[[pick.candidate for pick in found]], minlength=4), room)
    assert room.tolist() == [3, 0, 5, 2]  # the caller's array is as it was


def test_slot_without_enough_candidates_is_filled_as_far_as_they_go():
    S, weights, _ = instance(0, n_candidates=5)
    found = picks_of(S, weights, Slots(np.array([0, 0, 1, 1, 1]), np.array([4, 1])))
    assert len(found) == 3
    assert {0, 1} < {pick.candidate for pick in found}


def test_of_copies_one_at_most_is_chosen():
    S, weights, _ = instance(1, n_candidates=6)
    S = np.hstack([S, S])
    found = picks_of(S, weights, Slots.free(12, 12), twins=np.tile(np.arange(6), 2))
    assert sorted(pick.candidate for pick in found) == list(range(6))  # the first copy of each


def test_forced_come_first_in_their_order_and_take_a_place():
    S, weights, _ = instance(2)
    worst = int(np.argmin(weights @ S))
    best = int(np.argmax(weights @ S))
    found = [pick.candidate for pick in picks_of(S, weights, Slots.free(12, 4), forced=[worst, 5])]
    assert found[:2] == [worst, 5]
    assert len(found) == 4
    assert best not in (worst, 5)
    assert found[2] == plain_greedy(S, weights, Slots.free(12, 4), np.arange(12), [worst, 5])[2]


def test_the_last_are_chosen_when_nobody_else_is_left():
    S, weights, _ = instance(6)
    last = np.arange(12) < 9
    S[:, 9:] *= 1e-3  # whatever they add
    found = [pick.candidate for pick in picks_of(S, weights, Slots.free(12, 6), last=last)]
    assert set(found[:3]) == {9, 10, 11}
    assert found[3] == int(np.argmax(weights @ np.maximum(S[:, :9] - S[:, 9:].max(axis=1, keepdims=True), 0.0)))


def test_copies_of_and_points_too_similar_to_forced_ones_are_closed():
    S, weights, _ = instance(3)
    twins = np.arange(12)
    twins[4] = twins[7]
    too_similar = np.zeros((12, 12), dtype=bool)
    too_similar[7, 2] = too_similar[2, 7] = True
    found = picks_of(S, weights, Slots.free(12, 12), twins=twins, forced=[7], too_similar=too_similar)
    assert sorted(pick.candidate for pick in found) == [0, 1, 3, 5, 6, 7, 8, 9, 10, 11]


def test_of_two_that_are_too_similar_the_better_is_chosen():
    S, weights, _ = instance(4)
    a, b = np.argsort(-(weights @ S))[:2]
    too_similar = np.zeros((12, 12), dtype=bool)
    too_similar[a, b] = too_similar[b, a] = True
    found = [pick.candidate for pick in picks_of(S, weights, Slots.free(12, 12), too_similar=too_similar)]
    assert found[0] == a
    assert b not in found
    assert len(found) == 11


def test_among_equal_gains_the_first_candidate_wins():
    S = np.array([[0.5, 0.9, 0.9, 0.0], [0.5, 0.1, 0.1, 1.0]])
    found = [pick.candidate for pick in picks_of(S, np.ones(2), Slots.free(4, 4))]
    assert found == [0, 3, 1, 2]  # all add 1 at first; then 0.5 of target 1; then 0.4; then nothing
    assert [pick.candidate for pick in picks_of(np.zeros((3, 5)), np.ones(3), Slots.free(5, 3))] == [0, 1, 2]


def test_weight_draws_the_choice():
    S = np.eye(3)
    found = [pick.candidate for pick in picks_of(S, np.array([1.0, 3.0, 2.0]), Slots.free(3, 3))]
    assert found == [1, 2, 0]


def test_copies_of_targets_count_like_weights(rng):
    S, _, _ = instance(5)
    times = rng.integers(0, 4, len(S))
    few = picks_of(S, times.astype(float), Slots.free(12, 5))
    many = picks_of(np.repeat(S, times, axis=0), np.ones(times.sum()), Slots.free(12, 5))
    assert [pick.candidate for pick in few] == [pick.candidate for pick in many]
    np.testing.assert_allclose([pick.gain for pick in few], [pick.gain for pick in many])


def test_no_places_give_no_picks():
    S, weights, _ = instance(0)
    assert picks_of(S, weights, Slots.free(12, 0)) == []


# Exchanges


def exchanges(picks, slots, twins, fixed, n_candidates):
    """All sets with one pick exchanged that obey slots, twins and fixed ones."""
    for place, old in enumerate(picks):
        for new in range(n_candidates):
            taken = {twins[p] for p in picks}
            if old not in fixed and slots.of[new] == slots.of[old] and twins[new] not in taken:
                yield [*picks[:place], new, *picks[place + 1 :]]


@pytest.mark.parametrize("seed", range(30))
def test_improved_set_is_no_worse_than_its_start_obeys_all_wishes_and_no_exchange_betters_it(seed):
    S, weights, rng = instance(seed)
    slots = Slots(rng.permutation(np.repeat([0, 1, 2], 4)), np.array([2, 1, 3]))
    twins = np.arange(12)
    twins[rng.integers(0, 12)] = twins[rng.integers(0, 12)]
    S = S[:, twins]  # twins look the same, and may stand in different slots
    fixed = [int(rng.choice(np.flatnonzero(slots.of == 2)))]
    start = [pick.candidate for pick in picks_of(S, weights, slots, twins=twins, forced=fixed)]
    anyhow = [*fixed]
    for slot, room in enumerate([2, 1, 2]):
        for c in rng.permutation(np.flatnonzero(slots.of == slot)):
            if room and twins[c] not in twins[anyhow]:
                anyhow.append(int(c))
                room -= 1
    for chosen in (start, anyhow):
        before = list(chosen)
        found = improve(S, weights, chosen, slots, twins=twins, fixed=fixed)
        assert chosen == before  # the caller's list is as it was
        assert value(S, weights, found) >= value(S, weights, chosen)
        assert found[0] == fixed[0]
        np.testing.assert_array_equal(slots.of[found], slots.of[chosen])
        assert len(set(twins[found].tolist())) == len(found)
        best = max(value(S, weights, other) for other in exchanges(found, slots, twins, fixed, 12))
        assert best <= value(S, weights, found) * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_gain_of_an_exchange_is_the_difference_of_the_two_sums(seed):
    S, weights, _ = instance(seed)
    picks = [7, 2, 5, 11]
    first, second, H, lost = _nearest_picks(S, picks, weights)
    gains = _exchange_gains(S.T, weights, H, first, second, lost)
    for candidate in range(12):
        for place in range(4):
            other = [*picks[:place], candidate, *picks[place + 1 :]]
            assert gains[candidate, place] == pytest.approx(
                value(S, weights, other) - value(S, weights, picks), abs=1e-12
            )


@pytest.mark.parametrize("seed", range(5))
def test_blocks_of_candidates_and_single_precision_do_not_change_that_nothing_betters_the_result(seed, monkeypatch):
    S, weights, _ = instance(seed, n_targets=60, n_candidates=30)
    monkeypatch.setattr("mosaic.choosing.cover.TOGETHER", 4)
    for T in (S, S.astype(np.float32)):
        found = improve(T, weights, [0, 1, 2, 3], Slots.free(30, 4), twins=np.arange(30))
        best = max(value(S, weights, other) for other in exchanges(found, Slots.free(30, 4), np.arange(30), (), 30))
        assert best <= value(S, weights, found) * (1 + 1e-5)


def test_those_that_are_barred_are_never_taken_in_and_may_stay():
    S, weights, _ = instance(4)
    best = improve(S, weights, [0, 1, 2], Slots.free(12, 3), twins=np.arange(12))
    barred = np.isin(np.arange(12), best)
    found = improve(
        S, weights, [c for c in range(12) if c not in best][:3], Slots.free(12, 3), twins=np.arange(12), barred=barred
    )
    assert not set(found) & set(best)
    assert improve(S, weights, best, Slots.free(12, 3), twins=np.arange(12), barred=barred) == best


def test_exchanges_improve_what_greedy_finds_and_never_pass_the_optimum():
    better = optimal = 0
    for seed in range(30):
        S, weights, _ = instance(seed, n_candidates=10)
        greedy = [pick.candidate for pick in picks_of(S, weights, Slots.free(10, 3))]
        found = improve(S, weights, greedy, Slots.free(10, 3), twins=np.arange(10))
        best = max(value(S, weights, chosen) for chosen in combinations(range(10), 3))
        assert value(S, weights, greedy) <= value(S, weights, found) <= best * (1 + 1e-12)
        better += value(S, weights, found) > value(S, weights, greedy) * (1 + 1e-9)
        optimal += value(S, weights, found) >= best * (1 - 1e-12)
    assert better >= 3
    assert optimal >= 20


@pytest.mark.parametrize("seed", range(10))
def test_one_pick_becomes_the_best_one(seed):
    S, weights, _ = instance(seed)
    worst = int(np.argmin(weights @ S))
    found = improve(S, weights, [worst], Slots.free(12, 1), twins=np.arange(12))
    assert found == [int(np.argmax(weights @ S))]


def test_what_is_fixed_or_without_an_alternative_stays():
    S, weights, _ = instance(0)
    alone, everybody = np.arange(12), list(range(12))
    assert improve(S, weights, [7, 2, 5], Slots.free(12, 3), twins=alone, fixed=[2, 5, 7]) == [7, 2, 5]
    assert improve(S, weights, everybody, Slots.free(12, 12), twins=alone) == everybody
    assert improve(S, weights, [], Slots.free(12, 0), twins=alone) == []
    assert improve(np.zeros((4, 5)), np.ones(4), [3, 1], Slots.free(5, 2), twins=np.arange(5)) == [3, 1]
    own_slot = Slots(np.arange(12), np.ones(12, np.intp))
    assert improve(S, weights, [7, 2, 5], own_slot, twins=alone) == [7, 2, 5]


def test_copy_of_a_pick_never_takes_the_place_of_another():
    """Not even if it were better, which a true copy is not: who is a copy is told, not read off the similarities."""
    S = np.array([[1.0, 0.9, 0.1], [0.9, 0.8, 0.1], [0.0, 0.7, 0.2]])
    assert improve(S, np.ones(3), [0, 2], Slots.free(3, 2), twins=np.array([0, 0, 1])) == [0, 2]
    assert sorted(improve(S, np.ones(3), [0, 2], Slots.free(3, 2), twins=np.arange(3))) == [0, 1]


def test_exchange_that_changes_nothing_but_rounding_is_not_made():
    S, weights, _ = instance(3)
    best = improve(S, weights, [0, 1, 2], Slots.free(12, 3), twins=np.arange(12))
    nearly = np.hstack([S, S[:, best] * (1 + 1e-13)])
    assert improve(nearly, weights, best, Slots.free(15, 3), twins=np.arange(15)) == best


@pytest.mark.parametrize("factor", [3.0, 7.0, 11.0, 13.0])
def test_scale_of_weights_does_not_decide_on_exchanges(factor):
    """A lattice is full of exchanges that are equally good."""
    X = np.stack(np.meshgrid(np.arange(5.0), np.arange(4.0)), axis=-1).reshape(-1, 2)
    S = np.exp(-0.3 * ((X[:, None] - X[None]) ** 2).sum(-1))
    plain, scaled = (
        improve(S, np.full(20, f), [0, 1, 2], Slots.free(20, 3), twins=np.arange(20)) for f in (1.0, factor)
    )
    assert plain == scaled


def test_weight_draws_exchanges():
    S = np.eye(3)
    assert improve(S, np.array([1.0, 3.0, 2.0]), [0], Slots.free(3, 1), twins=np.arange(3)) == [1]
    assert set(improve(S, np.array([1.0, 3.0, 2.0]), [0, 2], Slots.free(3, 2), twins=np.arange(3))) == {1, 2}


# Explained share


def shares_of(kernel, targets, weights, picks):
    share = ExplainedShare(kernel, targets, weights)
    assert share.value == pytest.approx(0.0)
    return [share.add(int(pick)) for pick in picks]


@pytest.mark.parametrize(
    ("name", "settings"),
    [("rbf", {"gamma": 0.5}), ("laplacian", {}), ("polynomial", {}), ("linear", {}), ("cosine", {})],
)
def test_explained_share_is_that_of_the_metrics_after_every_pick(rng, name, settings):
    X = rng.normal(size=(90, 5))
    kernel = make_kernel(X, name, **settings)
    targets, weights = rng.permutation(90)[:60], rng.uniform(0.2, 2.0, 60)
    everyone = np.zeros(90)
    everyone[targets] = weights
    picks = rng.permutation(90)[:40]  # for linear ones all but five depend on others; room is made twice
    expected = [explained_share(kernel, picks[: k + 1], sample_weight=everyone) for k in range(40)]
    np.testing.assert_allclose(shares_of(kernel, targets, weights, picks), expected, atol=1e-9)


def test_copy_of_a_pick_explains_nothing_more_and_disturbs_nothing_after_it(rng):
    X = rng.normal(size=(30, 2))
    X[[5, 17]] = X[3]
    kernel = make_kernel(X, "rbf", gamma=1.0)
    everyone = np.arange(30)
    found = shares_of(kernel, everyone, np.ones(30), [3, 5, 8, 17, 9, 10])
    expected = shares_of(kernel, everyone, np.ones(30), [3, 8, 9, 10])
    assert found[0] == found[1]
    assert found[2] == found[3]
    np.testing.assert_allclose([found[0], found[2], found[4], found[5]], expected, rtol=1e-12)


def test_share_never_falls_and_is_one_in_the_end(rng):
    kernel = make_kernel(rng.normal(size=(40, 2)), "rbf", gamma=2.0)
    found = shares_of(kernel, np.arange(40), np.ones(40), rng.permutation(40))
    assert (np.diff(found) >= 0).all()
    assert found[-1] == pytest.approx(1.0)


def test_nearly_dependent_picks_keep_the_share_accurate():
    X = np.linspace(0.0, 1.0, 60)[:, None]  # so smooth that a dozen picks say everything
    kernel = make_kernel(X, "rbf", gamma=1.0)
    picks = np.random.default_rng(1).permutation(60)[:30]
    found = shares_of(kernel, np.arange(60), np.ones(60), picks)
    for k in (5, 15, 30):
        left = unexplained(kernel, picks[:k]).sum() / 60
        assert found[k - 1] == pytest.approx(1.0 - left, abs=1e-9)
    assert max(found) <= 1.0


def test_points_without_length_are_explained_by_anything():
    kernel = make_kernel(np.array([[0.0, 0.0], [1.0, 0.0]]), "linear")
    assert ExplainedShare(kernel, np.array([0]), np.ones(1)).value == 1.0
    assert shares_of(kernel, np.arange(2), np.ones(2), [0, 1]) == [0.0, 1.0]


# Knee


def test_knee_of_a_curve_that_breaks_is_where_it_breaks():
    for k in (1, 2, 5, 9):
        curve = np.minimum(np.arange(1, 11) / k, 1.0) + 0.001 * np.arange(1, 11)
        assert knee(curve) == k


def test_knee_is_where_a_smooth_curve_is_as_steep_as_its_chord():
    t = np.arange(1, 101) / 100
    assert knee(np.sqrt(t)) == 25  # d/dt √t = 1 at t = 1/4
    assert knee(np.log1p(9 * t)) == pytest.approx(100 * (1 / np.log(10) - 1 / 9), abs=1)


def test_knee_does_not_depend_on_the_unit(rng):
    curve = np.cumsum(np.sort(rng.uniform(size=50))[::-1])
    assert knee(1000.0 * curve) == knee(curve)


def test_knee_of_curves_without_one():
    assert knee(np.zeros(0)) == 0
    assert knee(np.array([0.3])) == 1
    assert knee(np.full(8, 0.7)) == 1
    assert knee(np.zeros(5)) == 1
    assert knee(np.arange(1.0, 9.0)) == 1


# Pruning


def plain_pruning(distances, share):
    """The rule, said once more: from each that stays, those after it in the last 1 − share of its distances leave."""
    left = list(range(len(distances)))
    for i in range(len(distances)):
        if i not in left:
            continue
        total = sum(distances[i])
        by_distance = sorted(range(len(distances)), key=lambda j: (-distances[i][j], j))
        summed, near = 0.0, []
        for j in by_distance:
            summed += distances[i][j]
            if summed > share * total or total == 0:
                near.append(j)
        left = [j for j in left if j <= i or j not in near]
    return left


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("share", [0.3, 0.8, 0.95, 0.999])
def test_pruning_follows_its_rule(seed, share):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(25, 2))[rng.integers(0, 25, 30)]  # with copies
    distances = np.linalg.norm(X[:, None] - X, axis=2)
    found = prune_similar(distances, share)
    assert found.tolist() == plain_pruning(distances, share)
    assert found[0] == 0


@pytest.mark.parametrize("share", [0.5, 0.95, 0.999999])
def test_of_copies_the_most_influential_stays_at_most(rng, share):
    owner = rng.integers(0, 15, 40)
    X = rng.normal(size=(15, 2))[owner]
    kept = prune_similar(np.linalg.norm(X[:, None] - X, axis=2), share)
    first = np.unique(owner, return_index=True)[1]
    assert set(kept) <= set(first)
    assert prune_similar(np.zeros((4, 4)), share).tolist() == [0]
    assert prune_similar(np.zeros((1, 1)), share).tolist() == [0]


def test_of_three_tight_pairs_the_more_influential_halves_stay():
    X = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0], [0.1, 0.0], [10.1, 0.0], [0.0, 10.1]])
    assert prune_similar(np.linalg.norm(X[:, None] - X, axis=2), 0.999).tolist() == [0, 1, 2]


def test_larger_share_leaves_more(rng):
    X = rng.normal(size=(40, 3))
    distances = np.linalg.norm(X[:, None] - X, axis=2)
    sizes = [len(prune_similar(distances, share)) for share in (0.1, 0.5, 0.9, 0.99, 0.9999)]
    assert sizes == sorted(sizes)
    assert len(set(sizes)) > 2


def test_share_of_one_prunes_nothing():
    X = np.array([[0.0], [5.0], [0.0], [9.0]])
    assert prune_similar(np.abs(X - X.T), 1.0).tolist() == [0, 1, 2, 3]


# Slots for shares


def test_numbers_add_up_and_are_within_one_of_exact(rng):
    for _ in range(200):
        shares = dict(enumerate(rng.uniform(0.0, 1.0, rng.integers(1, 9)) ** 3 + 1e-3))
        k = int(rng.integers(0, 50))
        found = fill_slots(shares, k)
        total = sum(shares.values())
        assert list(found) == list(shares)
        assert sum(found.values()) == k
        assert all(abs(found[name] - k * share / total) < 1 for name, share in shares.items())


def test_no_other_numbers_are_nearer_to_the_shares(rng):
    for _ in range(30):
        shares, k = rng.uniform(size=3), int(rng.integers(1, 8))
        exact = k * shares / shares.sum()
        found = np.array(list(fill_slots(dict(enumerate(shares)), k).values()))
        others = [np.array([a, b, k - a - b]) for a in range(k + 1) for b in range(k + 1 - a)]
        assert np.abs(found - exact).sum() == pytest.approx(min(np.abs(other - exact).sum() for other in others))


def test_whole_numbers_stay_as_they_are():
    assert fill_slots({"a": 0.1, "b": 0.2, "c": 0.7}, 10) == {"a": 1, "b": 2, "c": 7}
    assert fill_slots({"a": 3.0, "b": 0.0, "c": 3.0}, 4) == {"a": 2, "b": 0, "c": 2}


def test_equal_remainders_are_rounded_up_in_the_order_given():
    assert fill_slots(dict.fromkeys("abc", 1.0), 4) == {"a": 2, "b": 1, "c": 1}
    assert fill_slots(dict.fromkeys("abc", 1.0), 5) == {"a": 2, "b": 2, "c": 1}
    # 4/3 and 1/3 have the same remainder, though not in floating point.
    assert fill_slots({"a": 4.0, "b": 1.0, "c": 1.0}, 2) == {"a": 2, "b": 0, "c": 0}


@pytest.mark.parametrize("shares", [{}, {"a": 0.0}, {"a": 0.0, "b": 0.0}, {"a": float("nan")}])
def test_shares_without_a_sum_are_refused(shares):
    with pytest.raises(InvalidInputError, match="positive sum"):
        fill_slots(shares, 3)
