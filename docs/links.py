"""Where links between files lead on the site, so that the sources stay readable in the repository."""

from __future__ import annotations

import os
import re
from pathlib import PurePosixPath

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
