"""What a release is made of agrees: versions, workflows, what is packed, and the pages that PyPI and programs read."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

import mosaic
from test_docs import PAGES, PROJECT

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_the_version_is_the_same_everywhere():
    cited = re.findall(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    newest = re.findall(r"^## \[(.*?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[:1]
    assert cited == newest == [mosaic.__version__]
    assert f"from version {mosaic.__version__} on" in (ROOT / "README.md").read_text()
    assert re.fullmatch(r"\d+\.\d+\.\d+", mosaic.__version__)


def test_workflows_test_every_python_that_is_supported_and_releases_the_oldest_and_the_newest():
    minors = [re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", one) for one in PROJECT["classifiers"]]
    supported = [one[1] for one in minors if one]
    assert PROJECT["requires-python"] == f">={supported[0]}"
    used = {path.stem: set(re.findall(r'"(3\.\d+)"', path.read_text())) for path in WORKFLOWS}
    assert used == {"tests": {*supported}, "release": {supported[0], supported[-1]}}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_run_what_exists(path):
    for command in re.findall(r"run: (.*)$", path.read_text(), re.MULTILINE):
        first, *rest = command.split()
        if first == "make":
            assert all(TARGETS.count(target) == 1 for target in rest)
        for file in (word for word in (first, *rest) if "/" in word and "$" not in word):
            assert (ROOT / file).exists(), file


def test_only_the_job_that_publishes_may_speak_for_the_project():
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text()
    before, publish = text.split("  publish:")
    assert "id-token" not in before
    assert "id-token: write" in publish
    assert "secrets." not in text


def test_everything_that_is_packed_exists():
    targets = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]
    assert [name for name in targets["sdist"]["include"] if not (ROOT / name).exists()] == []


def test_the_readme_of_a_release_has_no_links_that_pypi_cannot_follow():
    from links import absolute_links

    led = absolute_links((ROOT / "README.md").read_text(), "https://example.org/us/mosaic", "v1")
    targets = re.findall(r"\]\(([^)]+)\)", led)
    assert "https://example.org/us/mosaic/raw/v1/docs/figures/report.png" in targets
    assert "https://example.org/us/mosaic/blob/v1/docs/tutorial.md" in targets
    assert [target for target in targets if not target.startswith("https://")] == []


def test_llms_txt_is_made_of_the_pages_of_today_and_names_files_that_exist():
    import make_llms

    text = (ROOT / "llms.txt").read_text()
    assert text == make_llms.text(), "run python docs/make_llms.py"
    assert len(text) < 6000
    targets = re.findall(r"\]\(([^)#]+)", text)
    assert len(targets) > 30
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_every_page_is_in_a_list_of_pages_of_the_site():
    listed = set()
    for page in PAGES:
        for block in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(), re.DOTALL):
            entries = [line.rpartition("<")[2].rstrip(">") for line in block.split("\n") if line and not line.startswith(":")]
            globs = [one for entry in entries for one in page.parent.glob(f"{entry}.md")]
            listed |= {one.resolve() for one in globs}
    docs = {page for page in PAGES if ROOT / "docs" in page.parents}
    assert docs - listed == {ROOT / "docs" / "index.md"}
