"""completion: a script that completes commands, options and their values."""

from __future__ import annotations

import argparse
from argparse import Namespace
from typing import Any

from mosaic.cli.answers import CompletionAnswer, write_answer
from mosaic.cli.parser import build_parser
from mosaic.cli.terminal import write
from mosaic.exceptions import MissingDependencyError

#: Names of options and arguments whose values are files.
FILES = ("file", "model", "output", "report", "labels", "save", "embeddings")


def completion(args: Namespace) -> int:
    """``mosaic completion``."""
    try:
        import shtab
    except ImportError as error:
        raise MissingDependencyError(
            "completion scripts need shtab", "Use: pip install 'mosaic-select[cli]'"
        ) from error
    parser = build_parser()
    for action in _actions(parser):
        if action.dest in FILES:
            action.complete = shtab.FILE
        elif action.dest == "folder":
            action.complete = shtab.DIRECTORY
    script = shtab.complete(parser, args.shell)
    if args.json:
        write_answer("completion", CompletionAnswer(args.shell, script))
    else:
        write(script.rstrip("\n"))
    return 0


def _actions(parser: argparse.ArgumentParser) -> list[Any]:
    """All arguments of a parser and of its subparsers."""
    found: list[Any] = []
    for action in parser._actions:
        found.append(action)
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                found += _actions(inner)
    return found
