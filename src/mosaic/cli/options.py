"""The table of all options, the readers of their values, and the names of parameters on the command line.

Options are named like the parameters of the estimators. An option that is not given has the default of the library.
"""

from __future__ import annotations

import csv
import json
from argparse import ArgumentTypeError
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from mosaic.exceptions import InvalidInputError
from mosaic.parameters import BY_NAME, CHOICES, KERNELS


def setting(text: str) -> Any:
    """A number, also in percent, yes or no, a JSON object, or a word, as the library checks it."""
    if text.startswith("{"):
        return json.loads(text)
    digits = text.removesuffix("%")
    for kind in (int, float):
        with suppress(ValueError):
            return kind(digits) if digits == text else kind(digits) / 100
    return {"yes": True, "no": False}.get(text, text)


def names(text: str) -> list[str]:
    """Names that are separated by commas; a name that contains a comma stands in double quotes."""
    found = [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]
    if not found or not all(found):
        raise ArgumentTypeError(
            f"{text!r} has an empty name; write names with commas between, such as age,height,x*"
        )
    return found


def named(known: Sequence[str]) -> Callable[[str], Any]:
    """A reader of a kernel or an algorithm by its name, with or without settings: ``paper,alpha=5,solver=fista``."""

    def read(text: str) -> Any:
        name, *pairs = text.split(",")
        if name not in known:
            raise ArgumentTypeError(f"invalid choice: {name!r} (choose from {', '.join(known)})")
        settings = dict(pair.partition("=")[::2] for pair in pairs)
        try:
            return (
                BY_NAME[name](**{k: setting(v) for k, v in settings.items()}) if settings else name
            )
        except KeyError as error:
            raise ArgumentTypeError(f"{name} has no settings") from error
        except InvalidInputError as error:
            raise ArgumentTypeError(f"{text!r}: {error}") from error

    return read


class Option(NamedTuple):
    dest: str  # the name of the parameter
    flags: tuple[str, ...]
    settings: dict[str, Any]
    of: tuple[
        str, ...
    ] = ()  # commands that have it, besides those that name it among what they know


def _option(
    flags: str,
    help: str,
    metavar: str | None = None,
    type: Any = None,
    of: str = "",
    **settings: Any,
) -> Option:
    settings |= (
        {"help": help}
        | ({"metavar": metavar} if metavar else {})
        | ({"type": type} if type else {})
    )
    first = next(flag for flag in flags.split() if flag.startswith("--"))
    return Option(first[2:].replace("-", "_"), tuple(flags.split()), settings, tuple(of.split()))


_LIST: dict[str, Any] = {"action": "extend", "type": names, "metavar": "A,B,C*"}
_ROWS: dict[str, Any] = {"action": "extend", "nargs": "+", "metavar": "ROW"}
_FLAG: dict[str, Any] = {"action": "store_true"}
#: Options that ``--help`` shows; ``--help-all`` shows all.
USUAL = (
    "n_representatives",
    "coverage",
    "id",
    "columns",
    "group",
    "contamination",
    "report",
    "save",
    "near",
    "keep",
    "force",
    "json",
    "row",
)
#: Options by group of the help. Those of all groups but "output" have no value unless they are given.
GROUPS: dict[str, tuple[Option, ...]] = {
    "how many": (
        _option("-k --n-representatives", "a number, a share such as 0.05, or auto (default)", "K", setting),
        _option("--coverage", "as many as this coverage needs, between 0 and 1", "SHARE", setting),
    ),
    "file": (
        _option("--id", "column that names the rows (default: found by its name)", "COLUMN"),
        _option("--columns", "columns to compare rows by (default: all)", **_LIST),
        _option("--exclude-columns", "columns that are not compared", **_LIST),
        _option("--embedding", "a column of vectors to compare", "COLUMN"),
        _option("--array", "name of the array in an npz, zarr or h5ad file", "NAME"),
        _option("--sheet", "sheet of a workbook (default: the first)", "NAME"),
        _option("--format", "csv, jsonl, parquet …: what FILE is, if its name does not say it", "KIND"),
        _option("--encoding", "of a text, such as cp1251 (default: UTF-8, UTF-16 or Windows-1252)", "NAME"),
        _option("--image-size", "side of resized images (default: 32)", "PIXELS", int),
        _option("--colour --color", "compare images in colour instead of grey", **_FLAG),
    ),
    "constraints": (
        _option("--group", "column of labels, or columns; each label gets its share of the picks", "COLUMN,…", names),
        _option("--label", "column of classes: choose within each, and name rows whose label does not fit", "COLUMN"),
        _option("--suspects", "with --label: do not choose rows whose label does not fit (default), or do",
                choices=CHOICES["suspects"]),
        _option("--quotas", 'picks for each label: proportional (default), equal, 10, or {"a": 5, "b": 0.2}', "QUOTAS", setting),
        _option("--weight", "column of weights: how often each row counts", "COLUMN"),
        _option("--must-include", "rows that are always chosen", **_ROWS),
        _option("--exclude", "rows that are never chosen; they are still represented", **_ROWS),
        _option("--marks", "marks that a report saved: rows that are fine are no outliers", "marks.csv", of="outliers"),
        _option("--start", "saved model whose picks stay unless others are clearly better", "old.mosaic", Path),
    ),
    "outliers": (
        _option("--contamination", "share of outliers, if it is known", "SHARE", setting),
        _option("--min-group", "groups of at least this many rows are kept, however rare", "ROWS", setting),
        _option("--outliers", "never choose them (default), do not detect them, or only mark them", choices=CHOICES["outliers"]),
    ),
    "how": (
        _option("--kernel", f"{', '.join(KERNELS)} (default: rbf); with settings: polynomial,degree=2 or "
                "diffusion,n_neighbors=15", "KERNEL", named(KERNELS)),
        _option("--gamma", "bandwidth: a number, auto (default), scale or median", "GAMMA", setting),
        _option("--scale", "divide columns by their spread (default auto: if few would dominate)", "auto|yes|no", setting),
        _option("--algorithm", "paper: Algorithm 1 of the paper as written; with settings: paper,alpha=50,solver=fista",
                "ALGORITHM", named(CHOICES["algorithm"])),
        _option("--max-samples", "number of rows that a program compares (default: 128)", "N", int),
        _option("--memory-budget", "such as 2GiB (default: a quarter of the free memory)", "SIZE"),
        _option("--random-state --seed", "same seed, same answer (default: 0)", "SEED", int),
        _option("--n-jobs", "threads, -1 for all cores", "N", int),
    ),
    "output": (
        _option("-f --force", "replace existing files", **_FLAG),
        _option("--json", "print one JSON object and nothing else", **_FLAG),
        _option("-q --quiet", "no progress and no notes; with -o nothing but errors", **_FLAG),
        _option("-v --verbose", "all notes about the file, which else are one line", **_FLAG),
        _option("--debug", "show the traceback of an error", **_FLAG),
        _option("--all", "write all rows, in the order of the file", **_FLAG),
        _option("--report", "also the answer as one HTML page", "report.html"),
        _option("--labels", "also the representative of every row", "labels.csv"),
        _option("--save", "also the fitted model, for predict, explain, report", "model.mosaic"),
        _option("--as-written", "csv: cells as they are, even those that a spreadsheet would compute", **_FLAG),
        _option("--near", "how much copies may differ: a share of the cells (default: 0.2); of texts 1 - cosine (0.4), "
                "of pictures 1 - correlation (0.03), of numbers a share of the usual distance to ten (0.1)", "SHARE", float),
        _option("--keep", "also the file without its copies", "clean.csv"),
        _option("--fail-on-outliers", "end with code 8 if there are any", of="outliers predict", **_FLAG),
        _option("--false-alarms", "of files without odd rows, at most this share has some (default: 0.05)", "SHARE", setting,
                "check", default=0.05),
        _option("--title", "of the report"),
        _option("--max-representatives", "where the curve ends (default: 100)", "N", int, default=100),
        _option("--row", "a row by its number, from 0; may be repeated", "N", int, action="append", default=[]),
    ),
}  # fmt: skip


def _names_in(*titles: str, but: tuple[str, ...] = ()) -> tuple[str, ...]:
    return tuple(
        option.dest for title in titles for option in GROUPS[title] if option.dest not in but
    )


#: Options that say how many are chosen, parameters of MOSAIC and of MOSAICOutlierDetector, and arguments of ``mosaic.read``.
NUMBERS = _names_in("how many")
SETTINGS = (*NUMBERS, *_names_in("outliers", "how", but=("max_samples",)))
DETECTOR_SETTINGS = _names_in("outliers", "how", but=("outliers", "algorithm"))
FILE_OPTIONS = (*_names_in("file"), "group", "weight")
CONSTRAINTS = _names_in("constraints")
#: Options by which new rows are read for a saved model, which knows its columns.
NEW_ROWS = (*_names_in("file", but=("columns", "exclude_columns")), "memory_budget", "n_jobs")

_OPTIONS = {option.dest: option for options in GROUPS.values() for option in options}
#: Arguments of ``fit`` whose options have other names.
_OPTIONS |= {"sample_weight": _OPTIONS["weight"], "groups": _OPTIONS["group"]}


def in_options(name: str, value: str | None) -> str:
    """A parameter, with the text of its Python value if any, as an option on the command line: ``--algorithm paper``."""
    if name not in _OPTIONS:
        return name if value is None else f"{name}={value}"
    option = _OPTIONS[name]
    flag = next(flag for flag in option.flags if len(flag) > 2 or name == "n_representatives")
    if value is None or (option.settings.get("action") == "store_true" and value == "True"):
        return flag
    return f"{flag} {({'True': 'yes', 'False': 'no'}).get(value, value.strip(chr(39)))}"
