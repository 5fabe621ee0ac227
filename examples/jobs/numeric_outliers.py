"""Outliers of numeric tables: the area under the ROC curve of the scores, where the outliers are known.

Data: five sets of ADBench on which no rule of MOSAIC was chosen; or digits, wine and breast cancer with one class made rare.
Instead: isolation forest, LOF and nearest neighbours (PyOD's KNN), on scaled columns, settings as their authors recommend.
"""

import numpy as np
from _jobs import mean_of_draws, print_table, real_data
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor
from sklearn.preprocessing import StandardScaler

from mosaic import MOSAICOutlierDetector

SETS = ("6_cardio", "18_Ionosphere", "20_letter", "40_vowels", "45_wine")


def tables(seed):
    paths = {name.split("_")[1]: real_data(f"adbench/{name}.npz") for name in SETS}
    if all(paths.values()):
        return {name: (np.load(path)["X"].astype(float), np.load(path)["y"]) for name, path in paths.items()}
    found = {}
    for load, odd in ((load_digits, 7), (load_wine, 2), (load_breast_cancer, 0)):
        X, y = load(return_X_y=True)
        few = np.random.default_rng(seed).permutation(np.flatnonzero(y == odd))[:10]
        rows = np.concatenate([np.flatnonzero(y != odd), few])
        found[load.__name__.removeprefix("load_")] = X[rows], (y == odd)[rows]
    return found


def neighbours(X):
    try:
        from pyod.models.knn import KNN
    except ImportError:
        return None
    return KNN().fit(X).decision_scores_


@mean_of_draws
def figures(seed):
    ways = {
        "MOSAIC": lambda X: -MOSAICOutlierDetector().fit(X).score_samples(X),
        "isolation forest": lambda X: -IsolationForest(random_state=seed).fit(X).score_samples(X),
        "LOF": lambda X: -LocalOutlierFactor(20).fit(X).negative_outlier_factor_,
        "nearest neighbours": neighbours,
    }
    lines = {name: {} for name in ways}
    for what, (X, y) in tables(seed).items():
        scaled = StandardScaler().fit_transform(X)
        for name, score in ways.items():
            scores = score(X if name == "MOSAIC" else scaled)
            lines[name] = None if scores is None else lines[name] | {what: roc_auc_score(y, scores)}
    for line in filter(None, lines.values()):
        line["mean"] = np.mean(list(line.values()))
    return lines


def main():
    print_table(__doc__, figures())


if __name__ == "__main__":
    main()
