"""Codes of rows: which rows are equal, and numbers for drawing samples that depend on the rows alone."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mosaic.arrays.blocks import BoolArray, FloatArray, IntArray, in_blocks, row_blocks
from mosaic.arrays.xp import (
    Matrix,
    as_double,
    is_on_device,
    namespace,
    on_host,
    rows_of,
    to_device_of,
)

Codes: TypeAlias = NDArray[np.uint64]


class EqualRows(NamedTuple):
    """Groups of equal rows, by first occurrence: ``first[g]`` is the first row of group g, ``group[i]`` the group of row i."""

    first: IntArray
    group: IntArray

    @classmethod
    def trivial(cls, n: int) -> EqualRows:
        return cls(np.arange(n), np.arange(n))

    @property
    def n(self) -> int:
        return len(self.group)

    @property
    def is_trivial(self) -> bool:
        return len(self.first) == len(self.group)

    def sums(self, values: FloatArray | BoolArray) -> FloatArray:
        return np.bincount(self.group, values, len(self.first)).astype(np.float64)


def equal_rows(X: Matrix, codes: Codes | None = None) -> EqualRows:
    """Groups of exactly equal rows: rows with equal ``row_codes`` are compared."""
    n = X.shape[0]
    codes = row_codes(X) if codes is None else codes
    values = np.sort(codes)
    if not (values[1:] == values[:-1]).any():
        return EqualRows.trivial(n)
    order = np.argsort(codes, kind="stable")
    same = codes[order[1:]] == codes[order[:-1]]
    pairs = np.flatnonzero(same)
    for block in row_blocks(len(pairs), X.shape[1]):
        left = order[pairs[block]]
        right = order[pairs[block] + 1]
        same[pairs[block]] = rows_equal(rows_of(X, left), rows_of(X, right))
    group_in_order = np.concatenate([[0], np.cumsum(~same)])
    # Stable sort: the smallest index of each group.
    first_in_order = order[np.concatenate([[True], ~same])]
    rank = np.argsort(np.argsort(first_in_order))
    group = np.empty(n, dtype=np.intp)
    group[order] = rank[group_in_order]
    return EqualRows(np.sort(first_in_order), group)


def rows_equal(A: Matrix, B: Matrix) -> BoolArray:
    """Whether a_i = b_i in all entries, for two matrices that are both dense or both sparse."""
    if sp.issparse(A):
        return np.asarray((A != B).sum(axis=1) == 0).ravel()
    return on_host(namespace(A).all(A == B, axis=1))


class KnownRows(NamedTuple):
    """Rows that are recognised by their codes, or by other numbers: ``codes`` in ascending order, and the place of each."""

    codes: NDArray[Any]
    row: IntArray

    @classmethod
    def of(cls, codes: NDArray[Any]) -> KnownRows:
        order = np.argsort(codes, kind="stable")
        return cls(codes[order], order)

    def find(self, codes: NDArray[Any]) -> IntArray:
        """The first row with each code, -1 if there is none."""
        place = np.minimum(np.searchsorted(self.codes, codes), len(self.codes) - 1)
        return np.where(self.codes[place] == codes, self.row[place], -1)


def row_codes(X: Matrix) -> Codes:
    """An exact 64-bit hash of every row, Σ_j m_j · bits(x_ij): equal rows have equal codes."""
    multipliers = _multipliers(X.shape[1])
    if sp.issparse(X):
        codes = _bits(X.data) * multipliers[X.indices]
        codes[X.data == 0] = 0
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(codes, dtype=np.uint64)])
        return np.asarray(sums[X.indptr[1:]] - sums[X.indptr[:-1]])
    on_device = is_on_device(X)
    # Signed integers on a device, since unsigned ones are rare there: their products wrap around alike.
    factors = to_device_of(X, multipliers.view(np.int64)) if on_device else multipliers
    bits = _bits_on_device if on_device else _bits

    def add(part: slice) -> Any:
        return on_host(namespace(X).sum(bits(rows_of(X, part)) * factors, axis=1))

    return np.concatenate(in_blocks(add, X.shape[0], X.shape[1], on=X)).view(np.uint64)


def priority(codes: Codes) -> Codes:
    """A random number for each code that depends on the code alone (splitmix64); different codes differ."""
    h = codes + np.uint64(0x9E3779B97F4A7C15)
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


def _bits(values: FloatArray) -> Codes:
    """The bits of double precision numbers, −0.0 as 0.0, mixed: round numbers have zero low bits."""
    found = (np.ascontiguousarray(values, dtype=np.float64) + 0.0).view(np.uint64)
    return found ^ (found >> np.uint64(29))


def _bits_on_device(values: Any) -> Any:
    values, can = as_double(values) + 0.0, hasattr(values, "view")
    if can:
        found = values.view(namespace(values).int64)
    else:
        found = to_device_of(values, on_host(values).view(np.int64))
    return found ^ ((found >> 29) & ((1 << 35) - 1))


@lru_cache(64)
def _multipliers(count: int) -> Codes:
    rng = np.random.default_rng(0x6D6F73616963)
    return rng.integers(0, 2**63, size=count, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
