"""Missing and infinite numbers: refused with their place, or left out with their rows."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from mosaic._arrays import IntArray
from mosaic.data.faults import FileFault
from mosaic.data.features import Request

#: Of a row number, where the row is, as arguments of a fault.
Place: TypeAlias = Callable[[int], dict[str, Any]]
#: Numbers of an array that are looked at together.
NUMBERS_AT_ONCE = 1 << 22


class MissingNumbers:
    """Looks for missing and infinite numbers in blocks of rows. They are refused, or their rows are left out.

    Parameters
    ----------
    request : says which of the two (``drop_missing``)
    names : of the features, None where they have none
    place : of a row number, where it is, as arguments of a fault
    """

    def __init__(self, request: Request, names: Sequence[str] | None, place: Place):
        self._request, self._names, self._place = request, names, place
        self._dropped: list[IntArray] = []
        self.seen = 0

    def see(self, rows: Any, n: int | None = None) -> None:
        """Look at the rows that come after those seen before; ``n`` is the number of all rows, where that is known."""
        bad = bad_rows(rows)
        if len(bad) and not self._request.drop_missing:
            raise self._refused(rows[int(bad[0])], self.seen + int(bad[0]), len(bad), self.seen + rows.shape[0], n)
        self._dropped.append(self.seen + bad)
        self.seen += rows.shape[0]

    @property
    def dropped(self) -> IntArray:
        """Numbers of the rows that are left out, in order. Refused if no row remains."""
        dropped = np.concatenate(self._dropped) if self._dropped else np.zeros(0, np.intp)
        if len(dropped) and len(dropped) == self.seen:
            raise FileFault(
                self._request.path,
                "every row has a missing or infinite number, so that none is left",
                "Leave out the columns that are empty with `exclude_columns`.",
            )
        return dropped

    def notes(self, n: int) -> list[str]:
        """What is said of the rows that were left out of n."""
        dropped = len(self.dropped)
        if not dropped:
            return []
        rows = "1 row was" if dropped == 1 else f"{dropped:,} rows were"
        return [f"{rows} left out of {n:,}, because of missing or infinite numbers."]

    def _refused(self, row: Any, number: int, n_bad: int, n_seen: int, n: int | None) -> FileFault:
        values = (row.toarray() if sp.issparse(row) else np.asarray(row)).ravel()
        j = int(np.flatnonzero(~np.isfinite(values))[0])
        what = "a number is missing" if np.isnan(values[j]) else "a number is infinite"
        among = "" if n_seen == n else f" of the first {n_seen:,}"
        others = f"; {n_bad:,} rows{among} have missing or infinite numbers" if n_bad > 1 else ""
        place, column = self._place(number), None if self._names is None else self._names[j]
        if column is None:
            place["where"] = ", ".join([*([place["where"]] if "where" in place else []), f"feature {j}"])
        leave = "" if column is None else f", leave the column out with `exclude_columns={column!r}`"
        remedy = f"Fill it in{leave}, or leave such rows out with `drop_missing=True`."
        return FileFault(self._request.path, f"{what}{others}", remedy, column=column, **place)


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
    found, step = [np.zeros(0, np.intp)], max(1, NUMBERS_AT_ONCE // max(1, X.shape[1]))
    for start in range(0, X.shape[0], step):
        finite = np.isfinite(np.asarray(X[start : start + step]))
        if not finite.all():
            found.append(start + np.flatnonzero(~finite.all(axis=1)))
        hand_back(X)
    return np.concatenate(found)


def kept_rows(n: int, dropped: IntArray) -> IntArray:
    """Numbers of the rows that are not dropped."""
    return np.delete(np.arange(n), dropped)


def hand_back(X: Any) -> None:
    """Pages of a memory map that have been read count as memory of the process until they are handed back."""
    mapped = getattr(X, "_mmap", None)
    if mapped is not None and getattr(X, "mode", None) == "r" and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)
