"""Passes: the same numbers to the last bit, whatever pieces rows come in and in whatever order these are joined."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mosaic.engines import open_source
from mosaic.passes import BLOCK_ROWS, Partial, PerRow, TakeRows, join, map_rows, n_blocks, total

N = 3 * BLOCK_ROWS + 1234
X = np.random.default_rng(0).normal(size=(N, 3))


class Sums:
    """Sums whose last bits depend on the order of the summands."""

    def map_block(self, rows, start):
        assert len(rows) <= BLOCK_ROWS
        assert start % BLOCK_ROWS == 0
        number = np.arange(start, start + len(rows))
        return {"gram": rows.T @ rows, "weighted": (1.0 + number % 7) @ rows, "n": np.array(len(rows))}

    def merge(self, left, right):
        return {name: left[name] + right[name] for name in left}


WHOLE = total(Sums(), map_rows(Sums(), X, 0, N))


def parts(cuts):
    edges = [0, *sorted(set(cuts)), N]
    return [map_rows(Sums(), X[a:b], a, N) for a, b in pairwise(edges)]


def assert_identical(a, b):
    assert a.keys() == b.keys()
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], strict=True)


def test_sums_are_right():
    assert WHOLE["n"] == N
    np.testing.assert_allclose(WHOLE["gram"], X.T @ X, rtol=1e-12)
    np.testing.assert_allclose(WHOLE["weighted"], (1.0 + np.arange(N) % 7) @ X, rtol=1e-12)


@given(cuts=st.lists(st.integers(1, N - 1), max_size=8), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_pieces_and_the_order_of_joining_do_not_matter(cuts, seed):
    rng = np.random.default_rng(seed)
    left = parts(cuts)
    while len(left) > 1:  # any two, in any order
        i, j = rng.choice(len(left), 2, replace=False)
        joined = join(Sums(), left[i], left[j])
        left = [part for at, part in enumerate(left) if at not in (i, j)] + [joined]
    assert_identical(total(Sums(), left[0]), WHOLE)


def test_joining_changes_neither_side():
    a, b = parts([5000])
    before = (
        dict(a.nodes),
        {k: list(v) for k, v in a.pieces.items()},
        dict(b.nodes),
        {k: list(v) for k, v in b.pieces.items()},
    )
    join(Sums(), a, b)
    join(Sums(), b, a)
    after = (a.nodes, a.pieces, b.nodes, b.pieces)
    assert [set(part) for part in before] == [set(part) for part in after]


def test_a_row_that_is_missing_is_noticed():
    first, _, last = parts([BLOCK_ROWS, 2 * BLOCK_ROWS])
    with pytest.raises(RuntimeError, match="has seen"):
        total(Sums(), join(Sums(), first, last))
    with pytest.raises(RuntimeError, match="has seen"):
        total(Sums(), parts([BLOCK_ROWS + 1])[0])


def test_a_worker_keeps_few_nodes_however_many_blocks_it_has_seen():
    n = 1000 * BLOCK_ROWS
    rows = np.broadcast_to(np.ones(1), (BLOCK_ROWS, 1))
    partial = Partial(n)
    for block in range(700):
        partial = join(Sums(), partial, map_rows(Sums(), rows, block * BLOCK_ROWS, n))
        assert len(partial.nodes) <= np.log2(n_blocks(n)) + 1
    assert partial.rows_mapped == 700 * BLOCK_ROWS


def test_one_row_is_a_block():
    small = total(Sums(), map_rows(Sums(), X[:1], 0, 1))
    np.testing.assert_array_equal(small["gram"], X[:1].T @ X[:1])


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_threads_do_not_matter(n_jobs):
    assert_identical(open_source(X, n_jobs).run(Sums()), WHOLE)


def test_a_pass_can_be_taken_up_anywhere():
    source, states = open_source(X), []
    source.run(Sums(), watch=lambda rows, partial: states.append((rows, partial)))
    assert [rows for rows, _ in states] == [BLOCK_ROWS, 2 * BLOCK_ROWS, 3 * BLOCK_ROWS, N]
    for _, partial in states[:-1]:
        seen = []
        small = source.run(Sums(), resume=partial, watch=lambda rows, _, seen=seen: seen.append(rows))
        assert_identical(small, WHOLE)
        assert len(seen) < len(states)


def test_answers_for_rows_come_in_their_order():
    found = open_source(X).run(PerRow(lambda rows, _: {"first": rows[:, 0], "sum": rows.sum(axis=1)}))
    np.testing.assert_array_equal(found["first"], X[:, 0])
    np.testing.assert_array_equal(found["sum"], X.sum(axis=1))


def test_rows_are_taken_by_their_numbers():
    numbers = np.array([0, 17, BLOCK_ROWS - 1, BLOCK_ROWS, N - 1])
    np.testing.assert_array_equal(open_source(X).run(TakeRows(numbers))["rows"], X[numbers])
