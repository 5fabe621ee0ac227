"""K ≈ F Fᵀ without forming K: randomly pivoted, greedy and exact Cholesky, with a known error.

All three choose pivots one after another. The residual Δ = K − F Fᵀ stays positive semi-definite and is zero on the
pivots. Its trace is known at every step, so a factorisation stops as soon as the tolerance allows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
import scipy.sparse as sp

from mosaic.arrays.blocks import FloatArray, IntArray, Seed, in_blocks
from mosaic.arrays.parked import Columns
from mosaic.arrays.xp import (
    as_double,
    asarray_like,
    at_least_zero,
    cumulated,
    host_rows,
    in_precision_of,
    is_on_device,
    namespace,
    on_host,
    places_among,
    squares_of_rows,
    to_device_of,
    zero_at,
)
from mosaic.checks import one_of, whole_number
from mosaic.exceptions import InvalidInputError, MemoryBudgetError, NotPositiveSemidefiniteError
from mosaic.kernels import Kernel, check_similarities

Method: TypeAlias = Literal["random", "greedy", "exact"]
Stop: TypeAlias = Literal["tolerance", "rank", "memory", "exact"]

#: Pivots drawn together: wide enough for matrix products to run at full speed, narrow enough to waste few draws.
PIVOTS_PER_BLOCK = 64
#: Largest number of columns of a sparse explicit factor that is made dense.
MOST_DENSE_COLUMNS = 1024


@dataclass(frozen=True)
class Factor:
    """``K ≈ F Fᵀ``; ``residual`` is the diagonal of Δ = K − F Fᵀ and ``error`` its (weighted) trace."""

    F: FloatArray
    pivots: IntArray
    residual: FloatArray
    trace: float
    error: float
    stopped: Stop

    @property
    def rank(self) -> int:
        """Number of columns of F."""
        return int(self.F.shape[1])

    @property
    def relative_error(self) -> float:
        """Tr Δ / tr K."""
        return self.error / self.trace


def factorize(
    kernel: Kernel,
    *,
    method: Method = "random",
    tol: float = 1e-4,
    max_rank: int | None = None,
    memory_budget: float | None = None,
    weights: FloatArray | None = None,
    candidates: IntArray | None = None,
    random_state: Seed = 0,
    callback: Callable[[int, float], None] | None = None,
) -> Factor:
    """Factor a kernel until tr Δ ≤ tol · tr K, or to a rank, or to a memory budget.

    Parameters
    ----------
    kernel : the similarity; linear and cosine kernels with fewer features than points are their own factor
    method : "random" draws pivots with probability proportional to the residual diagonal (accelerated randomly pivoted
        Cholesky), "greedy" takes the largest, "exact" ignores ``tol`` and continues to rounding level
    tol : relative trace error to stop at
    max_rank : largest number of columns
    memory_budget : bytes of peak memory for the factor
    weights : weight of each point in the trace and in the draws
    candidates : points that must be approximated whatever their weight; together they count in the draws as much as all
        weights, and the factorisation continues until their relative trace error, too, is within ``tol``
    random_state : seed of the draws
    callback : called with (rank, relative error) after every block

    Examples
    --------
    >>> import numpy as np
    >>> from mosaic.kernels import make_kernel
    >>> X = np.linspace(0, 1, 300)[:, None]
    >>> factor = factorize(make_kernel(X, "rbf", gamma=1.0), tol=1e-6)
    >>> factor.rank < 10, factor.relative_error <= 1e-6
    (True, True)
    """
    n = kernel.n
    one_of("method", method, get_args(Method))
    if max_rank is not None:
        whole_number("max_rank", max_rank, remedy="None sets no limit.")
    ω = np.ones(n) if weights is None else weights
    diagonal = kernel.diagonal()
    trace = float(ω @ diagonal)
    if not trace > 0:
        raise nothing_to_compare()
    check_similarities(float(diagonal.max()), kernel.dtype)
    explicit = kernel.explicit_factor()
    features = 0 if explicit is None else explicit.shape[1]
    limit = _rank_limit(n, kernel.dtype.itemsize, max_rank, memory_budget)
    if (
        explicit is not None
        and features < n
        and features <= limit
        and not (sp.issparse(explicit) and features > MOST_DENSE_COLUMNS)
    ):
        F = (
            explicit
            if is_on_device(explicit)
            else np.ascontiguousarray(explicit.toarray() if sp.issparse(explicit) else explicit)
        )
        return Factor(F, np.zeros(0, np.intp), np.zeros(n), trace, 0.0, "exact")
    rows_matter = np.zeros(n)
    if candidates is not None and len(candidates):
        rows_matter[candidates] = float(ω.sum()) / len(candidates)
    state = _Pivoting(kernel, ω, rows_matter, diagonal, method, np.random.default_rng(random_state))
    # Below this level the residual is rounding error.
    floor = 50 * float(np.finfo(kernel.dtype).eps)
    target = floor if method == "exact" else max(tol, floor)
    stopped: Stop = "exact" if target == floor else "tolerance"
    while state.largest_error > target * trace:
        room = min(limit - state.rank, 1 if method == "greedy" else PIVOTS_PER_BLOCK)
        if room <= 0:
            stopped = "memory" if max_rank is None or limit < max_rank else "rank"
            if limit >= n:
                stopped = "exact"
            break
        if not state.extend(room):
            break
        if callback is not None:
            callback(state.rank, state.error / trace)
    return Factor(
        state.columns.F, np.array(state.pivots, np.intp), on_host(state.residual), trace, state.error, stopped
    )


def nothing_to_compare() -> InvalidInputError:
    """The error for points that all have length 0."""
    return InvalidInputError(
        "all similarities are zero, so no point can represent another",
        "Check the data (all rows zero?) or the `kernel`.",
    )


def _rank_limit(n: int, itemsize: int, max_rank: int | None, memory_budget: float | None) -> int:
    """Largest number of columns. Memory for two factors is counted, because growing and later steps may copy the factor."""
    limit = n if max_rank is None else min(n, max_rank)
    if memory_budget is None:
        return limit
    affordable = int(memory_budget // (2 * n * itemsize))
    if affordable < 1:
        raise MemoryBudgetError(
            f"of {memory_budget:,.0f} bytes holds no factor of {n:,} points: one column takes "
            f"{2 * n * itemsize:,} bytes at its peak, a usual factor {2 * n * itemsize * PIVOTS_PER_BLOCK:,}",
            "Raise the budget or pass fewer points.",
            parameter="memory_budget",
        )
    return min(limit, affordable)


class _Pivoting:
    """The growing factor: its columns, pivots and the diagonal of the residual."""

    def __init__(
        self,
        kernel: Kernel,
        ω: FloatArray,
        rows_matter: FloatArray,
        diagonal: FloatArray,
        method: Method,
        rng: np.random.Generator,
    ):
        self.kernel, self.method, self.rng = kernel, method, rng
        self.largest = float(diagonal.max())
        self.columns = Columns(kernel.device_block(slice(0, 1), np.zeros(1, np.intp)), kernel.n, kernel.dtype)
        self.residual, self.ω, self.rows_matter = (
            to_device_of(self.columns.near, values) for values in (diagonal.astype(np.float64), ω, rows_matter)
        )
        self.pivots: list[int] = []

    @property
    def rank(self) -> int:
        return len(self.pivots)

    @property
    def error(self) -> float:
        return float(self.ω @ self.residual)

    @property
    def largest_error(self) -> float:
        """The larger of the errors for the targets and for the candidates."""
        return max(self.error, float(self.rows_matter @ self.residual))

    def extend(self, room: int) -> bool:
        """Add up to ``room`` pivots; False if only rounding is left of the points."""
        for _ in range(3):
            drawn = self._draw(room)
            gram = self._residual_gram(drawn)
            accepted = [0] if self.method == "greedy" else self._reject(gram, self.rng.random(len(gram)))
            if accepted:
                self._append(drawn[accepted], gram[np.ix_(accepted, accepted)])
                return True
        return False

    def _draw(self, room: int) -> IntArray:
        if self.method == "greedy":
            return np.array([int(namespace(self.residual).argmax(self.residual))])
        cumulative = cumulated((self.ω + self.rows_matter) * self.residual)
        drawn = places_among(cumulative, self.rng.random(room) * float(cumulative[-1]))
        return np.asarray(np.minimum(drawn, self.kernel.n - 1))

    def _residual_gram(self, drawn: IntArray) -> FloatArray:
        gram = self.kernel.block(drawn, drawn)
        if not self.rank:
            return gram
        chosen = host_rows(self.columns.F, drawn)
        return np.asarray(gram - chosen @ chosen.T)

    def _reject(self, gram: FloatArray, chance: FloatArray) -> list[int]:
        """Keep a draw with probability (its residual after earlier draws of the block) / (its residual when it was drawn).

        So a block of draws has the same distribution as single draws, one after another. A point that is drawn twice is accepted
        once: its residual is zero at the second draw.
        """
        left = gram.copy()
        drawn_for = np.diagonal(gram).copy()
        noise = 20 * float(np.finfo(self.kernel.dtype).eps) * self.largest
        accepted: list[int] = []
        for i, u in enumerate(chance):
            if left[i, i] > noise and left[i, i] >= u * drawn_for[i]:
                accepted.append(i)
                column = left[i:, i] / np.sqrt(left[i, i])
                left[i:, i:] -= np.outer(column, column)
        return accepted

    def _append(self, pivots: IntArray, gram: FloatArray) -> None:
        try:
            L = np.linalg.cholesky(gram)
        except np.linalg.LinAlgError:
            L = np.linalg.cholesky(gram + 1e-12 * np.trace(gram) * np.eye(len(gram)))
        rank, columns = self.rank, self.columns
        at_pivots = asarray_like(columns.near, host_rows(columns.F, pivots) if rank else np.zeros((len(pivots), 0)))
        columns.add(len(pivots))
        inverse = asarray_like(columns.near, np.linalg.inv(L))

        def extend(rows: slice) -> None:
            part = in_precision_of(columns.near, self.kernel.device_block(rows, pivots).T)
            if rank:
                part = part - at_pivots @ columns.before(rows)
            new = inverse @ part
            columns.put(rows, new)
            self.residual[rows] -= as_double(squares_of_rows(new.T))

        entries, serial = self.kernel.block_entries, self.kernel.on_device
        in_blocks(extend, self.kernel.n, max(len(pivots), rank), entries, serial=serial)
        worst = float(namespace(self.residual).min(self.residual))
        if worst < -1e5 * float(np.finfo(self.kernel.dtype).eps) * self.largest:
            j = int(namespace(self.residual).argmin(self.residual))
            raise NotPositiveSemidefiniteError(
                f"the similarity is not positive semi-definite: after {self.rank + len(pivots)} pivots the squared length "
                f"left of point {j} is {worst:.3g} (largest diagonal entry {self.largest:.3g})",
                "Clip the negative eigenvalues or choose a positive semi-definite kernel.",
            )
        self.residual = zero_at(at_least_zero(self.residual), pivots)
        self.pivots.extend(int(j) for j in pivots)
