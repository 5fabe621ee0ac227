"""The seam to data frames: their columns as a matrix of numbers, or as cells of whatever kind; missing ones are known as such.

Frames are seen through narwhals alone, so any library that it knows works and none is needed. Its import takes half as long as
NumPy's and is put off until something comes that is no array.
"""

from __future__ import annotations

import reprlib
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, time
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike

from mosaic.arrays.blocks import BoolArray, FloatArray, IntArray, row_blocks
from mosaic.exceptions import InvalidInputError

#: Columns that are written side by side into a row-major matrix: one cache line of float64.
COLUMNS_AT_ONCE = 8
#: How data that is not in memory yet is brought there; whatever is not listed has ``.collect()``.
COLLECT = {"dask": ".compute()", "duckdb": ".df() or .pl()", "ibis": ".to_pandas()", "sqlframe": ".toPandas()"}
COLLECT |= {"pyspark": ".toPandas()", "pyspark[connect]": ".toPandas()"}
#: Columns that are called so name rows, most likely first; so do those that end in ``_id``.
ID_NAMES = ("id", "uuid", "key", "index", "name")
#: How columns begin that the command adds to the rows that it writes; they say nothing about a point.
ADDED_PREFIX = "mosaic_"
#: Units of time of Arrow, how many are a day.
UNITS_OF_A_DAY = {"D": 1.0, "s": 8.64e4, "ms": 8.64e7, "us": 8.64e10}
#: Texts that stand for a missing value.
MISSING_TEXTS = frozenset(("", " ", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "?", "-"))


def looks_like_id(name: str) -> bool:
    """Whether a column is called as ids are.

    Examples
    --------
    >>> looks_like_id("ID"), looks_like_id("patient_id"), looks_like_id("width")
    (True, True, False)
    """
    folded = name.casefold()
    return folded in ID_NAMES or folded.endswith("_id")


def id_names_among(names: Sequence[str]) -> list[str]:
    """The names that ids have, most likely first."""
    alike = [name for name in names if looks_like_id(name)]
    known = [name for called in ID_NAMES for name in alike if name.casefold() == called]
    return known + [name for name in alike if name not in known]


def is_added(name: str) -> bool:
    """Whether a column is called as those that the command adds to rows."""
    return name.startswith(ADDED_PREFIX)


def is_feature_name(name: object) -> bool:
    """Whether numbers in a column of this name are computed with, unless the user says otherwise; in frames and in files."""
    return not isinstance(name, str) or not (looks_like_id(name) or is_added(name))


# ---- a frame as a matrix


def numeric_part(X: Any, *, names: Sequence[str] | None = None, keep_ids: bool = False) -> Any:
    """The columns of a data frame that are features, as a data frame of the same kind; all else is returned as it is.

    Features are columns of integers, floats, booleans and decimals, unless they are called as ids are. A column without a single
    value is none, unless it is named: then its values are missing numbers.

    Parameters
    ----------
    X : data frame (pandas, polars, PyArrow, modin, …) or array
    names : the columns to take, in this order, whatever their order in X; by default all features, as they come
    keep_ids : whether numbers that are called as ids are count as features

    Raises
    ------
    InvalidInputError
        if a named column is missing or holds no numbers, if no column does, for series, and for data that is not in memory yet.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"name": ["Ada", "Max"], "height": [1.7, 1.8], "age": [36, 41]})
    >>> numeric_part(people).columns
    ['height', 'age']
    >>> numeric_part(people, names=["age"]).columns
    ['age']
    """
    frame = _wrapped(X)
    if frame is None:
        return X
    import narwhals.stable.v2 as nw

    if not hasattr(frame, "columns"):
        remedy = "use X.to_frame()" if hasattr(X, "to_frame") else "make it a column of a table"
        raise InvalidInputError(
            f"X is a {type(X).__name__}, a single column",
            f"For points with one feature {remedy}, for one point with several features a dataframe with one row.",
        )
    columns = list(frame.iter_columns())
    wanted = list(range(len(columns))) if names is None else _positions([c.name for c in columns], names)
    chosen, converted = [], []
    for position in wanted:
        column = columns[position]
        if names is None and not keep_ids and not is_feature_name(column.name):
            continue
        if not _holds_numbers(column):
            values = _numbers_among_objects(column)
            if values is None and names is None:
                continue
            if values is None and not column.is_null().all():
                fault = f"column {column.name!r} held numbers in fit and is of type {column.dtype} now"
                raise InvalidInputError(fault, "Convert it to a number type.")
            values = np.full(len(column), np.nan) if values is None else values
            converted.append(nw.new_series(column.name, values, nw.Float64, backend=frame.implementation))
        chosen.append(position)
    if not chosen:
        raise _no_numbers(columns)
    if chosen == list(range(len(columns))) and not converted:
        return X
    return _unwrapped(frame[:, chosen].with_columns(*converted), X)


def _numbers_among_objects(column: Any) -> FloatArray | None:
    """A column of Python objects as floats, missing ones as NaN; None where it is another column or has no number."""
    import narwhals.stable.v2 as nw

    if column.dtype != nw.Object and _native_dtype(column) != np.dtype(object):
        return None
    objects = column.to_list()
    cells = {row: objects[row] for row in np.flatnonzero(~np.asarray(column.is_null().to_numpy(), bool)).tolist()}
    numbers = {row for row, cell in cells.items() if is_real(cell)}
    odd = next((row for row in cells if row not in numbers), None)
    if odd is not None and numbers:
        raise InvalidInputError(
            f"column {column.name!r} mixes numbers with other values; row {odd} (counted from 0) holds "
            f"{reprlib.repr(cells[odd])}, row {min(numbers)} holds {reprlib.repr(cells[min(numbers)])}",
            f"Convert it with pd.to_numeric(X[{column.name!r}], errors='coerce') or drop the column; "
            f"if it identifies rows, use X[{column.name!r}].astype(str).",
        )
    return np.array([float(cells.get(row, np.nan)) for row in range(len(column))]) if numbers else None


def is_real(cell: Any) -> bool:
    """Whether a Python object is a real number that a float holds; NumPy counts durations among its integers."""
    if not isinstance(cell, Real | Decimal | np.bool_) or isinstance(cell, np.timedelta64):
        return False
    return not isinstance(cell, int) or abs(cell) <= sys.float_info.max


def _no_numbers(columns: list[Any]) -> InvalidInputError:
    if not columns:
        return InvalidInputError("X has no columns", "At least one of numbers is needed.")
    ids = [column.name for column in columns if not is_feature_name(column.name) and _holds_numbers(column)]
    if ids:
        named = ", ".join(map(repr, ids))
        return InvalidInputError(
            f"X has no column of numbers to compute with, only {named}, whose name says that it identifies rows",
            f"Rename it, or pass X[[{named}]].to_numpy(), if its numbers are a feature.",
        )
    return InvalidInputError(
        f"X has no column of numbers, only {', '.join(f'{column.name!r} ({column.dtype})' for column in columns)}",
        "Convert the columns that stand for numbers (for example with pandas.to_numeric) or encode them (for example with "
        "sklearn.preprocessing.OneHotEncoder).",
    )


def to_matrix(X: Any, name: str = "X") -> Any:
    """A data frame of numbers as a row-major float64 matrix, missing values as NaN; all else is returned as it is.

    The matrix is float32 where all columns are, and CSR where all columns are pandas' sparse ones filled with 0. It
    never shares memory with the data frame; besides the matrix itself no more than eight columns are held at a time.

    Examples
    --------
    >>> import polars as pl
    >>> to_matrix(pl.DataFrame({"age": [36, None], "member": [True, False]}))
    array([[36.,  1.],
           [nan,  0.]])
    """
    frame = _wrapped(X, name)
    if frame is None or not hasattr(frame, "columns"):
        return X
    import narwhals.stable.v2 as nw

    columns = list(frame.iter_columns())
    for column in columns:
        if not _holds_numbers(column):
            fault = f"{name} must hold numbers only; column {column.name!r} is of type {column.dtype}"
            raise InvalidInputError(fault, "Convert or drop it.")
    if columns and all(getattr(_native_dtype(column), "fill_value", None) == 0 for column in columns):
        matrix = frame.to_native().sparse.to_coo().tocsr()
        return matrix if matrix.dtype == np.float32 else matrix.astype(np.float64)
    single = columns and all(column.dtype == nw.Float32 for column in columns)
    return row_major(len(frame), columns, _numpy_column, np.float32 if single else np.float64)


def row_major(n: int, columns: Sequence[Any], numbers: Callable[[Any], FloatArray], dtype: DTypeLike) -> FloatArray:
    """A matrix in C order of n rows, from columns of which ``numbers`` gives the values; eight are held at a time."""
    matrix = np.empty((n, len(columns)), dtype)
    # Cache line by cache line: one column after the other would fetch every line of the matrix once for each column.
    for start in range(0, len(columns), COLUMNS_AT_ONCE):
        group = [numbers(column) for column in columns[start : start + COLUMNS_AT_ONCE]]
        for rows in row_blocks(n, COLUMNS_AT_ONCE, 1 << 15):
            for offset, values in enumerate(group):
                matrix[rows, start + offset] = values[rows]
    return matrix


def _numpy_column(column: Any) -> FloatArray:
    """The numbers of a column, missing ones as NaN."""
    import narwhals.stable.v2 as nw

    # These, even with missing values, NumPy can hold without a detour over Python objects; all others are cast.
    known = (nw.Float32, nw.Float64, nw.Int8, nw.Int16, nw.Int32, nw.Int64, nw.UInt8, nw.UInt16, nw.UInt32, nw.UInt64)
    return np.asarray((column if column.dtype in known else column.cast(nw.Float64)).to_numpy())


def _holds_numbers(column: Any) -> bool:
    """Whether the type of a column says that it holds real numbers; complex ones are refused."""
    import narwhals.stable.v2 as nw

    # What narwhals has no name for, such as long doubles and pandas' sparse columns, is known by the letter of its type.
    kind = getattr(_native_dtype(column), "kind", None)
    if kind == "c":
        fault = f"X must hold real numbers; column {column.name!r} is complex"
        raise InvalidInputError(fault, "Use its real and imaginary parts as two columns, or drop it.")
    return bool(column.dtype.is_numeric() or column.dtype == nw.Boolean or kind in ("f", "i", "u", "b"))


def _native_dtype(column: Any) -> Any:
    return getattr(column.to_native(), "dtype", None)


# ---- rows and columns of a frame


def _wrapped(X: Any, name: str = "X") -> Any:
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
        fault = f"{name} must have columns of different names; more than one is called {twice}"
        raise InvalidInputError(fault, "Rename them or drop all but one.") from error
    if isinstance(frame, nw.LazyFrame):
        remedy = f"Call {COLLECT.get(frame.implementation.value, '.collect()')} first."
        raise InvalidInputError(f"{name} is a {type(X).__name__}; all rows are needed in memory", remedy)
    return frame if isinstance(frame, nw.DataFrame | nw.Series) else None


def _frame(X: Any) -> Any:
    """A data frame as narwhals sees it; None for all else, and for series."""
    frame = _wrapped(X)
    return frame if frame is not None and hasattr(frame, "columns") else None


def _unwrapped(frame: Any, like: Any) -> Any:
    """Back from narwhals, unless that is what the caller gave."""
    return frame if type(like).__module__.startswith("narwhals.") else frame.to_native()


def column_names(X: Any) -> list[str] | None:
    """The names of the columns of a data frame, as strings; None for all else."""
    frame = _frame(X)
    return None if frame is None else [str(column) for column in frame.columns]


def frame_columns(X: Any, names: Sequence[str] | None = None) -> list[Any]:
    """The columns of a data frame as narwhals sees them, all of them or those that are named, in this order; [] for all else."""
    frame = _frame(X)
    if frame is None:
        return []
    columns = list(frame.iter_columns())
    return columns if names is None else [columns[place] for place in _positions([c.name for c in columns], names)]


def _positions(columns: list[Any], names: Sequence[str]) -> list[int]:
    """Where the named columns are."""
    places = {str(column): place for place, column in enumerate(columns)}
    missing = [str(name) for name in names if name not in places]
    if missing:
        one = len(missing) == 1
        raise InvalidInputError(
            f"{'column' if one else 'columns'} {', '.join(map(repr, missing))} {'was' if one else 'were'} there in fit "
            f"and {'is' if one else 'are'} missing now; X has {', '.join(map(repr, columns)) or 'no columns'}",
            "Add or rename the columns, or fit again.",
        )
    return [places[name] for name in names]


def id_columns(X: Any) -> list[str]:
    """Columns of a data frame that hold numbers and are no features, because they are called as ids are."""
    return [str(c.name) for c in frame_columns(X) if not is_feature_name(c.name) and _holds_numbers(c)]


def split_columns(X: Any, names: Sequence[str]) -> tuple[Any, list[Any]]:
    """A data frame without some of its columns, and these columns as arrays."""
    columns = frame_columns(X, names)
    return _unwrapped(_wrapped(X).drop({c.name for c in columns}), X), [column.to_numpy() for column in columns]


def without_empty(X: Any) -> Any:
    """A data frame without the columns that have no value at all, if other columns have some."""
    import narwhals.stable.v2 as nw

    frame = _wrapped(X)
    empty = [
        column.name
        for column in frame.iter_columns()
        if column.is_null().all() or (column.dtype in (nw.Float32, nw.Float64) and column.is_nan().all())
    ]
    return X if not empty or len(empty) == len(frame.columns) else _unwrapped(frame.drop(empty), X)


def columns_as_lists(X: Any) -> dict[str, list[Any]]:
    """The columns of a data frame or a mapping, by their names, as lists of plain values; missing ones are None."""
    if isinstance(X, Mapping):
        return {str(name): np.asarray(v).tolist() if isinstance(v, np.ndarray) else list(v) for name, v in X.items()}
    if _frame(X) is None:
        raise InvalidInputError(
            f"columns must be a dataframe, or a mapping from names to values; got {type(X).__name__}",
            "For an array use {'name': array[:, 0], …}.",
        )
    return {
        str(c.name): [None if gone else value for value, gone in zip(c.to_list(), c.is_null(), strict=True)]
        for c in frame_columns(X)
    }


def index_names(X: Any) -> tuple[tuple[str, ...], bool] | None:
    """The index of a pandas data frame as text, and whether it was set to name rows: it has a name of its own, or holds other
    values than whole numbers. None where it counts the rows, and for all else.
    """
    frame = _frame(X)
    if frame is None:
        return None
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


def take_rows(X: Any, indices: ArrayLike) -> Any:
    """X[indices], the same kind of thing as X: rows in the order of the indices, as often as they are named.

    A pandas data frame keeps its index and its categories. A memory map becomes a plain array, a tuple a list, and
    sparse formats that do not know rows become CSR.

    Examples
    --------
    >>> take_rows(["Ada", "Max", "Eva"], [2, 0, 0])
    ['Eva', 'Ada', 'Ada']
    """
    rows = row_numbers(indices, n_rows(X))
    frame = _wrapped(X)
    if frame is not None:  # also series, whose own brackets may look for labels
        return _unwrapped(frame[rows], X)
    if sp.issparse(X):
        return (X if X.format in ("csr", "csc", "lil") else X.tocsr())[rows]
    if isinstance(X, list | tuple):
        return [X[row] for row in rows]
    return X[rows] if hasattr(X, "__getitem__") else np.asarray(X)[rows]


def n_rows(X: Any) -> int:
    """Number of rows, points or elements."""
    if isinstance(X, list | tuple) or _wrapped(X) is not None:
        return len(X)
    shape = X.shape if hasattr(X, "shape") else np.shape(X)
    if not len(shape):
        raise InvalidInputError(f"X must have rows; got a {type(X).__name__} without any")
    return int(shape[0])


def row_numbers(indices: ArrayLike, length: int) -> IntArray:
    """Row numbers in ``range(length)``, in any order and repeated at will."""
    rows = np.asarray(indices)
    if rows.size == 0:
        return np.zeros(0, dtype=np.intp)
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        fault = f"indices must be a list of row numbers; got dtype {rows.dtype}, shape {rows.shape}"
        raise InvalidInputError(fault, "For a mask use np.flatnonzero(mask).")
    if rows.min() < 0 or rows.max() >= length:
        raise InvalidInputError(f"indices must lie in 0 … {length - 1}; got {rows.min()} … {rows.max()}")
    return rows.astype(np.intp, copy=False)


# ---- the cells of a column


@dataclass(frozen=True)
class Values:
    """The cells of a column: numbers, NaN where missing, or texts as numbers of levels, -1 where missing.

    Attributes
    ----------
    kind : "number", "moment" (numbers are days since 1970), "text", "level" (categories), "truth" (true or false), "other"
    numbers : of every row, unless it is text
    levels : the different texts
    codes : of every row its place among the levels
    """

    kind: str
    numbers: FloatArray | None = None
    levels: tuple[str, ...] = ()
    codes: IntArray | None = None

    @property
    def missing(self) -> BoolArray:
        if self.codes is not None:
            return np.asarray(self.codes < 0)
        assert self.numbers is not None
        return np.isnan(self.numbers)

    def __len__(self) -> int:
        return len(self.missing)

    def as_levels(self) -> tuple[tuple[str, ...], IntArray]:
        """Texts and their places; numbers are written out."""
        if self.codes is not None:
            return self.levels, self.codes
        assert self.numbers is not None
        distinct, codes = np.unique(self.numbers, return_inverse=True)
        found = tuple(f"{number:.15g}" for number in distinct if not np.isnan(number))
        return found, np.where(self.missing, -1, codes.ravel())

    def take(self, rows: IntArray) -> Values:
        """The cells of some rows, with the levels that these have."""
        if self.codes is None:
            assert self.numbers is not None
            return replace(self, numbers=self.numbers[rows])
        used, codes = np.unique(self.codes[rows], return_inverse=True)
        levels = tuple(self.levels[code] for code in used if code >= 0)
        return replace(self, levels=levels, codes=codes.ravel() - (len(used) - len(levels)))

    def text(self, row: int) -> str | None:
        """What is written in a row; None where nothing is or where it is a number."""
        return None if self.codes is None or self.codes[row] < 0 else self.levels[self.codes[row]]


class Cells(Mapping[str, Values]):
    """The cells of some columns, narwhals series by their names, read when they are asked for.

    Texts are kept, because reading them takes long; numbers are not, because they would be in memory twice.
    """

    def __init__(self, columns: Mapping[str, Any]):
        self._columns = columns
        self._kept: dict[str, Values] = {}

    def read(self, name: str) -> Values:
        """Those of a column, read anew."""
        return values_of(self._columns[name])

    def __getitem__(self, name: str) -> Values:
        values = self._kept.get(name) or self.read(name)
        if values.codes is not None:
            self._kept[name] = values
        return values

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


def cells_of(X: Any, names: Sequence[str] | None = None) -> Cells:
    """The cells of the columns of a data frame, all of them or those that are named.

    Examples
    --------
    >>> import polars as pl
    >>> cells = cells_of(pl.DataFrame({"age": [36, None], "city": ["Bonn", "Ulm"]}))
    >>> cells["age"].numbers, cells["city"].levels
    (array([36., nan]), ('Bonn', 'Ulm'))
    """
    return Cells({str(column.name): column for column in frame_columns(X, names)})


def values_of(column: Any) -> Values:
    """The cells of a narwhals series."""
    import narwhals.stable.v2 as nw

    kind, native = column.dtype, column.to_native()
    of_arrow, dtype = hasattr(native, "dictionary_encode"), getattr(native, "dtype", None)
    if kind in (nw.Categorical, nw.Enum):
        return replace(_coded(column.cast(nw.String).to_list(), column.is_null().to_numpy()), kind="level")
    # narwhals tells strings from other objects by the first hundred rows, so its word is not enough here.
    if kind in (nw.Object, nw.Time) or dtype == np.dtype(object):
        return _values_of_objects(column.to_list(), np.asarray(column.is_null().to_numpy(), bool))
    if kind == nw.String:
        return _coded_by_arrow(native) if of_arrow else _coded(column.to_list(), column.is_null().to_numpy())
    if kind == nw.Boolean:
        numbers = np.asarray(column.cast(nw.Float64).to_numpy(), np.float64)
        return Values("truth", None, ("false", "true"), np.where(np.isnan(numbers), -1, numbers).astype(np.intp))
    if kind in (nw.Date, nw.Datetime):
        if of_arrow:
            return Values("moment", _days_of_arrow(native))
        stamps = column.dt.timestamp("us").cast(nw.Float64).to_numpy()
        return Values("moment", np.asarray(stamps, np.float64) / 8.64e10)
    if kind == nw.Duration:
        return Values("number", np.asarray(column.dt.total_seconds().cast(nw.Float64).to_numpy(), np.float64))
    if kind.is_numeric() or getattr(dtype, "kind", None) in ("f", "i", "u", "b"):
        return Values("number", np.asarray(_numpy_column(column), np.float64))
    empty = bool(column.is_null().all())
    return Values("number" if empty else "other", np.full(len(column), np.nan))


def _days_of_arrow(column: Any) -> FloatArray:
    """Days since 1970 of dates and times of Arrow, of whatever unit; those beyond the year 9999 are known, too."""
    import pyarrow as pa

    stored = pa.int32() if pa.types.is_date32(column.type) else pa.int64()
    numbers = column.cast(stored).to_numpy(zero_copy_only=False).astype(np.float64)
    unit = {"date32[day]": "D", "date64[ms]": "ms"}.get(str(column.type)) or column.type.unit
    return np.asarray(np.floor(numbers / 1e3) / 8.64e10 if unit == "ns" else numbers / UNITS_OF_A_DAY[unit])


def _values_of_objects(objects: Sequence[Any], missing: BoolArray) -> Values:
    """Python objects: numbers where all of them are, structures where one is; else what they are written as."""
    there = [cell for cell, gone in zip(objects, missing, strict=True) if not gone]
    kinds = set(map(type, there))
    if kinds and all(issubclass(kind, bool | np.bool_) for kind in kinds):
        return replace(_coded([str(cell).lower() for cell in objects], missing), kind="truth")
    if kinds and all(issubclass(kind, time) for kind in kinds):
        seconds = (c.hour * 3600.0 + c.minute * 60.0 + c.second if isinstance(c, time) else np.nan for c in objects)
        return Values("number", np.array(list(seconds)))
    if all(map(is_real, there)):
        numbers = [np.nan if gone else float(cell) for cell, gone in zip(objects, missing, strict=True)]
        return Values("number", np.array(numbers, np.float64))
    if any(not issubclass(kind, str | Real | Decimal | np.bool_ | date | time | bytes) for kind in kinds):
        return Values("other", np.full(len(objects), np.nan))
    return _coded(objects, missing)


def _coded(cells: Sequence[Any], missing: Any) -> Values:
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


def _coded_by_arrow(column: Any) -> Values:
    """The same for a column of Arrow, whose own function for it is a hundred times as fast."""
    import pyarrow as pa

    encoded = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    encoded = encoded.cast(pa.large_string()).dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.unify_dictionaries().combine_chunks()
    levels = encoded.dictionary.to_pylist()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.intp)
    kept = [level not in MISSING_TEXTS for level in levels]
    places = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1)
    return Values("text", None, tuple(level for level, keep in zip(levels, kept, strict=True) if keep), places[codes])
