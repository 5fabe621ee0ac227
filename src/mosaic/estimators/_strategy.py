"""Which way a fit takes: all points at full rank, all points at a lower one, or passes over data that stays where it is."""

from __future__ import annotations

from os import PathLike
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from mosaic._frames import column_names, id_columns, numeric_part, to_matrix
from mosaic.budget import (
    DEFAULT_BUDGET,
    EXACT_SIZE,
    LARGEST_RANK,
    SAMPLE,
    affordable_rank,
    memory_needed,
    useful_rank,
)
from mosaic.choosing import Settings
from mosaic.engines import Source, is_source, open_source
from mosaic.estimators._plan import (
    BY_PASSES,
    FEWEST_CANDIDATES,
    memory_by_passes,
    refuse_what_passes_cannot,
)
from mosaic.estimators._reading import NamedRows, rows_of_file, warn_of_ids
from mosaic.exceptions import InvalidInputError, MemoryBudgetError

Strategy: TypeAlias = Literal["auto", "exact", "low-rank", "sketch"]
STRATEGIES = ("auto", "exact", "low-rank", "sketch")


def read_for(estimator: Any, settings: Settings, X: Any, sample_weight: Any) -> tuple[Strategy, Any]:
    """The way that the estimator's settings and the data suggest, and the data: as it is, or as a source for passes.

    By default, passes are for data that is not in memory, and for arrays whose points and factor would not fit into the budget.
    Of ``auto``, what is left to decide is the rank (``rank_for``).
    """
    wish: Strategy = estimator.strategy
    if not (isinstance(wish, str) and wish in STRATEGIES):
        raise InvalidInputError(f"strategy must be 'auto', 'exact', 'low-rank' or 'sketch'; got {wish!r}.")
    names = None
    if isinstance(X, (str, PathLike)):
        if wish == "auto" and estimator.checkpoint is not None:  # which is kept by passes only
            wish = "sketch"
        X, names = rows_of_file(X, settings.memory_budget)
    outside = is_source(X)
    if outside and wish in ("exact", "low-rank"):
        raise InvalidInputError(
            f"strategy={wish!r} takes all points into memory; X is a {type(X).__name__}, which is read in passes. Use "
            "strategy='sketch' (or 'auto'), or load it."
        )
    if not outside and (
        wish in ("exact", "low-rank") or (wish == "auto" and not _is_large(settings, X, sample_weight))
    ):
        return wish, X if names is None else NamedRows(X, names)
    refuse_what_passes_cannot(settings, sample_weight)
    return "sketch", _source(estimator, X, names)


def _is_large(settings: Settings, X: Any, sample_weight: Any) -> bool:
    """Whether points and a useful factor of them are more than the budget, and passes are possible."""
    possible = callable(settings.kernel) or settings.kernel in BY_PASSES
    if not possible or sample_weight is not None or sp.issparse(X) or settings.max_rank is not None:
        return False
    shape = getattr(X, "shape", None)
    if shape is None or len(shape) != 2 or settings.solver not in ("auto", "interior-point"):
        return False
    n, d = int(shape[0]), int(shape[1])
    budget = settings.memory_budget or DEFAULT_BUDGET
    if n <= EXACT_SIZE:
        return False
    itemsize = 4 if getattr(X, "dtype", None) == np.float32 else 8
    in_passes = memory_by_passes(SAMPLE, FEWEST_CANDIDATES, d)  # where that is too much as well, the rank is lowered
    return memory_needed(n, useful_rank(n), itemsize, d) > budget >= in_passes


def _source(estimator: Any, X: Any, file_names: list[str] | None = None) -> Source:
    """Rows to pass over, and the names of their columns where scikit-learn expects them."""
    if is_source(X) or isinstance(X, np.memmap) or file_names is not None:
        source = open_source(X, estimator.n_jobs)
        source.names = source.names if file_names is None else file_names
        estimator.n_features_in_ = source.n_features
        estimator.__dict__.pop("feature_names_in_", None)
        if source.names is not None:
            estimator.feature_names_in_ = np.array(source.names, dtype=object)
        return source
    warn_of_ids(id_columns(X), "rename it, or pass an array: X.to_numpy()")
    X = numeric_part(X)
    names = column_names(X)
    settings = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "ensure_all_finite": False}
    if names is None:
        return open_source(validate_data(estimator, X, **settings), estimator.n_jobs)
    validate_data(estimator, X, skip_check_array=True)
    source = open_source(to_matrix(X), estimator.n_jobs)
    source.names = names
    return source


def rank_for(settings: Settings, strategy: Strategy, n: int, matrix: Any) -> int:
    """Columns of the factor, for n distinct points in memory."""
    itemsize, d = matrix.dtype.itemsize, matrix.shape[1]
    if strategy == "exact":
        rank = affordable_rank(n, itemsize, d, settings.memory_budget, n)
        if rank < n:
            raise MemoryBudgetError(
                f"strategy='exact' needs a factor of full rank {n:,}, about {memory_needed(n, n, itemsize, d) / 2**20:,.0f} MiB; "
                f"the budget holds a rank of {rank:,}. Raise memory_budget, or use strategy='low-rank'."
            )
        return rank
    rank = affordable_rank(n, itemsize, d, settings.memory_budget, settings.max_rank)
    return min(rank, LARGEST_RANK) if strategy == "low-rank" and settings.max_rank is None else rank
