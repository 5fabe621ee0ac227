"""Rows, a pass over them whose last bits depend on everything, and what it gives in memory: every engine must give the same."""

import time
from dataclasses import dataclass

import numpy as np

from mosaic.arrays.passes import BLOCK_ROWS
from mosaic.arrays.sources import ArraySource
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


@dataclass(frozen=True)
class Refusing(Sums):
    def map_block(self, rows, start):
        if start == 2 * BLOCK_ROWS:
            raise InvalidInputError(f"row {start} is odd. Drop it.")
        return super().map_block(rows, start)


EXPECTED = ArraySource(X).run(Sums())


def agree(found, expected=EXPECTED):
    assert found.keys() == expected.keys()
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name], strict=True)
