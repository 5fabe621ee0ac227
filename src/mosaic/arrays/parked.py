"""A growing matrix beside points on a device: its columns are there while they fit, and in the memory of the host otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from mosaic.arrays.xp import (
    empty_on_device_of,
    free_memory,
    is_on_device,
    longer,
    namespace,
    numpy_dtype,
    on_host,
    to_device_of,
)

#: Free memory that lets a matrix grow on its device, as a multiple of its new size: later steps copy up to half of it.
ROOM_TO_GROW = 1.5


class Parked:
    """A matrix in the memory of the host, pinned where PyTorch can do so, of which blocks of rows are copied to a device.

    Columns are kept in panels, so that the matrix grows without being moved. While one block of rows is computed with, the next
    one is on its way, in a stream of its own. To functions of ``mosaic.arrays.xp`` it is an array of its device.

    Examples
    --------
    >>> import numpy as np
    >>> parked = Parked(np.zeros((0, 2)), 5)
    >>> parked.add(2)
    >>> parked.put(slice(0, 5), np.arange(10.0).reshape(5, 2))
    >>> parked[1:3].tolist()
    [[2.0, 3.0], [4.0, 5.0]]
    """

    def __init__(self, near: Any, n: int):
        self.near, self.n = near[:0, ...], n
        self.panels: list[NDArray[Any]] = []
        self._coming: tuple[slice, int, Any] | None = None
        self._stream: Any = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.n, sum(panel.shape[1] for panel in self.panels)

    @property
    def ndim(self) -> int:
        """Two."""
        return 2

    @property
    def dtype(self) -> Any:
        """That of the device's library."""
        return self.near.dtype

    @property
    def device(self) -> Any:
        """Where blocks of rows are copied to."""
        return self.near.device

    def __array_namespace__(self, **version: Any) -> Any:
        return namespace(self.near)

    def add(self, count: int) -> None:
        """Add columns, without values."""
        self._coming = None
        self.panels.append(_pinned(self.near, (self.n, count)))

    def put(self, rows: slice, values: Any) -> None:
        """Set some rows of the columns that were added last."""
        if _is_on_gpu(self.near):
            import torch

            torch.from_numpy(self.panels[-1][rows]).copy_(values)
        else:
            self.panels[-1][rows] = on_host(values)

    def get(self) -> NDArray[Any]:
        """All rows, as a NumPy array."""
        return np.concatenate(self.panels, axis=1)

    def __getitem__(self, rows: slice | tuple[Any, ...]) -> Any:
        """A block of rows, on the device."""
        return self.block(rows[0] if isinstance(rows, tuple) else rows, len(self.panels))

    def take_rows(self, rows: Any) -> Any:
        """Rows by their numbers, on the device; by a mask, of which many may be true, in the memory of the host."""
        rows = np.asarray(on_host(rows))
        if rows.dtype != np.bool_:
            return to_device_of(self.near, np.concatenate([panel[rows] for panel in self.panels], axis=1))
        other = Parked(self.near, int(rows.sum()))
        for panel in self.panels:
            other.add(panel.shape[1])
            np.compress(rows, panel, axis=0, out=other.panels[-1])
        return other

    def block(self, rows: slice, n_panels: int) -> Any:
        """A block of rows of the first panels, on the device; the block below it is fetched in advance."""
        start, stop, _ = rows.indices(self.n)
        rows, coming, self._coming = slice(start, stop), self._coming, None
        block = coming[2] if coming is not None and coming[:2] == (rows, n_panels) else self._fetch(rows, n_panels)
        if self._stream is not None:
            import torch

            torch.cuda.current_stream(self.device).wait_stream(self._stream)
            block.record_stream(torch.cuda.current_stream(self.device))
            if stop < self.n:
                after = slice(stop, min(2 * stop - start, self.n))
                self._coming = after, n_panels, self._fetch(after, n_panels)
        return block

    def _fetch(self, rows: slice, n_panels: int) -> Any:
        parts = [panel[rows] for panel in self.panels[:n_panels]]
        if not _is_on_gpu(self.near):
            return to_device_of(self.near, np.concatenate(parts, axis=1))
        import torch

        self._stream = self._stream or torch.cuda.Stream(self.device)
        with torch.cuda.stream(self._stream):
            return torch.cat([torch.from_numpy(part).to(self.device, non_blocking=True) for part in parts], dim=1)


class Columns:
    """The columns of a factor F, added block by block: Fᵀ where the points are, or parked if their device has no room for it."""

    def __init__(self, near: Any, n: int, dtype: DTypeLike):
        self._Ft: Any = empty_on_device_of(near, (0, n), dtype)
        self._parked: Parked | None = None
        self._earlier = 0  # columns before those that were added last

    @property
    def F(self) -> Any:
        """The matrix."""
        return self._Ft.T if self._parked is None else self._parked

    @property
    def near(self) -> Any:
        """An array that is where blocks of rows are computed with."""
        return self._Ft if self._parked is None else self._parked.near

    def add(self, count: int) -> None:
        """Add columns, without values."""
        if self._parked is None and not _has_room(self._Ft, count):
            self._parked, rank = Parked(self._Ft.T, self._Ft.shape[1]), self._Ft.shape[0]
            if rank:
                self._parked.add(rank)
                self._parked.put(slice(0, self._Ft.shape[1]), self._Ft.T)
            self._Ft = self._Ft[:0, ...]
        self._earlier = self.F.shape[1]
        if self._parked is None:
            self._Ft = longer(self._Ft, count)
        else:
            self._parked.add(count)

    def before(self, rows: slice) -> Any:
        """The columns of some rows but those that were added last, transposed."""
        if self._parked is None:
            return self._Ft[: self._earlier, rows]
        return self._parked.block(rows, len(self._parked.panels) - 1).T

    def put(self, rows: slice, new: Any) -> None:
        """Set some rows of the columns that were added last, transposed."""
        if self._parked is None:
            self._Ft[self._earlier :, rows] = new
        else:
            self._parked.put(rows, new.T)


def _has_room(Ft: Any, count: int) -> bool:
    free = free_memory(Ft) if is_on_device(Ft) else None
    return free is None or free >= ROOM_TO_GROW * numpy_dtype(Ft).itemsize * (Ft.shape[0] + count) * Ft.shape[1]


def _is_on_gpu(A: Any) -> bool:
    """Whether A is a tensor of PyTorch on a GPU, to which pinned memory is copied while it computes."""
    return bool(getattr(A, "is_cuda", False))


def _pinned(near: Any, shape: tuple[int, int]) -> NDArray[Any]:
    """Memory of the host without values, which the device copies from without the help of a core."""
    if not _is_on_gpu(near):
        return np.empty(shape, numpy_dtype(near))
    import torch

    found: NDArray[Any] = torch.empty(shape, dtype=near.dtype, pin_memory=True).numpy()
    return found
