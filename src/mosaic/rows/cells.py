"""The cells of a column, of whatever library: numbers, moments, or texts as levels; missing ones are known as such."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, time
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from mosaic._frames import frame_columns, numpy_column
from mosaic.arrays.blocks import BoolArray, FloatArray, IntArray

#: Units of time of Arrow, how many are a day.
UNITS_OF_A_DAY = {"D": 1.0, "s": 8.64e4, "ms": 8.64e7, "us": 8.64e10}
#: Texts that stand for a missing value.
MISSING_TEXTS = frozenset(("", " ", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "?", "-"))


@dataclass(frozen=True)
class Values:
    """The cells of a column: numbers, NaN where missing, or texts as numbers of levels, -1 where missing.

    Attributes
    ----------
    kind : "number", "moment" (numbers are days since 1970), "text", "code" (text that is no number whatever it looks like),
        "level" (categories), "truth" (true or false), "other"
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
        """Which rows have no value."""
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
    """The cells of some columns, by their names, read when they are asked for.

    Texts are kept, because reading them takes long; numbers are not, because they would be in memory twice.

    Parameters
    ----------
    columns : narwhals series, by their names
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

    kind, native = column.dtype, getattr(column.to_native(), "dtype", None)
    if kind in (nw.Categorical, nw.Enum):
        return _with_kind("level", _coded(column.cast(nw.String).to_list(), column.is_null().to_numpy()))
    if kind == nw.Object or (native == np.dtype(object)):
        return _values_of_objects(column.to_list(), np.asarray(column.is_null().to_numpy(), bool))
    if kind == nw.String:
        if hasattr(column.to_native(), "dictionary_encode"):
            return _coded_by_arrow(column.to_native())
        return _coded(column.to_list(), column.is_null().to_numpy())
    if kind == nw.Boolean:
        numbers = np.asarray(column.cast(nw.Float64).to_numpy(), np.float64)
        return Values("truth", None, ("false", "true"), np.where(np.isnan(numbers), -1, numbers).astype(np.intp))
    if kind in (nw.Date, nw.Datetime):
        if hasattr(column.to_native(), "dictionary_encode"):
            return Values("moment", _days_of_arrow(column.to_native()))
        stamps = column.dt.timestamp("us").cast(nw.Float64).to_numpy()
        return Values("moment", np.asarray(stamps, np.float64) / 8.64e10)
    if kind == nw.Duration:
        return Values("number", np.asarray(column.dt.total_seconds().cast(nw.Float64).to_numpy(), np.float64))
    if kind == nw.Time:
        return _values_of_objects(column.to_list(), np.asarray(column.is_null().to_numpy(), bool))
    if kind.is_numeric() or getattr(native, "kind", None) in ("f", "i", "u", "b"):
        return Values("number", np.asarray(numpy_column(column), np.float64))
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
        return _with_kind("truth", _coded([str(cell).lower() for cell in objects], missing))
    if kinds and all(issubclass(kind, time) for kind in kinds):
        seconds = [
            cell.hour * 3600.0 + cell.minute * 60.0 + cell.second if isinstance(cell, time) else np.nan
            for cell in objects
        ]
        return Values("number", np.array(seconds))
    if all(issubclass(kind, Real | Decimal | np.bool_) and not issubclass(kind, np.timedelta64) for kind in kinds):
        try:
            return Values(
                "number", np.array([np.nan if m else float(o) for o, m in zip(objects, missing, strict=True)])
            )
        except OverflowError:  # whole numbers beyond 1e308 are written out
            pass
    if any(not issubclass(kind, str | Real | Decimal | np.bool_ | date | time | bytes) for kind in kinds):
        return Values("other", np.full(len(objects), np.nan))
    return _coded(objects, missing)


def _with_kind(kind: str, values: Values) -> Values:
    return replace(values, kind=kind)


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
    if all(kept):
        return Values("text", None, tuple(levels), codes)
    places = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1)
    return Values("text", None, tuple(level for level, keep in zip(levels, kept, strict=True) if keep), places[codes])
