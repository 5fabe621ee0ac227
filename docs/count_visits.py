"""Count what a call visits, and the lines of every package: the tables of docs/architecture.md.

    python docs/count_visits.py            # print the tables
    python docs/count_visits.py --write    # write them into docs/architecture.md

A visit is a function of the package that is called at least once, in the thread of the call or in another one. All modules
are imported beforehand, so that what is only imported does not count. Each call runs in an interpreter of its own.
"""

from __future__ import annotations

import argparse
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
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
PAGE = DOCS / "architecture.md"
#: What this script counted in commit d07a590, before packages were merged: (files, functions).
VISITS_BEFORE: dict[str, tuple[int, int]] = {
    "fit": (29, 178),
    "path": (42, 274),
    "detector": (26, 147),
    "select": (78, 522),
}
#: Lines and files of the packages of that commit.
SIZE_BEFORE: dict[str, tuple[int, int]] = {
    "choosing": (2673, 13),
    "cli": (2408, 20),
    "data": (3977, 23),  # it was called io
    "engines": (1324, 9),
    "estimators": (2166, 14),
    "inspection": (1781, 13),
    "kernels": (994, 7),
    "outliers": (492, 4),
    "report": (966, 7),
    "sketch": (681, 4),
    "solvers": (497, 6),
    "modules": (4630, 19),
}
CALLS = {
    "fit": "`MOSAIC(5).fit(X)`",
    "path": '`MOSAIC(5).fit("points.parquet")`',
    "detector": "`MOSAICOutlierDetector().fit(X)`",
    "select": "`mosaic select points.csv -k 5 --report report.html`",
}


def visits(call: Callable[[], Any], root: str) -> dict[str, set[str]]:
    """The functions below a folder that a call runs, by file."""
    seen: dict[str, set[str]] = defaultdict(set)

    def profile(frame: Any, event: str, _: Any) -> None:
        code = frame.f_code
        # CO_OPTIMIZED: a function, and not the body of a class or of a module.
        if event == "call" and code.co_filename.startswith(root) and code.co_flags & inspect.CO_OPTIMIZED:
            seen[code.co_filename[len(root) + 1 :]].add(code.co_qualname.split(".<locals>")[0])

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return dict(seen)


def visit(name: str) -> dict[str, set[str]]:
    """What one of the calls visits; 500 points of 4 columns in a folder of its own."""
    import numpy as np
    import pandas as pd

    import mosaic

    root = str(Path(mosaic.__file__).parent)
    for module in pkgutil.walk_packages([root], "mosaic."):
        if not module.name.endswith("__main__"):
            try:
                importlib.import_module(module.name)
            except ImportError:  # an engine whose library is not installed
                continue
    X = np.random.default_rng(0).normal(size=(500, 4))
    frame = pd.DataFrame(X, columns=list("abcd"))
    os.chdir(tempfile.mkdtemp())
    if name == "fit":
        return visits(lambda: mosaic.MOSAIC(5).fit(X), root)
    if name == "path":
        frame.to_parquet("points.parquet")
        return visits(lambda: mosaic.MOSAIC(5).fit("points.parquet"), root)
    if name == "detector":
        return visits(lambda: mosaic.MOSAICOutlierDetector().fit(X), root)
    frame.to_csv("points.csv", index=False)
    from mosaic.cli import main

    return visits(lambda: main(["select", "points.csv", "-k", "5", "--quiet", "--report", "report.html"]), root)


def sizes(source: Path) -> dict[str, tuple[int, int]]:
    """Lines and files of Python of every package; modules beside them are one entry, "modules"."""
    found: dict[str, list[int]] = defaultdict(list)
    for file in sorted(source.rglob("*.py")):
        parts = file.relative_to(source).parts
        found[parts[0] if len(parts) > 1 else "modules"].append(len(file.read_text(encoding="utf-8").splitlines()))
    return {name: (sum(lines), len(lines)) for name, lines in sorted(found.items())}


def visits_table(counted: dict[str, dict[str, list[str]]]) -> str:
    """Files and functions of each call, before and now."""
    rows = ["| call | files before | files | functions before | functions |", "| :-- | --: | --: | --: | --: |"]
    for name, title in CALLS.items():
        files, functions = VISITS_BEFORE[name]
        now = counted[name]
        rows.append(f"| {title} | {files} | {len(now)} | {functions} | {sum(map(len, now.values()))} |")
    return "\n".join(rows)


def walk_list(counted: dict[str, list[str]]) -> str:
    """The files of a call and how many functions of each it runs, in the order of the layers' names."""
    files = ", ".join(f"`{file}` ({len(functions)})" for file, functions in sorted(counted.items()))
    return f"<details><summary>{len(counted)} files</summary>\n\n{files}\n\n</details>"


def sizes_table(now: dict[str, tuple[int, int]]) -> str:
    """Lines and files by package, before and now."""
    rows = ["| package | lines before | lines | files before | files |", "| :-- | --: | --: | --: | --: |"]
    for name in [*sorted({*now, *SIZE_BEFORE} - {"modules"}), "modules"]:
        was, has = SIZE_BEFORE.get(name), now.get(name)
        cells = [
            f"{was[0]:,}" if was else "",
            f"{has[0]:,}" if has else "",
            was[1] if was else "",
            has[1] if has else "",
        ]
        rows.append(
            "| " + " | ".join(map(str, [f"`{name}/`" if name != "modules" else "modules beside them", *cells])) + " |"
        )
    totals = [f"{sum(pair[i] for pair in table.values()):,}" for i in (0, 1) for table in (SIZE_BEFORE, now)]
    rows.append("| **all** | " + " | ".join(f"**{total}**" for total in totals) + " |")
    return "\n".join(rows)


def replaced(page: str, name: str, text: str) -> str:
    """The page with another text between ``<!-- name -->`` and ``<!-- end of name -->``."""
    pattern = rf"(<!-- {name} -->\n).*?(\n<!-- end of {name} -->)"
    assert re.search(pattern, page, re.DOTALL), f"{PAGE.name} has no place for {name}"
    return re.sub(pattern, lambda match: f"{match[1]}\n{text}\n{match[2]}", page, flags=re.DOTALL)


def main() -> None:
    """Count, then print or write."""
    parser = argparse.ArgumentParser(description="Count what a call visits.")
    parser.add_argument("--write", action="store_true", help=f"write the tables into {PAGE.name}")
    parser.add_argument("--call", choices=CALLS, help="count one call and print it as JSON")
    given = parser.parse_args()
    if given.call:
        print(json.dumps({file: sorted(names) for file, names in visit(given.call).items()}))  # noqa: T201
        return
    counted = {}
    for name in CALLS:
        told = subprocess.run(
            [sys.executable, "-W", "ignore", __file__, "--call", name], capture_output=True, text=True, check=True
        )
        counted[name] = json.loads(told.stdout.splitlines()[-1])
    import mosaic

    now = sizes(Path(mosaic.__file__).parent)
    texts = {"visits": visits_table(counted), "sizes": sizes_table(now)}
    texts |= {f"files of {name}": walk_list(counted[name]) for name in CALLS}
    if given.write:
        page = PAGE.read_text(encoding="utf-8")
        for name, text in texts.items():
            page = replaced(page, name, text)
        PAGE.write_text(page, encoding="utf-8")
    else:
        print("\n\n".join(texts.values()))  # noqa: T201


if __name__ == "__main__":
    main()
