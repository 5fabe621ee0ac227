"""The examples run as a reader runs them, and what they tell is so."""

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jinja2")
pytest.importorskip("PIL")

EXAMPLES = Path(__file__).parents[1] / "examples"
REAL = {
    "cells": "pbmc68k_reduced.npz",
    "documents": "text_basehock.npz",
    "faces": "frey_faces.npz",
    "salient_patches": "msra_b_100_originals.zip",
}


@pytest.fixture
def run(tmp_path):
    """Run an example without real data, or with some, and give what it printed; warnings are errors, as here."""

    def running(name: str, data: Path | None = None) -> str:
        (tmp_path / "empty").mkdir(exist_ok=True)
        done = subprocess.run(
            [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py"), "--out", "out"],
            cwd=tmp_path,
            env={**os.environ, "MOSAIC_DATA": str(data or tmp_path / "empty"), "OPENBLAS_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return done.stdout

    return running


def numbers(pattern: str, text: str) -> list[float]:
    """The groups of a pattern, which is somewhere in the text, as numbers."""
    found = re.search(pattern, text)
    assert found is not None, f"{pattern} is not in\n{text}"
    return [float(group) for group in found.groups()]


def answer(folder: Path, k: int) -> list[dict[str, str]]:
    """The rows of the table, after a look at the report."""
    page = (folder / "out" / "report.html").read_text()
    assert page.startswith("<!doctype html>")
    assert f"{k} representatives" in page
    with (folder / "out" / "picks.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["rank"]) for row in rows] == list(range(1, k + 1))
    assert len({row["row"] for row in rows}) == k
    assert all(int(row["stands_for"]) >= 1 for row in rows)
    assert all("chosen" in row["why"] for row in rows)
    return rows


def check_cells(told: str, folder: Path) -> None:
    covered, types, chance = numbers(r"representatives: (\d+) of (\d+); among 25 random cells: (\d+(?:\.\d+)?)", told)
    assert chance < covered <= types
    assert numbers(r"Doublets among outliers: (\d+) of 20", told) == [0]
    assert numbers(r"resemble mixtures most: (\d+) of 20 doublets", told)[0] >= 10
    assert numbers(r"excluded, doublets among the picks: (\d+); types: (\d+)", told) == [0, covered]
    asked = re.search(r"two asked for of every type: (.*)\.", told)
    assert [part.split()[0] for part in asked[1].split(", ")] == ["2"] * int(types)
    assert "doublet" not in {row["type"] for row in answer(folder, 25)}


def check_clean_and_select(told: str, folder: Path) -> None:
    assert numbers(r"Noise among the picks: (\d+)", told) == [0]
    assert numbers(r"Set aside as outliers: {'noise': (\d+)}, of 20 rows of noise", told)[0] >= 18
    assert numbers(r"Copies among the picks: (\d+)", told) == [0]
    assert "with all columns: ['reading', 'speed', 'current', 'temperature', 'vibration', 'site', 'truth']" in told
    assert "With equal quotas they have {'north': 6, 'south': 6, 'east': 6, 'west': 6}; noise: 0" in told
    rows = answer(folder, 24)
    assert {row["name"][0] for row in rows} == {"R"}
    assert sorted(row["site"] for row in rows) == sorted(["north", "south", "east", "west"] * 6)


def check_cold_start(told: str, folder: Path) -> None:
    pattern = r"^ *(\d+) +(\d+(?:\.\d+)?) +(\d+(?:\.\d+)?) ± (\d+(?:\.\d+)?) +(\d+), (\d+(?:\.\d+)?)$"
    lines = [[float(number) for number in line] for line in re.findall(pattern, told, re.MULTILINE)]
    assert [line[0] for line in lines] == [20, 50, 100]
    for _, ours, by_chance, spread, noise, noise_by_chance in lines:
        assert ours > by_chance + spread
        assert noise == 0 < noise_by_chance
    rows = answer(folder, 100)
    assert sum("had to be included" in row["why"] for row in rows) == 50


def check_documents(told: str, folder: Path) -> None:
    ours, by_chance, spread = numbers(r"chosen (\d+(?:\.\d+)?), random (\d+(?:\.\d+)?) ± (\d+(?:\.\d+)?)", told)
    assert ours >= by_chance + spread - 1e-9
    rows = answer(folder, 15)
    assert len({row["name"].removesuffix(" (again)") for row in rows}) == 15
    assert len({row["subject"] for row in rows}) >= (8 if "scikit-learn" in told else 2)


def check_faces(told: str, folder: Path) -> None:
    found, wrong, pictures = numbers(r"Outliers: (\d+) of 40 images of noise, and (\d+) of (\d+) pictures", told)
    assert found == 40
    assert wrong <= 0.01 * pictures
    old, new = numbers(r"a coverage of (\d+)%", told), numbers(r"pictures the twelve cover (\d+)%", told)
    assert abs(old[0] - new[0]) <= 5
    assert numbers(r"Of 20 new images of noise, (\d+) are recognised", told) == [20]
    assert all(int(row["row"]) < pictures for row in answer(folder, 12))


def check_salient_patches(told: str, folder: Path) -> None:
    patches, of = numbers(r"(\d+) patches of 8×8 pixels, (\d+) of them on the object", told)
    aside, right = numbers(r"(\d+) patches are set aside; (\d+) of them are on the object", told)
    assert right > 0.8 * of
    assert right / aside > 3 * of / patches
    assert numbers(r"AUC of the scores against the mask: (\d+(?:\.\d+)?)", told)[0] > 0.9
    answer(folder, 20)


CHECKS = {name.removeprefix("check_"): check for name, check in globals().items() if name.startswith("check_")}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "clean_and_select" else pytest.mark.slow) for name in CHECKS]
)
def test_examples_tell_the_truth(name, run, tmp_path):
    if name == "clean_and_select":
        pytest.importorskip("pandas")
    CHECKS[name](run(name), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_examples_tell_the_truth_of_real_data(name, run, tmp_path):
    given = os.environ.get("MOSAIC_DATA")
    data = Path(given).expanduser() if given else EXAMPLES.parents[1] / "shared" / "data"
    if not (data / REAL[name]).exists():
        pytest.skip(f"{REAL[name]} is not in {data}")
    told = run(name, data)
    assert "in place of" not in told
    CHECKS[name](told, tmp_path)


def test_every_tutorial_is_run_and_listed():
    assert {path.stem for path in EXAMPLES.glob("*.py")} - {"_shared", "spark"} == set(CHECKS)
    listed = (EXAMPLES / "README.md").read_text()
    assert all(f"({name}.py)" in listed for name in CHECKS)
