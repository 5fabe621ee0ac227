"""The table of all options, the readers of their values, and the names of parameters on the command line.

Options are named like the parameters of the estimators. An option that is not given has the default of the library.
"""

from __future__ import annotations

import argparse
import csv
import json
from argparse import ArgumentTypeError
from collections.abc import Callable
from typing import Any, NamedTuple, get_args

from mosaic.checks import CHOICES, KERNELS, as_bytes
from mosaic.exceptions import InvalidInputError
from mosaic.parameters import BY_NAME, Paper, Sketch
from mosaic.program import SolverName

# ---------------------------------------------------------------------------------------------------------------- values


def number_or(*words: str) -> Callable[[str], Any]:
    """A reader of finite numbers (integers as int) that also accepts some words.

    Examples
    --------
    >>> read = number_or("auto")
    >>> read("50"), read("0.05"), read("auto")
    (50, 0.05, 'auto')
    """

    def read(text: str) -> Any:
        if text in words:
            return text
        for kind in (int, float):
            try:
                value = kind(text)
            except ValueError:
                continue
            if value - value == 0:  # neither infinite nor NaN
                return value
        known = " or ".join(["a number", *(repr(word) for word in words)])
        raise ArgumentTypeError(f"{text!r} is not {known}")

    return read


def number(text: str) -> float:
    """A finite number."""
    return float(number_or()(text))


def count_or_share(text: str) -> Any:
    """Read a number of rows: a whole number, a share below 1, or "auto".

    Examples
    --------
    >>> count_or_share("50"), count_or_share("1e1"), count_or_share("0.05")
    (50, 10, 0.05)
    """
    value = number_or("auto")(text)
    if not isinstance(value, float) or value < 1:
        return value
    if value == 1:
        raise ArgumentTypeError(f"{text!r} may be one row or all of them; write 1 for one, or their number for all")
    if value != int(value):
        raise ArgumentTypeError(f"{text!r} is neither a whole number of rows nor a share below 1")
    return int(value)


def yes_or_no(text: str) -> Any:
    """Read "yes" or "no" as True or False, or "auto"."""
    known = {"auto": "auto", "yes": True, "no": False}
    if text not in known:
        raise ArgumentTypeError(f"{text!r} is not 'auto', 'yes' or 'no'")
    return known[text]


def size(text: str) -> float | None:
    """Read a size in bytes, with or without a unit."""
    try:
        return as_bytes(text)
    except InvalidInputError as error:
        raise ArgumentTypeError(f"{text!r} {error.fault}") from error


def names(text: str) -> list[str]:
    """Read names that are separated by commas; a name that contains a comma stands in double quotes.

    Examples
    --------
    >>> names('age,"height, cm",x*')
    ['age', 'height, cm', 'x*']
    """
    found = [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]
    if not found or not all(found):
        raise ArgumentTypeError(f"{text!r} has an empty name; write names with commas between, such as age,height,x*")
    return found


def quotas(text: str) -> Any:
    """Read "proportional", "equal", or a JSON object from groups to numbers or shares.

    Examples
    --------
    >>> quotas("equal"), quotas('{"a": 5, "b": 0.2}')
    ('equal', {'a': 5, 'b': 0.2})
    """
    if text in ("proportional", "equal"):
        return text
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not found:
        example = """'{"a": 5, "b": 0.2}'"""
        raise ArgumentTypeError(f"{text!r} is not 'proportional', 'equal' or a JSON object such as {example}")
    return found


# ----------------------------------------------------------------------------------------------------------------- table


class Option(NamedTuple):
    """The name of a value among the parsed options, which is that of the parameter, its flags, and its settings for argparse."""

    dest: str
    flags: tuple[str, ...]
    settings: dict[str, Any]


def _option(*flags: str, **settings: Any) -> Option:
    return Option(next(flag for flag in flags if flag.startswith("--"))[2:].replace("-", "_"), flags, settings)


SOLVERS = get_args(SolverName)
_LIST: dict[str, Any] = {"type": names, "action": "extend", "metavar": "A,B,C*"}
_ROWS: dict[str, Any] = {"nargs": "+", "action": "extend", "metavar": "ROW"}

#: Options by group of the help. None of them has a value unless it is given.
GROUPS: dict[str, tuple[Option, ...]] = {
    "how many": (
        _option(
            "-k", "--n-representatives", type=count_or_share, metavar="K",
            help="a number, a share of the rows such as 0.05, or auto: one for each clear cluster, else √(n/2) (default)",
        ),
        _option("--coverage", type=number, metavar="SHARE", help="choose as many as explain this share of the rows"),
        _option("--min-support", type=number, metavar="ROWS", help="choose as many as can each stand for this many rows"),
    ),
    "file": (
        _option("--id", metavar="COLUMN", help="column that names the rows (default: a column that looks like ids)"),
        _option("--columns", help="columns to compare rows by (default: all of them)", **_LIST),
        _option("--exclude-columns", help="columns that are not compared", **_LIST),
        _option("--embedding", metavar="COLUMN", help="a column of vectors to compare"),
        _option("--embeddings", metavar="ARRAY", help="file with the vectors to compare, one for each row"),
        _option("--array", metavar="NAME", help="name of the array in an npz, zarr or h5ad file"),
        _option("--sheet", metavar="NAME", help="sheet of an xlsx file (default: the first)"),
        _option("--format", metavar="KIND", help="csv, jsonl, parquet …: what FILE is, if its name does not say it"),
        _option("--image-size", type=int, metavar="PIXELS", help="side of resized images (default: 32)"),
        _option("--colour", "--color", action="store_true", help="compare images in colour instead of grey"),
        _option("--drop-missing", action="store_true", help="leave out rows with missing or infinite numbers"),
    ),
    "constraints": (
        _option("--group", metavar="COLUMN", help="column of labels; every label gets its share of the picks"),
        _option(
            "--quotas", type=quotas, metavar="QUOTAS",
            help="""proportional (default), equal, or '{"a": 5, "b": 0.2}': picks for each label""",
        ),
        _option("--weight", metavar="COLUMN", help="column of weights: how often each row counts"),
        _option("--must-include", help="rows that are always chosen", **_ROWS),
        _option("--exclude", help="rows that are never chosen; they are still represented", **_ROWS),
    ),
    "outliers": (
        _option(
            "--contamination", type=number_or("auto"), metavar="SHARE", help="share of outliers, if it is known"
        ),
        _option("--min-group", type=number, metavar="ROWS", help="groups of at least this many rows are kept, however rare"),
        _option(
            "--outliers", choices=CHOICES["outliers"],
            help="reject: never choose them (default); keep: do not detect them; report: only mark them",
        ),
    ),
    "choice": (
        _option(
            "--algorithm", choices=CHOICES["algorithm"],
            help="paper: Algorithm 1 of the paper as written; sketch: by passes over the rows",
        ),
    ),
    "similarity": (
        _option("--kernel", choices=KERNELS, metavar="KERNEL", help=", ".join(KERNELS) + " (default: rbf)"),
        _option(
            "--gamma", type=number_or("auto", "scale", "median"), metavar="GAMMA",
            help="bandwidth: a number, auto (default), scale or median",
        ),
        _option(
            "--scale", type=yes_or_no, metavar="auto|yes|no",
            help="divide columns by their spread (default auto: if a few columns would dominate)",
        ),
        _option("--degree", type=int, metavar="N", help="of the polynomial kernel"),
        _option("--coef0", type=number, metavar="C", help="of the polynomial kernel"),
        _option("--n-neighbors", type=int, metavar="N", help="of the diffusion kernel"),
        _option("--diffusion-time", type=int, metavar="STEPS", help="of the diffusion kernel"),
    ),
    "the paper's algorithm": (
        _option("--alpha", type=number, metavar="A", help="strength, as a multiple of the critical one (default: 10)"),
        _option("--lam", type=number, metavar="LAM", help="strength, as an absolute value"),
        _option("--diversity", type=number_or("auto"), metavar="SHARE", help="share of distances that pruning keeps"),
        _option("--op-threshold", type=number, metavar="P", help="outlier probability that is rejected"),
        _option("--solver", choices=SOLVERS, metavar="SOLVER", help=", ".join(SOLVERS)),
        _option("--max-iter", type=int, metavar="N", help="largest number of steps of first-order solvers"),
        _option("--max-rank", type=int, metavar="N", help="largest number of columns of the kernel's factor"),
    ),
    "size and speed": (
        _option("--tol", type=number, metavar="GAP", help="relative gap to certify (default: 0.02)"),
        _option("--memory-budget", type=size, metavar="SIZE", help="such as 2GiB (default) or 500MB"),
        _option("--random-state", "--seed", type=int, metavar="SEED", help="same seed, same answer (default: 0)"),
        _option("--max-samples", type=int, metavar="N", help="number of rows that a program compares (default: 128)"),
        _option("--n-initial", type=int, metavar="N", help="passes: number of first candidates"),
        _option("--n-added", type=int, metavar="N", help="passes: candidates that each round adds"),
        _option("--n-rounds", type=int, metavar="N", help="passes: largest number of rounds"),
        _option("--n-jobs", type=int, metavar="N", help="threads, -1 for all cores"),
    ),
}  # fmt: skip
#: Options of which at most one in each group may be given.
EXCLUSIVE = ("n_representatives", "coverage", "min_support")
_AS_WRITTEN = _option(
    "--as-written", action="store_true",
    help="csv: no apostrophe before cells that a spreadsheet would compute, such as =1+1",
)  # fmt: skip
_TITLE = _option("--title", help="of the report")
_SAVE = _option("--save", metavar="model.mosaic", help="also write the fitted model, for predict, explain and report")
#: Options of single commands that are no parameters of the library; those about the answer are with the output in the help.
COMMAND_OPTIONS: dict[str, tuple[Option, ...]] = {
    "path": (
        _option(
            "--max-representatives", type=int, default=100, metavar="N",
            help="largest length of the curve (default: 100)",
        ),
    ),
    "explain": (
        _option(
            "--row", type=int, action="append", default=[], metavar="N",
            help="a row by its number, from 0; may be repeated",
        ),
    ),
}  # fmt: skip
OUTPUT_OPTIONS: dict[str, tuple[Option, ...]] = {
    "select": (
        _option("--report", metavar="report.html", help="also write the HTML report"),
        _option(
            "--labels", metavar="labels.csv", help="also write the representative and the effective count of every row"
        ),
        _SAVE,
        _AS_WRITTEN,
        _TITLE,
    ),
    "report": (_TITLE,),
    "predict": (_AS_WRITTEN,),
    "outliers": (
        _option("--all", action="store_true", help="write all rows, in the order of the file"),
        _option("--report", metavar="report.html", help="also write the HTML report about the outliers"),
        _SAVE,
        _AS_WRITTEN,
        _TITLE,
    ),
}


def _names_in(*titles: str, but: tuple[str, ...]) -> tuple[str, ...]:
    found = dict.fromkeys(option.dest for title in titles for option in GROUPS[title])
    return tuple(name for name in found if name not in but)


PAPER, SKETCH = _names_in("the paper's algorithm", but=()), ("n_initial", "n_added", "n_rounds")
_OF_BOTH = ("outliers", "similarity", "size and speed")
#: Parameters of MOSAIC and of MOSAICOutlierDetector, and arguments of ``mosaic.read``.
SETTINGS = (*_names_in("how many", "choice", *_OF_BOTH, but=("max_samples",)), *PAPER)
DETECTOR_SETTINGS = _names_in(*_OF_BOTH, but=("outliers", "tol", *SKETCH))
FILE_OPTIONS = (*_names_in("file", but=()), "group", "weight")
CONSTRAINTS = _names_in("constraints", but=())
#: Options by which new rows are read for a saved model, which knows its columns.
NEW_ROWS = (*_names_in("file", but=("columns", "exclude_columns")), "memory_budget", "n_jobs")


def as_parameters(given: dict[str, Any]) -> dict[str, Any]:
    """Options as parameters of an estimator: those of an algorithm or a kernel become its settings.

    Examples
    --------
    >>> as_parameters({"n_representatives": 5, "alpha": 2.0, "n_initial": 80})["algorithm"]
    Paper(alpha=2.0, sketch=Sketch(n_initial=80))
    """
    rest = dict(given)
    paper, sketch, graph, formula = (
        {name: rest.pop(name) for name in names if name in rest}
        for names in (PAPER, SKETCH, ("n_neighbors", "diffusion_time"), ("degree", "coef0"))
    )
    asked = rest.pop("algorithm", None)
    passes = Sketch(**sketch) if sketch or asked == "sketch" else None
    algorithm = Paper(**paper, sketch=passes) if paper or asked == "paper" else passes
    if algorithm is not None:
        rest["algorithm"] = algorithm
    for name, settings in (("polynomial", formula), ("diffusion", graph)):
        if not settings:
            continue
        if rest.get("kernel", name) != name:
            fault = f"is for `kernel='{name}'`"
            raise InvalidInputError(fault, "Leave it out.", parameter=next(iter(settings)))
        settings = {key.removeprefix("diffusion_"): value for key, value in settings.items()}
        rest["kernel"] = BY_NAME[name](**settings)
    return rest


def add_group(parser: argparse.ArgumentParser, title: str, known: tuple[str, ...]) -> None:
    """Add the options of a group that the command knows."""
    options = [option for option in GROUPS[title] if option.dest in known]
    group = parser.add_argument_group(title)
    one_of = group.add_mutually_exclusive_group() if any(each.dest in EXCLUSIVE for each in options) else group
    for option in options:
        to = one_of if option.dest in EXCLUSIVE else group
        to.add_argument(*option.flags, default=argparse.SUPPRESS, **option.settings)


# ----------------------------------------------------------------------------------------------------------------- words

_OPTIONS: dict[str, Option] = {option.dest: option for options in GROUPS.values() for option in reversed(options)}
for _options in (*COMMAND_OPTIONS.values(), *OUTPUT_OPTIONS.values()):
    _OPTIONS |= {option.dest: option for option in _options}
_OPTIONS["force"] = _option("--force", action="store_true")
#: Arguments of ``fit`` whose options have other names.
_OPTIONS |= {"sample_weight": _OPTIONS["weight"], "groups": _OPTIONS["group"]}


def in_options(name: str, value: str | None = None) -> str:
    """A parameter, with the text of its Python value if any, as an option on the command line.

    Examples
    --------
    >>> in_options("memory_budget"), in_options("algorithm", "'paper'"), in_options("sample_weight")
    ('--memory-budget', '--algorithm paper', '--weight')
    >>> in_options("scale", "True"), in_options("drop_missing", "True"), in_options("candidates", "rows")
    ('--scale yes', '--drop-missing', 'candidates=rows')
    """
    if name not in _OPTIONS:
        return name if value is None else f"{name}={value}"
    flag, settings = _OPTIONS[name].flags[0], _OPTIONS[name].settings
    if value is None or (settings.get("action") == "store_true" and value == "True"):
        return flag
    return f"{flag} {({'True': 'yes', 'False': 'no'}).get(value, value.strip(chr(39)))}"
