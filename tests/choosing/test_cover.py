"""The cover: lazy greedy against plain greedy and the true optimum, exchanges against all exchanges."""

from dataclasses import replace

import numpy as np
import pytest

from mosaic.choosing.choose import in_order
from mosaic.choosing.cover import Cover, FacilityLocation, Slots
from mosaic.kernels import make_kernel

# The cover


def test_one_pick_is_covered_as_two_and_equal_points_and_more_picks_than_points_have_a_reach(rng):
    def cover(X, k):
        return Cover.of(make_kernel(X, "rbf"), np.arange(len(X)), np.ones(len(X)), k)

    X = rng.normal(size=(20, 2))
    assert cover(X, 1).reach == cover(X, 2).reach
    np.testing.assert_array_equal(cover(np.zeros((5, 2)), 2).between(np.arange(5), np.arange(5)), 1.0)
    assert 0 < cover(np.repeat(X[:4], 5, axis=0), 15).reach < np.inf


@pytest.mark.parametrize("k", [2, 5, 40])
@pytest.mark.parametrize("name", ["rbf", "laplacian", "linear", "cosine", "precomputed"])
def test_row_resembles_as_many_rows_as_a_pick_stands_for(rng, name, k):
    X, everyone, weights = rng.normal(size=(120, 4)), np.arange(120), rng.uniform(0.5, 2.0, 120)
    kernel = make_kernel(X @ X.T if name == "precomputed" else X, name)
    similar = np.asarray(Cover.of(kernel, everyone, weights, k).between(everyone, everyone))
    np.fill_diagonal(similar, 0.0)  # the row itself is not counted
    assert np.median(similar**2 @ weights) == pytest.approx(weights.sum() / k, rel=0.01)


@pytest.mark.parametrize("name", ["rbf", "laplacian", "linear", "cosine"])
def test_similarity_of_the_cover_falls_exponentially_with_the_distance(rng, name):
    X = rng.normal(size=(30, 3))
    cover = Cover(make_kernel(X, name), 0.7)
    if name == "cosine":
        X = X / np.linalg.norm(X, axis=1, keepdims=True)
    D = np.linalg.norm(X[:, None] - X, ord=1 if name == "laplacian" else 2, axis=2)
    np.testing.assert_allclose(cover.between(np.arange(30), np.arange(10)), np.exp(-D[:, :10] / 0.7), atol=1e-7)


@pytest.mark.parametrize("name", ["rbf", "linear"])
def test_columns_of_similarities_are_contiguous_and_many_are_kept_in_single_precision(rng, name):
    cover = Cover(make_kernel(rng.normal(size=(300, 3)), name), 1.0)
    few, many = (cover.between(np.arange(300), np.arange(columns)) for columns in (200, 300))
    assert (few.dtype, many.dtype) == (np.float64, np.float32)
    assert few.flags.f_contiguous
    assert many.flags.f_contiguous
    np.testing.assert_allclose(many[:, :200], few, atol=1e-6)


@pytest.mark.parametrize("name", ["rbf", "laplacian"])
def test_similarities_in_single_precision_do_not_depend_on_the_unit(rng, name):
    X, everyone = rng.normal(size=(300, 3)), np.arange(300)
    here, there = (Cover(make_kernel(unit * X, name), unit).between(everyone, everyone) for unit in (1.0, 1e20))
    np.testing.assert_allclose(there, here, atol=1e-6)


# Similar


def value(S, weights, chosen):
    return float(weights @ S[:, list(chosen)].max(axis=1, initial=0.0))


def plain_greedy(S, weights, slots, twins, forced=()):
    """Every gain recomputed in every step; the first of the best is taken."""
    chosen, room = [], slots.room.tolist()
    forced = list(forced)
    while True:
        if forced:
            open_ones = [forced.pop(0)]
        else:
            open_ones = [c for c in range(S.shape[1]) if room[slots.of[c]] > 0 and all(twins[c] != twins[d] for d in chosen)]
        if not open_ones:
            return chosen
        best = max(open_ones, key=lambda c: value(S, weights, [*chosen, c]))
        room[slots.of[best]] -= 1
        chosen.append(best)


def instance(seed, n_targets=25, n_candidates=12):
    rng = np.random.default_rng(seed)
    S = rng.uniform(size=(n_targets, n_candidates)) ** 3
    return S, rng.uniform(0.5, 2.0, n_targets), rng


def slots_for(of, room):
    return replace(Slots.free(len(of), 0), of=np.asarray(of), room=np.asarray(room))


def picks_of(S, weights, slots, **rules):
    return list(zip(*FacilityLocation(S, weights).ranked(replace(slots, **rules)), strict=True))


def improve(S, weights, chosen, slots, **rules):
    return FacilityLocation(S, weights).exchanged(chosen, replace(slots, **rules))


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("room", [[2, 1, 4], [0, 6, 3], [0, 0, 0]], ids=str)  # the second slot has four candidates
@pytest.mark.parametrize("seed", range(10))
def test_lazy_greedy_chooses_what_plain_greedy_chooses(seed, room, ties):
    S, weights, rng = instance(seed)
    if ties:
        S, weights = np.round(10.0 * S), np.ones(len(S))  # whole numbers, whose sums are exact
    slots = slots_for(rng.permutation(np.repeat([0, 1, 2], 4)), room)
    twins, last = rng.integers(0, 9, 12), np.flatnonzero(slots.of == 2).tolist()
    for rules in ({}, {"twins": twins}, {"twins": twins, "forced": last[:1]}, {"forced": last[1:3][::-1]}):
        if room[2] < len(rules.get("forced", ())):
            continue
        found = picks_of(S, weights, slots, **rules)
        expected = plain_greedy(S, weights, slots, **({"twins": np.arange(12)} | rules))
        assert [candidate for candidate, _ in found] == expected
        assert slots.room.tolist() == room  # the caller's array is as it was


@pytest.mark.parametrize("seed", range(5))
def test_gain_is_what_the_pick_changes_and_falls_and_a_shorter_answer_is_the_beginning_of_a_longer_one(seed):
    S, weights, _ = instance(seed, n_candidates=40)
    long = picks_of(S, weights, Slots.free(40, 30))
    values = [value(S, weights, [candidate for candidate, _ in long[:k]]) for k in range(31)]
    np.testing.assert_allclose([gain for _, gain in long], np.diff(values))
    assert (np.diff([gain for _, gain in long]) <= 0).all()
    assert picks_of(S, weights, Slots.free(40, 7)) == long[:7]


# Exchanges


def exchanges(picks, slots, twins, fixed, n_candidates):
    """All sets with one pick exchanged that obey slots, twins and fixed ones."""
    for place, old in enumerate(picks):
        for new in range(n_candidates):
            taken = {twins[p] for p in picks}
            if old not in fixed and slots.of[new] == slots.of[old] and twins[new] not in taken:
                yield [*picks[:place], new, *picks[place + 1 :]]


@pytest.mark.parametrize("seed", range(30))
def test_improved_set_is_no_worse_than_its_start_obeys_all_rules_and_no_exchange_betters_it(seed):
    S, weights, rng = instance(seed)
    slots = slots_for(rng.permutation(np.repeat([0, 1, 2], 4)), np.array([2, 1, 3]))
    twins = np.arange(12)
    twins[rng.integers(0, 12)] = twins[rng.integers(0, 12)]
    S = S[:, twins]  # twins look the same, and may stand in different slots
    fixed = [int(rng.choice(np.flatnonzero(slots.of == 2)))]
    start = [candidate for candidate, _ in picks_of(S, weights, slots, twins=twins, forced=fixed)]
    anyhow = [*fixed]
    for slot, room in enumerate([2, 1, 2]):
        for c in rng.permutation(np.flatnonzero(slots.of == slot)):
            if room and twins[c] not in twins[anyhow]:
                anyhow.append(int(c))
                room -= 1
    for chosen in (start, anyhow):
        before = list(chosen)
        found = improve(S, weights, chosen, slots, twins=twins, forced=fixed)
        assert chosen == before  # the caller's list is as it was
        assert value(S, weights, found) >= value(S, weights, chosen)
        assert found[0] == fixed[0]
        np.testing.assert_array_equal(slots.of[found], slots.of[chosen])
        assert len(set(twins[found].tolist())) == len(found)
        best = max(value(S, weights, other) for other in exchanges(found, slots, twins, fixed, 12))
        assert best <= value(S, weights, found) * (1 + 1e-9)


@pytest.mark.parametrize("n_picks", [1, 2, 40])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gains_of_exchanges_are_what_each_exchange_changes_whatever_exchanges_were_made_before(rng, n_picks, dtype):
    """Similarities in tenths have many ties and zeros; places of picks after an exchange are those of comparing anew."""
    S = np.asfortranarray(np.maximum(rng.integers(-5, 11, (70, 60)) / 10.0, 0.0), dtype)
    weights, picks = rng.integers(1, 4, 70).astype(dtype), rng.permutation(60)[:n_picks]
    location = FacilityLocation(S, weights)
    nearest = location.nearest(picks)
    for _ in range(12):
        candidates = np.setdiff1d(np.arange(60), picks)
        gains = location.exchange_gains(nearest, slice(None))[candidates]
        for place in range(n_picks):
            others = np.delete(picks, place)
            expected = [value(S, weights, [*others, c]) - value(S, weights, picks) for c in candidates]
            np.testing.assert_allclose(gains[:, place], expected, atol=1e-4 if dtype == np.float32 else 1e-10)
        place = int(rng.integers(n_picks))
        old, picks[place] = int(picks[place]), int(rng.choice(candidates))
        nearest = location.after_exchange(nearest, picks, place, old)
        for ours, anew in zip(nearest, location.nearest(picks), strict=True):
            np.testing.assert_array_equal(ours, anew)  # None is equal to None


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_many_candidates_are_weighed_in_blocks_in_either_precision(dtype):
    S, weights, _ = instance(0, n_targets=60, n_candidates=600)
    found = improve(S.astype(dtype), weights, [0, 1, 2, 3], Slots.free(600, 4))
    best = max(value(S, weights, other) for other in exchanges(found, Slots.free(600, 4), np.arange(600), (), 600))
    assert best <= value(S, weights, found) * (1 + 1e-5)


def test_what_is_fixed_or_without_an_alternative_stays():
    S, weights, _ = instance(0)
    everybody = list(range(12))
    assert improve(S, weights, [7, 2, 5], Slots.free(12, 3), forced=[2, 5, 7]) == [7, 2, 5]
    assert improve(S, weights, everybody, Slots.free(12, 12)) == everybody
    assert improve(S, weights, [], Slots.free(12, 0)) == []
    assert improve(np.zeros((4, 5)), np.ones(4), [3, 1], Slots.free(5, 2)) == [3, 1]
    own_slot = slots_for(np.arange(12), np.ones(12, np.intp))
    assert improve(S, weights, [7, 2, 5], own_slot) == [7, 2, 5]
    worst, best = np.argsort(weights @ S)[[0, -1]].tolist()
    assert improve(S, weights, [worst], Slots.free(12, 1)) == [best]


def test_copy_of_a_pick_never_takes_the_place_of_another():
    """Not even if it were better, which a true copy is not: who is a copy is told, not read off the similarities."""
    S = np.array([[1.0, 0.9, 0.1], [0.9, 0.8, 0.1], [0.0, 0.7, 0.2]])
    assert improve(S, np.ones(3), [0, 2], Slots.free(3, 2), twins=np.array([0, 0, 1])) == [0, 2]
    assert sorted(improve(S, np.ones(3), [0, 2], Slots.free(3, 2))) == [0, 1]


def test_exchange_that_changes_nothing_but_rounding_is_not_made():
    S, weights, _ = instance(3)
    best = improve(S, weights, [0, 1, 2], Slots.free(12, 3))
    nearly = np.hstack([S, S[:, best] * (1 + 1e-13)])
    assert improve(nearly, weights, best, Slots.free(15, 3)) == best


@pytest.mark.parametrize("factor", [3.0, 7.0, 11.0, 13.0])
def test_scale_of_weights_does_not_decide_on_exchanges(factor):
    """A lattice is full of exchanges that are equally good."""
    X = np.stack(np.meshgrid(np.arange(5.0), np.arange(4.0)), axis=-1).reshape(-1, 2)
    S = np.exp(-0.3 * ((X[:, None] - X[None]) ** 2).sum(-1))
    plain, scaled = (improve(S, np.full(20, f), [0, 1, 2], Slots.free(20, 3)) for f in (1.0, factor))
    assert plain == scaled


def test_order_is_that_of_the_set_and_not_of_the_exchanges_that_led_to_it():
    """Among equal gains the first candidate wins, but forced ones come before all."""
    assert in_order(FacilityLocation(np.eye(5), np.ones(5)), [3, 4, 0, 1], 1)[0] == [3, 0, 1, 4]
    assert in_order(FacilityLocation(np.diag([1.0, 2.0, 3.0]), np.ones(3)), [1, 2, 0], 0) == ([2, 1, 0], [3.0, 2.0, 1.0])
