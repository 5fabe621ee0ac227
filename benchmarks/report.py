"""What the benchmarks have in common: one thread, the header of a report, Markdown tables.

Import this module before numpy: the number of threads is read when numpy is loaded.
"""

from __future__ import annotations

import os
import platform
import shlex
import sys
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

THREADS = 1
for _library in ("OPENBLAS", "MKL", "OMP", "NUMBA", "BLIS"):
    os.environ[f"{_library}_NUM_THREADS"] = str(THREADS)

RESULTS = Path(__file__).resolve().parent / "results"


def header(title: str, packages: Sequence[str]) -> str:
    """Title, versions, processor, threads and the command that makes the report."""
    import mosaic

    versions = [f"python {platform.python_version()}", f"mosaic {mosaic.__version__}"]
    versions += [f"{name} {_version(name)}" for name in packages]
    command = shlex.join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *sys.argv[1:]])
    return "\n".join(
        [
            f"# {title}",
            "",
            f"- Versions: {', '.join(versions)}",
            f"- Processor: {platform.machine()}, {os.cpu_count()} CPUs; {THREADS} thread used",
            f"- Command: `{command}`",
            "",
        ]
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; numbers to the right, the first column to the left."""
    rule = [":--"] + ["--:"] * (len(head) - 1)
    lines = [f"| {' | '.join(cells)} |" for cells in (head, rule, *rows)]
    return "\n".join(lines) + "\n"


def seconds(value: float) -> str:
    """Three digits, however short or long."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def write(name: str, text: str) -> None:
    """Put a report into benchmarks/results and say so."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / name).write_text(text, encoding="utf-8")
    print(f"written: benchmarks/results/{name}")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "(not installed)"
