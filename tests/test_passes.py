"""Passes: the same numbers to the last bit, whoever maps the blocks and however they are grouped."""

import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mosaic.arrays.passes import BLOCK_ROWS, TakeRows, Together, merge_all
from mosaic.arrays.sources import LocalSource, map_part
from mosaic.arrays.threads import using_threads
from mosaic.exceptions import InvalidInputError
from sources import open_source
from tasks import EXPECTED, Sums, X, agree

N = len(X)


class Brackets:
    """Shows how blocks were put together."""

    def map_block(self, rows, start):
        return {"text": str(start // BLOCK_ROWS)}

    def merge(self, left, right):
        return {"text": f"({left['text']} {right['text']})"}


@given(n_blocks=st.integers(1, 70))
@settings(max_examples=60, deadline=None)
def test_blocks_of_rows_are_merged_along_one_tree(n_blocks):
    rows, texts = np.broadcast_to(np.ones(1), (n_blocks * BLOCK_ROWS - 5, 1)), [str(i) for i in range(n_blocks)]
    assert map_part(Brackets(), rows, 0)["text"] == merge_all("({} {})".format, texts)


def test_the_tree_of_seven():
    assert merge_all("({} {})".format, "abcdefg") == "((((a b) (c d)) (e f)) g)"


def test_sums_are_right_and_rows_done_are_told_block_by_block_whatever_the_threads():
    np.testing.assert_allclose(EXPECTED["gram"], X.T @ X, rtol=1e-12)
    np.testing.assert_allclose(EXPECTED["sum"], (1.0 + np.arange(N) % 7) @ X, rtol=1e-9)
    for n_jobs in (1, 2, 3):
        seen = []
        agree(open_source(X, n_jobs).run(Sums(), watch=seen.append))
        assert seen == [*range(BLOCK_ROWS, N, BLOCK_ROWS), N]


class AtOnce(Sums):
    """Sums, for which three blocks must be at work at the same time."""

    arrived = threading.Barrier(3)

    def map_block(self, rows, start):
        if start < 3 * BLOCK_ROWS:
            self.arrived.wait(30)
        return super().map_block(rows, start)


def test_without_a_number_of_jobs_blocks_are_mapped_in_the_threads_of_the_caller():
    with using_threads(3):
        agree(open_source(X).run(AtOnce()))


class Counted:
    """The largest number of blocks that were mapped at the same time."""

    def __init__(self):
        self.now, self.most, self.lock = 0, 0, threading.Lock()

    def map_block(self, rows, start):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(0.02 if rows.shape[1] < 100 else 0.3)  # longer than reading takes
        with self.lock:
            self.now -= 1
        return {"rows": np.asarray(len(rows))}

    def merge(self, left, right):
        return {"rows": left["rows"] + right["rows"]}


@pytest.mark.parametrize(("columns", "limit", "most"), [(3, None, 4), (3, 2, 2), (3, 1, 1), (2048, None, 2)])
def test_threads_hold_few_blocks_of_wide_rows_and_no_more_than_the_source_allows(columns, limit, most):
    source, task = open_source(np.broadcast_to(np.float64(1.0), (N, columns))), Counted()
    source.most_threads = limit
    with using_threads(4):
        assert source.run(task)["rows"] == N
    assert task.most == most


class Pieces(LocalSource):
    """Rows that are read in pieces of given lengths, as long as they are there."""

    kind = "test"

    def __init__(self, lengths, rows=X, n_jobs=None):
        self.n, self.n_features, self.n_jobs, self.rows = N, 3, n_jobs, rows
        self.edges = [0, *np.cumsum(lengths).tolist()]

    def pieces(self):
        return zip(self.edges, self.edges[1:], strict=False)

    def read(self, start, stop):
        return self.rows[start:stop]


@given(cuts=st.lists(st.integers(1, N - 1), max_size=8, unique=True), n_jobs=st.sampled_from([None, 2]))
@settings(max_examples=25, deadline=None)
def test_pieces_that_rows_are_read_in_do_not_matter(cuts, n_jobs):
    agree(Pieces(np.diff([0, *sorted(cuts), N]), n_jobs=n_jobs).run(Sums()))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_rows_that_are_gone_are_noticed(n_jobs):
    with pytest.raises(InvalidInputError, match=r"rows 5000 … 40000 of the test are 35000 now; .* Open it again"):
        Pieces([5000, N - 5000], rows=X[:-1], n_jobs=n_jobs).run(Sums())


def test_several_tasks_share_a_pass_and_give_what_each_gives_alone():
    numbers = np.array([3, BLOCK_ROWS])
    found = open_source(X).run(Together({"sums": Sums(), "rows": TakeRows(numbers)}))
    agree(found["sums"])
    np.testing.assert_array_equal(found["rows"]["rows"], X[numbers])
