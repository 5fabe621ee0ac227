"""Labels: which wrong ones are named, and what a small training set is worth, beside cleanlab and imbalanced-learn.

Five sets, whole and with one class against the rest, 1 : 30; with all labels right, and with a tenth of the rarest class, and as
many of each other class, given another label. Three draws. The rule of ``suspects_`` was chosen on the first three sets; the
last two were looked at once. ``MOSAIC_DATA`` names the folder of the sets other than scikit-learn's digits; without
it, only these are looked at.
"""

from __future__ import annotations

from report import header, table, write  # sets the number of threads, so it comes before numpy

# isort: split
import os
import warnings
from collections import defaultdict
from typing import Any

import numpy as np
from cleanlab.filter import find_label_issues
from imblearn.under_sampling import ClusterCentroids, NearMiss, RandomUnderSampler
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import cross_val_predict, train_test_split
from sklearn.neighbors import KNeighborsClassifier

from labelled import FILES, loaded
from mosaic import MOSAICSampler

SETS = ("digits", *(FILES if "MOSAIC_DATA" in os.environ else ()))
DRAWS, MOST_ROWS, RATIO, SHARE_KEPT, SHARE_WRONG = 3, 3000, 30, 0.05, 0.1
WAYS_TO_NAME = ("suspects_", "cleanlab, neighbours", "cleanlab, logistic")
WAYS_TO_KEEP = ("MOSAICSampler", "suspects='keep'", "random", "NearMiss", "ClusterCentroids", "all rows")


def drawn(name: str, is_rare: bool, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of all classes, as many of each; or one class against the rest, a thirtieth of it."""
    X, y = loaded(name)
    rng = np.random.default_rng(seed)
    classes = np.unique(y)
    if is_rare:
        y = (y == classes[-1 - seed % len(classes)]).astype(int)
        rest = rng.permutation(np.flatnonzero(y == 0))[:MOST_ROWS]
        rows = np.append(rest, rng.permutation(np.flatnonzero(y == 1))[: len(rest) // RATIO])
    else:
        size = min(np.bincount(y)[classes].min(), MOST_ROWS // len(classes))
        rows = np.concatenate([rng.permutation(np.flatnonzero(y == label))[:size] for label in classes])
    return X[rows], y[rows]


def with_wrong_labels(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    labels, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    spoiled, number = y.copy(), max(round(SHARE_WRONG * counts.min()), 1)
    for code in range(len(labels)):
        rows = rng.choice(np.flatnonzero(codes == code), number, replace=False)
        spoiled[rows] = labels[(code + rng.integers(1, len(labels), number)) % len(labels)]
    return spoiled


def named(X: np.ndarray, y: np.ndarray) -> dict[str, np.ndarray]:
    """A mask of the labels that may be wrong, by each way."""
    suspects = MOSAICSampler().fit(X, y).suspects_
    found = {"suspects_": np.isin(np.arange(len(y)), suspects.rows)}
    models: dict[str, Any] = {
        "cleanlab, neighbours": KNeighborsClassifier(10),
        "cleanlab, logistic": LogisticRegression(max_iter=300),
    }
    codes = np.unique(y, return_inverse=True)[1]
    for way, model in models.items():
        likely = cross_val_predict(model, X, codes, cv=5, method="predict_proba")
        found[way] = find_label_issues(codes, likely, n_jobs=1)
    return found


def kept(X: np.ndarray, y: np.ndarray, is_rare: bool, seed: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """A training set by each way: as many rows of each class as the rarest has, or 5 % of them."""
    number, strategy = ("auto", "auto") if is_rare else (SHARE_KEPT, "proportional")
    keeping = MOSAICSampler(number, sampling_strategy=strategy, suspects="keep")
    found = {
        "MOSAICSampler": MOSAICSampler(number, sampling_strategy=strategy).fit_resample(X, y),
        "suspects='keep'": keeping.fit_resample(X, y),
    }
    asked = keeping.sampling_strategy_
    others = {
        "random": RandomUnderSampler(sampling_strategy=asked, random_state=seed),
        "NearMiss": NearMiss(sampling_strategy=asked),
        "ClusterCentroids": ClusterCentroids(sampling_strategy=asked, random_state=seed),
    }
    return found | {way: other.fit_resample(X, y) for way, other in others.items()} | {"all rows": (X, y)}


def figures() -> dict[Any, list[float]]:
    found: dict[Any, list[float]] = defaultdict(list)
    for name in SETS:
        for is_rare in (False, True):
            for seed in range(DRAWS):
                X, y = drawn(name, is_rare, seed)
                X, X_test, right, y_test = train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=seed)
                spoiled = with_wrong_labels(right, np.random.default_rng(seed))
                for is_noisy, labels in enumerate((right, spoiled)):
                    task = (name, is_rare, is_noisy)
                    wrong = labels != right
                    rare = (labels == 1) & ~wrong if is_rare else ~wrong
                    for way, mask in named(X, labels).items():
                        found[*task, way, "F1"].append(2 * (mask & wrong).sum() / max(mask.sum() + wrong.sum(), 1))
                        found[*task, way, "lost"].append(mask[rare].mean())
                    for way, (few, few_labels) in kept(X, labels, is_rare, seed).items():
                        for judge in (KNeighborsClassifier(1), LogisticRegression(max_iter=300)):
                            model = judge.fit(few, few_labels)
                            score = balanced_accuracy_score(y_test, model.predict(X_test))
                            found[*task, way, type(judge).__name__].append(score)
    return found


def main() -> None:
    warnings.simplefilter("ignore")
    found = figures()

    def lines(ways: tuple[str, ...], is_rare: bool, is_noisy: bool, figure: str) -> str:
        rows = [[way, *(f"{np.mean(found[name, is_rare, is_noisy, way, figure]):.3f}" for name in SETS)] for way in ways]
        return table(["", *SETS], rows)

    text = [header("Labels", ("scikit-learn", "cleanlab", "imbalanced-learn")), (__doc__ or "").partition("\n\n")[2]]
    for is_rare, shape in enumerate(("as many of each class", "1 : 30")):
        text.append(f"## {shape}\n\nWrong labels that are named, F1:\n\n{lines(WAYS_TO_NAME, bool(is_rare), True, 'F1')}")
        for is_noisy, state in enumerate(("all labels right", "a tenth wrong")):
            whose = "of the rare class " if is_rare else ""
            text.append(f"Right labels {whose}that are named, share, {state}:\n")
            text.append(lines(WAYS_TO_NAME, bool(is_rare), bool(is_noisy), "lost"))
        size = "as many of both as the rarer has" if is_rare else "5 % of the rows"
        for judge, words in {"KNeighborsClassifier": "the nearest kept row", "LogisticRegression": "logistic regression"}.items():
            for is_noisy, state in enumerate(("all labels right", "a tenth wrong")):
                text.append(f"Balanced accuracy of {words} on new rows, {size}, {state}:\n")
                text.append(lines(WAYS_TO_KEEP, bool(is_rare), bool(is_noisy), judge))
    write("labels.md", "\n".join(text))


if __name__ == "__main__":
    main()
