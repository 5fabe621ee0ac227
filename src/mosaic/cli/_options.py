"""Options in groups. Names mirror the parameters of the estimators; what is not given is left to them."""

from __future__ import annotations

import argparse
from typing import Any

from mosaic.cli import _values

KERNELS = ("rbf", "laplacian", "polynomial", "linear", "cosine", "diffusion", "precomputed")
SOLVERS = ("auto", "interior-point", "admm", "fista", "admm-paper", "reference")
#: What becomes a parameter of MOSAIC, and of MOSAICOutlierDetector.
DETECTOR_SETTINGS = (
    "contamination", "min_group", "kernel", "gamma", "scale", "degree", "coef0", "n_neighbors", "diffusion_time", "alpha",
    "lam", "max_samples", "solver", "tol", "max_iter", "max_rank", "memory_budget", "random_state",
)  # fmt: skip
SETTINGS = (
    "n_representatives", "coverage", "min_support", "outliers", "diversity", "objective", "mode", "op_threshold", "strategy",
    "n_initial", "n_added", "n_rounds", "checkpoint", "n_jobs", *(name for name in DETECTOR_SETTINGS if name != "max_samples"),
)  # fmt: skip
#: What becomes an argument of ``mosaic.data.open_table``.
FILE_OPTIONS = (
    "id", "columns", "exclude_columns", "embedding", "embeddings", "array", "image_size", "colour", "drop_missing", "group",
    "weight",
)  # fmt: skip


def add_file(parser: argparse.ArgumentParser) -> None:
    """The data."""
    parser.add_argument("file", metavar="FILE", help="table, array, or folder or zip of images")


def add_output(
    parser: argparse.ArgumentParser, name: str | None = None, about: str = "", default: str | None = None
) -> Any:
    """Where the answer goes, and in which form."""
    group = parser.add_argument_group("output")
    if name is not None:
        group.add_argument("-o", "--output", metavar=name, default=default, help=about)
    if name is not None or parser.prog.endswith("demo"):
        group.add_argument("-f", "--force", action="store_true", help="replace files that exist")
    group.add_argument(
        "--json", action="store_true", help="one JSON object on stdout, and nothing else (mosaic schema)"
    )
    group.add_argument("-q", "--quiet", action="store_true", help="no progress and no notes on stderr; errors remain")
    group.add_argument("--debug", action="store_true", help="show the traceback of a fault, as MOSAIC_DEBUG=1 does")
    return group


def add_setting(group: Any, *flags: str, **settings: Any) -> None:
    """An option that is a parameter of the estimator: not there unless it is given."""
    group.add_argument(*flags, default=argparse.SUPPRESS, **settings)


def add_number(parser: argparse.ArgumentParser) -> None:
    """How many representatives."""
    group = parser.add_argument_group("how many").add_mutually_exclusive_group()
    many = "a number, a share of the rows such as 0.05, or auto, the knee of the curve (default)"
    add_setting(group, "-k", "--n-representatives", type=_values.count_or_share, metavar="K", help=many)
    add_setting(
        group, "--coverage", type=_values.number, metavar="SHARE", help="as many as explain this share of the rows"
    )
    add_setting(
        group, "--min-support", type=_values.number, metavar="ROWS", help="as many as can each stand for this many rows"
    )


def add_all_settings(parser: argparse.ArgumentParser, constraints: bool = True) -> None:
    """All parameters of MOSAIC but how many, what is read of the file, and what ``fit`` is told."""
    columns = add_columns(parser)
    if constraints:
        add_constraints(parser)
    else:
        columns.set_defaults(group=None, weight=None)
    outliers = add_oddness(parser)
    fate = "never choose them (default), do not look for them, or mark them only"
    add_setting(outliers, "--outliers", choices=("reject", "keep", "report"), help=fate)
    choice = parser.add_argument_group("choice")
    add_setting(
        choice,
        "--diversity",
        type=_values.number_or("auto"),
        metavar="DISTANCE",
        help="smallest distance, 0 to 1, of two picks",
    )
    add_setting(
        choice,
        "--objective",
        choices=("similar", "explained"),
        help="every row near to a pick (default), or most explained by all picks together",
    )
    add_setting(choice, "--mode", choices=("auto", "paper"), help="paper: Algorithm 1 as written")
    add_setting(
        choice,
        "--op-threshold",
        type=_values.number,
        metavar="P",
        help="paper mode: outlier probability that is rejected",
    )
    add_similarity(parser)
    add_program(parser)
    speed = add_speed(parser)
    add_setting(
        speed,
        "--strategy",
        choices=("auto", "exact", "low-rank", "sketch"),
        help="all rows at full or lower rank, or by passes",
    )
    add_setting(speed, "--n-initial", type=int, metavar="N", help="passes: candidates at first")
    add_setting(speed, "--n-added", type=int, metavar="N", help="passes: candidates that a round adds")
    add_setting(speed, "--n-rounds", type=int, metavar="N", help="passes: rounds at most")
    add_setting(
        speed, "--checkpoint", metavar="FILE", help="passes: keeps what is done; the same command goes on from there"
    )
    add_setting(speed, "--n-jobs", type=int, metavar="N", help="passes: threads, -1 for all cores")


def add_columns(parser: argparse.ArgumentParser) -> Any:
    """What is read of the file."""
    group = parser.add_argument_group("file")
    group.add_argument("--id", metavar="COLUMN", help="what rows are called (default: a column that looks like it)")
    listed: dict[str, Any] = {"type": _values.names, "action": "extend", "metavar": "A,B,C*"}
    group.add_argument("--columns", help="columns of numbers to compare (default: all of them)", **listed)
    group.add_argument("--exclude-columns", help="columns not to compare", **listed)
    group.add_argument("--embedding", metavar="COLUMN", help="a column of vectors to compare")
    group.add_argument("--embeddings", metavar="ARRAY", help="another file with the vectors to compare, a row for each")
    group.add_argument("--array", metavar="NAME", help="which array of an npz, zarr or h5ad file")
    add_setting(group, "--image-size", type=int, metavar="PIXELS", help="side of resized images (default: 32)")
    add_setting(group, "--colour", "--color", action="store_true", help="compare images in colour, not in grey")
    group.add_argument("--drop-missing", action="store_true", help="leave out rows with a missing or infinite number")
    group.set_defaults(group=None)
    return group


def add_constraints(parser: argparse.ArgumentParser) -> None:
    """What ``fit`` is told about single rows and groups of them."""
    group = parser.add_argument_group("constraints")
    group.add_argument(
        "--group", metavar="COLUMN", help="a label for every row; every label gets its part of the picks"
    )
    about = """proportional (default), equal, or '{"a": 5, "b": 0.2}': picks of each label"""
    group.add_argument("--quotas", type=_values.quotas, metavar="QUOTAS", help=about)
    group.add_argument("--weight", metavar="COLUMN", help="how often each row counts")
    rows: dict[str, Any] = {"nargs": "+", "action": "extend", "metavar": "ROW"}
    group.add_argument("--must-include", help="rows that are chosen whatever they add", **rows)
    group.add_argument("--exclude", help="rows that are not chosen; they still have to be represented", **rows)


def add_oddness(parser: argparse.ArgumentParser) -> Any:
    """When a row is an outlier."""
    group = parser.add_argument_group("outliers")
    add_setting(
        group,
        "--contamination",
        type=_values.number_or("auto"),
        metavar="SHARE",
        help="share of outliers, if it is known",
    )
    add_setting(
        group,
        "--min-group",
        type=_values.number,
        metavar="ROWS",
        help="so many odd rows close together are a rare kind",
    )
    return group


def add_similarity(parser: argparse.ArgumentParser) -> None:
    """Which rows resemble one another."""
    group = parser.add_argument_group("similarity")
    add_setting(group, "--kernel", choices=KERNELS, metavar="KERNEL", help=", ".join(KERNELS) + " (default: rbf)")
    bandwidth = "bandwidth: a number, auto (default), scale or median"
    add_setting(group, "--gamma", type=_values.number_or("auto", "scale", "median"), metavar="GAMMA", help=bandwidth)
    scale = group.add_mutually_exclusive_group()
    divide = "divide columns by their spread (default: where otherwise few would be all that counts)"
    add_setting(scale, "--scale", type=_values.yes_or_no, metavar="auto|yes|no", help=divide)
    add_setting(scale, "--standardize", dest="scale", action="store_const", const=True, help="the same as --scale yes")
    add_setting(group, "--degree", type=int, metavar="N", help="of the polynomial kernel")
    add_setting(group, "--coef0", type=_values.number, metavar="C", help="of the polynomial kernel")
    add_setting(group, "--n-neighbors", type=int, metavar="N", help="of the diffusion kernel")
    add_setting(group, "--diffusion-time", type=int, metavar="STEPS", help="of the diffusion kernel")


def add_program(parser: argparse.ArgumentParser) -> None:
    """The program and who solves it."""
    group = parser.add_argument_group("program")
    add_setting(
        group,
        "--alpha",
        type=_values.number,
        metavar="A",
        help="strength, as a multiple of the critical one (default: 100)",
    )
    add_setting(group, "--lam", type=_values.number, metavar="LAM", help="strength itself")
    add_setting(group, "--solver", choices=SOLVERS, metavar="SOLVER", help=", ".join(SOLVERS))
    add_setting(group, "--tol", type=_values.number, metavar="GAP", help="relative gap to certify (default: 0.001)")
    add_setting(group, "--max-iter", type=int, metavar="N", help="steps of first-order solvers")
    add_setting(group, "--max-rank", type=int, metavar="N", help="columns of the kernel's factor")


def add_speed(parser: argparse.ArgumentParser) -> Any:
    """What it may cost."""
    group = parser.add_argument_group("size and speed")
    add_setting(group, "--memory-budget", type=_values.size, metavar="SIZE", help="such as 2GiB (default) or 500MB")
    add_setting(group, "--random-state", "--seed", type=int, metavar="SEED", help="same seed, same answer (default: 0)")
    return group
