"""Where links between files lead on the site and on PyPI, so that the sources stay readable in the repository.

    python docs/links.py https://…/OWNER/mosaic v0.1.0

leads the links of README.md to that version in the repository; the release does so before it builds.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path, PurePosixPath

#: Files of the repository, and the source of their page below docs/.
MOVED = [
    (r"benchmarks/results/(\w+)\.md", r"_generated/benchmarks/\1.md"),
    (r"benchmarks/results", r"_generated/benchmarks/index.md"),
    (r"examples/README\.md", r"_generated/gallery/index.md"),
    (r"examples/(\w+)\.py", r"_generated/gallery/\1.md"),
    (r"docs/decisions", r"docs/decisions/index.md"),
    (r"(CHANGELOG|CONTRIBUTING)\.md", r"_generated/\1.md"),
    (r"README\.md", r"docs/index.md"),
    (r"docs/(.+\.md)", r"docs/\1"),
]
LINK = re.compile(r"\]\(([^)\s#:]+)(#[^)\s]*)?\)")


def moved_links(text: str, page: PurePosixPath) -> str:
    """The text of a page with its links to files outside of docs/ led to their pages on the site; ``page`` from the root."""

    def moved(match: re.Match[str]) -> str:
        target = PurePosixPath(os.path.normpath(page.parent / match[1]))
        for pattern, place in MOVED:
            if re.fullmatch(pattern, str(target)):
                new = re.sub(pattern, place, str(target)).removeprefix("docs/")
                return f"](/{new}{match[2] or ''})"
        return match[0]

    return LINK.sub(moved, text)


def absolute_links(text: str, repository: str, version: str) -> str:
    """The text of a page in the root with its links led to a version in the repository; pictures to their files."""

    def led(match: re.Match[str]) -> str:
        folder = "raw" if match[1] else "blob"
        return f"{match[1]}{match[2]}({repository}/{folder}/{version}/{match[3]}{match[4] or ''})"

    return re.sub(r"(!?)(\[[^\]]*\])\(([^)\s#:]+)(#[^)\s]*)?\)", led, text)


if __name__ == "__main__":
    README = Path(__file__).resolve().parents[1] / "README.md"
    README.write_text(absolute_links(README.read_text(encoding="utf-8"), *sys.argv[1:]), encoding="utf-8")
