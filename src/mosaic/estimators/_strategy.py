"""The strategy of a fit: all points at full rank, all points at a lower rank, or passes over data that stays where it is; and
the sizes of a fit by passes.
"""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from mosaic._checks import CHOICES, check_optional_whole_number, one_of
from mosaic._devices import free_memory, is_on_device, numpy_dtype
from mosaic._files import readable_size
from mosaic._frames import numeric_part
from mosaic.budget import (
    DECISION_SAMPLE,
    DEFAULT_BUDGET,
    EXACT_SIZE,
    LARGEST_RANK,
    affordable_rank,
    memory_needed,
    memory_of_fit,
    memory_of_proof,
    span_of_members,
    useful_rank,
)
from mosaic.choosing import Settings
from mosaic.data import Table, is_source, open_source
from mosaic.door import refuse_masked
from mosaic.engines import Source
from mosaic.estimators._reading import NamedRows
from mosaic.exceptions import InvalidInputError, MemoryBudgetError
from mosaic.kernels import POINT_KERNELS
from mosaic.passes import BLOCK_ROWS
from mosaic.sketch import ROWS_AT_ONCE

Strategy: TypeAlias = Literal["auto", "exact", "low-rank", "sketch"]
#: Solvers for the programs of passes.
SOLVERS_BY_PASSES = ("auto", "interior-point")
#: Points in memory for each representative, where that is more than ``DECISION_SAMPLE``; largest size of these points in bytes;
#: smallest number of points all the same.
SAMPLE_A_PICK, SAMPLE_BYTES, SMALLEST_SAMPLE = 8, 1 << 28, 2048
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
    """The strategy by the estimator's settings and the data, and the data: as it is, or as a source for passes.

    ``read`` are the rows of a file or a data frame (``read_named``).

    By default, passes are for data that is not in memory, and for arrays whose points and factor would not fit into the budget.
    If the strategy stays "auto", only the rank remains to be decided (``rank_for``).
    """
    asked: Strategy = estimator.strategy
    one_of("strategy", asked, CHOICES["strategy"], "Leave it at 'auto'.")
    # Only passes keep checkpoints.
    if isinstance(X, (str, PathLike, Table)) and asked == "auto" and estimator.checkpoint is not None:
        asked = "sketch"
    X = X if read is None else read.rows
    outside = is_source(X)
    if outside and asked in ("exact", "low-rank"):
        raise InvalidInputError(
            f"`strategy={asked!r}` loads all points into memory; X is a {type(X).__name__}, which is read in passes",
            "Use `strategy='sketch'` (or 'auto'), or load it.",
        )
    if not outside and (
        asked in ("exact", "low-rank") or (asked == "auto" and not _is_large(settings, X, sample_weight))
    ):
        return asked, X if read is None else read
    instead = "Use `strategy='low-rank'` on an array in memory."
    if isinstance(settings.kernel, str) and settings.kernel not in POINT_KERNELS:
        raise InvalidInputError(
            f"`strategy='sketch'` takes the kernels {', '.join(map(repr, POINT_KERNELS))} or a function of two sets of "
            f"points; got {settings.kernel!r}, which needs all points at once",
            instead,
        )
    if sample_weight is not None:
        raise InvalidInputError("`strategy='sketch'` takes no `sample_weight`; copies of a row are counted", instead)
    if settings.solver not in SOLVERS_BY_PASSES:
        raise InvalidInputError(
            f"`strategy='sketch'` is solved by interior point; got `solver={settings.solver!r}`", "Use `solver='auto'`."
        )
    return "sketch", _source(estimator, X, read)


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
    in_passes = memory_by_passes(n, SMALLEST_SAMPLE, FEWEST_FIRST_CANDIDATES, d)
    # If passes exceed the budget too, the rank is lowered instead.
    return memory_needed(n, useful_rank(n), itemsize, d) > (settings.memory_budget or DEFAULT_BUDGET) >= in_passes


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


def rank_for(settings: Settings, strategy: Strategy, n: int, matrix: Any) -> int:
    """Columns of the factor, for n distinct points in memory."""
    itemsize, d, size = numpy_dtype(matrix).itemsize, matrix.shape[1], size_of(matrix)
    if strategy == "exact":
        rank = affordable_rank(n, itemsize, d, settings.memory_budget, n, size)
        if rank < n:
            raise MemoryBudgetError(
                f"`strategy='exact'` needs a factor of full rank {n:,}, about "
                f"{readable_size(memory_needed(n, n, itemsize, d, size))}; the budget holds a rank of {rank:,}",
                "Raise `memory_budget`, or use `strategy='low-rank'`.",
            )
        return rank
    if is_on_device(matrix):
        return _rank_on_device(settings, n, matrix)
    rank = affordable_rank(n, itemsize, d, settings.memory_budget, settings.max_rank, size)
    return min(rank, LARGEST_RANK) if strategy == "low-rank" and settings.max_rank is None else rank


def _rank_on_device(settings: Settings, n: int, matrix: Any) -> int:
    """Columns of the factor on a device, where work costs little and memory is the limit: the budget, or most of what is free.

    With a budget above that, the factor is kept in the memory of the host (``mosaic._parked``).
    """
    free = free_memory(matrix)
    budget = settings.memory_budget or (DEFAULT_BUDGET if free is None else DEVICE_SHARE * free)
    wanted = settings.max_rank or (n if n <= EXACT_SIZE else LARGEST_RANK)
    return affordable_rank(n, numpy_dtype(matrix).itemsize, matrix.shape[1], budget, wanted)


def size_of(matrix: Any) -> float:
    """Bytes of an array, or of the entries of a sparse matrix and their places."""
    if is_on_device(matrix):
        return float(matrix.shape[0] * matrix.shape[1] * numpy_dtype(matrix).itemsize)
    arrays = (matrix.data, matrix.indices, matrix.indptr) if sp.issparse(matrix) else (matrix,)
    return float(sum(array.nbytes for array in arrays))


@dataclass(frozen=True)
class Plan:
    """Sizes of a fit by passes: points in memory, candidates at first, candidates that each round adds, and rounds."""

    sample: int
    n_initial: int
    n_added: int
    n_rounds: int | None

    @classmethod
    def of(
        cls,
        settings: Settings,
        n: int,
        n_features: int,
        *,
        n_initial: int | None = None,
        n_added: int | None = None,
        n_rounds: int | None = None,
    ) -> Plan:
        """The sizes that the user gave, or those that fit the numbers of rows and columns and the memory budget.

        To fit the budget, first the points in memory are halved, down to ``SMALLEST_SAMPLE``, then candidates are left out.
        """
        for name, value, least in (("n_initial", n_initial, 2), ("n_added", n_added, 1), ("n_rounds", n_rounds, 1)):
            check_optional_whole_number(name, value, least, "Leave it at None.")
        budget, k = settings.memory_budget or DEFAULT_BUDGET, settings.number(n) or 0
        sample = min(max(DECISION_SAMPLE, SAMPLE_A_PICK * k), max(SMALLEST_SAMPLE, SAMPLE_BYTES // (8 * n_features)))
        usual = np.clip(np.sqrt(MOST_MULTIPLICATIONS / n), FEWEST_FIRST_CANDIDATES, MOST_FIRST_CANDIDATES)
        r, sample = min(int(usual) if n_initial is None else int(n_initial), n), min(sample, n)
        least = max(SMALLEST_SAMPLE, SAMPLE_A_PICK * k)
        while sample > least and memory_by_passes(n, sample, r, n_features) > budget:
            sample = max(least, sample // 2)
        fewest = min(FEWEST_FIRST_CANDIDATES, n) if n_initial is None else r
        while r > fewest and memory_by_passes(n, sample, r, n_features) > budget:
            r = max(fewest, int(0.9 * r))
        needed = memory_by_passes(n, sample, r, n_features)
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
        spare = (settings.memory_budget or DEFAULT_BUDGET) - memory_by_passes(
            n, self.sample, self.n_initial, n_features
        )
        return max(1, int(spare / (8.0 * (BLOCK_ROWS * n_features + 2 * ROWS_AT_ONCE * r + 2 * r * r))))

    def multiplications(self, n: int) -> float:
        """Multiplications of one round: a Gram sum, two triangular products, kernel columns twice, and programs on the sample."""
        r = float(self.n_initial)
        return n * r * (1.5 * r + 100.0) + 60.0 * self.sample * r * r + 1e10


def memory_by_passes(n: int, sample: int, r: int, n_features: int, *, promised: bool = True) -> float:
    """Bytes at the peak: those of a fit of the points in memory, one more copy of these, sums in the tree, and blocks of rows.

    The first pass, which draws the points, has as many in each level of the tree, and one more while two levels are merged. The
    solver's working set is the largest that it may be if this is ``promised``, otherwise that which it begins with.
    """
    members = None if promised else span_of_members(sample, r)[0]
    fit = max(memory_of_fit(sample, 8, n_features), memory_of_proof(sample, r, 8, n_features, members=members))
    points, blocks = 8.0 * sample * n_features, 4.0 * 8 * BLOCK_ROWS * n_features
    levels = 1 + max(0.0, np.log2(n / max(sample, BLOCK_ROWS)))
    return float(max(fit + points + 16.0 * 8 * r * r, points * (levels + 1)) + blocks)
