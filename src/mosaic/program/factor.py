"""K ≈ F Fᵀ without forming K: randomly pivoted Cholesky, with a known error.

Pivots are chosen one after another. The residual Δ = K − F Fᵀ stays positive semi-definite and is zero on the pivots. Its trace
is known at every step, so a factorisation stops as soon as the tolerance allows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from mosaic.arrays.blocks import (
    NO_ROWS,
    PRODUCT_ENTRIES,
    FloatArray,
    IntArray,
    Seed,
    in_blocks,
    row_norms_squared,
)
from mosaic.arrays.xp import (
    asarray_like,
    empty_on_device_of,
    host_rows,
    is_on_device,
    namespace,
    numpy_dtype,
)
from mosaic.exceptions import InvalidInputError, NotPositiveSemidefiniteError
from mosaic.kernels import Kernel, check_similarities

#: Pivots drawn together: wide enough for matrix products to run at full speed, narrow enough to waste few draws.
PIVOTS_PER_BLOCK = 64


@dataclass(frozen=True)
class Factor:
    """``K ≈ F Fᵀ``, Δ = K − F Fᵀ."""

    F: FloatArray
    pivots: IntArray
    residual: FloatArray  # the diagonal of Δ
    trace: float  # of K, weighted
    error: float  # the trace of Δ, weighted
    is_finest: bool  # rank or rounding stopped it, and not its tolerance

    @property
    def rank(self) -> int:
        return int(self.F.shape[1])

    @property
    def relative_error(self) -> float:
        return self.error / self.trace


def factorize(
    kernel: Kernel,
    *,
    tol: float = 1e-4,
    max_rank: int | None = None,
    weights: FloatArray | None = None,
    among: IntArray | None = None,
    random_state: Seed = 0,
) -> Factor:
    """Factor a kernel until tr Δ ≤ tol · tr K, or to a rank; 0 continues to rounding level.

    Pivots are drawn with probability proportional to the residual diagonal (accelerated randomly pivoted Cholesky). ``weights``
    are those of the points in the trace and in the draws; all points together count in the draws as much as all weights, and
    their relative trace error, too, must be within ``tol``. With ``among``, only these points are pivots, and only theirs is the
    error that ends it. Linear and cosine kernels with few features are their own factor.
    """
    n = kernel.n
    dtype = kernel.dtype
    ω = np.ones(n) if weights is None else weights
    diagonal = kernel.diagonal()
    trace = float(ω @ diagonal)
    largest = float(diagonal.max())
    if not trace > 0:
        raise nothing_to_compare()
    check_similarities(largest, kernel.dtype)
    limit = n if max_rank is None else min(n, max_rank)
    F = kernel.X
    if kernel.is_factor and F.shape[1] <= min(n - 1, limit, 1024 if sp.issparse(F) else n):
        F = F.toarray() if sp.issparse(F) else F if is_on_device(F) else np.ascontiguousarray(F)
        return Factor(F, NO_ROWS, np.zeros(n), trace, 0.0, True)
    here = np.ones(n) if among is None else np.bincount(among, minlength=n)
    by_weight = here * ω
    by_number = here * float(ω.mean())
    eps = float(np.finfo(dtype).eps)
    target = max(tol, 50 * eps)  # below this level the residual is rounding error
    is_finest = tol <= 50 * eps and among is None
    rng = np.random.default_rng(random_state)
    left = diagonal.astype(np.float64)
    Ft = empty_on_device_of(kernel.X, (0, n), dtype)
    pivots = NO_ROWS
    while max(by_weight @ left, by_number @ left) > target * trace:
        room = min(limit - len(pivots), PIVOTS_PER_BLOCK)
        if room <= 0:
            is_finest = True
            break
        new, L = _draw(kernel, Ft, (by_weight + by_number) * left, room, rng, 20 * eps * largest)
        if not len(new):
            break
        Ft = _extended(kernel, Ft, new, L, left)
        pivots = np.concatenate([pivots, new])
        worst = float(left.min())
        if worst < -1e5 * eps * largest:
            raise NotPositiveSemidefiniteError(
                f"the similarity is not positive semi-definite: after {len(pivots)} pivots the squared length "
                f"left of point {int(left.argmin())} is {worst:.3g} (largest diagonal entry {largest:.3g})",
                "Clip the negative eigenvalues or choose a positive semi-definite kernel.",
            )
        np.maximum(left, 0.0, out=left)
        left[new] = 0.0
    return Factor(Ft.T, pivots, left, trace, float(ω @ left), is_finest)


def nothing_to_compare() -> InvalidInputError:
    """The error for points that all have length 0."""
    return InvalidInputError(
        "all similarities are zero, so no point can represent another",
        "Check the data (all rows zero?) or the `kernel`.",
    )


def _draw(
    kernel: Kernel,
    Ft: FloatArray,
    chances: FloatArray,
    room: int,
    rng: np.random.Generator,
    noise: float,
) -> tuple[IntArray, FloatArray]:
    """Up to ``room`` pivots, and L with L Lᵀ = Δ between them; none if only rounding is left. A draw is kept with probability
    (residual after earlier draws of the block) / (its residual when it was drawn): a block is distributed as single draws, one
    after another.
    """
    cumulative = np.cumsum(chances)
    for _ in range(3):
        drawn = np.searchsorted(cumulative, rng.random(room) * cumulative[-1], side="right")
        drawn = np.minimum(drawn, kernel.n - 1)
        chosen = host_rows(Ft.T, drawn)
        left = kernel.block(drawn, drawn) - chosen @ chosen.T
        before = left.diagonal().copy()
        kept = list[int]()
        columns = list[FloatArray]()
        for i, u in enumerate(rng.random(room)):
            if left[i, i] > max(noise, u * before[i]):
                column = left[i] / np.sqrt(left[i, i])
                left -= np.outer(column, column)
                kept.append(i)
                columns.append(column)
        if kept:
            return drawn[kept], np.tril(np.transpose(columns)[kept])
    return drawn[:0], left[:0, :0]


def _extended(
    kernel: Kernel, Ft: FloatArray, pivots: IntArray, L: FloatArray, left: FloatArray
) -> FloatArray:
    """Fᵀ with a row L⁻¹ (K[pivots] − F[pivots] Fᵀ) for each pivot, L Lᵀ = Δ between them; ``left``, diag Δ, is updated."""
    rank, n = Ft.shape
    at_pivots = asarray_like(Ft, host_rows(Ft.T, pivots))
    inverse = asarray_like(Ft, np.linalg.inv(L))
    if isinstance(Ft, np.ndarray):
        # No data is moved if the system can remap memory.
        Ft.resize((rank + len(pivots), n), refcheck=False)
    else:
        Ft = namespace(Ft).concat(
            [Ft, empty_on_device_of(Ft, (len(pivots), n), numpy_dtype(Ft))], axis=0
        )

    def extend(rows: slice) -> None:
        part = asarray_like(Ft, kernel.device_block(rows, pivots).T)
        new = inverse @ (part - at_pivots @ Ft[:rank, rows] if rank else part)
        Ft[rank:, rows] = new
        left[rows] -= row_norms_squared(new.T).astype(np.float64)

    in_blocks(extend, n, max(len(pivots), rank), PRODUCT_ENTRIES, on=kernel.X)
    return Ft
