"""The commands and their help, and the parser of the command line."""

from __future__ import annotations

import argparse
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from mosaic import __version__
from mosaic.cli.options import (
    CONSTRAINTS,
    DETECTOR_SETTINGS,
    FILE_OPTIONS,
    GROUPS,
    NEW_ROWS,
    NUMBERS,
    SETTINGS,
    USUAL,
)
from mosaic.parameters import ELSEWHERE

ABOUT = """\
Which few rows stand for the rest, which do not belong, and how good that answer is.

FILE is a table (csv, txt, xlsx, json, parquet … also packed), an array (npy, npz, zarr, h5ad)
or a folder of images. Rows are compared by their columns; all columns, including ids, are
kept in the output."""

EXIT_CODES = """\
exit codes:
  0    done
  1    a bug in MOSAIC; --debug shows where
  2    wrong usage or an invalid setting
  3    the input cannot be read or used
  4    an output cannot be written, or exists and --force is not given
  5    more memory is needed than --memory-budget
  6    a library is missing
  7    done, but some pictures cannot be read and were left out
  8    done, and rows do not belong (check, --fail-on-outliers)
  130  interrupted; no half-written file is left"""

_FIT = (*SETTINGS, *FILE_OPTIONS, *CONSTRAINTS)
#: Options that say how a file is read.
_LAYOUT = tuple(name for name in FILE_OPTIONS if name not in CONSTRAINTS)
#: Options of commands that do not choose themselves.
_WITHOUT_CHOICE = tuple(name for name in _FIT if name not in (*NUMBERS, "label", "suspects"))


class Command(NamedTuple):
    line: str  # in the list of commands
    about: str
    examples: tuple[str, ...]  # which run in a folder with points.csv and points.npy
    known: tuple[str, ...]  # its options, besides those that all commands have
    takes: tuple[str, ...] = ("FILE",)
    output: str | None = None  # what the file of -o may be called


COMMANDS = {
    "demo": Command(
        "try it: handwritten digits with noise among them",
        "Select from handwritten digits with images of noise among them: twenty stand for the rest,\n"
        "and noise is set aside. The answer is in FOLDER/report.html and FOLDER/picks.csv.",
        ("mosaic demo", "mosaic demo somewhere --json"),
        known=("force",),
        takes=("[FOLDER]",),
    ),
    "select": Command(
        "choose rows that stand for the rest",
        "Choose the rows of FILE that stand for the rest, and set outliers aside.\n\n"
        "Picks are written to -o, else a terminal shows a short answer, and a pipe gets CSV. They have\n"
        "all columns of FILE and mosaic_rank, _row, _stands_for, _effective_count and _reason.",
        (
            "mosaic select points.csv -k 10 -o picks.csv --report report.html",
            "mosaic select points.csv --coverage 0.9 --must-include p7 --group kind --quotas equal",
            "mosaic select points.csv -k 10 --save model.mosaic",
        ),
        known=(*_FIT, "force", "report", "labels", "save", "as_written", "title"),
        output="picks.csv",
    ),
    "outliers": Command(
        "find rows that few others look like",
        "Find the rows of FILE that few others look like, lowest score first.\n\n"
        "They keep all columns of FILE and get mosaic_row, mosaic_score, mosaic_effective_count,\n"
        "mosaic_is_outlier and mosaic_reason. The score is the log of the effective count.",
        ("mosaic outliers points.csv -o odd.csv --report odd.html", "mosaic outliers points.csv --contamination 0.02 --all"),
        known=(*DETECTOR_SETTINGS, *(set(FILE_OPTIONS) - {"group"}), "force", "all", "report", "save", "as_written", "title"),
        output="outliers.csv",
    ),
    "predict": Command(
        "new rows: which rows of a saved model stand for them",
        "Say for every row of FILE which representative of MODEL stands for it, how similar they are,\n"
        "whether the row is an outlier, and why. MODEL is what --save of select or outliers wrote.\n"
        "Columns are found by their names and become numbers as in the fit.",
        ("mosaic predict model.mosaic points.csv", "mosaic predict model.mosaic points.csv --json"),
        known=(*NEW_ROWS, "force", "as_written"),
        takes=("MODEL", "FILE"),
        output="placed.csv",
    ),
    "check": Command(
        "new rows: stop at those that do not belong, at a stated rate of false alarms",
        "End with code 8 if rows of FILE do not belong to those of MODEL: a file of rows that do, half of\n"
        "which are fitted and half held out, or what --save of an earlier check wrote. p-values are ranks\n"
        "among the rows held out. Of files without odd rows, at most --false-alarms end with code 8.",
        ("mosaic check points.csv points.csv --save gate.mosaic", "mosaic check gate.mosaic points.csv --json"),
        known=(*DETECTOR_SETTINGS, *(name for name in FILE_OPTIONS if name not in CONSTRAINTS), "force", "save", "as_written"),
        takes=("MODEL", "FILE"),
        output="odd.csv",
    ),
    "path": Command(
        "how many to choose: the coverage of 1, 2, 3, … rows",
        "Show how much of FILE 1, 2, 3, … representatives cover, which rows they are, and how many\nare suggested.",
        ("mosaic path points.csv", "mosaic path points.csv --max-representatives 30 -o curve.csv"),
        known=(*_WITHOUT_CHOICE, "force", "max_representatives"),
        output="curve.csv",
    ),
    "estimate": Command(
        "estimate the memory of select, and how often it reads the file",
        "Show how much memory select would use with these options, and how often it would read FILE,\nwithout running it.",
        ("mosaic estimate points.npy", "mosaic estimate points.csv -k 20 --memory-budget 500MB --json"),
        known=(*SETTINGS, *_LAYOUT),
    ),
    "columns": Command(
        "how each column will be compared, before a fit",
        "Show for each column of FILE how rows will be compared by it and what is usual in it, or why it\nis not compared.",
        ("mosaic columns points.csv", "mosaic columns points.csv -o columns.csv"),
        known=(*_LAYOUT, "force", "memory_budget"),
        output="columns.csv",
    ),
    "compare": Command(
        "what changed between two files",
        "Say which columns and values of OTHER moved, those that moved most first; then select from FILE and\n"
        "place the rows of OTHER: which representatives stand for more or fewer rows there, and how many rows\n"
        "are outliers. Dates and counters that only move on are set aside.",
        ("mosaic compare points.csv points.csv -k 10",),
        known=(*NUMBERS, *_WITHOUT_CHOICE, "force"),
        takes=("FILE", "OTHER"),
        output="changes.csv",
    ),
    "dedup": Command(
        "find copies of rows",
        "Find rows of FILE that repeat an earlier one: in all cells, in all but a few (--near) and more than\n"
        "by chance, in most words of a text, or as a picture that was turned, mirrored or resized. They get\n"
        "mosaic_copy_of, the name of that row, and the cells that differ.",
        ("mosaic dedup points.csv", "mosaic dedup points.csv -o copies.csv --keep clean.csv"),
        known=(*_LAYOUT, "near", "keep", "force", "memory_budget"),
        output="copies.csv",
    ),
    "report": Command(
        "select, and show the answer as one HTML page",
        "Select, and write one self-contained HTML page: the map of the data, the picks, the outliers,\n"
        "the coverage curve and the settings. FILE may be a saved model, which is not fitted again.",
        ("mosaic report points.csv -k 10", "mosaic report model.mosaic -o model.html"),
        known=(*_FIT, "force", "title"),
        output="report.html",
    ),
    "explain": Command(
        "why a row was chosen, rejected or left out",
        "Select, and explain for each named row why it was chosen, rejected or left out. Without a\n"
        "name: what was decided about the data, and why. Name rows by id or, if there are no ids, by\n"
        "number from 0. FILE may be a saved model, which is not fitted again.",
        ("mosaic explain points.csv p7 p11 -k 10", "mosaic explain points.csv --row 0", "mosaic explain model.mosaic p7"),
        known=(*_FIT, "row"),
        takes=("FILE", "[ROW ...]"),
    ),
    "certify": Command(
        "how good anybody's choice of rows is",
        "Say how close a choice of rows of FILE is to the best of its size, how it compares with random\n"
        "choices, and which exchanges would help most. PICKS are ids or, if there are no ids, row numbers\n"
        "from 0; or one table of picks, as -o of select writes it. FILE may be a saved model.",
        ("mosaic certify points.csv p3 p7 p11", "mosaic certify points.csv picks.csv --json"),
        known=_WITHOUT_CHOICE,
        takes=("FILE", "PICKS ..."),
    ),
    "completion": Command(
        "commands and options at the tab key, for bash, zsh and fish",
        "Write what SHELL completes after mosaic. In the file that your shell begins with, put:\n"
        '  eval "$(mosaic completion bash)"      # ~/.bashrc\n'
        '  eval "$(mosaic completion zsh)"       # ~/.zshrc, after compinit\n'
        "  mosaic completion fish | source       # ~/.config/fish/config.fish",
        ("mosaic completion bash",),
        known=(),
        takes=("SHELL",),
    ),
}  # fmt: skip


class UsageError(Exception):
    def __init__(self, message: str, parser: argparse.ArgumentParser):
        super().__init__(message)
        self.command = parser.prog
        self.usage = parser.format_usage()


class Parser(argparse.ArgumentParser):
    """Raises errors instead of ending the process, and takes no abbreviations, whose meaning would change with new options."""

    def __init__(self, **settings: Any):
        super().__init__(
            allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, **settings
        )

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, self)


def parse(words: list[str]) -> argparse.Namespace | None:
    """The command and its options; None if help or the version was printed, as it is without arguments."""
    if words[:1] == ["help"]:
        words = [*words[1:2], "--help"]
    asked = words[0] if words and words[0] in COMMANDS else None
    if asked is None:
        parser = _list_of_commands()
    else:
        parser = command_parser(asked, everything="--help-all" in words)
    if asked is None and words and not words[0].startswith("-"):
        raise UsageError(_fault_of_command(words[0]), parser)
    given = words if asked is None else words[1:]
    try:
        args, rest = parser.parse_known_args(
            ["--help"] if "--help-all" in words or not words else given
        )
    except SystemExit as ended:  # --help and --version
        if ended.code:
            raise
        return None
    # argparse does not accept names after an option.
    if asked == "explain" and not any(word.startswith("-") for word in rest):
        args.rows.extend(rest)
    elif rest or asked is None:
        raise UsageError(_fault_of_word((rest or words)[0], parser), parser)
    args.command = asked
    args.words = words
    return args


def _fault_of_command(word: str) -> str:
    close = get_close_matches(word.lower(), COMMANDS, 2)
    if not close and Path(word).exists():
        close = [f"mosaic select {word}"]
    hint = f"Did you mean {' or '.join(close)}?" if close else f"There are {', '.join(COMMANDS)}."
    return f"there is no command {word!r}. {hint}"


def _fault_of_word(word: str, parser: argparse.ArgumentParser) -> str:
    if not word.startswith("-"):
        return f"{word!r} is one word too many. Put names with spaces and patterns such as '*.csv' in quotes"
    known = [option for action in parser._actions for option in action.option_strings]
    option = word.partition("=")[0]
    there, _, value = ELSEWHERE.get(option.lstrip("-").replace("-", "_"), "").partition("=")
    moved = "--" + there.replace("_", "-")
    longer = (
        [other for other in known if other.startswith(option)] if option.startswith("--") else []
    )
    close = longer[:2] or get_close_matches(option, known, 2)
    if moved in known:  # such as --algorithm paper,alpha=…
        close = [f"{moved} {value.replace('(', ',').strip(chr(39) + ')').lower()}"]
    hint = f"Did you mean {' or '.join(close)}?" if close else f"See {parser.prog} --help"
    return f"there is no option {word}. {hint}"


def _list_of_commands() -> Parser:
    parser = Parser(
        prog="mosaic", description=ABOUT, epilog=EXIT_CODES, usage="mosaic COMMAND [FILE] [options]"
    )
    parser.add_argument("-V", "--version", action="version", version=f"mosaic {__version__}")
    commands = parser.add_subparsers(
        metavar="COMMAND", title="commands", required=True, prog="mosaic"
    )
    for name, command in COMMANDS.items():
        commands.add_parser(name, help=command.line)
    return parser


def command_parser(name: str, *, everything: bool = False) -> Parser:
    """The parser of one command, whose help shows the usual options, or ``everything``."""
    command = COMMANDS[name]
    examples = "\n".join(f"  {line}" for line in command.examples)
    parser = Parser(
        prog=f"mosaic {name}",
        description=command.about,
        epilog=f"examples:\n{examples}"
        + ("" if everything else f"\n\nAll options: mosaic {name} --help-all"),
        usage=f"mosaic {name} {' '.join(command.takes)} [options]",
        add_help=False,
    )
    values = [
        option.dest for option in GROUPS["output"] if option.settings.get("action") != "store_true"
    ]
    parser.set_defaults(**dict.fromkeys(("output", *values)), force=False)
    main = parser.add_argument_group("options")
    positionals: dict[str, dict[str, Any]] = {
        "MODEL": {"help": "model that --save wrote; for check also a table"},
        "FILE": {"help": "table, array, or folder of images"},
        "SHELL": {"choices": ("bash", "zsh", "fish"), "help": "bash, zsh or fish"},
        "OTHER": {"help": "another file with the same columns"},
        "[ROW ...]": {"nargs": "*", "help": "ids, or row numbers if there are no ids"},
        "PICKS ...": {
            "nargs": "+",
            "help": "ids, row numbers if there are no ids, or a table of picks",
        },
        "[FOLDER]": {"nargs": "?", "default": "mosaic-demo", "help": "(default: mosaic-demo)"},
    }
    for word in command.takes:
        metavar = word.strip("[.] ")
        main.add_argument(
            {"ROW": "rows"}.get(metavar, metavar.lower()), metavar=metavar, **positionals[word]
        )
    main.add_argument("-h", "--help", action="help", help=argparse.SUPPRESS)
    for title in ("how many", "output", "outliers", "how", "file", "constraints"):
        group = parser.add_argument_group(title) if everything else main
        if title == "output" and command.output is not None:
            is_page = command.output == "report.html"
            if is_page:
                what = "the page (default: report.html)"
            else:
                what = "csv, tsv, parquet, feather, json or jsonl file"
            dest, usual = ("report", command.output) if is_page else ("output", None)
            group.add_argument(
                "-o", "--output", dest=dest, metavar=command.output, default=usual, help=what
            )
        one_of = group.add_mutually_exclusive_group() if title == "how many" else group
        known = (*command.known, "json", "quiet", "verbose", "debug")
        for option in (one for one in GROUPS[title] if one.dest in known or name in one.of):
            given: dict[str, Any] = {} if title == "output" else {"default": argparse.SUPPRESS}
            if not (everything or option.dest in USUAL):
                given["help"] = argparse.SUPPRESS
            one_of.add_argument(*option.flags, **option.settings | given)
    return parser
