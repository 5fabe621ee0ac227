"""Linear algebra with positive definite matrices, on their device: LAPACK for NumPy arrays, their own library for others."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dtrsm, strsm
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs, dpstrf, spotrf, spotri, spotrs

from mosaic.arrays.xp import asarray_like, namespace

#: Columns of a triangle that are multiplied with at a time.
COLUMNS_OF_A_TRIANGLE = 64
#: Rows and columns of a square that is transposed at a time.
TILE = 128


def cholesky(A: Any) -> Any:
    """L with L Lᵀ = A, overwriting the symmetric A; entries above the diagonal are 0 on a CPU and arbitrary elsewhere."""
    if isinstance(A, np.ndarray):
        L, info = (spotrf if A.dtype == np.float32 else dpotrf)(A.T, lower=1, overwrite_a=1)
        if info != 0:
            raise np.linalg.LinAlgError("matrix is not positive definite")
        return np.asarray(L)
    try:
        L = namespace(A).linalg.cholesky(A)
    except Exception as error:  # libraries have exceptions of their own
        raise np.linalg.LinAlgError("matrix is not positive definite") from error
    if not np.isfinite(float(L[-1, -1])):  # CuPy raises nothing
        raise np.linalg.LinAlgError("matrix is not positive definite")
    return L


def solve_lower(L: Any, B: Any) -> Any:
    """L⁻¹ B for a lower triangle L; the entries of L above the diagonal are not used."""
    if isinstance(L, np.ndarray):
        return np.asarray((strsm if L.dtype == np.float32 else dtrsm)(1.0, L, B, lower=1))
    return _solve_triangle(L, B, upper=False)


def solve_with(L: Any, b: Any) -> Any:
    """(L Lᵀ)⁻¹ b for a lower triangle L."""
    if isinstance(L, np.ndarray):
        return (spotrs if L.dtype == np.float32 else dpotrs)(L, b, lower=1)[0]
    columns = b[:, None] if b.ndim == 1 else b
    found = _solve_triangle(L.T, _solve_triangle(L, columns, upper=False), upper=True)
    return found[:, 0] if b.ndim == 1 else found


def _solve_triangle(L: Any, B: Any, *, upper: bool) -> Any:
    """The array API standard has no triangular solve, so each library is asked for its own."""
    library = type(L).__module__.partition(".")[0]
    if library == "torch":
        import torch

        return torch.linalg.solve_triangular(L, B, upper=upper)
    if library == "cupy":
        from cupyx.scipy.linalg import solve_triangular

        return solve_triangular(L, B, lower=not upper)
    xp = namespace(L)
    return xp.linalg.solve(xp.triu(L) if upper else xp.tril(L), B)


def inverse(A: NDArray[Any]) -> NDArray[Any]:
    """Inverse of a symmetric positive definite matrix through its Cholesky factor: half the work of the general case.

    Matrices of middle size are inverted by halves, [P Wᵀ; W S]: LAPACK is slow there, and products are not.
    """
    half = len(A) // 2
    if 32 < half <= 256:
        P = inverse(A[:half, :half].copy())
        W = A[half:, :half] @ P
        S = inverse(A[half:, half:] - W @ A[:half, half:])
        SW = S @ W
        return np.block([[P + W.T @ SW, -SW.T], [-SW, S]])
    found, info = (spotri if A.dtype == np.float32 else dpotri)(cholesky(A), lower=1, overwrite_c=1)
    if info != 0:
        raise np.linalg.LinAlgError("matrix is not invertible")
    # The upper triangle is 0. It is filled in tiles, so that both sides of a tile stay in the cache.
    for start in range(0, len(found), TILE):
        rows = slice(start, start + TILE)
        for below in range(start + TILE, len(found), TILE):
            found[rows, below : below + TILE] = found[below : below + TILE, rows].T
        found[rows, rows] += found[rows, rows].T
    np.einsum("ii->i", found)[:] *= 0.5
    return np.asarray(found)


def pivoted_root(A: NDArray[Any], tol: float = -1.0) -> NDArray[np.float64]:
    """F with F Fᵀ = A for a semi-definite A, by Cholesky with pivoting, until no diagonal entry left is above ``tol``.

    Without ``tol``, entries are rounding below n · eps of the largest.
    """
    c, pivots, rank, _ = dpstrf(A, tol=tol, lower=1)
    F = np.zeros((len(A), rank))
    F[pivots - 1] = np.tril(c)[:, :rank]
    return F


def with_diagonal(A: Any, values: Any) -> Any:
    """A + diag(values), in place for NumPy arrays; ``values`` is a number or a NumPy array."""
    if isinstance(A, np.ndarray):
        np.einsum("ii->i", A)[:] += values  # a view
        return A
    entries = asarray_like(A, np.broadcast_to(np.asarray(values), A.shape[0]))
    return A + namespace(A).eye(A.shape[0], dtype=A.dtype, device=A.device) * entries


def sum_of_squares(A: Any) -> float:
    return float(np.vdot(A, A)) if isinstance(A, np.ndarray) else float(namespace(A).sum(A * A))


def times_triangle(A: NDArray[Any], T: NDArray[Any], *, lower: bool) -> NDArray[Any]:
    """A T for a triangle T, in blocks of columns that leave its zeros out.

    NumPy's products let other threads work meanwhile. SciPy's triangular product does not, and is a fifth faster in one thread.
    """
    found = np.empty((len(A), T.shape[1]), np.result_type(A, T))
    for start in range(0, T.shape[1], COLUMNS_OF_A_TRIANGLE):
        part = slice(start, start + COLUMNS_OF_A_TRIANGLE)
        rows = slice(start, None) if lower else slice(0, part.stop)
        np.matmul(A[:, rows], T[rows, part], out=found[:, part])
    return found
