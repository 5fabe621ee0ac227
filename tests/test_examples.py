"""The examples run as a reader runs them, and what they tell is so."""

from __future__ import annotations

import ast
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
TUTORIALS = ["cells", "clean_and_select", "cold_start", "documents", "faces", "salient_patches"]
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
    covered, types, by_chance = numbers(
        r"representatives: (\d+) of (\d+); among 25 random cells: (\d+(?:\.\d+)?)", told
    )
    assert by_chance < covered <= types
    rare = re.findall(r"cells: (\d+) among the representatives; (\d+)% of random draws", told)
    assert rare
    assert all(int(own) >= 1 and int(chance) < 50 for own, chance in rare)
    lonely, _ = numbers(r"Doublets among outliers: (\d+) of 20; among the picks: (\d+)", told)
    assert lonely == 0
    (found,) = numbers(r"resemble mixtures most: (\d+) of 20 doublets", told)
    assert found >= 10
    doublets, still = numbers(r"excluded, doublets among the picks: (\d+); types: (\d+)", told)
    assert doublets == 0
    assert still == covered
    asked = re.search(r"two asked for of every type: (.*)\.", told)
    assert asked is not None
    assert [part.split()[0] for part in asked[1].split(", ")] == ["2"] * int(types)
    assert "doublet" not in {row["type"] for row in answer(folder, 25)}


def check_clean_and_select(told: str, folder: Path) -> None:
    assert numbers(r"Noise among the picks: (\d+)", told) == [0]
    assert numbers(r"Set aside as outliers: {'noise': (\d+)}, of 20 rows of noise", told)[0] >= 18
    copies, apart = numbers(
        r"Copies among the picks: (\d+); the two closest are (\d+(?:\.\d+)?) deviations apart", told
    )
    assert copies == 0
    assert apart > 0.1
    assert numbers(r"the smallest stands for (\d+) rows", told)[0] >= 30
    assert "with all columns: ['reading', 'speed', 'current', 'temperature', 'vibration', 'site', 'truth']" in told
    assert "With equal quotas they have {'north': 6, 'south': 6, 'east': 6, 'west': 6}; noise: 0" in told
    before = re.search(r"Without being asked, sites have {(.*)} picks", told)
    assert before is not None
    assert before[1].count("'west': 6") == 0
    rows = answer(folder, 24)
    assert {row["name"][0] for row in rows} == {"R"}
    assert sorted(row["site"] for row in rows) == sorted(["north", "south", "east", "west"] * 6)


def check_cold_start(told: str, folder: Path) -> None:
    lines = re.findall(
        r"^ *(\d+) +(\d+(?:\.\d+)?) +(\d+(?:\.\d+)?) ± (\d+(?:\.\d+)?) +(\d+), (\d+(?:\.\d+)?)$", told, re.MULTILINE
    )
    assert [int(line[0]) for line in lines] == [20, 50, 100]
    for _, ours, by_chance, spread, noise, noise_by_chance in lines:
        assert float(ours) > float(by_chance) + float(spread)
        assert int(noise) == 0
        assert float(noise_by_chance) > 0
    assert [float(line[1]) for line in lines] == sorted(float(line[1]) for line in lines)
    rows = answer(folder, 100)
    assert "noise" not in {row["label"] for row in rows}
    assert sum("had to be included" in row["why"] for row in rows) == 50


def check_documents(told: str, folder: Path) -> None:
    assert numbers(r"No text twice: (\d+) different ones", told) == [15]
    ours, by_chance, spread = numbers(r"chosen (\d+(?:\.\d+)?), random (\d+(?:\.\d+)?) ± (\d+(?:\.\d+)?)", told)
    assert ours > by_chance + spread
    rows = answer(folder, 15)
    assert len({row["name"].removesuffix(" (again)") for row in rows}) == 15
    if "scikit-learn" in told:
        assert len({row["subject"] for row in rows}) >= 8
        assert re.search(r"speaks: \w*(KMeans|Cluster|AffinityPropagation)\w*", told)
    else:
        assert {row["subject"] for row in rows} == {"baseball", "hockey"}


def check_faces(told: str, folder: Path) -> None:
    assert numbers(r"Noise among the chosen: (\d+)", told) == [0]
    found, wrong, pictures = numbers(r"Outliers: (\d+) of 40 images of noise, and (\d+) of (\d+) pictures", told)
    assert found == 40
    assert wrong <= 0.01 * pictures
    old, new = numbers(r"explain (\d+)% of what belongs", told), numbers(r"pictures the twelve explain (\d+)%", told)
    assert abs(old[0] - new[0]) <= 5
    assert numbers(r"Of 20 new images of noise, (\d+) are recognised", told) == [20]
    assert numbers(r"Six would explain (\d+)%", told) < old
    assert all(int(row["row"]) < pictures for row in answer(folder, 12))


def check_salient_patches(told: str, folder: Path) -> None:
    patches, of = numbers(r"(\d+) patches of 8×8 pixels, (\d+) of them on the object", told)
    (chosen,) = numbers(r"Of 20 representatives, (\d+) are on the object", told)
    assert chosen / 20 < of / patches  # they stand for the background
    aside, right = numbers(r"(\d+) patches are set aside; (\d+) of them are on the object", told)
    assert right > 0.8 * of
    assert right / aside > 3 * of / patches
    assert numbers(r"AUC of the scores against the mask: (\d+(?:\.\d+)?)", told)[0] > 0.9
    answer(folder, 20)


CHECKS = {
    "cells": check_cells,
    "clean_and_select": check_clean_and_select,
    "cold_start": check_cold_start,
    "documents": check_documents,
    "faces": check_faces,
    "salient_patches": check_salient_patches,
}


@pytest.mark.parametrize("name", ["cells", "clean_and_select", "documents"])
def test_examples_tell_the_truth(name, run, tmp_path):
    if name == "clean_and_select":
        pytest.importorskip("pandas")
    told = run(name)
    assert name == "clean_and_select" or "in place of" in told
    CHECKS[name](told, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cold_start", "faces", "salient_patches"])
def test_longer_examples_tell_the_truth(name, run, tmp_path):
    told = run(name)
    assert name == "cold_start" or "in place of" in told
    CHECKS[name](told, tmp_path)


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


def test_every_tutorial_is_run_listed_and_says_what_one_learns():
    files = {path.stem for path in EXAMPLES.glob("*.py")} - {"_shared", "demo", "spark"}
    assert files == set(TUTORIALS) == set(CHECKS)
    listed = (EXAMPLES / "README.md").read_text()
    for name in TUTORIALS:
        assert f"({name}.py)" in listed
        about = ast.get_docstring(ast.parse((EXAMPLES / f"{name}.py").read_text()))
        assert about is not None
        assert "What you learn here:" in about
