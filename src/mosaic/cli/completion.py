"""``mosaic completion``: what a shell completes after ``mosaic``, written by shtab."""

from argparse import Namespace

from mosaic.cli.parser import COMMANDS, Parser, command_parser
from mosaic.cli.terminal import write
from mosaic.text import library

#: Options whose values are files, besides the files that a command takes.
FILES = ("file", "model", "other", "picks", "output", "report", "labels", "save", "start")


def run_completion(args: Namespace) -> int:
    shtab = library("shtab", "mosaic completion")
    parser = Parser(prog="mosaic")
    commands = parser.add_subparsers()
    for name, command in COMMANDS.items():
        known = command_parser(name, everything=True)
        for action in known._actions:
            if action.dest in FILES:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
        commands.add_parser(name, help=command.line, parents=[known], add_help=False)
    write(shtab.complete(parser, args.shell))
    return 0
