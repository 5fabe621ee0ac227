"""The pages speak of things that exist, and their code does what they say."""

import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import dropwhile, groupby, takewhile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import mosaic
from doc_blocks import blocks_of, run_blocks
from mosaic.cli.parser import COMMANDS, command_parser

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))
FRONT = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "examples" / "README.md"]
#: What is written by hand; the site adds pages that are made of these and of the code.
PAGES = sorted([*FRONT, *(page for page in ROOT.glob("docs/**/*.md") if not page.relative_to(ROOT).parts[1].startswith("_"))])
BLOCKS = {page: blocks_of(page.read_text()) for page in PAGES}
RUN = ("python", "console", "setup")
#: Pages whose code is run by ``make test``; that of the others by ``make test-all``.
QUICK = ("README.md", "tutorial.md")
#: What is not code, and says so.
OTHER = ("", "text", "json", "html", "csv", "{toctree}", "{image}", "{eval-rst}")
#: Commands that a reader has anyway.
TOOLS = {"cd", "cat", "git", "head", "ls", "open", "source"}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def _tests_of_pages() -> Iterator[object]:
    """What is quick of each page; of pages with more than that, all, and what some library is needed for."""
    for page in PAGES:
        blocks, slow = [block for block in BLOCKS[page] if block.language in RUN], pytest.mark.slow
        quick = [block for block in blocks if not block.slow and not block.needs]
        if any(block.language != "setup" for block in quick):
            yield pytest.param(page, quick, id=_name(page), marks=[] if page.name in QUICK else [slow])
        if any(block.slow and not block.needs for block in blocks):
            yield pytest.param(page, [block for block in blocks if not block.needs], id=f"{_name(page)}-slow", marks=slow)
        for needs in sorted({block.needs for block in blocks if block.needs}):
            these = [block for block in blocks if block in quick or (block.needs and {*block.needs} <= {*needs})]
            here = all(block.runs_here for block in these)
            marks = [pytest.mark.skipif(not here, reason=f"{' and '.join(needs)} is not installed")]
            marks += [slow] if page.name not in QUICK or any(block.slow for block in these) else []
            marks += [pytest.mark.xdist_group("ray")] if "ray" in needs else []  # one cluster for all
            yield pytest.param(page, these, id=f"{_name(page)}-{'-'.join(needs)}", marks=marks)


# Ray Data warns of settings that it makes itself.
@pytest.mark.filterwarnings("ignore::DeprecationWarning:ray.data.context")
@pytest.mark.parametrize(("page", "blocks"), list(_tests_of_pages()))
def test_code_does_what_the_page_says(page, blocks, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    run_blocks(blocks, tmp_path, str(page))


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_commands_that_are_not_run_exist(page):
    faults = [
        f"{page.name}, line {block.line}: {fault}"
        for block in BLOCKS[page]
        if block.language == "sh"
        for words in simple_commands(block.text)
        if (fault := fault_of(words)) is not None
    ]
    assert faults == []


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_what_a_page_names_exists(page):
    unknown = {block.language for block in BLOCKS[page]} - {*RUN, *OTHER, "sh"}
    assert not unknown, f"{page.name} has blocks of {unknown}, which nobody runs"
    for file, name in re.findall(r"(tests/[\w/]+\.py)::(test_\w+)", page.read_text()):
        assert f"def {name}(" in (ROOT / file).read_text(), f"{page.name} names {file}::{name}"
    assert "math" not in page.parts or "tests/" in page.read_text() or page.name == "index.md"  # every formula has a test
    for target, heading in re.findall(r"\]\(([^)#:]*)(?:#([^)]+))?\)", page.read_text()):
        other = page.parent / target if target else page
        assert other.exists(), f"{page.name} links to {target}"
        titles = re.findall(r"^#+ (.*)$", other.read_text(), re.MULTILINE) if heading else []
        anchors = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
        assert not heading or heading in anchors, f"{page.name} links to {target}#{heading}"


def simple_commands(text: str) -> Iterator[list[str]]:
    """The commands of a shell block as words, without comments, assignments and what comes after a redirection."""
    for line in text.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        for is_end, words in groupby(lexer, lambda word: set(word) <= set(";&|()")):
            kept = list(takewhile(lambda word: not set(word) <= set("<>"), words))
            kept = list(dropwhile(re.compile(r"\w+=").match, kept))
            if kept and not is_end:
                yield kept


def fault_of(words: list[str]) -> str | None:
    """What is wrong with a command, or None."""
    first, *rest = words
    if rest[:2] == ["-m", "pip"]:
        first, rest = "pip", rest[2:]
    if first == "make":
        targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
        missing = [word for word in rest if "=" not in word and not word.startswith("-") and word not in targets]
    elif first == "pip":
        extras = set(re.findall(r"[\w-]+", " ".join(re.findall(r"\[(.*?)\]", " ".join(rest)))))
        missing = sorted(extras - set(PROJECT["optional-dependencies"]))
        missing += [word for word in rest[1:] if not word.startswith((".", "-", PROJECT["name"]))]
    elif first == "mosaic":
        known = {"--help", "--version"}
        if rest and rest[0] in COMMANDS:
            known = {*command_parser(rest[0], everything=True)._option_string_actions}
        missing = [word for word in rest[:1] if word not in {*COMMANDS, *known}]
        missing += [word for word in rest[1:] if re.match(r"--?[a-zA-Z]", word) and word.split("=")[0] not in known]
    elif first in ("python", "python3"):
        missing = [word for word in rest if word.endswith(".py") and not (ROOT / word).exists()]
        missing += [name for name in rest[1:2] if rest[0] == "-m" and find_spec(name) is None]
    else:
        missing = [] if first in TOOLS or ("/" in first and (ROOT / first).exists()) else [first]
    return f"{first} has no {missing[0]}" if missing else None


def test_pages_that_do_not_are_caught(tmp_path):
    for block, message in (
        ("```python\n>>> 1 + 1\n3\n```", "Expected:\n    3"),
        ("```python\nassert False, 'no'\n```", "no"),
        ("```console\n$ echo one\ntwo\n```", "should print\ntwo\n\nand prints\none"),
        ("```console\n$ false\n```", "failed with status 1"),
    ):
        with pytest.raises(AssertionError, match=re.escape(message)):
            run_blocks(blocks_of(block), tmp_path, "page.md")


def test_versions_that_are_tested_are_allowed_by_the_project():
    wanted = {canonicalize_name(one.name): one.specifier for one in map(Requirement, requirements("dev"))}
    wanted |= {one.name: one.specifier for one in map(Requirement, PROJECT["dependencies"])}
    wanted["distributed"] = wanted["dask"]  # which dask asks for in its own version
    for file in ("oldest.txt", "tested.txt"):
        lines = [line.partition("#")[0].strip() for line in (ROOT / "tests" / file).read_text().splitlines()]
        pinned = {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines if line)}
        assert pinned.keys() >= wanted.keys()
        assert [name for name, allowed in wanted.items() if not allowed.contains(pinned[name], prereleases=True)] == []


def requirements(extra: str) -> Iterator[str]:
    """What an extra installs, extras of ours that it names among it."""
    for one in PROJECT["optional-dependencies"][extra]:
        ours = re.fullmatch(rf"{PROJECT['name']}\[(.*)\]", one)
        if ours:
            for name in ours[1].split(","):
                yield from requirements(name)
        else:
            yield one


def test_every_package_has_a_box_in_the_picture_and_the_page_a_place_for_counts():
    import count_visits
    import draw_architecture

    picture = draw_architecture.picture()
    files = [path for path in draw_architecture.SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()]
    for name in {path.stem for path in files} - {"__init__", "__main__"}:
        assert f">{name}</text>" in picture
    assert "something else" in count_visits.replaced(count_visits.PAGE.read_text(), "something else")


def test_the_site_shows_every_example_and_everything_that_is_public():
    import generate

    assert {*generate.EXAMPLES, "spark"} == {path.stem for path in (ROOT / "examples").glob("*.py")} - {"_shared"}
    pages = "\n".join(page.read_text() for page in (ROOT / "docs" / "reference").glob("*.md"))
    documented = set(re.findall(r"\.\. auto\w+:: (?:mosaic\.)?(\w+)", pages))
    assert documented == {*mosaic.__all__, "facts"}  # the classes of model.facts_
