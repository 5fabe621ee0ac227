"""ECOD, COPOD and HBOS of PyOD, with its defaults: features are looked at one by one.

ECOD: Li et al., IEEE TKDE 2022 (PyOD).
COPOD: Li et al., ICDM 2020 (PyOD).
HBOS: Goldstein, Dengel, KI 2012 (PyOD).
"""

from __future__ import annotations

import warnings
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from experiments.methods import CannotRun, Detector, Scores
from experiments.methods.detect_parts import points

LARGEST, WHY = 1_000_000, "several copies of the data are sorted in memory"


def detect(name: str, X: Any, seed: int) -> Scores:
    """Scores of the PyOD model of this name, and its labels (a tenth of the points)."""
    X = points(X, LARGEST, WHY)
    with warnings.catch_warnings():  # of other packages' versions, and of features that do not vary
        warnings.simplefilter("ignore")
        try:
            model = getattr(import_module(f"pyod.models.{name.lower()}"), name)()
        except ImportError as error:
            raise CannotRun(f"the package pyod cannot be imported: {error}") from error
        model.fit(X)
    values = np.asarray(model.decision_scores_, np.float64)
    if not np.isfinite(values).all():
        raise CannotRun(f"PyOD gives {int((~np.isfinite(values)).sum())} scores that are not finite")
    return Scores(values, np.asarray(model.labels_ == 1))


DETECTORS = (
    Detector("ECOD", "peer", partial(detect, "ECOD"), ({},), LARGEST),
    Detector("COPOD", "peer", partial(detect, "COPOD"), ({},), LARGEST),
    Detector("HBOS", "peer", partial(detect, "HBOS"), ({},), LARGEST),
)
