"""The second round of labels: plain next picks, and picks that know where a model of the first labels is in doubt.

30 picks get their labels, and then 30 more rows; a model of all 60 is judged on other rows, by its balanced accuracy. The
doubt of a row is 1 minus the difference of the two likeliest classes, of a logistic regression on the first 30. Nine ways
were tried on one half of the rows of each set; two of them, the best, were looked at once on the other half, which this page
shows, beside the plain picks and two usual ways. Five draws of 2000 rows, a third of them to judge by; differences are
paired. ``MOSAIC_DATA`` names the folder of the sets.
"""

from __future__ import annotations

from report import header, table, write  # sets the number of threads, so it comes before numpy

# isort: split
import warnings
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.neighbors import KNeighborsClassifier

from labelled import loaded
from mosaic import MOSAIC

SETS, HALF, SEEDS = ("MNIST", "isolet", "magic"), 1, 5
FIRST, ALL, ROWS = 30, 60, 2000


def batches(X: Any, y: Any, rng: np.random.Generator) -> dict[str, Any]:
    """60 rows by each way, the same 30 first."""
    first = MOSAIC(FIRST).fit(X).representative_indices_
    likely = np.sort(LogisticRegression(max_iter=300).fit(X[first], y[first]).predict_proba(X), axis=1)
    doubt = 1.0 - (likely[:, -1] - likely[:, -2])
    rest = np.setdiff1d(np.arange(len(y)), first)
    half = np.union1d(np.flatnonzero(doubt >= np.median(doubt)), first)
    ways = {
        "plain next picks": {},
        "candidates: the half in most doubt": {"candidates": half},
        "sample_weight: the doubt": {"sample_weight": np.maximum(doubt, 1e-3)},
    }
    found = {way: MOSAIC(ALL).fit(X, must_include=first, **more).representative_indices_ for way, more in ways.items()}
    found["the most doubtful rows"] = np.append(first, rest[np.argsort(-doubt[rest])][: ALL - FIRST])
    return found | {"random rows": np.append(first, rng.choice(rest, ALL - FIRST, replace=False))}


def main() -> None:
    warnings.simplefilter("ignore")
    lines = []
    for name in SETS:
        X, y = loaded(name)
        mine = np.random.default_rng(99).permutation(len(y))[HALF::2]
        found: dict[tuple[str, str], list[float]] = {}
        for seed in range(SEEDS):
            rng = np.random.default_rng(seed)
            train, test = np.split(rng.permutation(mine)[:ROWS], [2 * min(ROWS, len(mine)) // 3])
            for way, rows in batches(X[train], y[train], rng).items():
                for judge in (LogisticRegression(max_iter=300), KNeighborsClassifier(1)):
                    told = judge.fit(X[train][rows], y[train][rows]).predict(X[test])
                    found.setdefault((type(judge).__name__, way), []).append(balanced_accuracy_score(y[test], told))
        for (judge, way), scores in found.items():
            apart = np.subtract(scores, found[judge, "plain next picks"])
            numbers = (np.mean(scores), np.std(scores, ddof=1), np.mean(apart), np.std(apart, ddof=1))
            lines.append([name, judge, way, *(f"{number:.3f}" for number in numbers)])
            print(*lines[-1], flush=True)
    head = ["set", "model", "30 more rows", "balanced accuracy", "spread of draws", "above plain", "its spread"]
    text = [header("The second round of labels", ["numpy", "scikit-learn"]), (__doc__ or "").partition("\n\n")[2]]
    write("next_batch.md", "\n".join([*text, table(head, lines)]))


if __name__ == "__main__":
    main()
