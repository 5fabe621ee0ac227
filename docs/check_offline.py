"""Fail if a page of the built site would fetch anything from elsewhere. ``make docs`` runs it after Sphinx.

    python docs/check_offline.py docs/_build

Links that a reader may follow are fine; scripts, styles, fonts, images and frames have to come from the site itself.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

REMOTE = re.compile(r"^\s*(?:https?:)?//", re.IGNORECASE)
#: Attributes that a browser loads by itself.
LOADED = {"src", "srcset", "poster", "data"}
IN_STYLE = re.compile(r"""(?:url\(\s*["']?|@import\s+["'])\s*((?:https?:)?//[^"')\s]+)""", re.IGNORECASE)


class Loads(HTMLParser):
    """Collects what a page loads from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._in_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Look at the attributes of an element."""
        given = {name: value or "" for name, value in attrs}
        for name, value in given.items():
            # "data" is loaded by <object>, "href" by <link> unless it only says where else the page is.
            loads = name in LOADED and (name != "data" or tag == "object")
            loads |= tag == "link" and name == "href" and given.get("rel") not in ("canonical", "alternate", "author")
            loads |= tag in ("image", "use") and name in ("href", "xlink:href")
            if loads and REMOTE.match(value):
                self.found.append(f"<{tag} {name}={value!r}>")
            if name == "style":
                self.found += IN_STYLE.findall(value)
        self._in_style = tag == "style"

    def handle_endtag(self, tag: str) -> None:
        """Leave a style element."""
        self._in_style = False

    def handle_data(self, data: str) -> None:
        """Look at styles in the page."""
        if self._in_style:
            self.found += IN_STYLE.findall(data)


def remote_loads(text: str, ending: str) -> list[str]:
    """What an HTML page or a style sheet would load from elsewhere."""
    if ending == ".css":
        return IN_STYLE.findall(text)
    page = Loads()
    page.feed(text)
    return page.found


def main(site: Path) -> int:
    """Look at all pages and styles; the number of faults, at most 1."""
    files = [file for file in site.rglob("*") if file.suffix in (".html", ".css", ".svg")]
    faults = [
        f"{file.relative_to(site)} loads {found}"
        for file in files
        for found in remote_loads(file.read_text(encoding="utf-8"), file.suffix)
    ]
    print("\n".join(faults) if faults else f"{len(files)} files load nothing from elsewhere.")  # noqa: T201
    return int(bool(faults) or not files)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
