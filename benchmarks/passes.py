"""Passes over a memory map: rows a second of every pass, of ``labels_`` and of ``score_samples``, against the floor of each.

The floor is the time of what a pass cannot do without, each measured alone on blocks of the same shape: reading the rows,
codes of rows where rows are compared, similarities (distances, by coordinates up to 16 columns and by a product for more, and
their exponentials), and the products of the formula. Seconds are of the processor, with one thread; of several runs the best
counts, on both sides. Run ``python benchmarks/passes.py``, or ``python benchmarks/passes.py 16 500`` for some cases only.
"""

from __future__ import annotations

from report import table  # sets the number of threads, so it comes before numpy

# isort: split
import mmap
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg.blas import dsyrk, dtrmm
from scipy.spatial.distance import cdist

from cores import points
from mosaic import MOSAIC, Sketch
from mosaic.arrays.passes import BLOCK_ROWS, PerRow, Together
from mosaic.choosing.outliers import PROGRAM_SIZE, PROGRAMS
from mosaic.kernels.points import FEW_FEATURES
from mosaic.sketch import ROWS_AT_ONCE, Basis, GramSum, LargestScores, Scores
from mosaic.sketch.local import LocalSource

ROWS, RUNS = 200_000, 3
#: Columns, picks, candidates at first.
CASES = tuple((d, k, r) for d in (16, 64) for k, r in ((20, 100), (20, 500), (100, 500), (500, 500)))


def best(work: Callable[[], Any], runs: int) -> float:
    """The fewest seconds of the processor."""
    seconds = []
    for _ in range(runs):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return min(seconds)


class Floor:
    """Seconds a row of the operations that a pass consists of, each measured once."""

    def __init__(self, X: Any):
        self.X, self.d, self.rng = X, X.shape[1], np.random.default_rng(0)
        self.known: dict[Any, float] = {}
        self.block = self.rng.random((BLOCK_ROWS, self.d))

    def reading(self) -> float:
        """To read a row of a memory map that is in no cache of the processor."""

        def work() -> None:
            for start in range(0, ROWS, BLOCK_ROWS):
                np.copyto(self.block[: ROWS - start], self.X[start : start + BLOCK_ROWS])
            self.X._mmap.madvise(mmap.MADV_DONTNEED)

        return self._once("reading", ROWS, work, RUNS)

    def codes(self) -> float:
        """A code of every entry, and their sums."""
        bits, many = self.block.view(np.uint64), np.arange(1, self.d + 1, dtype=np.uint64)
        return self._once("codes", BLOCK_ROWS, lambda: ((bits ^ (bits >> np.uint64(29))) * many).sum(axis=1))

    def similarities(self, p: int) -> float:
        """Of a row to p points."""
        A, B = self.rng.random((ROWS_AT_ONCE, self.d)), self.rng.random((p, self.d))
        D = np.empty((ROWS_AT_ONCE, p))

        def work() -> None:
            if self.d <= FEW_FEATURES:
                cdist(A, B, "sqeuclidean", out=D)
            else:
                np.matmul(A, B.T, out=D)
            np.multiply(D, -1.0, out=D)
            np.exp(D, out=D)

        return self._once(("similarities", p), ROWS_AT_ONCE, work)

    def gram(self, p: int) -> float:
        """A sum of p × p products k kᵀ."""
        K, G = self.rng.random((ROWS_AT_ONCE, p)), np.zeros((p, p), order="F")
        work = lambda: dsyrk(1.0, K.T, beta=1.0, c=G, lower=1, overwrite_c=1)  # noqa: E731
        return self._once(("gram", p), ROWS_AT_ONCE, work)

    def triangle(self, p: int) -> float:
        """A product with a triangle p × p."""
        K, T = self.rng.random((ROWS_AT_ONCE, p)), np.asfortranarray(np.tril(self.rng.random((p, p))) / p)
        T += np.eye(p)  # repeated products stay far from numbers that are so small that processors are slow on them
        return self._once(("triangle", p), ROWS_AT_ONCE, lambda: dtrmm(1.0, T, K.T, lower=1))

    def product(self, p: int, times: int = 1) -> float:
        """Products with ``times`` matrices p × p."""
        K, B = self.rng.random((times, ROWS_AT_ONCE // 2, p)), self.rng.random((times, p, p))
        return self._once(("product", p, times), ROWS_AT_ONCE // 2, lambda: K @ B)

    def counts(self) -> float:
        """Effective counts: similarities to the points of all programs, and a product with the matrix of each."""
        return self.similarities(PROGRAMS * PROGRAM_SIZE) + self.product(PROGRAM_SIZE, PROGRAMS)

    def scores(self, basis: Basis) -> float:
        """Similarities, features, and their lengths in another metric."""
        return self.similarities(basis.kernel.n) + 2 * self.triangle(basis.kernel.n)

    def of(self, task: Any, k: int) -> float:
        """Of a pass, for k picks."""
        if isinstance(task, Together):  # of the certificate
            return self.reading() + sum(self.of(part, k) - self.reading() for part in task.tasks.values())
        if isinstance(task, PerRow):
            return self.reading() + self.counts() + self.similarities(k) + self.product(k)
        p = task.basis.kernel.n if isinstance(task, (GramSum, Scores, LargestScores)) else 0
        if isinstance(task, GramSum):
            return self.reading() + self.similarities(p) + self.gram(p)
        return self.reading() + self.codes() + (self.scores(task.basis) if p else 0.0)

    def _once(self, name: Any, rows: int, work: Callable[[], Any], runs: int = 50) -> float:
        if name not in self.known:
            work()
            self.known[name] = best(work, runs) / rows
        return self.known[name]


def passes_of(model: MOSAIC, X: Any) -> list[tuple[Any, Any]]:
    """The tasks of a fit, its labels and its certificate, with their source."""
    seen: list[tuple[Any, Any]] = []
    run = LocalSource.run

    def note(self: LocalSource, task: Any, **settings: Any) -> Any:
        seen.append((self, task))
        return run(self, task, **settings)

    LocalSource.run = note  # type: ignore[method-assign]
    try:
        model.fit(X)
        _ = model.labels_, model.certificate_
    finally:
        LocalSource.run = run  # type: ignore[method-assign]
    return seen


def measure(folder: Path, d: int, k: int, r: int) -> list[list[str]]:
    """Lines of the table for one case: the first pass of every kind, and scores."""
    path = folder / f"{d}.npy"
    if not path.exists():
        np.save(path, points(ROWS, d))
    X = np.load(path, mmap_mode="r")
    floor, model = Floor(X), MOSAIC(k, algorithm=Sketch(n_initial=r), random_state=0, n_jobs=1)
    first = {type(task).__name__: (source, task) for source, task in reversed(passes_of(model, X))}
    names = {"PerRow": "labels_", "Together": "certificate_"}
    found = [
        (names.get(name, name), best(lambda source=source, task=task: source.run(task), RUNS), floor.of(task, k))
        for name, (source, task) in first.items()
    ]
    found.append(("score_samples", best(lambda: model.score_samples(X), RUNS), floor.reading() + floor.counts()))
    return [
        [
            str(d),
            str(k),
            str(r),
            name,
            f"{ROWS / seconds:,.0f}",
            f"{1 / least:,.0f}",
            f"{100 * least * ROWS / seconds:.0f} %",
        ]
        for name, seconds, least in reversed(found)
    ]


def main() -> None:
    """Print a table."""
    asked = {int(number) for number in sys.argv[1:]}
    cases = [case for case in CASES if not asked or asked <= set(case)]
    with tempfile.TemporaryDirectory() as folder:
        lines = [line for case in cases for line in measure(Path(folder), *case)]
    print(table(["columns", "picks", "candidates", "pass", "rows/s", "floor", "of the floor"], lines))


if __name__ == "__main__":
    main()
