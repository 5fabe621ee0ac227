"""Write llms.txt, the short list of pages for programs that read: ``python docs/make_llms.py``.

It is made of the tables of README.md and docs/guides/index.md, so that nothing is said twice. ``make docs`` puts it on the site
as well, with links to the pages there.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
#: Pages whose tables are read, by the heading of their lines.
TABLES = {"Pages": "README.md", "Guides": "docs/guides/index.md"}
LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")


def links_of(page: str) -> list[str]:
    """A line for each link in the tables of a page: its name, its file from the root, and what the row is for."""
    found = []
    for line in (ROOT / page).read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
        if line.startswith("| ") and len(cells) == 2:
            for name, target in LINK.findall(cells[1]):
                file = posixpath.normpath(str(PurePosixPath(page).parent / target))
                found.append(f"- [{name}]({file}): {cells[0]}")
    return found


def text() -> str:
    """The whole file."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    promise = re.findall(r"^\*\*(.+)\*\*$", readme, re.MULTILINE)[0]
    code = re.findall(r"^```python\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)[0]
    lists = [f"## {heading}\n\n" + "\n".join(dict.fromkeys(links_of(page))) for heading, page in TABLES.items()]
    return "\n\n".join(["# MOSAIC", f"> {promise}", f"```python\n{code}```", *lists]) + "\n"


if __name__ == "__main__":
    (ROOT / "llms.txt").write_text(text(), encoding="utf-8")
