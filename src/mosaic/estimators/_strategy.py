"""The strategy of a fit: all points at full rank, all points at a lower rank, or passes over data that stays where it is; and
the sizes of a fit by passes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from mosaic._frames import numeric_part
from mosaic.arrays.passes import BLOCK_ROWS, TakeRows
from mosaic.arrays.xp import free_memory, is_on_device, numpy_dtype
from mosaic.choosing import Settings
from mosaic.choosing.budget import (
    DECISION_SAMPLE,
    EXACT_SIZE,
    LARGEST_RANK,
    affordable_rank,
    budget_of,
    leaves_room,
    memory_needed,
    memory_of_fit,
    memory_of_proof,
    useful_rank,
)
from mosaic.door import refuse_masked
from mosaic.estimators._reading import NamedRows
from mosaic.exceptions import InvalidInputError, MemoryBudgetError
from mosaic.kernels import POINT_KERNELS
from mosaic.parameters import Sketch
from mosaic.rows import is_source, open_source
from mosaic.sketch import MOST_ROUNDS, ROWS_AT_ONCE
from mosaic.sketch.sources import LocalSource, Source
from mosaic.text import readable_size

Strategy: TypeAlias = Literal["in memory", "sketch"]
#: Solvers for the programs of passes.
SOLVERS_BY_PASSES = ("auto", "interior-point")
#: Points in memory for each representative, where that is more than ``DECISION_SAMPLE``, and smallest number of points.
SAMPLE_A_PICK, SMALLEST_SAMPLE = 8, 2048
#: Largest and smallest number of candidates at first, and the multiplications that the sum of their Gram matrix may take.
MOST_FIRST_CANDIDATES, FEWEST_FIRST_CANDIDATES, MOST_MULTIPLICATIONS = 500, 100, 1e12
#: Share of the free memory of a device that a fit uses by default.
DEVICE_SHARE = 0.75
#: A round adds the number of first candidates divided by this.
ADDED_PART = 10
#: Default number of rounds in paper mode.
PAPER_ROUNDS = 3


def read_for(
    estimator: Any, settings: Settings, X: Any, sample_weight: Any, read: NamedRows | None
) -> tuple[Strategy, Any]:
    """The strategy by the estimator's settings and the data, and the data: in memory, or as a source for passes.

    ``read`` are the rows of a file or a data frame (``read_named``).

    By default, passes are for data that does not fit into memory or is on a cluster, and for arrays whose certificate would not
    fit into the budget.
    """
    X = X if read is None else read.rows
    outside, asked = is_source(X), settings.sketch is not None
    if not outside and not asked and not _is_large(settings, X, sample_weight):
        return "in memory", X if read is None else read
    source = _source(estimator, X, read)
    if outside and not asked and _fits(settings, source):
        rows = source.run(TakeRows(np.arange(source.n)))["rows"]
        names = None if source.names is None else list(source.names)
        return "in memory", NamedRows(rows, names) if read is None else read._replace(rows=rows)
    instead = "Pass an array in memory, and no Sketch."
    if isinstance(settings.kernel, str) and settings.kernel not in POINT_KERNELS:
        raise InvalidInputError(
            f"`algorithm='sketch'` takes the kernels {', '.join(map(repr, POINT_KERNELS))} or a function of two sets of "
            f"points; got {settings.kernel!r}, which needs all points at once",
            instead,
        )
    if sample_weight is not None:
        raise InvalidInputError("`algorithm='sketch'` takes no `sample_weight`; copies of a row are counted", instead)
    if settings.solver not in SOLVERS_BY_PASSES:
        raise InvalidInputError(
            f"`algorithm='sketch'` is solved by interior point; got `solver={settings.solver!r}`",
            "Use `solver='auto'`.",
        )
    return "sketch", source


def _fits(settings: Settings, source: Source) -> bool:
    """Whether rows are taken into memory: few of them in any case, many on this machine if they leave room for a fit."""
    n, d = source.n, source.n_features
    if n <= sample_size(settings, n, d):
        return True
    return isinstance(source, LocalSource) and leaves_room(n, d, budget_of(settings.memory_budget))


def _is_large(settings: Settings, X: Any, sample_weight: Any) -> bool:
    """Whether the points and a useful factor exceed the budget, and passes are possible."""
    if is_on_device(X):
        return False
    possible = callable(settings.kernel) or settings.kernel in POINT_KERNELS
    possible = possible and settings.solver in SOLVERS_BY_PASSES and settings.max_rank is None
    shape = getattr(X, "shape", None)
    if not possible or sample_weight is not None or sp.issparse(X) or shape is None or len(shape) != 2:
        return False
    n, d = int(shape[0]), int(shape[1])
    if n <= EXACT_SIZE:
        return False
    itemsize = 4 if getattr(X, "dtype", None) == np.float32 else 8
    in_passes = memory_by_passes(SMALLEST_SAMPLE, FEWEST_FIRST_CANDIDATES, d)
    # If passes exceed the budget too, the rank is lowered instead.
    return memory_needed(n, useful_rank(n), itemsize, d) > budget_of(settings.memory_budget) >= in_passes


def _source(estimator: Any, X: Any, read: NamedRows | None) -> Source:
    """The source of the rows; sets the estimator's attributes for the names and the number of columns."""
    estimator.table_ = None if read is None else read.table
    if read is None and not is_source(X) and not isinstance(X, np.memmap):
        settings = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "ensure_all_finite": False}
        refuse_masked(X)
        return open_source(validate_data(estimator, numeric_part(X), **settings), estimator.n_jobs)
    source = open_source(X, estimator.n_jobs)
    names = source.names if read is None or read.names is None else read.names
    source.names = names if estimator.table_ is None else estimator.table_.number_names
    estimator.n_features_in_ = source.n_features if estimator.table_ is None else len(estimator.table_.names)
    estimator.__dict__.pop("feature_names_in_", None)
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    return source


def rank_for(settings: Settings, n: int, matrix: Any) -> int:
    """Columns of the factor, for n distinct points in memory."""
    if is_on_device(matrix):
        return _rank_on_device(settings, n, matrix)
    itemsize, d = numpy_dtype(matrix).itemsize, matrix.shape[1]
    return affordable_rank(n, itemsize, d, settings.memory_budget, settings.max_rank, size_of(matrix))


def _rank_on_device(settings: Settings, n: int, matrix: Any) -> int:
    """Columns of the factor on a device, where work costs little and memory is the limit: the budget, or most of what is free."""
    free = free_memory(matrix)
    budget = settings.memory_budget or (budget_of(None) if free is None else DEVICE_SHARE * free)
    wanted = settings.max_rank or (n if n <= EXACT_SIZE else LARGEST_RANK)
    return affordable_rank(n, numpy_dtype(matrix).itemsize, matrix.shape[1], budget, wanted)


def size_of(matrix: Any) -> float:
    """Bytes of an array, or of the entries of a sparse matrix and their places."""
    if is_on_device(matrix):
        return float(matrix.shape[0] * matrix.shape[1] * numpy_dtype(matrix).itemsize)
    arrays = (matrix.data, matrix.indices, matrix.indptr) if sp.issparse(matrix) else (matrix,)
    return float(sum(array.nbytes for array in arrays))


def sample_size(settings: Settings, n: int, n_features: int) -> int:
    """Rows that a fit of many is decided with. Only a budget that is given and cannot hold them makes them fewer."""
    least = SAMPLE_A_PICK * (settings.number(n) or 0)
    size = max(DECISION_SAMPLE, least)
    while settings.memory_budget is not None and size > max(SMALLEST_SAMPLE, least):
        if memory_by_passes(min(size, n), FEWEST_FIRST_CANDIDATES, n_features) <= settings.memory_budget:
            break
        size = max(size // 2, SMALLEST_SAMPLE, least)
    return size


def is_sampled(settings: Settings, n: int, n_features: int) -> bool:
    """Whether a fit of n rows in memory is decided with a sample of them. The paper's program is that of all, and so are
    similarities that a sample does not have.
    """
    possible = settings.mode != "paper" and (callable(settings.kernel) or settings.kernel in POINT_KERNELS)
    return possible and n > sample_size(settings, n, n_features)


def memory_of_sample(size: int, n_features: int) -> float:
    """Bytes at the peak of a fit by passes: that of the sample, with its rows as they were read and blocks of others, or the pass
    that draws it, with up to three such samples while parts of them are merged.
    """
    points, blocks = 8.0 * size * n_features, 4.0 * 8 * BLOCK_ROWS * n_features
    return max(memory_of_fit(size, 8, n_features) + points, 3.0 * points + blocks)


@dataclass(frozen=True)
class Plan:
    """Sizes of a fit by passes: points in memory; for Algorithm 3 candidates at first, those that a round adds, and rounds."""

    sample: int
    n_initial: int
    n_added: int
    n_rounds: int | None

    @classmethod
    def of(cls, settings: Settings, n: int, n_features: int) -> Plan:
        """The sizes that the user gave, or those that fit the numbers of rows and columns and the memory budget.

        To fit the budget, first the points in memory are halved, down to ``SMALLEST_SAMPLE``, then candidates are left out.
        """
        asked = settings.sketch or Sketch()
        n_initial, n_added, n_rounds = asked.n_initial, asked.n_added, asked.n_rounds
        budget, sample = budget_of(settings.memory_budget), min(sample_size(settings, n, n_features), n)
        usual = np.clip(np.sqrt(MOST_MULTIPLICATIONS / n), FEWEST_FIRST_CANDIDATES, MOST_FIRST_CANDIDATES)
        r = min(int(usual) if n_initial is None else int(n_initial), n)
        fewest = min(FEWEST_FIRST_CANDIDATES, n) if n_initial is None else r
        while r > fewest and memory_by_passes(sample, r, n_features) > budget:
            r = max(fewest, int(0.9 * r))
        needed = memory_by_passes(sample, r, n_features)
        if needed > budget:
            raise MemoryBudgetError(
                f"{n:,} rows × {n_features:,} features need about {readable_size(needed)} at the least, by passes with {r:,} "
                f"candidates and {sample:,} points in memory; the budget is {readable_size(budget)}",
                "Raise `memory_budget`"
                + (", or use fewer columns." if n_initial is None else " or lower `n_initial`."),
            )
        if n_rounds is None and settings.mode == "paper":
            n_rounds = PAPER_ROUNDS
        return cls(sample, r, max(r // ADDED_PART, 1) if n_added is None else int(n_added), n_rounds)

    def threads(self, settings: Settings, n: int, n_features: int) -> int:
        """Threads whose rows, similarities and sums the budget holds beside all else, at least one."""
        r = max(self.n_initial, settings.number(n) or 0)
        spare = budget_of(settings.memory_budget) - memory_by_passes(self.sample, self.n_initial, n_features)
        return max(1, int(spare / (8.0 * (BLOCK_ROWS * n_features + 2 * ROWS_AT_ONCE * r + 2 * r * r))))

    @property
    def most_passes(self) -> int:
        """Passes of Algorithm 3 and of the bound at most: two for each round, one between two rounds, and one."""
        return 3 * (MOST_ROUNDS if self.n_rounds is None else self.n_rounds)


def memory_by_passes(sample: int, r: int, n_features: int) -> float:
    """Bytes at the peak of a fit by passes or of its certificate."""
    points, blocks = 8.0 * sample * n_features, 4.0 * 8 * BLOCK_ROWS * n_features
    proof = memory_of_proof(sample, r, 8, n_features) + points + 16.0 * 8 * r * r + blocks
    return max(memory_of_sample(sample, n_features), proof)
