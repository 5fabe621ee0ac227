"""completion and schema: texts for shells and programs."""

from __future__ import annotations

import argparse
import json
from argparse import Namespace
from importlib.resources import files
from typing import Any

from mosaic.cli._output import write, write_bytes, write_json
from mosaic.cli._parser import build_parser
from mosaic.exceptions import MissingDependencyError

#: Options and arguments whose values are files or folders.
FILES = ("file", "output", "report", "labels", "embeddings", "checkpoint")
FOLDERS = ("folder",)


def completion(args: Namespace) -> int:
    """``mosaic completion``."""
    try:
        import shtab
    except ImportError as error:
        raise MissingDependencyError("Completion scripts need shtab: pip install 'mosaic-select[cli]'.") from error
    parser = build_parser()
    for action in _actions(parser):
        if action.dest in FILES:
            action.complete = shtab.FILE
        elif action.dest in FOLDERS:
            action.complete = shtab.DIRECTORY
    script = shtab.complete(parser, args.shell)
    if args.json:
        write_json({"schema": "mosaic/completion/1", "shell": args.shell, "script": script})
    else:
        write(script.rstrip("\n"))
    return 0


def _actions(parser: argparse.ArgumentParser) -> list[Any]:
    """All arguments of a parser and of those within."""
    found: list[Any] = []
    for action in parser._actions:
        found.append(action)
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                found += _actions(inner)
    return found


def schema(args: Namespace) -> int:
    """``mosaic schema``."""
    write_bytes(json.dumps(schema_of(args.of), indent=2, ensure_ascii=False).encode() + b"\n")
    return 0


def schema_of(command: str | None = None) -> dict[str, Any]:
    """The JSON Schema of what ``--json`` gives: of a command, of "error", or of any of them.

    Examples
    --------
    >>> schema_of("select")["$ref"]
    '#/$defs/select'
    """
    whole: dict[str, Any] = json.loads(files("mosaic.cli").joinpath("schema.json").read_text("utf-8"))
    if command is None:
        return whole
    return {"$schema": whole["$schema"], "$ref": f"#/$defs/{command}", "$defs": whole["$defs"]}
