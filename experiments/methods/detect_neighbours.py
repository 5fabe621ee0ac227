"""Distance to the tenth neighbour, and the local outlier factor.

kNN distance: Ramaswamy, Rastogi, Shim: Efficient algorithms for mining outliers from large data sets, SIGMOD 2000.
LOF: Breunig, Kriegel, Ng, Sander: LOF, SIGMOD 2000 (scikit-learn).
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors

from experiments.methods import Detector, Scores
from experiments.methods.detect_parts import points

LARGEST = 200_000
WHY = "with many features all n² pairs are visited"


def detect_by_distance(X: Any, seed: int, k: int = 10) -> Scores:
    """Distance to the k-th nearest other point; no threshold of its own."""
    X = points(X, LARGEST, WHY)
    distances, _ = NearestNeighbors(n_neighbors=min(k, len(X) - 1)).fit(X).kneighbors()
    return Scores(np.asarray(distances[:, -1]))


def detect_by_local_density(X: Any, seed: int, k: int = 20) -> Scores:
    """Density of the neighbours over own density, flagged above scikit-learn's 1.5."""
    X = points(X, LARGEST, WHY)
    model = LocalOutlierFactor(n_neighbors=min(k, len(X) - 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # many equal points are warned of
        flagged = model.fit_predict(X) == -1
    return Scores(-model.negative_outlier_factor_, flagged)


DETECTORS = (
    Detector("kNN distance", "peer", detect_by_distance, ({"k": 10},), LARGEST),
    Detector("LOF", "peer", detect_by_local_density, tuple({"k": k} for k in (10, 20, 50)), LARGEST),
)
