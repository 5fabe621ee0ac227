"""Count what a call visits: the table of docs/architecture.md.

    python docs/count_visits.py            # print it
    python docs/count_visits.py --write    # write it into the page

Functions of the package that are called at least once, in any thread, their files, and all calls; imports do not count.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import json
import os
import pkgutil
import re
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parent / "architecture.md"
CALLS = {
    "MOSAIC(20).fit(X)": lambda mosaic, X: mosaic.MOSAIC(20).fit(X),
    'MOSAIC(20).fit("x.csv")': lambda mosaic, X: mosaic.MOSAIC(20).fit("x.csv"),
    "MOSAICOutlierDetector().fit(X)": lambda mosaic, X: mosaic.MOSAICOutlierDetector().fit(X),
    "mosaic select x.csv -k 20 --report r.html": lambda mosaic, X: mosaic.cli.main(
        ["select", "x.csv", "-k", "20", "--quiet", "--report", "r.html"]
    ),
}


def visits(name: str) -> tuple[int, int, int]:
    """Files, functions and calls of one of the calls, with 1000 rows of 16 columns."""
    import numpy as np

    import mosaic.cli

    root = str(Path(mosaic.__file__).parent)
    for module in pkgutil.walk_packages([root], "mosaic."):
        if not module.name.endswith("__main__"):
            with contextlib.suppress(ImportError):  # an engine whose library is not installed
                importlib.import_module(module.name)
    X = np.random.default_rng(0).normal(size=(1000, 16))
    os.chdir(tempfile.mkdtemp())
    np.savetxt("x.csv", X, delimiter=",", header=",".join(f"x{j}" for j in range(16)), comments="")
    seen: Counter[tuple[str, str]] = Counter()

    def profile(frame: Any, event: str, _: Any) -> None:
        code = frame.f_code
        # CO_OPTIMIZED: a function, and not the body of a class or of a module.
        if event == "call" and code.co_filename.startswith(root) and code.co_flags & inspect.CO_OPTIMIZED:
            seen[code.co_filename, code.co_qualname.split(".<locals>")[0]] += 1

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        CALLS[name](mosaic, X)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return len({file for file, _ in seen}), len(seen), seen.total()


def table() -> str:
    """A line for each call, counted in an interpreter of its own."""
    rows = ["| call | files | functions | calls |", "| :-- | --: | --: | --: |"]
    for name in CALLS:
        command = [sys.executable, "-W", "ignore", __file__, "--one", name]
        told = subprocess.run(command, capture_output=True, text=True, check=True)
        files, functions, calls = json.loads(told.stdout.splitlines()[-1])
        rows.append(f"| `{name}` | {files} | {functions} | {calls:,} |")
    return "\n".join(rows)


def replaced(page: str, text: str) -> str:
    """The page with another text between ``<!-- visits -->`` and ``<!-- end of visits -->``."""
    return re.sub(r"(<!-- visits -->\n).*?(\n<!-- end)", lambda m: f"{m[1]}\n{text}\n{m[2]}", page, flags=re.DOTALL)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(visits(sys.argv[2])))  # noqa: T201
    elif sys.argv[1:] == ["--write"]:
        PAGE.write_text(replaced(PAGE.read_text(encoding="utf-8"), table()), encoding="utf-8")
    else:
        print(table())  # noqa: T201
