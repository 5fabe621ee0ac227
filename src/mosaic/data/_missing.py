"""Missing and infinite numbers: refused with their place, or left out with their rows."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from mosaic._arrays import IntArray
from mosaic.data._faults import FileFault
from mosaic.data._spool import Spool

#: Numbers that are looked at together.
AT_ONCE = 1 << 22


def bad_rows(X: Any) -> IntArray:
    """Numbers of the rows that hold a missing or infinite number.

    Examples
    --------
    >>> bad_rows(np.array([[1.0, 2.0], [np.nan, 0.0], [np.inf, 1.0]]))
    array([1, 2])
    """
    if sp.issparse(X):
        return np.unique(np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))[~np.isfinite(X.data)])
    if X.dtype.kind != "f":
        return np.zeros(0, np.intp)
    found, step = [], max(1, AT_ONCE // max(1, X.shape[1]))
    for start in range(0, X.shape[0], step):
        block = np.asarray(X[start : start + step])
        if not np.isfinite(block).all():
            found.append(start + np.flatnonzero(~np.isfinite(block).all(axis=1)))
        hand_back(X)
    return np.concatenate(found) if found else np.zeros(0, np.intp)


def hand_back(X: Any) -> None:
    """Pages of a memory map that have been read count as memory of the process until they are handed back."""
    mapped = getattr(X, "_mmap", None)
    if mapped is not None and getattr(X, "mode", None) == "r" and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


def refuse_bad(
    path: Path,
    row: Any,
    number: int,
    n_bad: int,
    names: Sequence[str] | None,
    line: Callable[[int], int | None],
    among: str = "",
) -> FileFault:
    """The fault of a row with a missing or infinite number.

    Parameters
    ----------
    path : of the file
    row : its numbers
    number : of the row in the file, counted from 0
    n_bad : rows like this
    names : of the features
    line : where a row is
    among : where these were counted, if not in the whole file
    """
    values = (row.toarray() if sp.issparse(row) else np.asarray(row)).ravel()
    j = int(np.flatnonzero(~np.isfinite(values))[0])
    what = "a number is missing" if np.isnan(values[j]) else "a number is infinite"
    where = line(number)
    column = names[j] if names is not None else None
    places = [] if where is not None else [f"row {number:,} (counted from 0)"]
    places += [] if column is not None else [f"feature {j}"]
    others = f"; {n_bad:,} rows{among} have missing or infinite numbers" if n_bad > 1 else ""
    leave = f", leave the column out with --exclude-columns {column}" if column is not None else ""
    return FileFault(
        path,
        f"{what}{others}",
        f"Fill it in{leave}, or leave such rows out with --drop-missing.",
        line=where,
        column=column,
        where=", ".join(places) or None,
    )


def without_rows(path: Path, X: Any, dropped: IntArray, limit: float) -> tuple[Any, Callable[[], Any] | None]:
    """X without some rows, in memory or, where that is more than the limit in bytes, in a temporary file."""
    keep = np.ones(X.shape[0], bool)
    keep[dropped] = False
    if not keep.any():
        raise FileFault(
            path,
            "every row has a missing or infinite number, so that none is left",
            "Leave out the columns that are empty with --exclude-columns.",
        )
    if sp.issparse(X) or keep.sum() * X.shape[1] * X.dtype.itemsize <= limit:
        return X[np.flatnonzero(keep)], None
    with Spool(path, X.shape[1], X.dtype, float(keep.sum()) * X.shape[1] * X.dtype.itemsize) as spool:
        step = max(1, AT_ONCE // X.shape[1])
        for start in range(0, X.shape[0], step):
            spool.append(np.asarray(X[start : start + step])[keep[start : start + step]])
            hand_back(X)
        return spool.mapped(), spool.close


def dropped_note(n_dropped: int, n: int) -> str:
    """What is said of rows that were left out."""
    rows = "1 row was" if n_dropped == 1 else f"{n_dropped:,} rows were"
    return f"{rows} left out of {n:,}, because of missing or infinite numbers."
