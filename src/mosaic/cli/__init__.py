"""The command line: ``mosaic select points.csv -k 50 -o picks.csv --report report.html``.

Only the standard library is imported before the first line is printed.
"""

from __future__ import annotations

import sys
from importlib import import_module

from mosaic._files import end_if_watched, exit_on_signal
from mosaic.cli.parser import parse
from mosaic.cli.terminal import BROKEN_PIPE, first_line, flush_or_leave, leave, prepare_streams

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
    args = None
    prepare_streams()
    try:
        with exit_on_signal():
            args = parse(words)
            if args is None:
                return flush_or_leave(0)
            if argv is None:  # the command itself, not a call within another program
                from mosaic.cli.supervision import supervised

                if (ended := supervised(args)) is not None:
                    return ended
            first_line(args)
            module, _, name = args.run.partition(":")
            code: int = getattr(import_module(module), name)(args)
        return flush_or_leave(code)
    except BrokenPipeError:
        leave(sys.stdout)
        return BROKEN_PIPE
    except BaseException as error:
        from mosaic.cli.faults import answer_fault

        code = answer_fault(error, args, words)
        if isinstance(error, KeyboardInterrupt | SystemExit):
            end_if_watched(code)
        return code
