"""Write docs/licences.md: what MOSAIC and its extras install, in which version it was tested, and under which licence."""

from __future__ import annotations

import re
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

PAGE = Path(__file__).parent / "licences.md"
#: Extras that users install. Those for developers, benchmarks and clusters are left out.
EXTRAS = ("cli", "files", "plots", "reference", "dask")


def installed_with(name: str, extras: tuple[str, ...]) -> dict[str, Distribution]:
    """All packages that come with a package and its extras, by name, without itself."""
    found: dict[str, Distribution] = {}
    waiting = [(name, extras)]
    seen = set()
    while waiting:
        name, extras = waiting.pop()
        key = re.sub(r"[-_.]+", "-", name).lower()
        if (key, extras) in seen:
            continue
        seen.add((key, extras))
        try:
            found[key] = distribution(name)
        except PackageNotFoundError:  # for another system or another version of Python
            continue
        for line in found[key].requires or ():
            wanted = Requirement(line)
            if wanted.marker is None or any(wanted.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
                waiting.append((wanted.name, tuple(sorted(wanted.extras))))
    return found


def licence(package: Distribution) -> str:
    """The licence that a package states: as an expression, by its classifiers, or as the first line of a text."""
    about = package.metadata
    if about.get("License-Expression"):
        return str(about["License-Expression"])
    classifiers = [one.split(" :: ")[-1] for one in about.get_all("Classifier", []) if one.startswith("License :: ")]
    named = [one for one in classifiers if one != "OSI Approved"]
    if named:
        return ", ".join(named)
    return str(about.get("License") or "not stated").strip().splitlines()[0]


def main() -> int:
    """Write the page; fails if a package states no licence."""
    packages = installed_with("mosaic-select", EXTRAS)
    del packages["mosaic-select"]
    lines = [f"| {name} | {found.version} | {licence(found)} |" for name, found in sorted(packages.items())]
    page = f"""# Licences

MOSAIC is under the BSD 3-clause licence. With the extras {", ".join(f"`{extra}`" for extra in EXTRAS)} it installs these
packages; `make licences` writes this page from what the packages themselves state.

| package | version | licence |
| :-- | :-- | :-- |
"""
    PAGE.write_text(page + "\n".join(lines) + "\n", encoding="utf-8")
    unknown = [line for line in lines if "not stated" in line or "UNKNOWN" in line]
    for line in unknown:
        sys.stderr.write(f"No licence: {line}\n")
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
