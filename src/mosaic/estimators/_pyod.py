"""The names and signs of PyOD, over a fitted detector. PyOD itself is not needed."""

from __future__ import annotations

from typing import Any

import numpy as np

from mosaic._arrays import FloatArray, IntArray


class PyODAdapter:
    """High scores and the label 1 are outliers, as in PyOD; otherwise the detector itself.

    Attributes
    ----------
    decision_scores_ : of the data that was fitted, high for outliers
    labels_ : 0 for points that belong, 1 for outliers
    threshold_ : score above which points are outliers
    contamination : share of outliers found
    """

    def __init__(self, detector: Any):
        self.detector = detector
        self.decision_scores_: FloatArray = -np.log(detector.effective_count_)
        protected = detector.selection_.protected
        if protected is not None:
            self.decision_scores_[protected] = -detector.offset_
        self.threshold_ = -detector.offset_
        self.labels_: IntArray = detector.is_outlier_.astype(np.intp)
        self.contamination = float(self.labels_.mean())

    def decision_function(self, X: Any) -> FloatArray:
        """Scores of new points, high for outliers."""
        return np.asarray(-self.detector.score_samples(X))

    def predict(self, X: Any) -> IntArray:
        """0 for points that belong, 1 for outliers."""
        return np.asarray(self.decision_function(X) > self.threshold_, np.intp)

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of belonging and of being an outlier: scores of the data scaled to [0, 1], as PyOD does by default."""
        low, high = float(self.decision_scores_.min()), float(self.decision_scores_.max())
        scaled = np.clip((self.decision_function(X) - low) / max(high - low, np.finfo(np.float64).tiny), 0.0, 1.0)
        return np.column_stack([1.0 - scaled, scaled])
