"""Isolation forest and one-class SVM of scikit-learn.

Isolation forest: Liu, Ting, Zhou: Isolation Forest, ICDM 2008 (scikit-learn).
One-class SVM: Schölkopf et al.: Estimating the support of a high-dimensional distribution, 2001 (scikit-learn).
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from sklearn.ensemble import IsolationForest
from sklearn.svm import OneClassSVM

from experiments.methods import Detector, Scores
from experiments.methods.detect_parts import BANDWIDTHS, points, squared_median_distance

LARGEST_FOREST, WHY_FOREST = 5_000_000, "every point goes down a hundred trees"
LARGEST_SVM, WHY_SVM = 20_000, "a quadratic program with ν·n support vectors"


def detect_by_isolation(X: Any, seed: int) -> Scores:
    """2^(−mean depth / expected depth), a hundred trees on 256 points each, flagged above ½: the authors' settings."""
    X = points(X, LARGEST_FOREST, WHY_FOREST)
    model = IsolationForest(random_state=seed).fit(X)
    values = -model.score_samples(X)
    return Scores(values, values > -model.offset_)


def detect_by_support(X: Any, seed: int, bandwidth: float = 1.0, nu: float = 0.5) -> Scores:
    """−Σ_j α_j k(x_i, x_j) with the Gaussian kernel, σ² = bandwidth · (median distance)², flagged outside the boundary."""
    X = points(X, LARGEST_SVM, WHY_SVM)
    model = OneClassSVM(gamma=1.0 / (bandwidth * squared_median_distance(X, seed)), nu=nu).fit(X)
    values = -model.score_samples(X)
    return Scores(np.asarray(values), model.predict(X) == -1)


DETECTORS = (
    Detector("Isolation forest", "peer", detect_by_isolation, ({},), LARGEST_FOREST),
    Detector(
        "One-class SVM",
        "peer",
        detect_by_support,
        tuple({"bandwidth": bandwidth, "nu": nu} for bandwidth, nu in product(BANDWIDTHS, (0.1, 0.5))),
        LARGEST_SVM,
    ),
)
