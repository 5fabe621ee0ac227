"""Arrays of other libraries: PyTorch tensors, CuPy arrays, and whatever else follows the array API standard, on any device.

What has a row or a number for each point (the points, a factor of their kernel, similarities, scores) and the matrices of the
solver's steps stay where the points are, and the functions here compute on them there. The results are NumPy arrays. For NumPy
arrays and sparse matrices the functions are NumPy's own, so one algorithm serves all libraries.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from mosaic.exceptions import MemoryBudgetError, MissingDependencyError

Values = TypeVar("Values")
#: Entries of one temporary block on a device: 512 MB of float64. Large blocks keep a GPU busy.
DEVICE_BLOCK_ENTRIES = 1 << 26


def is_on_device(A: Any) -> bool:
    """Whether A is an array of another library than NumPy, one that follows the array API standard or is a PyTorch tensor."""
    return _is_foreign(type(A))  # type: ignore[arg-type]


@cache
def _is_foreign(kind: type) -> bool:
    if issubclass(kind, np.ndarray | np.generic):
        return False
    return hasattr(kind, "__array_namespace__") or kind.__module__.partition(".")[0] in ("torch", "cupy")


def can_be_changed(A: Any) -> bool:
    """Whether entries of A can be assigned; those of JAX arrays cannot."""
    return type(A).__module__.partition(".")[0] not in ("jax", "jaxlib")


def has_double(A: Any) -> bool:
    """Whether the device of A computes in double precision; some GPUs do not."""
    known = namespace(A).__array_namespace_info__().dtypes(device=_compat().device(A), kind="real floating")
    return "float64" in known


@contextmanager
def work_on_devices() -> Iterator[None]:
    """PyTorch multiplies in single precision and not in TF32, which certificates do not allow for; and if a device has no more
    memory, the error is ours, with the numbers of its library.
    """
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


def namespace(A: Any) -> Any:
    """The functions of the library that A belongs to, by their names in the array API standard; NumPy's for sparse matrices."""
    return _compat().array_namespace(A) if is_on_device(A) else np


def on_host(A: Any) -> NDArray[Any]:
    """An array of another library as a NumPy array; everything else as it is."""
    if not is_on_device(A):
        same: NDArray[Any] = A
        return same
    if hasattr(A, "detach"):  # PyTorch
        A = A.detach().cpu()
    return np.asarray(A.get() if hasattr(A, "get") else A)  # CuPy moves arrays by get() alone


def to_device_of(A: Any, values: NDArray[Any]) -> Any:
    """NumPy values as an array of the same library and on the same device as A."""
    if not is_on_device(A):
        return values
    return namespace(A).asarray(np.array(values), device=_compat().device(A))


def as_user_array(A: Any, values: Values) -> Values:
    """The same, for results that users take for arrays of NumPy as well as of their own library."""
    found: Values = to_device_of(A, values)  # type: ignore[arg-type]
    return found


def asarray_like(A: Any, values: NDArray[Any]) -> Any:
    """NumPy values beside A and in its precision."""
    if not is_on_device(A):
        return values.astype(A.dtype, copy=False)
    return namespace(A).astype(to_device_of(A, values), A.dtype)


def rows_of(A: Any, rows: Any) -> Any:
    """Rows by a slice, by their numbers or by a mask, which are NumPy arrays or beside A; the result is where A is."""
    if not is_on_device(A):
        return A[rows]
    if isinstance(rows, slice):
        return A[rows, ...]
    if hasattr(A, "take_rows"):  # mosaic.arrays.parked
        return A.take_rows(rows)
    if not is_on_device(rows):
        rows = np.asarray(rows)
        rows = to_device_of(A, rows if rows.dtype == np.bool_ else rows.astype(np.int64))
    xp = namespace(A)
    return xp.take(A, numbers_of(rows) if rows.dtype == xp.bool else rows, axis=0)


def arange_like(A: Any, count: int) -> Any:
    """0, 1, …, count − 1, where A is."""
    return namespace(A).arange(count, device=_compat().device(A)) if is_on_device(A) else np.arange(count)


def numbers_of(mask: Any) -> Any:
    """Numbers of the entries of a mask that are true, where the mask is."""
    return namespace(mask).nonzero(mask)[0]


def largest_of(values: Any, count: int) -> NDArray[np.intp]:
    """Numbers of the ``count`` largest entries, in any order."""
    if not is_on_device(values):
        return np.argpartition(values, len(values) - count)[len(values) - count :]
    return np.asarray(on_host(namespace(values).argsort(-values)[:count]), np.intp)


def cumulated(A: Any) -> Any:
    """The sums of the first 1, 2, 3, … entries."""
    return np.cumsum(A) if not is_on_device(A) else namespace(A).cumulative_sum(A)


def places_among(ascending: Any, values: NDArray[Any]) -> NDArray[np.intp]:
    """For every value the number of entries, which ascend, that are at most as large."""
    if not is_on_device(ascending):
        return np.searchsorted(ascending, values, side="right")
    found = namespace(ascending).searchsorted(ascending, to_device_of(ascending, values), side="right")
    return np.asarray(on_host(found), np.intp)


def zero_at(A: Any, places: NDArray[np.intp]) -> Any:
    """A with zeros at some places, in its memory where that is possible."""
    if not is_on_device(A):
        A[places] = 0.0
        return A
    kept = np.ones(A.shape[0], bool)
    kept[places] = False
    return namespace(A).where(to_device_of(A, kept), A, namespace(A).zeros_like(A))


def highest(values: Any) -> float:
    """The largest entry of numbers ≥ 0; 0 if there are none."""
    return float(namespace(values).max(values)) if values.shape[0] else 0.0


def descending(values: Any, most: int) -> NDArray[np.float64]:
    """The ``most`` largest entries, largest first, as a NumPy array."""
    if is_on_device(values):
        values = on_host(namespace(values).sort(values)[-min(most, values.shape[0]) :])
    elif len(values) > most:
        values = np.partition(values, len(values) - most)[len(values) - most :]
    return np.sort(np.asarray(values, np.float64))[::-1]


def host_rows(A: Any, rows: Any) -> NDArray[np.float64]:
    """Few rows as a dense NumPy array in double precision."""
    found = rows_of(A, rows)
    return np.asarray(found.toarray() if sp.issparse(found) else on_host(found), np.float64)


def as_double(A: Any) -> Any:
    """A in double precision: a new array, dense or sparse as A, where A is."""
    if not is_on_device(A):
        return A.astype(np.float64)
    xp = namespace(A)
    return xp.astype(A, xp.float64)


def numpy_dtype(A: Any) -> np.dtype[Any]:
    """The precision of A as a dtype of NumPy."""
    if not is_on_device(A):
        dtype: np.dtype[Any] = A.dtype
        return dtype
    return np.dtype(np.float32 if A.dtype == namespace(A).float32 else np.float64)


def is_double(A: Any) -> bool:
    """Whether A is a NumPy array in double precision."""
    return isinstance(A, np.ndarray) and A.dtype == np.float64


def empty_on_device_of(A: Any, shape: tuple[int, ...], dtype: DTypeLike) -> Any:
    """An array without values, of the library of A and on its device."""
    if not is_on_device(A):
        return np.empty(shape, dtype)
    xp = namespace(A)
    return xp.empty(
        shape, dtype=xp.float32 if np.dtype(dtype) == np.float32 else xp.float64, device=_compat().device(A)
    )


def in_precision_of(F: Any, A: Any) -> Any:
    """A in the precision of F; both are in the same place."""
    if not is_on_device(F):
        return A.astype(F.dtype, copy=False)
    return namespace(F).astype(A, F.dtype, copy=False)


def longer(A: Any, rows: int) -> Any:
    """A with more rows below it, without values. NumPy moves no data if the system can remap memory."""
    if not is_on_device(A):
        A.resize((A.shape[0] + rows, A.shape[1]), refcheck=False)
        return A
    return namespace(A).concat([A, empty_on_device_of(A, (rows, A.shape[1]), numpy_dtype(A))], axis=0)


def exponential(A: Any) -> Any:
    """exp(A), in the memory of A where that is possible."""
    return np.exp(A, out=A) if isinstance(A, np.ndarray) else namespace(A).exp(A)


def square_root(A: Any) -> Any:
    """√A, in the memory of A where that is possible."""
    return np.sqrt(A, out=A) if isinstance(A, np.ndarray) else namespace(A).sqrt(A)


def at_least_zero(A: Any) -> Any:
    """max(A, 0), in the memory of A where that is possible."""
    return np.maximum(A, 0.0, out=A) if isinstance(A, np.ndarray) else namespace(A).clip(A, 0.0, None)


def absolute(A: Any) -> Any:
    """|A|, in the memory of A where that is possible."""
    return np.abs(A, out=A) if isinstance(A, np.ndarray) else namespace(A).abs(A)


def squares_of_rows(A: Any) -> Any:
    """‖a_i‖₂² for every row, where A is."""
    if isinstance(A, np.ndarray):
        return np.einsum("ij,ij->i", A, A)
    step, xp = max(DEVICE_BLOCK_ENTRIES // max(A.shape[1], 1), 1), namespace(A)
    parts = (A[at : min(at + step, A.shape[0]), :] for at in range(0, max(A.shape[0], 1), step))
    sums = [xp.sum(part * part, axis=1) for part in parts]
    return sums[0] if len(sums) == 1 else xp.concat(sums)


def with_entries(A: Any, columns: Any, values: Any) -> Any:
    """A with one entry changed in every row i: that in column ``columns[i]`` becomes ``values`` or ``values[i]``."""
    if isinstance(A, np.ndarray):
        A[np.arange(len(A)), columns] = values
        return A
    xp = namespace(A)
    here = arange_like(A, A.shape[1])[None, :] == columns[:, None]
    return xp.where(here, values[:, None] if hasattr(values, "shape") else zeros_on_device_of(A, ()) + values, A)


def zeros_on_device_of(A: Any, shape: tuple[int, ...]) -> Any:
    """Zeros in the precision of A, where A is."""
    if not is_on_device(A):
        return np.zeros(shape, A.dtype)
    return namespace(A).zeros(shape, dtype=A.dtype, device=_compat().device(A))


def with_some_entries(A: Any, rows: NDArray[np.intp], columns: NDArray[np.intp], values: NDArray[Any]) -> Any:
    """A with some entries changed, at most one of every row unless A is a NumPy array."""
    if isinstance(A, np.ndarray):
        A[rows, columns] = values
        return A
    places, new = np.full(A.shape[0], -1), np.zeros(A.shape[0])
    places[rows], new[rows] = columns, values
    return with_entries(A, to_device_of(A, places), to_device_of(A, new))


def bits(A: Any) -> Any:
    """The bits of double precision numbers as integers: uint64 for NumPy, int64 elsewhere, where uint64 is rare. −0.0 is 0.0."""
    if not is_on_device(A):
        return (np.ascontiguousarray(A, dtype=np.float64) + 0.0).view(np.uint64)
    A = as_double(A) + 0.0
    xp = namespace(A)
    return A.view(xp.int64) if hasattr(A, "view") else to_device_of(A, on_host(A).view(np.int64))


def int64_constant(number: int, A: Any) -> Any:
    """A number below 2⁶⁴ as one that the integers of A, which ``bits`` made, take: their products wrap around alike."""
    return number - (1 << 64 if number >= 1 << 63 else 0) if is_on_device(A) else np.uint64(number)


def shifted_right(A: Any, places: int) -> Any:
    """A >> places with zeros from the left, for integers that ``bits`` made."""
    return (A >> places) & ((1 << (64 - places)) - 1) if is_on_device(A) else A >> np.uint64(places)


def as_integers(A: Any) -> Any:
    """Rounded numbers below 2⁶³ as integers like those of ``bits``."""
    return (
        np.rint(A).astype(np.uint64)
        if not is_on_device(A)
        else namespace(A).astype(namespace(A).round(A), namespace(A).int64)
    )


def times_power_of_two(A: Any, exponent: int) -> Any:
    """A · 2^exponent, exactly."""
    return as_double(A) * 2.0**exponent if is_on_device(A) else np.ldexp(A, exponent)


def with_values(A: Any, places: NDArray[np.intp], values: NDArray[np.uint64]) -> Any:
    """Integers that ``bits`` made, with other values at some places."""
    if not is_on_device(A):
        A[places] = values
        return A
    changed = on_host(A).copy()
    changed[places] = values.view(np.int64)
    return to_device_of(A, changed)


def as_unsigned(A: Any) -> NDArray[np.uint64]:
    """Integers that ``bits`` made, as NumPy's uint64."""
    return on_host(A).view(np.uint64)


def sortable(A: Any) -> Any:
    """Integers that ``bits`` made, as integers that sort in the order of uint64."""
    return A ^ (-(1 << 63)) if is_on_device(A) else A


def ordered(first: Any, then: Any | None = None) -> Any:
    """Numbers of the entries in the order of ``first``, then of ``then``, then of their number."""
    if not is_on_device(first):
        return np.argsort(first, kind="stable") if then is None else _ordered_by_two(first, then)
    xp = namespace(first)
    if then is None:
        return xp.argsort(first, stable=True)
    order = xp.argsort(then, stable=True)
    return xp.take(order, xp.argsort(xp.take(first, order), stable=True))


def _ordered_by_two(first: NDArray[Any], then: NDArray[Any]) -> NDArray[np.intp]:
    """``np.lexsort((then, first))``, fast where few entries of ``first`` are equal."""
    order = np.argsort(first)
    values = first[order]
    same = values[1:] == values[:-1]
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
    if len(tied):
        among = order[tied]
        order[tied] = among[np.lexsort((among, then[among], first[among]))]
    return order


def inverse_order(order: Any) -> NDArray[np.intp]:
    """The place of every number in a permutation."""
    if is_on_device(order):
        return np.asarray(on_host(namespace(order).argsort(order)), np.intp)
    places = np.empty(len(order), np.intp)
    places[order] = np.arange(len(order))
    return places


def repeated(A: Any) -> NDArray[np.intp]:
    """Numbers of the entries of A that occur more than once, in ascending order."""
    xp = namespace(A)
    values = xp.sort(A)
    if not bool(xp.any(values[1:] == values[:-1])):
        return np.zeros(0, np.intp)
    order = ordered(A)
    values = xp.take(A, order)
    same = on_host(values[1:] == values[:-1])
    return np.sort(np.asarray(on_host(order), np.intp)[np.append(same, False) | np.append(False, same)])


def sums_of_differences(A: Any, B: Any, order: int) -> Any:
    """Σ_j |a_ij − b_kj|^order for every pair of rows, coordinate by coordinate."""
    return sum(namespace(A).abs(A[:, j][:, None] - B[:, j]) ** order for j in range(A.shape[1]))


def block_entries(A: Any, entries: int) -> int:
    """Entries of one temporary block: ``entries``, or as many as a device needs to be busy."""
    return max(entries, DEVICE_BLOCK_ENTRIES) if is_on_device(A) else entries


def _compat() -> Any:
    try:
        import array_api_compat
    except ImportError as error:
        raise MissingDependencyError(
            "arrays on a device need array-api-compat, which is not installed", "Use: pip install array-api-compat"
        ) from error
    return array_api_compat


def nearest_column(A: Any, centres: NDArray[np.float64]) -> NDArray[np.intp]:
    """For every row of A the number of the centre whose product with it is largest in size."""
    return np.asarray(on_host(namespace(A).argmax(abs(A @ asarray_like(A, centres.T)), axis=1)), np.intp)


def column_quantiles(A: Any, shares: list[float], weights: NDArray[Any] | None) -> NDArray[np.float64]:
    """The values of each column below which these shares of the weight lie, shares × columns."""
    if is_on_device(A) and weights is None:
        places = [max(math.ceil(share * A.shape[0]) - 1, 0) for share in shares]
        return np.asarray(on_host(rows_of(namespace(A).sort(A, axis=0), np.array(places))), np.float64)
    found = np.quantile(on_host(A), shares, axis=0, weights=weights, method="inverted_cdf")
    return np.asarray(found, np.float64)


def free_memory(A: Any) -> float | None:
    """Bytes that are free on the device of A; None on a CPU, whose memory the user's budget limits."""
    library = _compat()
    if library.is_torch_array(A) and A.is_cuda:
        import torch

        return float(
            torch.cuda.mem_get_info(A.device)[0]
            + torch.cuda.memory_reserved(A.device)
            - torch.cuda.memory_allocated(A.device)
        )
    if library.is_cupy_array(A):
        import cupy

        with A.device:
            return float(cupy.cuda.runtime.memGetInfo()[0] + cupy.get_default_memory_pool().free_bytes())
    return None
