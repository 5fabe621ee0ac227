"""The commands and their help, and the parser of the command line."""

from __future__ import annotations

import argparse
import shutil
import textwrap
from difflib import get_close_matches
from typing import Any, NamedTuple, NoReturn

from mosaic import __version__
from mosaic.cli.options import COMMAND_OPTIONS, CONSTRAINTS, DETECTOR_SETTINGS, FILE_OPTIONS, NEW_ROWS, SETTINGS, add_group
from mosaic.exceptions import MissingDependencyError
from mosaic.parameters import ELSEWHERE

ABOUT = """\
Which few rows stand for the rest, which do not belong, and how good that answer is.

FILE is a table (csv, tsv, parquet, feather, jsonl), an array (npy, npz, zarr, h5ad) or a folder or zip of \
images. Rows are compared by their columns; all columns, including ids, are kept in the output."""

EXIT_CODES = """\
exit codes:
  0    done
  1    a fault of ours; --debug shows where
  2    wrong usage or an invalid setting
  3    the input cannot be read or used
  4    an output cannot be written (it exists and --force is not given, no folder, disk full)
  5    more memory is needed than --memory-budget
  6    a library is missing
  130  interrupted; no half-written file is left"""

#: Name of the group of output options in the help.
OUTPUT = "output"
ENDINGS = "csv, tsv, parquet, feather, json or jsonl, by its ending"
_FIT = ("outliers", "how", "file", "constraints")


class Command(NamedTuple):
    line: str  # in the list of commands
    about: str
    examples: tuple[str, ...]  # which run in a folder with points.csv and points.npy
    run: str  # module and function
    takes: str = "FILE"
    output: tuple[str, str] | None = None  # name and description of the file of -o
    groups: tuple[str, ...] = (OUTPUT,)  # of options, in the order of the help
    known: tuple[str, ...] = (*SETTINGS, *FILE_OPTIONS, *CONSTRAINTS)  # options of these groups that the command has


COMMANDS = {
    "demo": Command(
        "try it: handwritten digits with noise among them",
        "Select from handwritten digits with images of noise among them: twenty stand for the rest, and noise is set aside.\n"
        "The answer is in FOLDER/report.html and FOLDER/picks.csv.",
        ("mosaic demo", "mosaic demo somewhere --json"),
        "mosaic.cli.demo:demo",
        "[FOLDER]",
    ),
    "select": Command(
        "choose rows that stand for the rest",
        "Choose the rows of FILE that stand for the rest, and set outliers aside.\n\n"
        "Picks are written to -o. Without -o, a terminal shows a short answer, and a pipe gets CSV. Picks keep all columns of\n"
        "FILE and get mosaic_rank, mosaic_row, mosaic_stands_for, mosaic_effective_count and mosaic_reason.",
        (
            "mosaic select points.csv -k 10 -o picks.csv --report report.html",
            "mosaic select points.csv --coverage 0.9 --must-include p7 --group kind --quotas equal",
            "mosaic select points.csv -k 10 --save model.mosaic",
        ),
        "mosaic.cli.select:select",
        output=("picks.csv", f"the picks: {ENDINGS}"),
        groups=("how many", OUTPUT, *_FIT),
    ),
    "outliers": Command(
        "find rows that few others look like",
        "Find the rows of FILE that few others look like, lowest score first.\n\n"
        "They keep all columns of FILE and get mosaic_row, mosaic_score, mosaic_effective_count, mosaic_is_outlier and\n"
        "mosaic_reason. The score is the log of the effective count; outliers have low scores.",
        (
            "mosaic outliers points.csv -o outliers.csv --report outliers.html",
            "mosaic outliers points.csv --contamination 0.02 --all",
        ),
        "mosaic.cli.others:outliers",
        output=("outliers.csv", f"the rows: {ENDINGS}"),
        groups=(OUTPUT, *_FIT),
        known=(*DETECTOR_SETTINGS, *(name for name in FILE_OPTIONS if name != "group")),
    ),
    "predict": Command(
        "which rows of a saved model stand for new rows, and which new rows are outliers",
        "Say for every row of FILE which representative of MODEL stands for it, how similar they are, whether the row is an\n"
        "outlier, and why. MODEL is what --save of select or outliers wrote. Columns are found by their names, become numbers\n"
        "as in the fit, and large files are read in passes.\n\n"
        "Rows get row, name, representative_row, representative, similarity, representation_error, is_outlier, effective_count\n"
        "and reason.",
        ("mosaic predict model.mosaic points.csv", "mosaic predict model.mosaic points.csv --json"),
        "mosaic.cli.others:predict",
        "MODEL FILE",
        output=("placed.csv", f"the answers: {ENDINGS}"),
        groups=(OUTPUT, "file", "how"),
        known=NEW_ROWS,
    ),
    "path": Command(
        "how many to choose: the coverage of 1, 2, 3, … rows",
        "Show how much of FILE 1, 2, 3, … representatives cover, which rows they are, and how many are suggested.",
        ("mosaic path points.csv", "mosaic path points.csv --max-representatives 30 -o curve.csv"),
        "mosaic.cli.others:path",
        output=("curve.csv", f"the curve: {ENDINGS}"),
        groups=(OUTPUT, *_FIT),
    ),
    "estimate": Command(
        "estimate the memory of select, and how often it reads the file",
        "Show which strategy select would use with these options, its memory and how often it reads FILE, without running it.",
        ("mosaic estimate points.npy", "mosaic estimate points.csv -k 20 --memory-budget 500MB --json"),
        "mosaic.cli.others:estimate",
        groups=("how many", OUTPUT, "outliers", "how", "file"),
    ),
    "report": Command(
        "select, and show the answer as one HTML page",
        "Select, and write one self-contained HTML page: the map of the data, the picks, the outliers, the coverage curve\n"
        "and the settings. It needs no network and no server. FILE may be a saved model, which is not fitted again.",
        ("mosaic report points.csv -k 10", "mosaic report model.mosaic -o model.html"),
        "mosaic.cli.select:report",
        output=("report.html", "the page (default: report.html)"),
        groups=("how many", OUTPUT, *_FIT),
    ),
    "explain": Command(
        "why a row was chosen, rejected or left out",
        "Select, and explain for each named row why it was chosen, rejected or left out. Without a name: what was decided about\n"
        "the data, and why. Name rows by id or, if there are no ids, by number from 0. FILE may be a saved model, which is not\n"
        "fitted again.",
        (
            "mosaic explain points.csv p7 p11 -k 10",
            "mosaic explain points.csv --row 0 --row 399",
            "mosaic explain model.mosaic p7",
        ),
        "mosaic.cli.others:explain",
        "FILE [ROW ...]",
        groups=("how many", OUTPUT, *_FIT),
    ),
    "completion": Command(
        "print a completion script for a shell",
        "Print a script that completes commands, options and their values, for bash, zsh or tcsh.",
        ("mosaic completion bash", "mosaic completion zsh"),
        "mosaic.cli.parser:completion",
        "SHELL",
    ),
    "schema": Command(
        "print the JSON Schema of --json",
        "Print the JSON Schema (draft 2020-12) of the output of --json, for one command or for all.",
        ("mosaic schema", "mosaic schema select"),
        "mosaic.cli.answers:schema",
        "[COMMAND]",
    ),
}


class UsageError(Exception):
    """The command line is invalid; ``usage`` shows its syntax."""

    def __init__(self, message: str, command: str, usage: str):
        super().__init__(message)
        self.command, self.usage = command, usage


class Formatter(argparse.HelpFormatter):
    """Wraps paragraphs to the width of the terminal, and keeps the lines of lists."""

    def __init__(self, prog: str):
        super().__init__(prog, max_help_position=32, width=min(shutil.get_terminal_size((100, 24)).columns, 120) - 2)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs = text.split("\n\n")
        return "\n\n".join(each if "\n  " in each else textwrap.fill(each, width) for each in paragraphs)


class Parser(argparse.ArgumentParser):
    """Raises errors instead of ending the process, and takes no abbreviations, whose meaning would change with new options."""

    def __init__(self, **settings: Any):
        super().__init__(allow_abbrev=False, formatter_class=Formatter, **settings)

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, self.prog, self.format_usage())


def parse(words: list[str]) -> argparse.Namespace | None:
    """The command and its options; None if help or the version was printed, as it is without arguments."""
    parser = build_parser(words[0] if words and words[0] in COMMANDS else None)
    try:
        args, rest = parser.parse_known_args(words or ["--help"])
    except SystemExit as ended:  # --help and --version
        if ended.code:
            raise
        return None
    # argparse does not accept names after an option.
    if args.command == "explain" and not any(word.startswith("-") for word in rest):
        args.rows.extend(rest)
        rest = []
    if rest:
        fault = f"{rest[0]!r} is one word too many. Put names with spaces in quotes"
        if rest[0].startswith("-"):
            known = [option for action in args.parser._actions for option in action.option_strings]
            option = rest[0].partition("=")[0]
            there, _, value = ELSEWHERE.get(option.lstrip("-").replace("-", "_"), "").partition("=")
            moved = "--" + there.replace("_", "-")
            if moved in known:  # such as --algorithm paper,alpha=…
                setting = value.replace("(", ",").strip("')").lower()
                close = [f"{moved} {setting}"]
            else:
                close = get_close_matches(option, known, 2)
            hint = f"Did you mean {' or '.join(close)}?" if close else f"See {args.parser.prog} --help"
            fault = f"there is no option {rest[0]}. {hint}"
        raise UsageError(fault, args.parser.prog, args.parser.format_usage())
    args.words = words
    return args


def build_parser(only: str | None = None) -> Parser:
    """The parser of the whole command line, or of one command."""
    parser = Parser(prog="mosaic", description=ABOUT, epilog=EXIT_CODES, usage="mosaic COMMAND [FILE] [options]")
    parser.add_argument("--version", action="version", version=f"mosaic {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands", required=True, prog="mosaic")
    for name, command in COMMANDS.items() if only is None else [(only, COMMANDS[only])]:
        examples = "\n".join(f"  {line}" for line in command.examples)
        inner = commands.add_parser(
            name,
            help=command.line,
            description=command.about,
            epilog=f"examples:\n{examples}\n\nExit codes are listed by mosaic --help.",
            usage=f"mosaic {name} {command.takes} [options]",
        )
        inner.set_defaults(parser=inner, run=command.run, force=False)
        _add_positional(inner, name)
        for title in command.groups:
            if title == OUTPUT:
                _add_output(inner, name, command.output)
            else:
                add_group(inner, title, command.known)
    return parser


def _add_positional(parser: Parser, command: str) -> None:
    add = parser.add_argument
    if command == "demo":
        add("folder", nargs="?", default="mosaic-demo", metavar="FOLDER", help="(default: mosaic-demo)")
    elif command == "completion":
        add("shell", choices=("bash", "zsh", "tcsh"), metavar="SHELL", help="bash, zsh or tcsh")
    elif command == "schema":
        known = [*(name for name in COMMANDS if name not in ("schema", "completion")), "error"]
        add("of", nargs="?", choices=known, metavar="COMMAND", help=", ".join(known))
    else:
        if command == "predict":
            add("model", metavar="MODEL", help="model that --save wrote")
        add("file", metavar="FILE", help="table, array, or folder or zip of images")
    if command == "explain":
        add("rows", nargs="*", metavar="ROW", help="ids, or row numbers if there are no ids")


def _add_output(parser: Parser, command: str, output: tuple[str, str] | None) -> None:
    add = parser.add_argument_group(OUTPUT).add_argument
    if output is not None:
        default = "report.html" if command == "report" else None
        add("-o", "--output", metavar=output[0], default=default, help=output[1])
    if output is not None or command == "demo":
        add("-f", "--force", action="store_true", help="replace existing files")
    add("--json", action="store_true", help="print one JSON object and nothing else (see mosaic schema)")
    add("-q", "--quiet", action="store_true", help="print no progress and no notes, only errors")
    add("--debug", action="store_true", help="show the traceback of an error, like MOSAIC_DEBUG=1")
    for option in COMMAND_OPTIONS.get(command, ()):
        add(*option.flags, **option.settings)


#: Names of options and arguments whose values are files.
FILES = ("file", "model", "output", "report", "labels", "save", "embeddings")


def completion(args: argparse.Namespace) -> int:
    """``mosaic completion``."""
    from mosaic.cli.terminal import write

    try:
        import shtab
    except ImportError as error:
        remedy = "Use: pip install 'mosaic-select[cli]'"
        raise MissingDependencyError("completion scripts need shtab", remedy) from error
    parser = build_parser()
    (commands,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    actions: list[Any] = [action for inner in commands.choices.values() for action in inner._actions]
    for action in actions:
        if action.dest in FILES:
            action.complete = shtab.FILE
        elif action.dest == "folder":
            action.complete = shtab.DIRECTORY
        elif hasattr(action.type, "known"):  # the names of kernels and algorithms
            action.choices = action.type.known
    write(shtab.complete(parser, args.shell).rstrip("\n"))
    return 0
