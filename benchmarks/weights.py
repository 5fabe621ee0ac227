"""What the weights of representatives are good for: class shares, means of columns, and the accuracy of a model.

1500 rows of each set with class shares drawn at random; a logistic regression learns from 500 others. 50 of the 1500 get their
true label: the picks, counted once or as often as ``stands_for_`` says, or random rows. Errors over twenty draws, with their
standard errors: of class shares, half the sum of all differences; of means, in standard deviations of the column, the root of the
mean square; of the accuracy, the mean with and without its sign. ``MOSAIC_DATA`` names the folder of the sets.
"""

from __future__ import annotations

from report import header, table, write  # sets the number of threads, so it comes before numpy

# isort: split
import warnings
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from labelled import loaded
from mosaic import MOSAIC

SETS = ("MNIST", "isolet", "magic", "spam")
DRAWS, ROWS, TAUGHT, K = 20, 1500, 500, 50
FIGURES = ("class shares", "means", "accuracy, bias", "accuracy, error")


def drawn(name: str, seed: int) -> tuple[Any, Any, Any, Any]:
    """The rows with their classes, in shares drawn at random, and others to learn from."""
    X, y = loaded(name)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    X, y = X[order], y[order]
    taught, rest = np.arange(TAUGHT), np.arange(TAUGHT, len(y))
    classes = np.unique(y)
    shares = rng.dirichlet(np.ones(len(classes)))
    wanted = np.floor(shares * min(ROWS, len(rest))).astype(int)
    rows = np.concatenate([rest[y[rest] == label][:number] for label, number in zip(classes, wanted, strict=True)])
    return X[rows], y[rows], X[taught], y[taught]


def errors(X: Any, y: Any, right: Any, rows: Any, weights: Any) -> list[float]:
    """What the labels of some rows, with weights, say wrongly about all rows."""
    weights = weights / weights.sum()
    shares = sum(abs((weights * (y[rows] == label)).sum() - (y == label).mean()) for label in np.unique(y))
    spread = X.std(axis=0)
    apart = (weights @ X[rows] - X.mean(axis=0))[spread > 0] / spread[spread > 0]
    accuracy = (weights * right[rows]).sum() - right.mean()
    return [0.5 * shares, np.sqrt(np.mean(apart**2)), accuracy, abs(accuracy)]


def main() -> None:
    warnings.simplefilter("ignore")
    lines = []
    for name in SETS:
        found: dict[str, list[list[float]]] = {}
        for seed in range(DRAWS):
            X, y, X_taught, y_taught = drawn(name, seed)
            right = LogisticRegression(max_iter=300).fit(X_taught, y_taught).predict(X) == y
            model = MOSAIC(K).fit(X)
            some = np.random.default_rng(seed).choice(len(y), K, replace=False)
            ways = {
                "picks, weighted by stands_for_": (model.representative_indices_, model.stands_for_),
                "picks, counted once": (model.representative_indices_, np.ones(K)),
                "random rows": (some, np.ones(K)),
            }
            for way, (rows, weights) in ways.items():
                found.setdefault(way, []).append(errors(X, y, right, rows, weights))
        for way, all_errors in found.items():
            mean = np.mean(all_errors, axis=0)
            spread = np.std(all_errors, axis=0, ddof=1) / np.sqrt(DRAWS)
            lines.append([name, way, *(f"{m:.3f} ± {s:.3f}" for m, s in zip(mean, spread, strict=True))])
            print(*lines[-1], flush=True)
    about = (__doc__ or "").partition("\n\n")[2]
    text = [
        header("Weights of representatives", ["numpy", "scikit-learn"]),
        about,
        table(["set", "50 labels of", *FIGURES], lines),
    ]
    write("weights.md", "\n".join(text))


if __name__ == "__main__":
    main()
