"""The seam to data frames: their columns as a matrix of numbers, or as cells of whatever kind; missing ones are known as such.

Frames are seen through narwhals alone, so any library that it knows works and none is needed. Its import takes half as long as
NumPy's and is put off until something comes that is no array.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, time
from decimal import Decimal
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from mosaic.arrays.blocks import BoolArray, FloatArray, IntArray
from mosaic.exceptions import InvalidInputError

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw
    import pyarrow
    from narwhals.dtypes import DType

    #: A column, and a data frame.
    Series: TypeAlias = nw.Series[Any]
    Frame: TypeAlias = nw.DataFrame[Any]

#: Columns that are called so name rows, most likely first; so do those that end in ``_id``.
ID_NAMES = ("id", "uuid", "key", "index", "name")
#: Texts that stand for a missing value.
MISSING_TEXTS = frozenset(
    ("", " ", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "?", "-")
)


def looks_like_id(name: str) -> bool:
    return name.casefold() in ID_NAMES or name.casefold().endswith("_id")


def id_names_among(names: Sequence[str]) -> list[str]:
    return sorted(
        filter(looks_like_id, names),
        key=lambda name: (*ID_NAMES, name.casefold()).index(name.casefold()),
    )


def is_added(name: str) -> bool:
    """Whether a column is called as those that the command adds to rows; they say nothing about a point."""
    return name.startswith("mosaic_")


def is_feature_name(name: str) -> bool:
    """Whether numbers in a column of this name are computed with, unless the user says otherwise; in frames and in files."""
    return not (looks_like_id(name) or is_added(name))


# ---- the cells of a column


@dataclass(frozen=True)
class Values:
    """The cells of a column: numbers, NaN where missing, or texts as places among the different ``levels``, -1 where missing.

    Kinds are "number", "span" (of time, in seconds), "moment" (days since 1970), "text", "level" (categories), "truth", "vector"
    (a row of numbers for each cell), "other".
    """

    kind: str
    numbers: FloatArray | None = None
    levels: tuple[str, ...] = ()
    codes: IntArray | None = None

    @property
    def missing(self) -> BoolArray:
        if self.codes is not None:
            return self.codes < 0
        assert self.numbers is not None
        return np.isnan(self.numbers if self.numbers.ndim == 1 else self.numbers[:, 0])

    def __len__(self) -> int:
        return len(self.missing)

    def as_levels(self) -> tuple[tuple[str, ...], IntArray]:
        """Texts and their places; numbers are written out."""
        if self.codes is not None:
            return self.levels, self.codes
        distinct, codes = np.unique(np.asarray(self.numbers), return_inverse=True)
        found = tuple(f"{number:.15g}" for number in distinct if not np.isnan(number))
        return found, np.where(self.missing, -1, codes.ravel())

    def of_levels(self, numbers: FloatArray) -> FloatArray:
        return np.append(numbers, np.nan)[self.codes]

    def take(self, rows: IntArray) -> Values:
        """The cells of some rows, with the levels that these have."""
        if self.codes is None:
            return replace(self, numbers=np.asarray(self.numbers)[rows])
        used, codes = np.unique(self.codes[rows], return_inverse=True)
        levels = tuple(self.levels[code] for code in used if code >= 0)
        return replace(self, levels=levels, codes=codes.ravel() - (len(used) - len(levels)))

    def text(self, row: int) -> str | None:
        return None if self.codes is None or self.codes[row] < 0 else self.levels[self.codes[row]]


def _values_of(column: Series) -> Values:
    import narwhals.stable.v2 as nw

    kind = column.dtype
    native = column.to_native()
    if kind in (nw.Categorical, nw.Enum):
        return replace(_coded(column.cast(nw.String)), kind="level")
    # narwhals tells strings from other objects by the first hundred rows, so its word is not enough here.
    if _is_object(column) or kind == nw.Time:
        return _values_of_objects(column)
    if kind == nw.String:
        return _coded_by_arrow(native) if hasattr(native, "dictionary_encode") else _coded(column)
    if kind == nw.Boolean:
        return _truth(column)
    if kind in (nw.Date, nw.Datetime):
        return Values(
            "moment", np.asarray(column.dt.timestamp("us").to_numpy(), np.float64) / 8.64e10
        )
    if kind == nw.Duration:
        return Values("span", np.asarray(column.dt.total_seconds().to_numpy(), np.float64))
    if _holds_numbers(column):
        return Values("number", np.asarray(_numpy_column(column), np.float64))
    missing = _missing(column)
    if holds_vectors(kind) and not missing.all():
        there = column.filter(~column.is_null()).to_arrow()
        return _vectors(_matrix_of_lists(there) if _are_alike(there) else [], missing)
    return Values("number" if missing.all() else "other", np.full(len(column), np.nan))


def _values_of_objects(column: Series) -> Values:
    """Python objects: numbers where all of them are, structures where one is; else what they are written as."""
    there = _there(column)
    kinds = set(map(type, there))

    def are(*those: type) -> bool:
        return all(issubclass(kind, those) for kind in kinds)

    if there and are(bool, np.bool_):
        return _truth(column)
    if there and are(time):
        seconds = [cell.hour * 3600.0 + cell.minute * 60.0 + cell.second for cell in there]
        return Values("span", _filled(seconds, _missing(column)))
    if all(map(_is_real, there)):
        return Values("number", _numpy_column(column))
    if not are(str, Real, Decimal, np.bool_, date, time, bytes):
        return _vectors(there if are(list, tuple, np.ndarray) else [], _missing(column))
    return _coded(column)


def _missing(column: Series) -> BoolArray:
    return np.asarray(column.is_null().to_numpy(), bool)


def _there(column: Series) -> list[Any]:
    """The cells that are not missing, as Python has them."""
    return [cell for cell, gone in zip(column.to_list(), _missing(column), strict=True) if not gone]


def _filled(there: ArrayLike, missing: BoolArray) -> FloatArray:
    """Numbers or rows of them at the places of the cells that are not missing, and NaN at the others."""
    there = np.asarray(there, np.float64)
    numbers = np.full((len(missing), *there.shape[1:]), np.nan)
    numbers[~missing] = there
    return numbers


def _truth(column: Series) -> Values:
    codes = np.nan_to_num(_numpy_column(column), nan=-1.0).astype(np.intp)
    return Values("truth", None, ("false", "true"), codes)


def _vectors(there: ArrayLike, missing: BoolArray) -> Values:
    """The cells that are not missing as vectors, if they are lists of equally many finite numbers."""
    with suppress(ValueError):  # lists of different lengths
        matrix = np.asarray(there)
        if (
            matrix.ndim == 2
            and matrix.size
            and matrix.dtype.kind in "fiu"
            and np.isfinite(matrix).all()
        ):
            return Values("vector", _filled(matrix, missing))
    return Values("other", np.full(len(missing), np.nan))


def _is_real(cell: object) -> bool:
    """Whether a Python object is a real number that a float holds; NumPy counts durations among its integers."""
    if not isinstance(cell, Real | Decimal | np.bool_) or isinstance(cell, np.timedelta64):
        return False
    return not isinstance(cell, int) or abs(cell) <= sys.float_info.max


def _coded(column: Series) -> Values:
    """Different texts in the order in which they come, and for each cell its place among them."""
    places: dict[str, int] = {}
    codes = np.full(len(column), -1, np.intp)
    for row, (cell, gone) in enumerate(zip(column.to_list(), _missing(column), strict=True)):
        if gone or cell is None or cell != cell:
            continue
        text = cell if isinstance(cell, str) else str(cell)
        if text not in MISSING_TEXTS:
            codes[row] = places.setdefault(text, len(places))
    return Values("text", None, tuple(places), codes)


def _coded_by_arrow(column: pyarrow.ChunkedArray) -> Values:
    """The same for a column of Arrow, whose own function for it is a hundred times as fast."""
    import pyarrow as pa

    encoded = (
        column.cast(pa.large_string()).dictionary_encode().unify_dictionaries().combine_chunks()
    )
    levels = encoded.dictionary.to_pylist()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.intp)
    kept = [level not in MISSING_TEXTS for level in levels]
    places = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1)
    return Values(
        "text",
        None,
        tuple(level for level, keep in zip(levels, kept, strict=True) if keep),
        places[codes],
    )


# ---- the columns of a frame


class Cells(Mapping[str, Values]):
    """The columns of a data frame, narwhals series. Texts are kept, because reading them takes long; numbers would be in memory
    twice. ``levels`` are columns that stand for categories whatever they hold.
    """

    def __init__(
        self,
        frame: Frame,
        columns: Mapping[str, Series],
        levels: Collection[str],
        kept: dict[str, Values] | None = None,
    ):
        self.frame = frame
        self.columns = columns
        self._levels = levels
        self._kept: dict[str, Values] = {} if kept is None else kept

    def __getitem__(self, name: str) -> Values:
        values = self._kept.get(name)
        if values is None:
            values = _values_of(self.columns[name])
            if name in self._levels:
                values = Values("level", None, *values.as_levels())
            if values.codes is not None:
                self._kept[name] = values
        return values

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    @cached_property
    def kinds(self) -> Mapping[str, DType]:
        """The type of each column, as narwhals calls it."""
        return {name: column.dtype for name, column in self.columns.items()}

    def only(self, names: Sequence[str]) -> Cells:
        """Some of the columns, in this order."""
        return Cells(
            self.frame, {name: self.columns[name] for name in names}, self._levels, self._kept
        )

    def some(self, rows: slice | IntArray) -> Cells:
        """The cells of some rows."""
        columns = {name: column[rows] for name, column in self.columns.items()}
        return Cells(self.frame[rows], columns, self._levels)

    def lists(self) -> dict[str, list[Any]]:
        """The cells as plain values; missing ones are None."""
        columns = {
            name: zip(column.to_list(), column.is_null(), strict=True)
            for name, column in self.columns.items()
        }
        return {
            name: [None if gone else cell for cell, gone in cells]
            for name, cells in columns.items()
        }

    def numbers(self) -> list[str]:
        """The columns of integers, floats, booleans and decimals, also as Python objects, whatever they are called."""
        return [name for name, column in self.columns.items() if _are_numbers(column)]

    def matrix(self) -> Any:
        """The columns, all of numbers, as a row-major float64 matrix, missing values as NaN. It is float32 where all columns are,
        and CSR where all are pandas' sparse ones filled with 0. Besides the matrix one column is held at a time.
        """
        import narwhals.stable.v2 as nw

        columns = list(self.columns.values())
        if len(columns) == 1 and holds_vectors(columns[0].dtype):
            return _matrix_of_lists(columns[0].to_arrow())
        for column in columns:
            if not _are_numbers(column):
                fault = f"must hold numbers only; column {column.name!r} is of type {column.dtype}"
                raise InvalidInputError(
                    fault, "Convert it to a number type, or drop it.", parameter="X"
                )
        if columns and all(
            getattr(_native_dtype(column), "fill_value", None) == 0 for column in columns
        ):
            matrix = (
                self.frame.select([column.name for column in columns])
                .to_native()
                .sparse.to_coo()
                .tocsr()
            )
            return matrix if matrix.dtype == np.float32 else matrix.astype(np.float64)
        single = columns and all(column.dtype == nw.Float32 for column in columns)
        rows = np.empty((len(self.frame), len(columns)), np.float32 if single else np.float64)
        for place, column in enumerate(columns):
            rows[:, place] = _numpy_column(column)
        return rows


def cells_of(frame: object, *, levels: Collection[str] = ()) -> Cells:
    """The columns of a data frame."""
    cells = cells_if_frame(frame, levels)
    assert cells is not None
    return cells


def cells_if_frame(X: object, levels: Collection[str] = ()) -> Cells | None:
    frame = _wrapped(X)
    if frame is None or not hasattr(frame, "columns"):
        return None
    return Cells(frame, {str(column.name): column for column in frame.iter_columns()}, levels)


def holds_vectors(dtype: DType) -> bool:
    """Whether a column of this type holds lists of numbers."""
    import narwhals.stable.v2 as nw

    return isinstance(dtype, nw.List | nw.Array) and bool(dtype.inner.is_numeric())


def _are_alike(column: pyarrow.ChunkedArray) -> bool:
    """Whether all lists of a column of Arrow have the same length."""
    import pyarrow.compute as pc

    return len(pc.unique(pc.list_value_length(column))) == 1


def _matrix_of_lists(column: pyarrow.ChunkedArray) -> FloatArray:
    """A column of lists of equally many numbers; float32 where they are that or less."""
    import pyarrow as pa
    import pyarrow.compute as pc

    single = column.type.value_type in (pa.float16(), pa.float32())
    numbers = pc.list_flatten(column).cast("float" if single else "double", safe=False)
    return np.ascontiguousarray(numbers.to_numpy(zero_copy_only=False).reshape(len(column), -1))


def tells_apart(column: Series) -> bool:
    """Whether all values of a narwhals series are there, different, and no longer than names are, a hundred letters."""
    if not len(column) or column.is_null().any():
        return False
    if not _is_object(column) and column.n_unique() < len(column):  # polars cannot count objects
        return False
    texts = list(map(str, column.to_list()))
    return len(set(texts)) == len(texts) and all(0 < len(text) <= 100 for text in texts)


def _numpy_column(column: Series) -> FloatArray:
    import narwhals.stable.v2 as nw

    # These, even with missing values, NumPy can hold without a detour over Python objects; all others are cast.
    if column.dtype.is_integer() or column.dtype.is_float():
        return np.asarray(column.to_numpy())
    if _is_object(column):
        return _filled(list(map(float, _there(column))), _missing(column))
    return np.asarray(column.cast(nw.Float64).to_numpy())


def _holds_numbers(column: Series) -> bool:
    """Whether the type of a column says that it holds real numbers; complex ones are refused."""
    import narwhals.stable.v2 as nw

    # What narwhals has no name for, such as long doubles and pandas' sparse columns, is known by the letter of its type.
    kind = getattr(_native_dtype(column), "kind", None)
    if kind == "c":
        fault = f"X must hold real numbers; column {column.name!r} is complex"
        raise InvalidInputError(
            fault, "Use its real and imaginary parts as two columns, or drop it."
        )
    return bool(
        column.dtype.is_numeric() or column.dtype == nw.Boolean or kind in ("f", "i", "u", "b")
    )


def _are_numbers(column: Series) -> bool:
    """The same, or whether all of its Python objects are real numbers."""
    if _holds_numbers(column) or not _is_object(column):
        return _holds_numbers(column)
    there = _there(column)
    return bool(there) and all(map(_is_real, there))


def _is_object(column: Series) -> bool:
    import narwhals.stable.v2 as nw

    return bool(column.dtype == nw.Object or _native_dtype(column) == np.dtype(object))


def _native_dtype(column: Series) -> Any:
    return getattr(column.to_native(), "dtype", None)


# ---- rows of frames, and of all else


def _wrapped(X: Any) -> Any:
    """A data frame or series as narwhals sees it; None for all else."""
    if isinstance(X, np.ndarray | list | tuple) or sp.issparse(X):
        return None
    import narwhals.stable.v2 as nw
    from narwhals.exceptions import DuplicateError

    try:
        frame = nw.from_native(X, pass_through=True, allow_series=True)
    except DuplicateError as error:
        # PyArrow's columns are its data.
        columns = getattr(X, "column_names", None) or list(X.columns)
        twice = ", ".join(repr(column) for column, count in Counter(columns).items() if count > 1)
        fault = f"must have columns of different names; more than one is called {twice}"
        remedy = "Rename them or drop all but one."
        raise InvalidInputError(fault, remedy, parameter="X") from error
    if hasattr(X, "__arrow_c_stream__") and not isinstance(
        frame, nw.DataFrame | nw.Series
    ):  # the result of a query
        import pyarrow as pa

        return nw.from_native(pa.table(X))
    if isinstance(frame, nw.LazyFrame):
        fault = f"is a {type(X).__name__}; all rows are needed in memory"
        remedy = "Bring them there first, as with .collect(), .compute() or .toPandas()."
        raise InvalidInputError(fault, remedy, parameter="X")
    return frame if isinstance(frame, nw.DataFrame | nw.Series) else None


def index_names(frame: Frame) -> tuple[tuple[str, ...], bool] | None:
    """The index of a pandas data frame as text, and whether it was set to name rows: it has a name of its own, or holds other
    values than whole numbers. None where it counts the rows, and for frames of others.
    """
    import narwhals.stable.v2 as nw

    index = nw.maybe_get_index(frame)
    if index is None:
        return None
    several = getattr(index, "nlevels", 1) > 1
    whole = not several and getattr(index.dtype, "kind", "O") in "iu"
    if whole and np.array_equal(index.to_numpy(), np.arange(len(index))):
        return None
    values = index if several or whole or index.dtype == np.dtype(object) else index.astype(str)
    return tuple(map(str, values.tolist())), not whole or index.name is not None


def take_rows(X: Any, rows: IntArray) -> Any:
    """X[rows], the same kind of thing as X; a memory map becomes an array, a tuple a list, sparse formats without rows CSR."""
    from sklearn.utils import _safe_indexing

    return _safe_indexing(
        X.tocsr() if sp.issparse(X) and X.format not in ("csr", "csc", "lil") else X, rows
    )


def with_columns(X: Any, columns: Mapping[str, Sequence[Any]]) -> Any:
    """A data frame, or the ``obs`` of AnnData, with columns appended; a name that exists already gets a trailing underscore."""
    import narwhals.stable.v2 as nw

    frame = _wrapped(getattr(X, "obs", X))
    if frame is None or not hasattr(frame, "columns"):
        fault = f"`with_reasons` needs the columns of a data frame; X is a {type(X).__name__}"
        raise InvalidInputError(fault, "The reasons are in facts_.picks, too.")
    for name, values in columns.items():
        while name in frame.columns:
            name += "_"
        frame = frame.with_columns(nw.new_series(name, values, backend=frame.implementation))
    if not hasattr(X, "obs"):
        return frame.to_native()
    X.obs = frame.to_native()
    return X


def n_rows(X: object) -> int:
    from sklearn.utils.validation import _num_samples

    try:
        return int(_num_samples(X))
    except TypeError as error:
        raise InvalidInputError(f"X must have rows; got a {type(X).__name__}") from error
