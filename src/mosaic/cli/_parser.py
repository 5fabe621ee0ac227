"""From the words of a command line to a command and its options."""

from __future__ import annotations

import argparse
import difflib
import shutil
import textwrap
from typing import Any, NoReturn

from mosaic import __version__
from mosaic.cli import _options as options
from mosaic.cli._help import ABOUT, COMMANDS, EXIT_CODES, epilog

#: What a command takes besides options, if not a file.
TAKES = {"completion": "SHELL", "demo": "[FOLDER]", "schema": "[COMMAND]", "explain": "FILE [ROW ...]"}


class UsageError(Exception):
    """The words of the command line make no command; ``usage`` says how it is used."""

    def __init__(self, message: str, command: str, usage: str):
        super().__init__(message)
        self.command, self.usage = command, usage


class Parser(argparse.ArgumentParser):
    """Raises where argparse would end the process, and takes no abbreviations: they would change meaning with new options."""

    def __init__(self, **settings: Any):
        settings.setdefault("formatter_class", Formatter)
        super().__init__(allow_abbrev=False, **settings)

    def error(self, message: str) -> NoReturn:
        """The fault, for whoever called."""
        raise UsageError(message, self.prog, self.format_usage())


class Formatter(argparse.HelpFormatter):
    """Wraps paragraphs to the terminal, and leaves lists as they are written."""

    def __init__(self, prog: str):
        super().__init__(prog, max_help_position=32, width=min(shutil.get_terminal_size((100, 24)).columns, 120) - 2)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        parts = text.split("\n\n")
        return "\n\n".join(part if "\n  " in part else textwrap.fill(part, width) for part in parts)


def parse(words: list[str]) -> argparse.Namespace | None:
    """The command and its options; None where help was asked for and given."""
    parser = build_parser()
    try:
        args, rest = parser.parse_known_args(words)
    except SystemExit:  # --help and --version
        return None
    # argparse takes names that come after an option for left over.
    if args.command == "explain" and not any(word.startswith("-") for word in rest):
        args.rows.extend(rest)
        rest = []
    if rest:
        raise UsageError(_unknown(rest[0], args.parser), args.parser.prog, args.parser.format_usage())
    args.words = words
    return args


def _unknown(word: str, parser: argparse.ArgumentParser) -> str:
    if not word.startswith("-"):
        return f"{word!r} is one word too many. Names with spaces stand in quotes"
    known = [option for action in parser._actions for option in action.option_strings]
    close = difflib.get_close_matches(word.partition("=")[0], known, 2)
    hint = f"Did you mean {' or '.join(close)}?" if close else f"See {parser.prog} --help"
    return f"there is no option {word}. {hint}"


def build_parser() -> Parser:
    """The whole command line."""
    parser = Parser(prog="mosaic", description=ABOUT, epilog=EXIT_CODES, usage="mosaic COMMAND [FILE] [options]")
    parser.add_argument("--version", action="version", version=f"mosaic {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands", required=True, prog="mosaic")
    for name, fill in FILL.items():
        line, about, _ = COMMANDS[name]
        command = commands.add_parser(
            name,
            help=line,
            description=about,
            epilog=epilog(name),
            usage=f"mosaic {name} {TAKES.get(name, 'FILE')} [options]",
        )
        command.set_defaults(parser=command, json=False, quiet=False, force=False, debug=False)
        fill(command)
    return parser


def _select(parser: Parser) -> None:
    parser.set_defaults(run="mosaic.cli._commands:select")
    options.add_file(parser)
    options.add_number(parser)
    output = options.add_output(
        parser, "picks.csv", "the picks: csv, tsv, parquet, feather, json or jsonl, by its ending"
    )
    output.add_argument("--report", metavar="report.html", help="and the HTML page about them")
    output.add_argument(
        "--labels", metavar="labels.csv", help="and for every row who stands for it, and its effective count"
    )
    output.add_argument("--title", help="of the report")
    options.add_all_settings(parser)


def _report(parser: Parser) -> None:
    parser.set_defaults(run="mosaic.cli._commands:report")
    options.add_file(parser)
    options.add_number(parser)
    output = options.add_output(parser, "report.html", "the page (default: report.html)", default="report.html")
    output.add_argument("--title", help="of the page")
    options.add_all_settings(parser)


def _explain(parser: Parser) -> None:
    parser.set_defaults(run="mosaic.cli._commands:explain")
    options.add_file(parser)
    parser.add_argument("rows", nargs="*", metavar="ROW", help="ids, or row numbers where there are no ids")
    parser.add_argument(
        "--row", type=int, action="append", metavar="N", help="a row by its number, from 0; may be repeated"
    )
    options.add_number(parser)
    options.add_output(parser)
    options.add_all_settings(parser)


def _path(parser: Parser) -> None:
    parser.set_defaults(run="mosaic.cli._path:path")
    options.add_file(parser)
    parser.add_argument(
        "--max-representatives", type=int, default=100, metavar="N", help="length of the curve, at most (default: 100)"
    )
    options.add_output(parser, "curve.csv", "the curve: csv, tsv, parquet, feather, json or jsonl, by its ending")
    options.add_all_settings(parser)


def _estimate(parser: Parser) -> None:
    parser.set_defaults(run="mosaic.cli._path:estimate")
    options.add_file(parser)
    options.add_number(parser)
    options.add_output(parser)
    options.add_all_settings(parser, constraints=False)


def _outliers(parser: Parser) -> None:
    parser.set_defaults(run="mosaic.cli._outliers:outliers")
    options.add_file(parser)
    output = options.add_output(
        parser, "outliers.csv", "the rows: csv, tsv, parquet, feather, json or jsonl, by its ending"
    )
    output.add_argument("--all", action="store_true", help="all rows, in the order of the file")
    options.add_oddness(parser)
    options.add_similarity(parser)
    options.add_program(parser)
    options.add_setting(
        options.add_speed(parser),
        "--max-samples",
        type=int,
        metavar="N",
        help="rows that a program compares (default: 128)",
    )
    options.add_columns(parser).add_argument("--weight", metavar="COLUMN", help="how often each row counts")


def _demo(parser: Parser) -> None:
    parser.set_defaults(run="mosaic.cli._demo:demo")
    parser.add_argument("folder", nargs="?", default="mosaic-demo", metavar="FOLDER", help="(default: mosaic-demo)")
    options.add_output(parser)


def _completion(parser: Parser) -> None:
    parser.set_defaults(run="mosaic.cli._shell:completion")
    parser.add_argument("shell", choices=("bash", "zsh", "tcsh"), metavar="SHELL", help="bash, zsh or tcsh")
    options.add_output(parser)


def _schema(parser: Parser) -> None:
    parser.set_defaults(run="mosaic.cli._shell:schema")
    known = [*(name for name in COMMANDS if name != "schema"), "error"]
    parser.add_argument("of", nargs="?", choices=known, metavar="COMMAND", help=", ".join(known))
    options.add_output(parser)


FILL = {
    "demo": _demo,
    "select": _select,
    "outliers": _outliers,
    "path": _path,
    "estimate": _estimate,
    "report": _report,
    "explain": _explain,
    "completion": _completion,
    "schema": _schema,
}
