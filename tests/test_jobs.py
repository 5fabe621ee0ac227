"""The jobs of examples/jobs run, with every tool that is installed, and their figures are what the pages say."""

import runpy
from pathlib import Path

import pytest

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
pytest.importorskip("PIL")

JOBS = Path(__file__).parents[1] / "examples" / "jobs"

#: Of each job, the line and the column of a figure, and the least and the most that it may be, with the stand-ins for real data.
HOLDS = {
    "label_first": [("MOSAIC", "50 labels", 0.85, 1), ("MOSAIC", "noise picked", 0, 1)],
    "wrong_records": [("MOSAIC", "in the first 50", 11, 12), ("MOSAIC", "of them wrong", 10, 12), ("MOSAIC", "flagged", 10, 40)],
    "long_texts": [("MOSAIC", "accuracy", 0.8, 1)],
    "near_copies": [("MOSAIC", "precision", 0.95, 1), ("MOSAIC", "other letters", 0.95, 1), ("MOSAIC", "recall", 0.99, 1)],
    "noisy_labels": [("MOSAICSampler", "accuracy", 0.92, 1), ("MOSAICSampler", "wrong labels kept", 0, 1)],
    "wrong_labels": [("MOSAICSampler, suspects_", "F1", 0.9, 1)],
    "pictures": [
        ("MOSAIC", "unreadable found of 10", 10, 10),
        ("MOSAIC", "noise found of 10", 10, 10),
        ("MOSAIC", "good ones flagged", 0, 2),
    ],
    "embeddings": [("MOSAIC", "topics of 40", 37, 40), ("MOSAIC", "mean distance", 0.7, 0.83)],
    "mixed_summary": [("MOSAIC", "kinds of 4", 4, 4), ("MOSAIC", "kind guessed", 0.68, 1), ("MOSAIC", "distance", 0.1, 0.17)],
    "rare_cells": [("MOSAIC", "types of 10", 9, 10)],
    "drift": [
        ("MOSAIC, mosaic compare", "nothing changed", 0, 0.34),
        ("MOSAIC, mosaic compare", "a kind leaves", 1, 1),
        ("MOSAIC, mosaic compare", "cells mixed up", 1, 1),
    ],
    "how_many": [("MOSAIC", "8, outliers", 7, 9), ("MOSAIC", "error", 0, 1)],
    "numeric_outliers": [("MOSAIC", "mean", 0.9, 1)],
    "quotas": [("MOSAIC", "fewest of a city", 4, 4), ("MOSAIC", "most of a city", 4, 4), ("MOSAIC", "wrong records", 0, 0)],
    "new_rows": [("MOSAIC", "found of 20", 18, 20), ("MOSAIC", "false alarms", 0, 5), ("MOSAIC", "right reason", 18, 20)],
    "big_file": [("MOSAIC", "mean distance", 4.4, 5.6), ("MOSAIC", "peak MiB", 50, 400)],
    "growing_catalogue": [("MOSAIC, start=", "picks that stay", 25, 30)],
    "budget_eaters": [("MOSAIC", "outliers picked, blobs", 0, 0), ("MOSAIC", "noise picked, digits", 0, 1)],
}


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # other tools warn
@pytest.mark.parametrize("name", HOLDS)
def test_jobs_give_the_figures_that_they_should(name, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("MOSAIC_DATA", str(tmp_path))
    monkeypatch.syspath_prepend(JOBS)
    job = runpy.run_path(str(JOBS / f"{name}.py"))
    given = job["figures"]()
    for line, column, least, most in HOLDS[name]:
        assert least <= given[line][column] <= most, f"{line}, {column}: {given[line][column]}"
    job["print_table"](job["__doc__"], given | {"a tool that is missing": None})
    told = capsys.readouterr().out
    assert all(line in told for line in given)
    assert "not installed" in told.splitlines()[-1]


def test_every_job_is_tested_and_listed():
    assert {path.stem for path in JOBS.glob("*.py")} - {"_jobs"} == set(HOLDS)
    listed = (JOBS.parent / "README.md").read_text()
    assert all(f"(jobs/{name}.py)" in listed for name in HOLDS)
