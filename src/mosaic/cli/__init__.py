"""The command line: ``mosaic select points.csv -k 50 -o picks.csv --report report.html``.

Nothing but the standard library is imported before the command has said what it is doing.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

from mosaic.cli._parser import parse
from mosaic.cli._signals import ending_politely, flush_or_leave

__all__ = ["main"]


def main(argv: list[str] | None = None) -> int:
    """Run a command and return its exit code; ``mosaic --help`` lists both.

    Parameters
    ----------
    argv : words after ``mosaic``, by default those of the process

    Examples
    --------
    >>> main(["select", "no-such-file.csv", "--json"])  # doctest: +ELLIPSIS
    {"schema": "mosaic/error/1", "error": {"kind": "input", ...}}
    3
    """
    words = list(sys.argv[1:] if argv is None else argv)
    args = None
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever called, as with >&-
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - for as long as the process lives
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # a sign that the terminal does not know is no reason to stop
    try:
        with ending_politely():
            args = parse(words)
            if args is None:
                return flush_or_leave(0)
            if not args.quiet and not args.json:
                from mosaic.cli._first_line import sign_of_life

                sign_of_life(args)
            home, _, name = args.run.partition(":")
            code: int = getattr(import_module(home), name)(args)
        return flush_or_leave(code)
    except BrokenPipeError:
        return flush_or_leave(0, broken=True)
    except BaseException as error:
        from mosaic.cli._faults import answer_fault

        return answer_fault(error, args, words)
