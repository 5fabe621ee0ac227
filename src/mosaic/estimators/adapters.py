"""The outlier detector as one of PyOD's: its base class, names and signs, so that PyOD's tools take it."""

from __future__ import annotations

from typing import Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from mosaic.arrays.blocks import FloatArray
from mosaic.estimators.detector import MOSAICOutlierDetector
from mosaic.exceptions import MissingDependencyError

try:
    from pyod.models.base import BaseDetector
except ImportError:  # PyOD is optional
    BaseDetector = None


class PyODDetector(BaseDetector if BaseDetector is not None else object):  # type: ignore[misc]
    """MOSAICOutlierDetector as a detector of PyOD: high scores and the label 1 mean outliers.

    ``contamination`` is as for every detector of PyOD; ``detector`` has all other settings, and is ``detector_`` once fitted.
    """

    def __init__(self, contamination: float = 0.1, detector: MOSAICOutlierDetector | None = None):
        if BaseDetector is None:
            raise MissingDependencyError(
                "PyODDetector needs PyOD, which is not installed", "Use: pip install pyod"
            )
        super().__init__(contamination=contamination)
        self.detector = detector

    @classmethod
    def of(cls, fitted: MOSAICOutlierDetector) -> Self:
        face = cls(detector=clone(fitted))
        face.contamination = float(fitted.is_outlier_.mean())
        return face._take(fitted)

    def fit(self, X: object, y: object = None) -> Self:
        detector = MOSAICOutlierDetector() if self.detector is None else clone(self.detector)
        return self._take(detector.set_params(contamination=self.contamination).fit(X))

    def decision_function(self, X: object) -> FloatArray:
        check_is_fitted(self)
        return -self.detector_.score_samples(X)

    def _take(self, fitted: MOSAICOutlierDetector) -> Self:
        self.detector_ = fitted
        scores = -np.log(fitted.effective_count_)
        if fitted.selection_.protected is not None:
            kept = fitted.selection_.protected
            scores[kept] = np.minimum(scores[kept], -fitted.offset_)
        self._set_n_classes(None)
        self.decision_scores_ = scores
        self._process_decision_scores()  # what PyOD's methods need besides
        self.threshold_ = -fitted.offset_
        self.labels_ = fitted.is_outlier_.astype(np.intp)
        return self
