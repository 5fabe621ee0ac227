"""The command line: ``mosaic select points.csv -k 50 -o picks.csv --report report.html``.

Only the standard library is imported before the first line is printed.
"""

from __future__ import annotations

import signal
import sys
from importlib import import_module
from types import FrameType

from mosaic.cli.parser import parse
from mosaic.cli.terminal import BROKEN_PIPE, discard_output, first_line

__all__ = ["main"]


def main(argv: list[str] | None = None) -> int:
    """Run a command and return its exit code; ``mosaic --help`` lists commands and exit codes.

    Parameters
    ----------
    argv : arguments after ``mosaic``, by default those of the process

    Examples
    --------
    >>> main(["select", "no-such-file.csv", "--json"])  # doctest: +ELLIPSIS
    {"schema": "mosaic/error/1", "error": {"kind": "input", ...}}
    3
    """
    words = list(sys.argv[1:] if argv is None else argv)
    args, code = None, 0
    if argv is None:  # the command itself, not a call within another program
        signal.signal(signal.SIGTERM, _end)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # characters that the terminal cannot show
    try:
        args = parse(words)
        if args is not None:
            first_line(args)
            home = {"demo": "demo", "columns": "files", "compare": "files", "dedup": "files"}.get(args.command, "commands")
            code = getattr(import_module(f"mosaic.cli.{home}"), args.command)(args)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        discard_output(sys.stdout)
        return BROKEN_PIPE
    except BaseException as error:
        from mosaic.cli.faults import answer_fault

        return answer_fault(error, args, words)


def _end(number: int, frame: FrameType | None) -> None:
    """End as after Ctrl-C, so that temporary files are removed."""
    raise SystemExit(128 + number)
