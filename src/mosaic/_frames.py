"""The seam between dataframes and matrices: columns of numbers are computed with, all others are carried along.

Dataframes are seen through narwhals alone, so any library that it knows works and none is needed. Its import takes
half as long as NumPy's and is put off until something comes that is no array.
"""

from __future__ import annotations

import reprlib
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from numbers import Number
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike

from mosaic.arrays.blocks import FloatArray, IntArray, row_blocks
from mosaic.exceptions import InvalidInputError

#: Columns that are written side by side into a row-major matrix: one cache line of float64.
COLUMNS_AT_ONCE = 8
#: How data that is not in memory yet is brought there; whatever is not listed has ``.collect()``.
COLLECT = {"dask": ".compute()", "duckdb": ".df() or .pl()", "ibis": ".to_pandas()", "sqlframe": ".toPandas()"}
COLLECT |= {"pyspark": ".toPandas()", "pyspark[connect]": ".toPandas()"}
#: Columns that are called so name rows, most likely first; so do those that end in ``_id``.
ID_NAMES = ("id", "uuid", "key", "index", "name")
#: What is said where a row is asked for by name and rows have none.
NO_NAMES = (
    "Rows have no names: these come from the index of a data frame, or a column of ids whose values are all different."
)
#: How columns begin that the command adds to the rows that it writes; they say nothing about a point.
ADDED_PREFIX = "mosaic_"


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
    """The names that ids have, most likely first.

    Examples
    --------
    >>> id_names_among(["age", "patient_id", "Name", "id"])
    ['id', 'Name', 'patient_id']
    """
    alike = [name for name in names if looks_like_id(name)]
    known = [name for called in ID_NAMES for name in alike if name.casefold() == called]
    return known + [name for name in alike if name not in known]


def is_added(name: str) -> bool:
    """Whether a column is called as those that the command adds to rows."""
    return name.startswith(ADDED_PREFIX)


def is_feature_name(name: object) -> bool:
    """Whether numbers in a column of this name are computed with, unless the user says otherwise. The same for frames and files.

    Examples
    --------
    >>> [is_feature_name(name) for name in ("width", "patient_id", "mosaic_row", 7)]
    [True, False, False, True]
    """
    return not isinstance(name, str) or not (looks_like_id(name) or is_added(name))


def numeric_part(X: Any, *, names: Sequence[str] | None = None, keep_ids: bool = False) -> Any:
    """The columns of a dataframe that are features, as a dataframe of the same kind; all else is returned as it is.

    Features are columns of integers, floats, booleans and decimals, unless they are called as ids are. Strings, categories,
    dates, lists and ids identify a row: :func:`take_rows` carries them along, nothing is computed from them.

    Parameters
    ----------
    X : dataframe (pandas, polars, PyArrow, modin, …) or array
    names : the columns to take, in this order, whatever their order in X; by default all features, as they come
    keep_ids : whether numbers that are called as ids are count as features

    Raises
    ------
    InvalidInputError
        if a named column is missing or holds no numbers, if no column does, if a column mixes numbers with other
        values, and for series and for data that is not in memory yet.

    Notes
    -----
    1. X itself is returned, without a copy, where it has these columns and no others.
    2. pandas columns of Python objects become float64 where all values are int, float, bool or missing.
    3. A column without a single value identifies a row, unless it is named: then its values are missing numbers.

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
            converted.append(_float_column(column, values, frame))
        chosen.append(position)
    if not chosen:
        raise _no_numbers(columns)
    if chosen == list(range(len(columns))) and not converted:
        return X
    return _unwrapped(frame[:, chosen].with_columns(*converted), X)


def id_columns(X: Any) -> list[str]:
    """Columns of a dataframe that hold numbers and are no features, because they are called as ids are.

    Examples
    --------
    >>> import polars as pl
    >>> id_columns(pl.DataFrame({"id": [7, 8], "name": ["Ada", "Max"], "height": [1.7, 1.8]}))
    ['id']
    """
    frame = _wrapped(X)
    if frame is None or not hasattr(frame, "columns"):
        return []
    columns = [column for column in frame.iter_columns() if not is_feature_name(column.name)]
    return [str(column.name) for column in columns if _holds_numbers(column)]


def index_names(X: Any) -> tuple[tuple[str, ...], bool] | None:
    """The index of a pandas data frame as text, and whether it was set to name rows: it has a name of its own, or holds other
    values than whole numbers. None where it counts the rows, and for all else.

    Examples
    --------
    >>> index_names(np.eye(2)) is None
    True
    """
    frame = _wrapped(X)
    if frame is None or not hasattr(frame, "columns"):
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


def split_columns(X: Any, names: Sequence[str]) -> tuple[Any, list[Any]]:
    """A data frame without some of its columns, and these columns as arrays.

    Examples
    --------
    >>> import polars as pl
    >>> rest, (city,) = split_columns(pl.DataFrame({"age": [36, 41], "city": ["Bonn", "Ulm"]}), ["city"])
    >>> rest.columns, city.tolist()
    (['age'], ['Bonn', 'Ulm'])
    """
    frame = _wrapped(X)
    columns = [next(c for c in frame.iter_columns() if str(c.name) == name) for name in names]
    return _unwrapped(frame.drop({c.name for c in columns}), X), [column.to_numpy() for column in columns]


def to_matrix(X: Any, name: str = "X") -> Any:
    """A dataframe of numbers as a row-major float64 matrix, missing values as NaN; all else is returned as it is.

    The matrix is float32 where all columns are, and CSR where all columns are pandas' sparse ones filled with 0. It
    never shares memory with the dataframe; besides the matrix itself no more than eight columns are held at a time.

    Parameters
    ----------
    X : what :func:`numeric_part` returned
    name : what X is called in messages

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
            raise InvalidInputError(
                f"{name} must hold numbers only; column {column.name!r} is of type {column.dtype}",
                "Convert or drop it.",
            )
    if columns and all(getattr(_native_dtype(column), "fill_value", None) == 0 for column in columns):
        matrix = frame.to_native().sparse.to_coo().tocsr()
        return matrix if matrix.dtype == np.float32 else matrix.astype(np.float64)
    single = columns and all(column.dtype == nw.Float32 for column in columns)
    return row_major(len(frame), columns, numpy_column, np.float32 if single else np.float64)


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


def column_names(X: Any) -> list[str] | None:
    """The names of the columns of a dataframe, as strings; None for all else.

    Examples
    --------
    >>> column_names(np.eye(2)) is None
    True
    """
    frame = _wrapped(X)
    if frame is None or not hasattr(frame, "columns"):
        return None
    return [str(column) for column in frame.columns]


def frame_columns(X: Any, names: Sequence[str] | None = None) -> list[Any]:
    """The columns of a dataframe as narwhals sees them, all of them or those that are named, in this order; [] for all else.

    Examples
    --------
    >>> import polars as pl
    >>> [column.name for column in frame_columns(pl.DataFrame({"age": [36], "city": ["Bonn"]}), ["city"])]
    ['city']
    """
    frame = _wrapped(X)
    if frame is None or not hasattr(frame, "columns"):
        return []
    columns = list(frame.iter_columns())
    return columns if names is None else [columns[place] for place in _positions([c.name for c in columns], names)]


def without_empty(X: Any) -> Any:
    """A dataframe without the columns that have no value at all, if other columns have some."""
    import narwhals.stable.v2 as nw

    frame = _wrapped(X)
    empty = [
        column.name
        for column in frame.iter_columns()
        if column.is_null().all() or (column.dtype in (nw.Float32, nw.Float64) and column.is_nan().all())
    ]
    return X if not empty or len(empty) == len(frame.columns) else _unwrapped(frame.drop(empty), X)


def columns_as_lists(X: Any) -> dict[str, list[Any]]:
    """The columns of a dataframe or a mapping, by their names, as lists of plain values; missing ones are None.

    Examples
    --------
    >>> columns_as_lists({"age": np.array([36, 41])})
    {'age': [36, 41]}
    """
    frame = None if isinstance(X, Mapping) else _wrapped(X)
    if frame is not None and hasattr(frame, "columns"):
        return {
            str(column.name): [
                None if gone else value for value, gone in zip(column.to_list(), column.is_null(), strict=True)
            ]
            for column in frame.iter_columns()
        }
    if not isinstance(X, Mapping):
        raise InvalidInputError(
            f"columns must be a dataframe, or a mapping from names to values; got {type(X).__name__}",
            "For an array use {'name': array[:, 0], …}.",
        )
    return {str(name): np.asarray(v).tolist() if isinstance(v, np.ndarray) else list(v) for name, v in X.items()}


def take_rows(X: Any, indices: ArrayLike) -> Any:
    """X[indices], the same kind of thing as X: rows in the order of the indices, as often as they are named.

    A pandas dataframe keeps its index and its categories. A memory map becomes a plain array, a tuple a list, and
    sparse formats that do not know rows become CSR.

    Parameters
    ----------
    X : dataframe, series, array, sparse matrix, list
    indices : integers from 0 to one less than the number of rows; a mask is refused

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
    """Number of rows, points or elements.

    Examples
    --------
    >>> n_rows(sp.eye_array(3))
    3
    """
    if isinstance(X, list | tuple) or _wrapped(X) is not None:
        return len(X)
    shape = X.shape if hasattr(X, "shape") else np.shape(X)
    if not len(shape):
        raise InvalidInputError(f"X must have rows; got a {type(X).__name__} without any")
    return int(shape[0])


def _wrapped(X: Any, name: str = "X") -> Any:
    """A dataframe or series as narwhals sees it; None for all else."""
    if isinstance(X, np.ndarray | list | tuple) or sp.issparse(X):
        return None
    import narwhals.stable.v2 as nw
    from narwhals.exceptions import DuplicateError

    try:
        frame = nw.from_native(X, pass_through=True, allow_series=True)
    except DuplicateError as error:
        columns = getattr(X, "column_names", None) or list(X.columns)  # PyArrow's columns are its data
        twice = ", ".join(repr(column) for column, count in Counter(columns).items() if count > 1)
        raise InvalidInputError(
            f"{name} must have columns of different names; more than one is called {twice}",
            "Rename them or drop all but one.",
        ) from error
    if isinstance(frame, nw.LazyFrame):
        remedy = COLLECT.get(frame.implementation.value, ".collect()")
        raise InvalidInputError(
            f"{name} is a {type(X).__name__}; all rows are needed in memory", f"Call {remedy} first."
        )
    return frame if isinstance(frame, nw.DataFrame | nw.Series) else None


def _unwrapped(frame: Any, like: Any) -> Any:
    """Back from narwhals, unless that is what the caller gave."""
    return frame if type(like).__module__.startswith("narwhals.") else frame.to_native()


def _native_dtype(column: Any) -> Any:
    return getattr(column.to_native(), "dtype", None)


def _holds_numbers(column: Any) -> bool:
    """Whether the type of a column says that it holds real numbers; complex ones are refused."""
    import narwhals.stable.v2 as nw

    # What narwhals has no name for, such as long doubles and pandas' sparse columns, is known by the letter of its type.
    kind = getattr(_native_dtype(column), "kind", None)
    if kind == "c":
        raise InvalidInputError(
            f"X must hold real numbers; column {column.name!r} is complex",
            "Use its real and imaginary parts as two columns, or drop it.",
        )
    return bool(column.dtype.is_numeric() or column.dtype == nw.Boolean or kind in ("f", "i", "u", "b"))


def _numbers_among_objects(column: Any) -> FloatArray | None:
    """A column of Python objects as floats, missing ones as NaN; None where it is another column or has no number."""
    import narwhals.stable.v2 as nw

    # narwhals tells strings from other objects by the first hundred rows, so its word is not enough here.
    if column.dtype != nw.Object and _native_dtype(column) != np.dtype(object):
        return None
    objects = column.to_list()
    kinds = {kind for kind in set(map(type, objects)) if _is_number(kind)}
    if not kinds:
        return None
    missing = np.asarray(column.is_null().to_numpy(), dtype=bool)  # in pandas also NaN, which then is no number
    present = np.flatnonzero(~missing)
    numbers = [row for row in present if type(objects[row]) in kinds]
    if not numbers:
        return None
    if len(numbers) < len(present):
        row = next(row for row in present if type(objects[row]) not in kinds)
        raise InvalidInputError(
            f"column {column.name!r} mixes numbers with other values; row {row} (counted from 0) holds "
            f"{reprlib.repr(objects[row])}, row {numbers[0]} holds {reprlib.repr(objects[numbers[0]])}",
            f"Convert it with pd.to_numeric(X[{column.name!r}], errors='coerce') or drop the column; "
            f"if it identifies rows, use X[{column.name!r}].astype(str).",
        )
    odd = next((row for row in numbers if not _fits_float(objects[row])), None)
    if odd is not None:
        raise InvalidInputError(
            f"column {column.name!r} holds objects that are no int or float in the range of float64; row {odd} "
            f"(counted from 0) holds {reprlib.repr(objects[odd])}",
            f"Convert to a number type, for example with X[{column.name!r}].astype(float), or drop the column.",
        )
    return np.array([np.nan if m else o for o, m in zip(objects, missing, strict=True)], dtype=np.float64)


def _is_number(kind: type) -> bool:
    # NumPy counts durations among its integers and does not register its booleans as numbers.
    return issubclass(kind, Number | np.bool_) and not issubclass(kind, np.timedelta64)


def _fits_float(value: Any) -> bool:
    largest = sys.float_info.max
    if isinstance(value, int | np.integer):
        return bool(-largest <= value <= largest)
    return isinstance(value, float | np.floating | np.bool_)


def _float_column(column: Any, values: FloatArray | None, frame: Any) -> Any:
    """A float64 column in the place of one of objects, or of a named one that has no value at all."""
    import narwhals.stable.v2 as nw

    if values is None:
        if not column.is_null().all():
            raise InvalidInputError(
                f"column {column.name!r} held numbers in fit and is of type {column.dtype} now",
                "Convert it to a number type.",
            )
        values = np.full(len(column), np.nan)
    return nw.new_series(column.name, values, nw.Float64, backend=frame.implementation)


def numpy_column(column: Any) -> FloatArray:
    """The numbers of a column, missing ones as NaN."""
    import narwhals.stable.v2 as nw

    # These, even with missing values, NumPy can hold without a detour over Python objects; all others are cast.
    known = (nw.Float32, nw.Float64, nw.Int8, nw.Int16, nw.Int32, nw.Int64, nw.UInt8, nw.UInt16, nw.UInt32, nw.UInt64)
    return np.asarray((column if column.dtype in known else column.cast(nw.Float64)).to_numpy())


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
    listed = ", ".join(f"{column.name!r} ({column.dtype})" for column in columns)
    return InvalidInputError(
        f"X has no column of numbers, only {listed}",
        "Convert the columns that stand for numbers (for example with pandas.to_numeric) or encode them (for example with "
        "sklearn.preprocessing.OneHotEncoder).",
    )


def row_numbers(indices: ArrayLike, length: int) -> IntArray:
    """Row numbers in ``range(length)``, in any order and repeated at will."""
    rows = np.asarray(indices)
    if rows.size == 0:
        return np.zeros(0, dtype=np.intp)
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise InvalidInputError(
            f"indices must be a list of row numbers; got dtype {rows.dtype}, shape {rows.shape}",
            "For a mask use np.flatnonzero(mask).",
        )
    if rows.min() < 0 or rows.max() >= length:
        raise InvalidInputError(f"indices must lie in 0 … {length - 1}; got {rows.min()} … {rows.max()}")
    return rows.astype(np.intp, copy=False)
