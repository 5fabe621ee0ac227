"""The seam to data frames: their columns as a matrix of numbers, or as cells of whatever kind; missing ones are known as such.

Frames are seen through narwhals alone, so any library that it knows works and none is needed. Its import takes half as long as
NumPy's and is put off until something comes that is no array.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, time
from decimal import Decimal
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from mosaic.arrays.blocks import BoolArray, FloatArray, IntArray, row_blocks
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
MISSING_TEXTS = frozenset(("", " ", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "?", "-"))


def looks_like_id(name: str) -> bool:
    return name.casefold() in ID_NAMES or name.casefold().endswith("_id")


def id_names_among(names: Sequence[str]) -> list[str]:
    return sorted(filter(looks_like_id, names), key=lambda name: (*ID_NAMES, name.casefold()).index(name.casefold()))


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

    kind, native = column.dtype, column.to_native()
    if kind in (nw.Categorical, nw.Enum):
        return replace(_coded(column.cast(nw.String).to_list(), column.is_null().to_numpy()), kind="level")
    # narwhals tells strings from other objects by the first hundred rows, so its word is not enough here.
    if _is_object(column) or kind == nw.Time:
        return _values_of_objects(column.to_list(), np.asarray(column.is_null().to_numpy(), bool))
    if kind == nw.String:
        of_arrow = hasattr(native, "dictionary_encode")
        return _coded_by_arrow(native) if of_arrow else _coded(column.to_list(), column.is_null().to_numpy())
    if kind == nw.Boolean:
        numbers = np.nan_to_num(_numpy_column(column), nan=-1.0)
        return Values("truth", None, ("false", "true"), numbers.astype(np.intp))
    if kind in (nw.Date, nw.Datetime):
        return Values("moment", np.asarray(column.dt.timestamp("us").to_numpy(), np.float64) / 8.64e10)
    if kind == nw.Duration:
        return Values("span", np.asarray(column.dt.total_seconds().to_numpy(), np.float64))
    if _holds_numbers(column):
        return Values("number", np.asarray(_numpy_column(column), np.float64))
    missing = np.asarray(column.is_null().to_numpy(), bool)
    if holds_vectors(kind) and not missing.all():
        there = column.filter(~column.is_null()).to_arrow()
        return _vectors(_matrix_of_lists(there) if _are_alike(there) else [], missing)
    return Values("number" if missing.all() else "other", np.full(len(column), np.nan))


def _values_of_objects(objects: Sequence[Any], missing: BoolArray) -> Values:
    """Python objects: numbers where all of them are, structures where one is; else what they are written as."""
    kinds = {type(cell) for cell, gone in zip(objects, missing, strict=True) if not gone}
    if kinds and all(issubclass(kind, bool | np.bool_) for kind in kinds):
        return replace(_coded([str(cell).lower() for cell in objects], missing), kind="truth")
    if kinds and all(issubclass(kind, time) for kind in kinds):
        seconds = (c.hour * 3600.0 + c.minute * 60.0 + c.second if isinstance(c, time) else np.nan for c in objects)
        return Values("span", np.array(list(seconds)))
    if all(gone or _is_real(cell) for cell, gone in zip(objects, missing, strict=True)):
        numbers = [np.nan if gone else float(cell) for cell, gone in zip(objects, missing, strict=True)]
        return Values("number", np.array(numbers, np.float64))
    if any(not issubclass(kind, str | Real | Decimal | np.bool_ | date | time | bytes) for kind in kinds):
        are_lists = all(issubclass(kind, list | tuple | np.ndarray) for kind in kinds)
        return _vectors([cell for cell, gone in zip(objects, missing, strict=True) if not gone and are_lists], missing)
    return _coded(objects, missing)


def _vectors(there: Any, missing: BoolArray) -> Values:
    """The cells that are not missing as vectors, if they are lists of equally many finite numbers."""
    with suppress(ValueError):  # lists of different lengths
        matrix = np.asarray(there)
        if matrix.ndim == 2 and matrix.size and matrix.dtype.kind in "fiu" and np.isfinite(matrix).all():
            numbers = np.full((len(missing), matrix.shape[1]), np.nan)
            numbers[~missing] = matrix
            return Values("vector", numbers)
    return Values("other", np.full(len(missing), np.nan))


def _is_real(cell: object) -> bool:
    """Whether a Python object is a real number that a float holds; NumPy counts durations among its integers."""
    if not isinstance(cell, Real | Decimal | np.bool_) or isinstance(cell, np.timedelta64):
        return False
    return not isinstance(cell, int) or abs(cell) <= sys.float_info.max


def _coded(cells: Sequence[object], missing: Iterable[bool]) -> Values:
    """Different texts in the order in which they come, and for each cell its place among them."""
    places: dict[str, int] = {}
    codes = np.full(len(cells), -1, np.intp)
    for row, (cell, gone) in enumerate(zip(cells, missing, strict=True)):
        if gone or cell is None or cell != cell:
            continue
        text = cell if isinstance(cell, str) else str(cell)
        if text not in MISSING_TEXTS:
            codes[row] = places.setdefault(text, len(places))
    return Values("text", None, tuple(places), codes)


def _coded_by_arrow(column: pyarrow.ChunkedArray) -> Values:
    """The same for a column of Arrow, whose own function for it is a hundred times as fast."""
    import pyarrow as pa

    encoded = column.cast(pa.large_string()).dictionary_encode().unify_dictionaries().combine_chunks()
    levels = encoded.dictionary.to_pylist()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.intp)
    kept = [level not in MISSING_TEXTS for level in levels]
    places = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1)
    return Values("text", None, tuple(level for level, keep in zip(levels, kept, strict=True) if keep), places[codes])


# ---- the columns of a frame


class Cells(Mapping[str, Values]):
    """The columns of a data frame, narwhals series. Texts are kept, because reading them takes long; numbers would be in memory
    twice. ``levels`` are columns that stand for categories whatever they hold.
    """

    def __init__(
        self, frame: Frame, columns: Mapping[str, Series], levels: Collection[str] = (), kept: dict[str, Values] | None = None
    ):
        self.frame, self.columns, self._levels = frame, columns, levels
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
        return Cells(self.frame, {name: self.columns[name] for name in names}, self._levels, self._kept)

    def some(self, rows: slice | IntArray) -> Cells:
        """The cells of some rows."""
        columns = {name: column[rows] for name, column in self.columns.items()}
        return Cells(self.frame[rows], columns, self._levels)

    def numbers(self) -> list[str]:
        """The columns of integers, floats, booleans and decimals, also as Python objects, whatever they are called."""
        return [name for name, column in self.columns.items() if _are_numbers(column)]

    def matrix(self) -> Any:
        """The columns, all of numbers, as a row-major float64 matrix, missing values as NaN. It is float32 where all columns are,
        and CSR where all are pandas' sparse ones filled with 0. Besides the matrix no more than eight columns are held at a time.
        """
        import narwhals.stable.v2 as nw

        columns = list(self.columns.values())
        if len(columns) == 1 and holds_vectors(columns[0].dtype):
            return _matrix_of_lists(columns[0].to_arrow())
        for column in columns:
            if not _are_numbers(column):
                fault = f"X must hold numbers only; column {column.name!r} is of type {column.dtype}"
                raise InvalidInputError(fault, "Convert it to a number type, or drop it.")
        if len(columns) > len(self.frame) > 0 and _is_arrow(columns[0]):
            # Thousands of short columns: one by one they take longer than all that follows.
            return _wide_matrix(columns)
        if columns and all(getattr(_native_dtype(column), "fill_value", None) == 0 for column in columns):
            matrix = self.frame.select([column.name for column in columns]).to_native().sparse.to_coo().tocsr()
            return matrix if matrix.dtype == np.float32 else matrix.astype(np.float64)
        single = columns and all(column.dtype == nw.Float32 for column in columns)
        return _row_major(len(self.frame), columns, np.float32 if single else np.float64)


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


def features_of(cells: Cells) -> list[str]:
    """The columns of numbers that are not called as ids are; refused if there is none."""
    features = [name for name in cells.numbers() if is_feature_name(name)]
    if not features:
        shown = ", ".join(f"{name!r} ({column.dtype})" for name, column in cells.columns.items())
        raise InvalidInputError(
            f"X has no column of numbers to compare rows by; it has {shown or 'no columns'}",
            "Convert columns that stand for numbers, for example with pandas.to_numeric, and rename numbers that have "
            "the name of an id but say something about a row.",
        )
    return features


def holds_vectors(dtype: DType) -> bool:
    """Whether a column of this type holds lists of numbers."""
    import narwhals.stable.v2 as nw

    return isinstance(dtype, nw.List | nw.Array) and bool(dtype.inner.is_numeric())


def _is_arrow(column: Series) -> bool:
    return type(column.to_native()).__module__.partition(".")[0] == "pyarrow"


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


def _wide_matrix(columns: Sequence[Series]) -> FloatArray:
    import pyarrow as pa

    natives = [column.to_native() for column in columns]
    single = all(native.type == pa.float32() for native in natives)
    kind = pa.float32() if single else pa.float64()
    table = pa.table({str(place): native.cast(kind, safe=False) for place, native in enumerate(natives)})
    (one,) = table.combine_chunks().to_batches()
    return np.ascontiguousarray(one.to_tensor(null_to_nan=True).to_numpy())


def tells_apart(column: Series) -> bool:
    """Whether all values of a narwhals series are there, different, and no longer than names are, a hundred letters."""
    if not len(column) or column.is_null().any():
        return False
    if not _is_object(column) and column.n_unique() < len(column):  # polars cannot count objects
        return False
    texts = list(map(str, column.to_list()))
    return len(set(texts)) == len(texts) and all(0 < len(text) <= 100 for text in texts)


def _row_major(n: int, columns: Sequence[Series], dtype: DTypeLike) -> FloatArray:
    """A matrix in C order of n rows; eight columns are held at a time."""
    matrix = np.empty((n, len(columns)), dtype)
    # Cache line by cache line, of eight float64: column after column would fetch every line of the matrix once for each column.
    for start in range(0, len(columns), 8):
        group = list(map(_numpy_column, columns[start : start + 8]))
        for rows in row_blocks(n, 8, 1 << 15):
            for offset, values in enumerate(group):
                matrix[rows, start + offset] = values[rows]
    return matrix


def _numpy_column(column: Series) -> FloatArray:
    import narwhals.stable.v2 as nw

    # These, even with missing values, NumPy can hold without a detour over Python objects; all others are cast.
    known = (nw.Float32, nw.Float64, nw.Int8, nw.Int16, nw.Int32, nw.Int64, nw.UInt8, nw.UInt16, nw.UInt32, nw.UInt64)
    if column.dtype in known:
        return np.asarray(column.to_numpy())
    if _is_object(column):
        cells = zip(column.to_list(), column.is_null(), strict=True)
        return np.array([np.nan if missing else float(cell) for cell, missing in cells])
    return np.asarray(column.cast(nw.Float64).to_numpy())


def _holds_numbers(column: Series) -> bool:
    """Whether the type of a column says that it holds real numbers; complex ones are refused."""
    import narwhals.stable.v2 as nw

    # What narwhals has no name for, such as long doubles and pandas' sparse columns, is known by the letter of its type.
    kind = getattr(_native_dtype(column), "kind", None)
    if kind == "c":
        fault = f"X must hold real numbers; column {column.name!r} is complex"
        raise InvalidInputError(fault, "Use its real and imaginary parts as two columns, or drop it.")
    return bool(column.dtype.is_numeric() or column.dtype == nw.Boolean or kind in ("f", "i", "u", "b"))


def _are_numbers(column: Series) -> bool:
    """The same, or whether all of its Python objects are real numbers."""
    if _holds_numbers(column) or not _is_object(column):
        return _holds_numbers(column)
    there = [cell for cell, gone in zip(column.to_list(), column.is_null(), strict=True) if not gone]
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
        columns = getattr(X, "column_names", None) or list(X.columns)  # PyArrow's columns are its data
        twice = ", ".join(repr(column) for column, count in Counter(columns).items() if count > 1)
        fault = f"X must have columns of different names; more than one is called {twice}"
        raise InvalidInputError(fault, "Rename them or drop all but one.") from error
    if hasattr(X, "__arrow_c_stream__") and not isinstance(frame, nw.DataFrame | nw.Series):  # the result of a query
        import pyarrow as pa

        return nw.from_native(pa.table(X))
    if isinstance(frame, nw.LazyFrame):
        fault = f"X is a {type(X).__name__}; all rows are needed in memory"
        raise InvalidInputError(fault, "Bring them there first, as with .collect(), .compute() or .toPandas().")
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


def columns_as_lists(X: object) -> dict[str, list[Any]]:
    """The columns of a data frame or a mapping, by their names, as lists of plain values; missing ones are None."""
    if isinstance(X, Mapping):
        return {str(name): values.tolist() if isinstance(values, np.ndarray) else list(values) for name, values in X.items()}
    cells = cells_if_frame(X)
    if cells is None:
        raise InvalidInputError(
            f"columns must be a dataframe, or a mapping from names to values; got {type(X).__name__}",
            "For an array use {'name': array[:, 0], …}.",
        )
    return {
        name: [None if gone else value for value, gone in zip(column.to_list(), column.is_null(), strict=True)]
        for name, column in cells.columns.items()
    }


def take_rows(X: Any, rows: IntArray) -> Any:
    """X[rows], the same kind of thing as X; a memory map becomes an array, a tuple a list, sparse formats without rows CSR."""
    from sklearn.utils import _safe_indexing

    return _safe_indexing(X.tocsr() if sp.issparse(X) and X.format not in ("csr", "csc", "lil") else X, rows)


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
