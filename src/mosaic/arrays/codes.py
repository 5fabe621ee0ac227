"""Codes of rows: which rows are equal, and numbers for drawing samples that depend on the rows alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mosaic.arrays.blocks import BLOCK_ENTRIES, FloatArray, IntArray, in_blocks, row_blocks
from mosaic.arrays.scaling import row_lengths
from mosaic.arrays.xp import (
    as_double,
    as_integers,
    as_unsigned,
    bits,
    block_entries,
    int64_constant,
    is_on_device,
    namespace,
    on_host,
    repeated,
    rows_of,
    shifted_right,
    times_power_of_two,
    to_device_of,
    with_values,
)

BoolArray: TypeAlias = NDArray[np.bool_]


class EqualRows(NamedTuple):
    """Groups of equal rows, by first occurrence: ``first[g]`` is the first row of group g, ``group[i]`` the group of row i.

    Examples
    --------
    >>> import numpy as np
    >>> equal = equal_rows(np.array([[3.0], [1.0], [3.0], [2.0], [1.0]]))
    >>> equal.first.tolist(), equal.group.tolist(), equal.n, equal.is_trivial
    ([0, 1, 3], [0, 1, 0, 2, 1], 5, False)
    """

    first: IntArray
    group: IntArray

    @classmethod
    def trivial(cls, n: int) -> EqualRows:
        """Groups of one row each, for n rows."""
        numbers = np.arange(n)
        return cls(numbers, numbers)

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.group)

    @property
    def is_trivial(self) -> bool:
        """Whether all rows differ."""
        return len(self.first) == len(self.group)

    def sums(self, values: FloatArray | BoolArray) -> FloatArray:
        """The sum of a value over the rows of each group."""
        if self.is_trivial:
            return np.asarray(values, np.float64)
        return np.asarray(np.bincount(self.group, weights=values, minlength=len(self.first)), np.float64)


def equal_rows(X: Any, codes: NDArray[np.uint64] | None = None) -> EqualRows:
    """Groups of exactly equal rows: rows with equal ``row_codes`` are compared. Pass ``codes`` if they are known already."""
    n = X.shape[0]
    codes = _codes(X) if codes is None else codes
    if not len(repeated(codes)):
        return EqualRows.trivial(n)
    codes = as_unsigned(codes)
    order = np.argsort(codes, kind="stable")
    same = codes[order[1:]] == codes[order[:-1]]
    pairs = np.flatnonzero(same)
    for block in row_blocks(len(pairs), X.shape[1]):
        left, right = order[pairs[block]], order[pairs[block] + 1]
        same[pairs[block]] = rows_equal(rows_of(X, left), rows_of(X, right))
    group_in_order = np.concatenate([[0], np.cumsum(~same)])
    first_in_order = order[np.concatenate([[True], ~same])]  # stable sort: the smallest index of each group
    rank = np.argsort(np.argsort(first_in_order))
    group = np.empty(n, dtype=np.intp)
    group[order] = rank[group_in_order]
    return EqualRows(np.sort(first_in_order), group)


def rows_equal(A: Any, B: Any) -> BoolArray:
    """Whether a_i = b_i in all entries, for two matrices that are both dense or both sparse."""
    if sp.issparse(A):
        return np.asarray((A != B).sum(axis=1) == 0).ravel()
    return np.asarray(on_host(namespace(A).all(A == B, axis=1)))


class KnownRows(NamedTuple):
    """Rows that are recognised by their codes: ``codes`` in ascending order, and the row number of each.

    Examples
    --------
    >>> import numpy as np
    >>> known = KnownRows.of(row_codes(np.array([[3.0], [1.0]])))
    >>> known.find(row_codes(np.array([[1.0], [2.0], [3.0]]))).tolist()
    [1, -1, 0]
    """

    codes: NDArray[np.uint64]
    row: IntArray

    @classmethod
    def of(cls, codes: NDArray[np.uint64]) -> KnownRows:
        """Build from the codes of rows, in row order."""
        order = np.argsort(codes)
        return cls(codes[order], order)

    def find(self, codes: NDArray[np.uint64]) -> IntArray:
        """The number of the known row with each code, -1 if there is none."""
        place = np.minimum(np.searchsorted(self.codes, codes), len(self.codes) - 1)
        return np.where(self.codes[place] == codes, self.row[place], -1)


def row_codes(X: Any) -> NDArray[np.uint64]:
    """An exact 64-bit hash of every row: equal rows have equal codes."""
    return as_unsigned(_codes(X))


def _codes(X: Any) -> Any:
    """The codes of rows, where X is."""
    multipliers = _multipliers(X.shape[1])
    if sp.issparse(X):
        codes = _bits(X.data) * multipliers[X.indices]
        codes[X.data == 0] = 0
        return _sums_of_rows(codes, X.indptr)
    factors = to_device_of(X, multipliers.view(np.int64)) if is_on_device(X) else multipliers
    return _sum_of_columns(X, lambda block: _bits(block) * factors)


def _sum_of_columns(X: Any, of: Callable[[Any], Any]) -> Any:
    """Σ_j of(x_ij) for every row of a dense matrix, where ``of`` maps a block of numbers to integers."""

    def add(part: slice) -> Any:
        return namespace(X).sum(of(rows_of(X, part)), axis=1)

    entries, serial = block_entries(X, BLOCK_ENTRIES), is_on_device(X)
    return namespace(X).concat(in_blocks(add, X.shape[0], X.shape[1], entries, serial=serial))


def _sums_of_rows(values: NDArray[np.uint64], indptr: IntArray) -> NDArray[np.uint64]:
    """The sums of the entries of every row of a CSR matrix."""
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(values, dtype=np.uint64)])
    return np.asarray(sums[indptr[1:]] - sums[indptr[:-1]])


def priority(codes: NDArray[np.uint64], seed: int = 0) -> NDArray[np.uint64]:
    """A random number for each code that depends on the code and the seed alone; different codes have different ones."""
    return np.asarray(_finalised(codes + np.uint64((0x9E3779B97F4A7C15 * 2 * seed) % 2**64)))


def row_priorities(X: Any) -> Any:
    """A pseudorandom number for every row that depends on its content, and hardly ever on rotation, column order or unit.

    The number is a hash of the row's length if no other row has that length: rotating the rows, permuting columns or
    multiplying by 1024 does not change it. Rows of equal length use a hash of their values, in any column order. Rows with the
    same values in different columns, such as rows of zeros and ones, use a hash of values and columns. Subsets drawn by these
    numbers hardly change when a few rows are added or removed. Numbers are uint64, or their bits as int64 on a device.
    """
    shift = _unit_shift(X)
    codes = _finalised(_rounded_lengths(X, shift))
    for finer in (_value_codes, _placed_codes):
        alike = repeated(codes)
        if not len(alike):
            break
        rows = rows_of(X, alike)
        codes = with_values(codes, alike, _finalised(finer(rows if sp.issparse(X) else on_host(rows), shift)))
    return codes


def _unit_shift(X: Any) -> int:
    """The s for which the longest row, times 2^s, has a length between ½ and 1. Rotation does not change it."""
    longest = float(row_lengths(X).max(initial=0.0)) ** 2
    # Normalised rows have length 1 up to rounding, so the unit must not change at 1.
    return -((int(np.frexp(longest * (1.0 + 1e-6))[1]) + 1) // 2)


def _rounded_lengths(X: Any, shift: int) -> Any:
    """‖2^shift x‖² ≤ 1 for every row, in steps of 2⁻³². Squares are added as integers."""
    places = 60 - int(X.shape[1]).bit_length()

    def squares(values: Any) -> Any:
        return as_integers(times_power_of_two(as_double(values) ** 2, places))

    return shifted_right(_row_sums(X, shift, squares), places - 32)


def _value_codes(X: Any, shift: int) -> Any:
    """A hash of every row: its values times 2^shift are hashed one by one and added."""
    return _row_sums(X, shift, _mixed)


def _row_sums(X: Any, shift: int, of: Callable[[Any], Any]) -> Any:
    """Σ_j of(2^shift x_j) for every row, the same for any column order; ``of`` maps 0 to 0."""
    if sp.issparse(X):
        return _sums_of_rows(of(np.ldexp(X.data, shift)), X.indptr)
    return _sum_of_columns(X, lambda block: of(times_power_of_two(block, shift)))


def _placed_codes(X: Any, shift: int) -> Any:
    """A hash of every row from its values times 2^shift and their columns."""
    if sp.issparse(X):
        return _codes(sp.csr_array((np.ldexp(X.data, shift), X.indices, X.indptr), shape=X.shape))
    return _codes(times_power_of_two(X, shift))


def _mixed(values: FloatArray) -> NDArray[np.uint64]:
    """Hashes of values. Zeros hash to 0, so that stored and missing zeros of a sparse matrix are the same."""
    mixed: NDArray[np.uint64] = _finalised(np.ascontiguousarray(values, dtype=np.float64).view(np.uint64))
    mixed[np.asarray(values) == 0] = 0
    return mixed


def _finalised(h: Any) -> Any:
    """The finaliser of splitmix64."""
    h = h + int64_constant(0x9E3779B97F4A7C15, h)
    h = (h ^ shifted_right(h, 30)) * int64_constant(0xBF58476D1CE4E5B9, h)
    h = (h ^ shifted_right(h, 27)) * int64_constant(0x94D049BB133111EB, h)
    return h ^ shifted_right(h, 31)


def _bits(values: Any) -> Any:
    found = bits(values)
    return found ^ shifted_right(found, 29)  # round numbers have zero low bits; mix before multiplying


@lru_cache(64)
def _multipliers(count: int) -> NDArray[np.uint64]:
    rng = np.random.default_rng(0x6D6F73616963)
    return rng.integers(0, 2**63, size=count, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
