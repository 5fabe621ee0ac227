"""The rows that many are decided with: the same ones in memory and by passes, whatever the order of rows, blocks and merges."""

import numpy as np
import pytest
import scipy.sparse as sp

from mosaic.choosing import Constraints
from mosaic.choosing.draw import Draw, draw_by_passes, draw_in_memory
from sources import open_source

RNG = np.random.default_rng(0)
DISTINCT = RNG.normal(size=(30_000, 3))
#: Some rows several times, and two of them very often.
NUMBERS = np.concatenate([np.arange(30_000), RNG.integers(0, 30_000, 15_000), np.repeat([77, 20_001], 4000)])
X = DISTINCT[RNG.permutation(NUMBERS)]


def by_passes(rows, size, constraints=None):
    source = open_source(rows)
    return draw_by_passes(lambda name, task: source.run(task), len(rows), size, constraints)


def free(n):
    return Constraints.read(n)


def same(a, b):
    for name in ("numbers", "is_drawn", "copies", "weights"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    np.testing.assert_array_equal(np.asarray(a.rows), np.asarray(b.rows))


@pytest.mark.parametrize("size", [100, 5000, 29_000, 60_000])
def test_memory_and_passes_draw_the_same_rows(size):
    same(draw_in_memory(X, size, free(len(X))), by_passes(X, size))


@pytest.mark.parametrize("rows", [500, 8192, 12_000])
def test_blocks_and_the_order_in_which_they_are_merged_do_not_matter(rows):
    task = Draw((1000,))
    starts = RNG.permutation(np.arange(0, len(X), rows))
    parts = [task.map_block(X[a : a + rows], int(a)) for a in starts]
    while len(parts) > 1:
        left, right = parts.pop(), parts.pop(int(RNG.integers(len(parts))))
        parts.append(task.merge(*sorted((left, right), key=lambda part: part["first"].min(initial=0))))
    expected = Draw((1000,)).map_block(X, 0)
    for name in ("priority", "copies", "buckets", "rows"):
        np.testing.assert_array_equal(parts[0][name], expected[name])


def test_the_order_of_rows_does_not_matter_and_every_copy_is_counted():
    order = RNG.permutation(len(X))
    one, other = by_passes(X, 2000), by_passes(X[order], 2000)
    np.testing.assert_array_equal(np.sort(one.rows, axis=0), np.sort(other.rows, axis=0))
    for found, rows in ((one, X), (other, X[order])):
        for number, row, copies in zip(found.numbers[:50], found.rows, found.copies, strict=False):
            equal = np.flatnonzero((rows == row).all(axis=1))
            assert (number, copies) == (equal[0], len(equal))
        assert found.weights.sum() == pytest.approx(len(X))


def test_rows_with_very_many_copies_are_never_missed_and_cost_a_pass_only_where_they_are():
    for rows, size in ((X, 100), (X, 300), (X, 1000), (DISTINCT, 500)):
        source, made = open_source(rows), []
        found = draw_by_passes(lambda name, task, s=source, m=made: m.append(name) or s.run(task), len(rows), size, None)
        assert made == ["look"] or (rows is X and made == ["look", "frequent rows"])
        for row in DISTINCT[[77, 20_001]] if rows is X else ():
            (at,) = np.flatnonzero((found.rows == row).all(axis=1))
            assert found.copies[at] == found.weights[at] >= 4001
    few = by_passes(np.repeat(DISTINCT[:50], 400, axis=0), 300)
    np.testing.assert_array_equal(few.numbers, np.arange(0, 20_000, 400))
    np.testing.assert_array_equal(few.copies, 400)
    np.testing.assert_array_equal(few.weights, 400)


def test_every_row_is_drawn_equally_often():
    drawn = np.zeros(700)
    for seed in range(300):
        rows = np.random.default_rng(seed).normal(size=(700, 2))
        drawn[by_passes(rows, 70).numbers] += 1
    assert abs(drawn.mean() - 30) < 1e-9  # 300 draws of a tenth: 30 ± 5.2
    assert drawn.std() == pytest.approx(5.2, rel=0.15)


def test_what_constraints_name_is_there_and_changes_nobody_else():
    n = len(X)
    group = np.where(np.arange(n) % 1000 == 7, "rare", "usual")
    demanded = Constraints.read(n, groups=group, must_include=[5, 40_000], exclude=[1007], start=[12])
    plain, found = by_passes(X, 1000), by_passes(X, 1000, demanded)
    same(found, draw_in_memory(X, 1000, demanded))
    assert np.isin([5, 12, 40_000], found.numbers).all()
    rare = np.setdiff1d(np.flatnonzero(group == "rare"), [1007])
    assert np.isin(found.numbers, rare).sum() >= len(np.unique(X[rare], axis=0))
    np.testing.assert_array_equal(found.numbers[found.is_drawn], plain.numbers)
    np.testing.assert_array_equal(found.copies[found.is_drawn], plain.copies)
    assert (found.copies[~found.is_drawn] == 1).all()


def test_weights_count_as_copies_and_rows_without_weight_are_left_out():
    weights = np.bincount(NUMBERS).astype(float)
    copies, weighted = draw_in_memory(X, 800, free(len(X))), draw_in_memory(DISTINCT, 800, free(30_000), weights)
    np.testing.assert_array_equal(np.sort(copies.copies), np.sort(weighted.copies))
    weights[:15_000] = 0.0
    assert draw_in_memory(DISTINCT, 800, free(30_000), weights).numbers.min() >= 15_000


def test_sparse_rows_and_those_of_single_precision_are_the_same_rows():
    rows = np.where(RNG.random((20_000, 6)) < 0.5, 0.0, RNG.integers(-9, 9, (20_000, 6))).astype(np.float32)
    dense = draw_in_memory(rows, 500, free(20_000))
    for other in (sp.csr_array(rows), rows.astype(np.float64)):
        found = draw_in_memory(other, 500, free(20_000))
        np.testing.assert_array_equal(found.numbers, dense.numbers)
        np.testing.assert_array_equal(found.weights, dense.weights)
