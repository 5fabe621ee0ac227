"""Rows, a pass over them whose last bits depend on everything, and what it gives in memory: every engine must give the same."""

import time
from dataclasses import dataclass

import numpy as np

from mosaic.arrays.passes import BLOCK_ROWS, PerRow, TakeRows, Together
from mosaic.arrays.sources import ArraySource
from mosaic.choosing.draw import Draw
from mosaic.exceptions import InvalidInputError

X = np.random.default_rng(0).normal(size=(40_001, 3)) * np.array([1.0, 1e6, 1e-6])
X[np.abs(X) < 0.1 * X.std(axis=0)] = 0.0  # so that sparse formats have something to leave out


@dataclass(frozen=True)
class Sums:
    """Sums whose last bits depend on the order of the rows, on their numbers and on how they lie in memory."""

    seconds: float = 0.0

    def map_block(self, rows, start):
        time.sleep(self.seconds)
        weights = 1.0 + np.arange(start, start + len(rows))[:, None] % 7
        return {"sum": (weights * rows).sum(axis=0), "gram": rows.T @ rows, "each": rows.sum(axis=1)}

    def merge(self, left, right):
        each = np.concatenate([left["each"], right["each"]])
        return {"sum": left["sum"] + right["sum"], "gram": left["gram"] + right["gram"], "each": each}


def products(rows, start):
    """Answers whose last bits depend on where a row lies in its block."""
    return {"each": rows @ np.cos(np.arange(rows.shape[1] * 7.0)).reshape(rows.shape[1], 7), "row": start + np.arange(len(rows))}


def odd(rows, start):
    if start <= 2 * BLOCK_ROWS < start + len(rows):
        raise InvalidInputError("row 16384 is odd. Drop it.")
    return {"each": rows[:, 0]}


def passes(n):
    """The passes that fits make: answers for all rows, a sample, and rows by their numbers."""
    return [
        PerRow(products),
        Together({"draw": Draw((700,)), "named": TakeRows(np.array([0, 3, n // 2, n - 1]))}),
        Together({"draw": Draw((n,)), "named": TakeRows(np.zeros(0, np.intp))}),
    ]


def same_passes(source, X):
    for task in passes(len(X)):
        expected, found = ArraySource(X).run(task), source.run(task)
        if "draw" not in found:
            agree(found, expected)
            continue
        found["draw"]["buckets"] = found["draw"]["buckets"].astype(float)  # in as few bytes as they need
        for name, values in expected.items():
            agree({key: found[name][key] for key in values}, values)
    for numbers in (np.array([1, len(X) - 1]), np.arange(0, len(X), 37)):
        np.testing.assert_array_equal(source.take(numbers), ArraySource(X).take(numbers))


EXPECTED = ArraySource(X).run(Sums())


def agree(found, expected=EXPECTED):
    assert found.keys() == expected.keys()
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name], strict=True)
