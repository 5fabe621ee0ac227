"""The points that Algorithm 3 has in memory, and its passes: sums that the program needs, points that are represented worst."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpstrf, dtrtri

from mosaic.arrays.blocks import FloatArray, IntArray, Prepare, row_blocks, row_norms_squared
from mosaic.arrays.codes import KnownRows, row_codes
from mosaic.arrays.passes import BlockResult, Task
from mosaic.arrays.xp import times_triangle
from mosaic.kernels import PointKernel, check_similarities
from mosaic.program.factor import nothing_to_compare

#: Rows of a block whose kernel columns are in memory at a time.
ROWS_AT_ONCE = 1024
AS_THEY_ARE = Prepare()


@dataclass(frozen=True)
class Sample:
    """Distinct points, prepared."""

    rows: FloatArray
    codes: NDArray[np.uint64]
    first: NDArray[np.int64]  # number of the first row that is equal to the point
    counts: FloatArray  # number of rows that are equal to it
    weights: FloatArray  # rows that it stands for: copies and, in a random sample, points that were not drawn

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, places: Any) -> Sample:
        return Sample(*(part[places] for part in vars(self).values()))

    def standing_for(self, n: int) -> FloatArray:
        """The weights, scaled to the sum n."""
        return np.asarray(self.weights * (n / float(self.weights.sum())))

    def with_more(self, other: Sample) -> Sample:
        """These points, and those of the other sample that are not among them."""
        new = ~np.isin(other.codes, self.codes)
        both = zip(vars(self).values(), vars(other).values(), strict=True)
        return Sample(*(np.concatenate([mine, theirs[new]]) for mine, theirs in both))


def with_rows(rows: FloatArray, codes: NDArray[np.uint64], first: NDArray[np.int64]) -> Sample:
    """Points that were not drawn; each stands for itself only."""
    return Sample(rows, codes, first, np.ones(len(codes)), np.ones(len(codes)))


def counted(run: Callable[[str, Task], BlockResult], name: str, points: Sample, prepare: Prepare = AS_THEY_ARE) -> Sample:
    """Points that were not drawn, with the number of copies and the first row of each."""
    if not len(points):
        return points
    order = np.argsort(points.codes)
    copies = run(name, Copies(points.codes[order], prepare))
    counts = copies["counts"].astype(np.float64)
    return replace(points.take(order), first=copies["first"], counts=counts, weights=counts)


@dataclass(frozen=True)
class Copies:
    """The number of prepared rows that have each code, in ascending order, and the first of them."""

    codes: NDArray[np.uint64]
    prepare: Prepare = AS_THEY_ARE

    def map_block(self, rows: Any, start: int) -> BlockResult:
        place = KnownRows(self.codes, np.arange(len(self.codes))).find(row_codes(self.prepare(rows)))
        found = np.flatnonzero(place >= 0)
        first = np.full(len(self.codes), np.iinfo(np.int64).max)
        np.minimum.at(first, place[found], found + start)
        return {"counts": np.bincount(place[found], minlength=len(self.codes)), "first": first}

    def merge(self, left: BlockResult, right: BlockResult) -> BlockResult:
        return {"counts": left["counts"] + right["counts"], "first": np.minimum(left["first"], right["first"])}


@dataclass(frozen=True)
class Basis:
    """Independent candidates, L with K_SS = L Lᵀ between them: the map f = L⁻¹ k(·, S)."""

    kernel: PointKernel
    L: FloatArray

    @cached_property
    def inverse(self) -> FloatArray:
        return np.asarray(dtrtri(self.L, lower=1)[0])

    @classmethod
    def of(cls, kernel: PointKernel, candidates: IntArray) -> tuple[Basis, IntArray, IntArray]:
        """The basis of some points of a kernel, those in it, and those in its span."""
        K = kernel.block(candidates, candidates)
        largest = float(np.diagonal(K).max())
        if not largest > 0:
            raise nothing_to_compare()
        check_similarities(largest, kernel.dtype)
        # Candidates with a smaller residual make L too ill-conditioned for a certificate.
        _, pivots, rank, _ = dpstrf(K, lower=1, tol=1e-7 * largest)
        kept = np.sort(pivots[:rank] - 1)
        L = np.asfortranarray(np.linalg.cholesky(K[np.ix_(kept, kept)]))
        basis = cls(kernel.take(candidates[kept]), L)
        left = np.diagonal(K) - row_norms_squared(basis.features(K[:, kept].copy()))
        left[kept] = 0.0
        return basis, candidates[kept], candidates[left <= 1e-11 * largest]  # in the span up to rounding, they may have a row

    def features(self, columns: FloatArray) -> FloatArray:
        """f_i = L⁻¹ k_i, as rows."""
        return times_triangle(columns, self.inverse.T, lower=False)

    def features_of(self, rows: Any, prepare: Prepare) -> Iterator[tuple[slice, Any, FloatArray]]:
        """A few rows at a time: their slice, the prepared rows, and their features."""
        for part in row_blocks(rows.shape[0], 1, ROWS_AT_ONCE):
            Y = prepare(rows[part])
            yield part, Y, self.features(self.kernel.cross(Y))


@dataclass(frozen=True)
class GramSum:
    """G = Σ_i k_i k_iᵀ and tr K: all that the program needs of the data."""

    basis: Basis
    prepare: Prepare = AS_THEY_ARE

    def map_block(self, rows: Any, start: int) -> BlockResult:
        p = self.basis.kernel.n
        G, trace = np.zeros((p, p)), 0.0
        for part in row_blocks(rows.shape[0], 1, ROWS_AT_ONCE):
            Y = self.prepare(rows[part])
            columns = self.basis.kernel.cross(Y)
            G += columns.T @ columns
            trace += float(self.basis.kernel.diagonal_at(Y).sum())
        return {"G": G, "trace": np.float64(trace)}

    def merge(self, left: BlockResult, right: BlockResult) -> BlockResult:
        return {name: left[name] + right[name] for name in left}


@dataclass(frozen=True)
class Scores:
    """The largest z_j² = ‖Uᵀ f_j‖², and the distinct points with the largest errors
    e_j = k_jj − 2 k_jᵀ r_j + r_jᵀ K_SS r_j = Δ_jj + ‖V f_j‖², V = M⁻¹/lam, as in the paper; four times ``size``, for copies.
    """

    basis: Basis
    U: FloatArray
    V: FloatArray
    size: int
    prepare: Prepare = AS_THEY_ARE

    def map_block(self, rows: Any, start: int) -> BlockResult:
        z2, errors, codes = np.empty(rows.shape[0]), np.empty(rows.shape[0]), np.empty(rows.shape[0], np.uint64)
        for part, Y, F in self.basis.features_of(rows, self.prepare):
            codes[part] = row_codes(Y)
            left = np.maximum(self.basis.kernel.diagonal_at(Y) - row_norms_squared(F), 0.0)
            errors[part] = left + row_norms_squared((self.V @ F.T).T)
            z2[part] = row_norms_squared(times_triangle(F, self.U, lower=True))
        best = np.argsort(-errors, kind="stable")[: 4 * self.size]
        points = {"values": errors[best], "codes": codes[best], "first": best + start, "rows": np.asarray(rows[best])}
        return {"largest": z2.max(), "worst": _distinct(points, 4 * self.size)}

    def merge(self, left: BlockResult, right: BlockResult) -> BlockResult:
        worst = _distinct(_joined(left["worst"], right["worst"]), 4 * self.size)
        return {"largest": np.maximum(left["largest"], right["largest"]), "worst": worst}


def triangle(E: FloatArray) -> FloatArray:
    """U with U Uᵀ = EEᵀ, rounded up, so that ‖Eᵀ f_j‖ ≤ z_j = ‖Uᵀ f_j‖; triangular, which halves the work."""
    EE = E @ E.T
    EE[np.diag_indices_from(EE)] += 1e-13 * float(np.trace(EE))
    return np.linalg.cholesky(EE)


@dataclass(frozen=True)
class LargestScores:
    """The ``size`` largest z_j² of distinct points, z_j = ‖Uᵀ f_j‖, and the largest ‖f_j‖²: the input of the bound for k."""

    basis: Basis
    U: FloatArray
    size: int
    prepare: Prepare = AS_THEY_ARE

    def map_block(self, rows: Any, start: int) -> BlockResult:
        z2, codes, longest = np.empty(rows.shape[0]), np.empty(rows.shape[0], np.uint64), 0.0
        for part, Y, F in self.basis.features_of(rows, self.prepare):
            codes[part] = row_codes(Y)
            longest = max(longest, float(row_norms_squared(F).max()))
            z2[part] = row_norms_squared(times_triangle(F, self.U, lower=True))
        numbers = np.arange(start, start + len(z2))
        return {"best": _distinct({"values": z2, "codes": codes, "first": numbers}, self.size), "longest": longest}

    def merge(self, left: BlockResult, right: BlockResult) -> BlockResult:
        best = _distinct(_joined(left["best"], right["best"]), self.size)
        return {"best": best, "longest": max(left["longest"], right["longest"])}


def _joined(left: BlockResult, right: BlockResult) -> BlockResult:
    return {name: np.concatenate([left[name], right[name]]) for name in left}


def _distinct(points: BlockResult, most: int) -> BlockResult:
    """The distinct points with the largest values, in descending order."""
    order = np.lexsort((points["first"], -points["values"]))
    _, once = np.unique(points["codes"][order], return_index=True)
    order = order[np.sort(once)][:most]
    return {name: part[order] for name, part in points.items()}
