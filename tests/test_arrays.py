from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mosaic.arrays.blocks import row_blocks
from mosaic.arrays.codes import KnownRows, equal_rows, row_codes
from mosaic.door import as_indices, as_points
from mosaic.exceptions import InvalidInputError


@given(arrays(np.float64, st.tuples(st.integers(1, 30), st.integers(1, 3)), elements=st.sampled_from([-1.0, -0.0, 0.0, 2.5])))
def test_equal_rows_are_found_dense_and_sparse(X):
    first = np.unique(X + 0.0, axis=0)
    for data in (X, sp.csr_array(X)):
        found = equal_rows(data)
        assert found.n == len(X)
        assert found.is_trivial is (len(first) == len(X))
        assert len(found.first) == len(first)
        assert (np.diff(found.first) > 0).all()
        np.testing.assert_array_equal(X[found.first][found.group] + 0.0, X + 0.0)

        np.testing.assert_array_equal(found.sums(np.ones(len(X))), np.bincount(found.group))
        for known, again in zip(found, equal_rows(data, row_codes(data)), strict=True):
            np.testing.assert_array_equal(known, again)


def test_rows_with_equal_codes_are_compared():
    X = np.arange(6.0).reshape(3, 2)
    assert equal_rows(X, np.zeros(3, np.uint64)).group.tolist() == [0, 1, 2]


def test_known_rows_are_found_and_others_are_not(rng):
    X = rng.normal(size=(50, 3))
    known = KnownRows.of(row_codes(X))
    order = rng.permutation(50)
    assert known.find(row_codes(X[order])).tolist() == order.tolist()
    assert (known.find(row_codes(X + 1.0)) == -1).all()


@given(st.integers(0, 5000), st.integers(1, 300))
def test_row_blocks_cover_all_rows_once(n, columns):
    blocks = list(row_blocks(n, columns, entries=10_000))
    assert [i for b in blocks for i in range(b.start, b.stop)] == list(range(n))


def test_points_keep_single_precision_and_lift_the_rest():
    assert as_points(np.ones((2, 2), np.float32)).dtype == np.float32
    assert as_points([[1, 2], [3, 4]]).dtype == np.float64
    assert as_points(np.ones((2, 2), bool)).dtype == np.float64
    assert as_points(sp.csr_matrix(np.eye(3, dtype=int))).dtype == np.float64


def test_checking_does_not_change_the_callers_matrix():
    X = sp.csr_matrix((np.array([1.0, 2.0, 3.0]), np.array([1, 0, 1]), np.array([0, 3])), shape=(1, 2))
    as_points(X)
    assert X.indices.tolist() == [1, 0, 1]
    assert X.data.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[1j, 2.0]], "real numbers; got dtype complex128"),
        ([[1.0], [2.0, 3.0]], "rectangular"),
        (np.zeros((3, 0)), r"got shape \(3, 0\)"),
    ],
)
def test_bad_points_are_refused(X, message):
    with pytest.raises(InvalidInputError, match=message):
        as_points(X)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([-1, 3], r"lie in 0 … 4; got -1 … 3"),
        ([1, 1, 2], "3 given, 2 distinct"),
        (np.ones(4, bool), "candidates must have length 5 as a mask"),
        ([0.5], "list of row numbers"),
    ],
)
def test_bad_indices_are_refused(rows, message):
    with pytest.raises(InvalidInputError, match=message):
        as_indices(rows, 5, "candidates")


def test_indices_may_be_a_mask_and_none():
    assert as_indices(np.array([True, False, True]), 3, "candidates").tolist() == [0, 2]
    assert as_indices([], 3, "candidates").tolist() == []
