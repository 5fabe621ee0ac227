"""Arrays of other libraries (PyTorch, CuPy, whatever follows the array API standard) on any device, and linear algebra there.

Matrices with a row for each point (the points, a factor of their kernel, similarities) and the matrices of the solver's steps
stay on the device of the points; vectors and results are NumPy arrays. For NumPy arrays and sparse matrices the functions are
NumPy's own, so one algorithm serves all libraries.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeAlias, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray
from scipy.linalg.blas import dtrsm, strsm
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs, dpstrf, spotrf, spotri, spotrs

from mosaic.exceptions import MemoryBudgetError, MissingDependencyError

Values = TypeVar("Values")
#: A NumPy array, a CSR matrix, or an array of another library on its device. These have no type in common that mypy knows.
Matrix: TypeAlias = Any
#: Entries of one temporary block on a device: 512 MB of float64. Large blocks keep a GPU busy.
DEVICE_BLOCK_ENTRIES = 1 << 26


def is_on_device(A: Matrix) -> bool:
    """Whether A is an array of another library than NumPy."""
    return not isinstance(A, np.ndarray) and _is_foreign(type(A))  # type: ignore[arg-type]


@cache
def _is_foreign(kind: type) -> bool:
    if issubclass(kind, np.generic):
        return False
    return hasattr(kind, "__array_namespace__") or kind.__module__.partition(".")[0] in (
        "torch",
        "cupy",
    )


@contextmanager
def work_on_devices() -> Iterator[None]:
    """No TF32 in PyTorch's products, which certificates do not allow for; and our error if a device has no more memory."""
    torch = sys.modules.get("torch")
    precision = "highest" if torch is None else torch.get_float32_matmul_precision()
    try:
        if torch is not None and precision != "highest":
            torch.set_float32_matmul_precision("highest")
        yield
    except Exception as error:
        if type(error).__name__ != "OutOfMemoryError":  # of PyTorch and of CuPy
            raise
        raise MemoryBudgetError(
            f"the device has no more memory ({str(error).partition(chr(10))[0].strip()})",
            "Lower `max_rank` or `memory_budget`, pass fewer rows, single precision, or a NumPy array, which stays on the CPU.",
        ) from error
    finally:
        if torch is not None and precision != "highest":
            torch.set_float32_matmul_precision(precision)


def namespace(A: Matrix) -> Any:
    """The library of A, with the names of the array API standard; NumPy for sparse matrices."""
    return np if not is_on_device(A) else compat().array_namespace(A)


def compat() -> Any:
    """array-api-compat, or an error that says how to install it."""
    try:
        import array_api_compat
    except ImportError as error:
        raise MissingDependencyError(
            "arrays on a device need array-api-compat, which is not installed",
            "Use: pip install array-api-compat",
        ) from error
    return array_api_compat


def on_host(A: Matrix) -> NDArray[Any]:
    """An array of another library as a NumPy array; everything else as it is."""
    if not is_on_device(A):
        same: NDArray[Any] = A
        return same
    if hasattr(A, "detach"):  # PyTorch
        A = A.detach().cpu()
    return np.asarray(A.get() if hasattr(A, "get") else A)  # CuPy moves arrays by get() alone


def to_device_of(A: Matrix, values: Values) -> Values:
    """NumPy values as an array of the library of A, on its device; the type is that which users of NumPy see."""
    if is_on_device(A) and not is_on_device(values):
        values = namespace(A).asarray(np.array(values), device=compat().device(A))
    return values


def asarray_like(A: Matrix, values: Matrix) -> Any:
    """Values of NumPy, or on the device of A, as an array on that device in the precision of A."""
    if not is_on_device(A):
        return values.astype(A.dtype, copy=False)
    return namespace(A).astype(to_device_of(A, values), A.dtype)


def as_double(A: Matrix) -> Any:
    """A in double precision: a new array, dense or sparse as A, on its device."""
    if not is_on_device(A):
        return A.astype(np.float64)
    xp = namespace(A)
    return xp.astype(A, xp.float64)


def as_single(A: Matrix) -> Any:
    """A in single precision, on its device."""
    if not is_on_device(A):
        with np.errstate(over="ignore"):
            return A.astype(np.float32)
    xp = namespace(A)
    return xp.astype(A, xp.float32)


def empty_on_device_of(A: Matrix, shape: tuple[int, ...], dtype: DTypeLike) -> Any:
    if not is_on_device(A):
        return np.empty(shape, dtype)
    xp = namespace(A)
    kind = xp.float32 if np.dtype(dtype) == np.float32 else xp.float64
    return xp.empty(shape, dtype=kind, device=compat().device(A))


def numpy_dtype(A: Matrix) -> np.dtype[Any]:
    if not is_on_device(A):
        dtype: np.dtype[Any] = A.dtype
        return dtype
    return np.dtype(np.float32 if A.dtype == namespace(A).float32 else np.float64)


def rows_of(A: Matrix, rows: Any) -> Any:
    """Rows by a slice, by indices or by a mask, which are NumPy arrays or on the device of A; the result is there, too."""
    if not is_on_device(A):
        return A[rows]
    if isinstance(rows, slice):
        return A[rows, ...]
    if not is_on_device(rows):
        rows = np.asarray(rows)
        rows = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows.astype(np.int64)
        rows = to_device_of(A, rows)
    return namespace(A).take(A, rows, axis=0)


def stacked(A: Matrix, B: Matrix) -> Any:
    """The rows of A, then those of B, in the precision of A; both are dense or both sparse, and on one device."""
    if sp.issparse(A):
        return sp.csr_array(sp.vstack([A, B.astype(A.dtype)]))
    return namespace(A).concat([A, asarray_like(A, B)])


def with_column(A: Matrix, column: Any) -> Any:
    """A with one more column at its end."""
    last = np.asarray(column)[:, None]
    if sp.issparse(A):
        return sp.csr_array(sp.hstack([A, sp.csr_array(last.astype(A.dtype))]))
    return namespace(A).concat([A, asarray_like(A, last)], axis=1)


def host_rows(A: Matrix, rows: Any) -> NDArray[np.float64]:
    """Few rows as a dense NumPy array in double precision."""
    found = rows_of(A, rows)
    return np.asarray(found.toarray() if sp.issparse(found) else on_host(found), np.float64)


def exponential(A: Matrix) -> Any:
    """exp(A), in place for NumPy arrays."""
    return np.exp(A, out=A) if isinstance(A, np.ndarray) else namespace(A).exp(A)


def at_least_zero(A: Matrix) -> Any:
    """max(A, 0), in place for NumPy arrays."""
    if isinstance(A, np.ndarray):
        return np.maximum(A, 0.0, out=A)
    return namespace(A).clip(A, 0.0, None)


def zero_below(A: Matrix, limit: float) -> Any:
    """A with 0 for its entries below a limit, in place for NumPy arrays."""
    if isinstance(A, np.ndarray):
        A[limit > A] = 0.0
        return A
    xp = namespace(A)
    return xp.where(limit > A, xp.zeros_like(A), A)


def squares_of_rows(A: Matrix) -> Any:
    """‖a_i‖₂², on the device of A."""
    if isinstance(A, np.ndarray):
        return np.einsum("ij,ij->i", A, A)
    step = max(DEVICE_BLOCK_ENTRIES // max(A.shape[1], 1), 1)
    xp = namespace(A)
    parts = (A[at : min(at + step, A.shape[0]), :] for at in range(0, max(A.shape[0], 1), step))
    sums = [xp.sum(part * part, axis=1) for part in parts]
    return sums[0] if len(sums) == 1 else xp.concat(sums)


def with_entries(A: Matrix, columns: Any, values: Any) -> Any:
    """A with one entry changed in every row i: that in column ``columns[i]`` becomes ``values`` or ``values[i]``."""
    if isinstance(A, np.ndarray):
        A[np.arange(len(A)), columns] = values
        return A
    xp = namespace(A)
    here = xp.arange(A.shape[1], device=compat().device(A))[None, :] == columns[:, None]
    if hasattr(values, "shape"):
        return xp.where(here, values[:, None], A)
    return xp.where(here, xp.zeros_like(A[:1, :1]) + values, A)


def sums_of_differences(A: Matrix, B: Matrix, order: int) -> Any:
    """Σ_j |a_ij − b_kj|^order for every pair of rows, coordinate by coordinate."""
    return sum(namespace(A).abs(A[:, j][:, None] - B[:, j]) ** order for j in range(A.shape[1]))


def free_memory(A: Matrix) -> float | None:
    """Bytes that are free on the device of A; None on a CPU, whose memory the user's budget limits."""
    library = compat()
    if library.is_torch_array(A) and A.is_cuda:
        import torch

        free, _ = torch.cuda.mem_get_info(A.device)
        held = torch.cuda.memory_reserved(A.device)
        return float(free + held - torch.cuda.memory_allocated(A.device))
    if library.is_cupy_array(A):
        import cupy

        with A.device:
            free, _ = cupy.cuda.runtime.memGetInfo()
            return float(free + cupy.get_default_memory_pool().free_bytes())
    return None


def cholesky(A: Matrix) -> Any:
    """L with L Lᵀ = A, overwriting the symmetric A; entries above the diagonal are 0 on a CPU and arbitrary elsewhere."""
    if isinstance(A, np.ndarray):
        L, info = (spotrf if A.dtype == np.float32 else dpotrf)(A.T, lower=1, overwrite_a=1)
        failed = info != 0
    else:
        try:
            L = namespace(A).linalg.cholesky(A)
            failed = not np.isfinite(float(L[-1, -1]))  # CuPy raises nothing
        except Exception:  # libraries have exceptions of their own
            failed = True
    if failed:
        raise np.linalg.LinAlgError("matrix is not positive definite")
    return L


def solve_lower(L: Matrix, B: Matrix) -> Any:
    """L⁻¹ B for a lower triangle L; the entries of L above the diagonal are not used."""
    if isinstance(L, np.ndarray):
        return (strsm if L.dtype == np.float32 else dtrsm)(1.0, L, B, lower=1)
    return _solve_triangle(L, B, upper=False)


def solve_with(L: Matrix, b: Any) -> Any:
    """(L Lᵀ)⁻¹ b for a lower triangle L."""
    if isinstance(L, np.ndarray):
        return (spotrs if L.dtype == np.float32 else dpotrs)(L, b, lower=1)[0]
    columns = b[:, None] if b.ndim == 1 else b
    found = _solve_triangle(L.T, _solve_triangle(L, columns, upper=False), upper=True)
    return found[:, 0] if b.ndim == 1 else found


def _solve_triangle(L: Matrix, B: Matrix, *, upper: bool) -> Any:
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
    """Inverse of a positive definite matrix through its Cholesky factor; of middle size by halves, [P Wᵀ; W S]: LAPACK is slow
    there, and products are not.
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
    for start in range(0, len(found), 128):
        rows = slice(start, start + 128)
        for below in range(start + 128, len(found), 128):
            found[rows, below : below + 128] = found[below : below + 128, rows].T
        found[rows, rows] += found[rows, rows].T
    np.einsum("ii->i", found)[:] *= 0.5
    return np.asarray(found)


def pivoted_root(A: NDArray[Any], tol: float = -1.0) -> NDArray[np.float64]:
    """F with F Fᵀ = A for a semi-definite A, by Cholesky with pivoting, until no diagonal entry left is above ``tol``, by default
    n · eps of the largest.
    """
    c, pivots, rank, _ = dpstrf(A, tol=tol, lower=1)
    F = np.zeros((len(A), rank))
    F[pivots - 1] = np.tril(c)[:, :rank]
    return F


def with_diagonal(A: Matrix, values: Any) -> Any:
    """A + diag(values), in place for NumPy arrays; ``values`` is a number or a NumPy array."""
    if isinstance(A, np.ndarray):
        np.einsum("ii->i", A)[:] += values  # a view
        return A
    entries = asarray_like(A, np.broadcast_to(np.asarray(values), A.shape[0]))
    return A + namespace(A).eye(A.shape[0], dtype=A.dtype, device=A.device) * entries


def sum_of_squares(A: Matrix) -> float:
    return float(np.vdot(A, A)) if isinstance(A, np.ndarray) else float(namespace(A).sum(A * A))
