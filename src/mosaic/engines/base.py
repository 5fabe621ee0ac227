"""What a source of rows promises: how many there are, of how many columns, and to run a pass over them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from mosaic.exceptions import InvalidInputError
from mosaic.passes import Partial, Small, Task

#: Called now and then during a pass with the rows done so far and, if a pass can be taken up there again, what they gave.
Watch: TypeAlias = Callable[[int, Partial | None], None]


class Source(ABC):
    """Rows of numbers, wherever they are, and somebody who maps them. Scheduling only: what is computed is the task's.

    Attributes
    ----------
    kind : what it is, as a person would say it: "Dask array", "Parquet file"
    n : number of rows
    n_features : number of columns
    names : of the columns, where they have names
    """

    kind: str
    n: int
    n_features: int
    names: Sequence[str] | None = None

    @abstractmethod
    def run(self, task: Task, *, resume: Partial | None = None, watch: Watch | None = None) -> Small:
        """Map all rows, in blocks, and merge what comes of them (see ``passes``).

        Parameters
        ----------
        task : what to do
        resume : what an interrupted pass has given to ``watch``, to go on from; engines that give none take none
        watch : is told how far the pass is
        """


def check_shape(n: int, n_features: int, name: str = "X") -> None:
    """Refuse data without rows or without columns."""
    if n == 0 or n_features == 0:
        raise InvalidInputError(f"{name} must have at least one point and one feature; got shape ({n}, {n_features}).")


def as_rows(rows: Any) -> Any:
    """Rows as a dense array of float32 or float64 in C order; other numbers become float64, sparse rows dense.

    The order matters: of the same numbers in another one, sums have other last bits.
    """
    if sp.issparse(rows):
        rows = rows.toarray()
    rows = np.asarray(rows)
    if rows.dtype.kind not in "fiub":
        raise InvalidInputError(
            f"X must hold real numbers; got dtype {rows.dtype}. Convert or drop the columns that are not numeric."
        )
    single = rows.dtype.kind == "f" and rows.dtype.itemsize == 4
    return np.ascontiguousarray(rows, np.float32 if single else np.float64)
