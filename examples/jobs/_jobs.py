"""What the jobs share: the table that each prints, the picks of the tools that come up often, and a table of customers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one core for every tool, so that seconds can be compared
import numpy as np
import pandas
from sklearn.metrics import pairwise_distances

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from _shared import real_data

__all__ = [
    "customers",
    "facility_location",
    "gower",
    "judge_each",
    "k_medoids",
    "mean_of_draws",
    "mosaic_json",
    "print_table",
    "real_data",
]

#: A line for each way of doing the job, with a figure for each column; None where the tool is not installed.
Figures = dict[str, dict[str, float] | None]


def print_table(about: str, figures: Figures) -> None:
    """The first line of a docstring, and a line of figures for each way of doing the job."""
    columns = next({column: max(len(column), 6) for column in line} for line in figures.values() if line)
    width = max(map(len, figures))
    print(about.split("\n", 1)[0] + "\n\n" + " " * width, *(column.rjust(size) for column, size in columns.items()), sep="  ")
    for name, line in figures.items():
        cells = ("not installed",)
        if line:
            cells = (_cell(line[column]).rjust(size) for column, size in columns.items())
        print(name.ljust(width), *cells, sep="  ")


def _cell(figure: float) -> str:
    return "-" if np.isnan(figure) else f"{figure:,.0f}" if abs(figure) >= 100 else f"{figure:.3g}"


def mean_of_draws(draw: Callable[[int], Figures]) -> Callable[[], Figures]:
    """Turn the figures of one draw, which is given a seed, into the means of three draws."""

    def figures() -> Figures:
        draws = [draw(seed) for seed in range(3)]
        mean: Figures = {}
        for name, line in draws[0].items():
            mean[name] = line and {column: float(np.mean([one[name][column] for one in draws])) for column in line}
        return mean

    return figures


def judge_each(ways: dict[str, Any], judge: Callable[[Any], dict[str, float]]) -> Figures:
    """What is said of each way's answer; None for tools that gave none, since they are not installed."""
    return {name: None if answer is None else judge(answer) for name, answer in ways.items()}


def mosaic_json(*arguments: Any) -> dict[str, Any]:
    """What the command answers with --json; exit code 7 says that some pictures cannot be read."""
    done = subprocess.run([sys.executable, "-m", "mosaic", *map(str, arguments), "--json"], capture_output=True, text=True)
    if done.returncode not in (0, 7):
        raise SystemExit(done.stdout)
    return json.loads(done.stdout)


def k_medoids(X: np.ndarray, k: int, seed: int = 0, metric: str = "euclidean") -> np.ndarray | None:
    """The rows that FasterPAM chooses, or None if kmedoids is not installed."""
    try:
        import kmedoids
    except ImportError:
        return None
    return kmedoids.fasterpam(pairwise_distances(X, metric=metric), k, random_state=seed, n_cpu=1).medoids.astype(int)


def facility_location(X: np.ndarray, k: int) -> np.ndarray | None:
    """The rows that apricot chooses, or None if it is not installed."""
    try:
        from apricot import FacilityLocationSelection
    except ImportError:
        return None
    return FacilityLocationSelection(k, metric="euclidean").fit(X).ranking


def customers(n: int, seed: int) -> pandas.DataFrame:
    """A mixed table of four kinds of customers; their kind is the last column, which the jobs hide."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])
    age = np.clip(rng.normal(np.array([24, 41, 68, 47])[kind], np.array([4, 7, 6, 9])[kind]), 18, 95).round()
    income = np.exp(rng.normal(np.log(np.array([18_000, 46_000, 27_000, 95_000])[kind]), 0.25)).round(-2)
    orders = rng.poisson(np.array([14, 8, 3, 25])[kind])
    segment = np.array(["basic", "plus", "premium"])
    likely = np.array([[0.85, 0.14, 0.01], [0.3, 0.6, 0.1], [0.7, 0.25, 0.05], [0.02, 0.18, 0.8]])
    return pandas.DataFrame(
        {
            "customer_id": [f"C{number:05d}" for number in range(n)],
            "age": age.astype(int),
            "income": income.astype(int),
            "orders": orders,
            "segment": [rng.choice(segment, p=likely[k]) for k in kind],
            "city": rng.choice(["Berlin", "Paris", "Rome", "Oslo", "Vienna", "Porto"], n, p=[0.3, 0.25, 0.2, 0.15, 0.07, 0.03]),
            "joined": (np.datetime64("2019-01-01") + rng.integers(0, 2000, n)).astype(str),
            "newsletter": rng.random(n) < np.array([0.7, 0.4, 0.2, 0.5])[kind],
            "kind": np.array(["student", "family", "retired", "business"])[kind],
        }
    )


def gower(frame: pandas.DataFrame, picks: np.ndarray) -> np.ndarray:
    """Gower's distance from each row to each pick: a ruler for mixed tables that none of the tools computes with."""
    total = np.zeros((len(frame), len(picks)))
    for _, values in frame.items():
        if values.dtype.kind in "if":
            numbers = values.to_numpy(float)
            low, high = np.percentile(numbers, [1, 99])  # a wrong value must not decide the unit
            total += np.minimum(np.abs(numbers[:, None] - numbers[picks]) / (high - low), 1)
        else:
            total += values.to_numpy()[:, None] != values.to_numpy()[picks]
    return total / frame.shape[1]
