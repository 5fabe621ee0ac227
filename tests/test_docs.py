"""The pages speak of things that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("docs/**/*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_named_tests_exist(page):
    for file, name in re.findall(r"(tests/[\w/]+\.py)::(test_\w+)", page.read_text()):
        assert f"def {name}(" in (ROOT / file).read_text(), f"{page.name} names {file}::{name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_formula_page_names_a_test():
    for page in ROOT.glob("docs/math/*.md"):
        assert "tests/" in page.read_text() or page.name == "index.md"
