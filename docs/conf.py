"""How Sphinx builds the site. ``make docs`` runs it; nothing is fetched while the site is read."""

from __future__ import annotations

import re
import sys
from pathlib import Path, PurePosixPath
from typing import Any

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path[:0] = [str(ROOT / "src"), str(DOCS)]

from links import moved_links  # noqa: E402

import mosaic  # noqa: E402

project = "MOSAIC"
author = "The MOSAIC developers"
copyright = "The MOSAIC developers"
release = version = mosaic.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.viewcode", "numpydoc"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "_generated/site", "figures"]
suppress_warnings: list[str] = []
nitpicky = False

myst_enable_extensions = ["colon_fence", "attrs_block"]
myst_heading_anchors = 3
myst_links_external_new_tab = False

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say what the parameters are, in words
autosummary_generate = False
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"
pygments_style = "a11y-high-contrast-light"

html_theme = "pydata_sphinx_theme"
html_title = "MOSAIC"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["_generated/site"] if (DOCS / "_generated" / "site").exists() else []
html_show_sourcelink = False
html_copy_source = False
html_baseurl = ""
html_theme_options = {
    "logo": {"text": "MOSAIC", "alt_text": "MOSAIC, first page"},
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "navigation_with_keys": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "show_toc_level": 2,
}
html_sidebars = {"index": [], "tutorial": [], "architecture": []}


def read_source(app: Any, docname: str, source: list[str]) -> None:
    """Lead the links of a page to pages of the site."""
    if not docname.startswith("_generated"):
        source[0] = moved_links(source[0], PurePosixPath("docs") / f"{docname}.md")


def skip_member(app: Any, kind: str, name: str, thing: Any, skip: bool, options: Any) -> bool | None:
    """Leave out constants, which docs/constants.md describes, and what every scikit-learn estimator has."""
    if kind == "module":
        return True if name.isupper() and not callable(thing) else None
    inherited = (getattr(thing, "__module__", None) or "").startswith("sklearn")
    return True if inherited or re.fullmatch(r"(set|get)_(\w+_request|metadata_routing)", name) else None


def escape(app: Any, kind: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Take |z| for an absolute value and gamma_ for a name, not for a substitution and a link."""
    in_code = False
    for at, line in enumerate(lines):
        in_code = line.lstrip().startswith(">>>") or (in_code and bool(line.strip()))
        if not in_code and not line.lstrip().startswith(".."):
            words = re.split(r"(``.*?``|`.*?`)", line)
            words[::2] = [re.sub(r"(?<!\\)\||(?<=\w)(?<!\\)_(?!\w)", r"\\\g<0>", part) for part in words[::2]]
            lines[at] = "".join(words)


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("source-read", read_source)
    app.connect("autodoc-skip-member", skip_member)
    app.connect("autodoc-process-docstring", escape, priority=900)  # after numpydoc
