"""MOSAIC with its defaults, without one of its rules at a time, and the paper's Algorithm 1 as written."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any
from unittest import mock

import numpy as np
from sklearn.preprocessing import normalize

from experiments.methods import Detector, Picks, Scores, Selector
from mosaic import MOSAIC, ConvergenceWarning, MOSAICOutlierDetector, Paper, SelectionWarning, Sketch, path
from mosaic.exceptions import MosaicWarning
from mosaic.kernels import EffectiveCount
from mosaic.program.sketch import misrepresentation

#: Candidates of Algorithm 3, added ones, and rounds.
SKETCH = (100, 10, 3)


def select(X: Any, k: int, seed: int, **parameters: Any) -> Picks:
    """No settings; variants have parameters."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SelectionWarning)
        model = MOSAIC(k, random_state=seed, **parameters).fit(X)
    return Picks(model.representative_indices_)


def select_greedily(X: Any, k: int, seed: int) -> Picks:
    """The nested sets of the curve, without exchanges."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SelectionWarning)
        curve = path(X, max_representatives=k, random_state=seed)
    return Picks(curve.at(k))


def with_constant(method: Callable[..., Any], name: str, value: Any, *args: Any) -> Any:
    """A method while a constant of the library, by module and name, has another value."""
    with mock.patch(f"mosaic.choosing.{name}", value):
        return method(*args)


def _no_doubt(count: float, others: Any) -> float:
    """Nobody is doubtful."""
    return 0.0


def select_like_the_paper(X: Any, k: int, seed: int, alpha: float = 10.0, gamma: Any = "auto", unit: bool = False) -> Picks:
    """Algorithm 1: at most k of the rows that are located, novel and no outliers, by influence; with ``unit`` of unit rows."""
    X = normalize(X) if unit else X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SelectionWarning)
        model = MOSAIC(k, algorithm=Paper(alpha=alpha), gamma=_bandwidth(gamma), random_state=seed).fit(X)
    return Picks(model.representative_indices_)


def select_by_candidates(
    X: Any, k: int, seed: int, alpha: float = 10.0, gamma: Any = "auto", sketch: tuple[int, int, int] = SKETCH
) -> Picks:
    """Algorithm 3: Algorithm 1 on r random candidates, and in I rounds the r̂ worst represented rows are added to them.

    Notes
    -----
    1. The paper states neither r, r̂ nor I, only that r̂ << r << n.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MosaicWarning)
        paper = Paper(alpha=alpha, sketch=Sketch(*sketch))
        model = MOSAIC(k, algorithm=paper, gamma=_bandwidth(gamma), random_state=seed).fit(X)
    data: Any = model.selection_.data

    def errors() -> Any:
        return (misrepresentation(data.encoding) / data.kernel.diagonal())[data.points.point_of]

    return Picks(model.representative_indices_, errors)


def detect(X: Any, seed: int, **parameters: Any) -> Scores:
    """No settings; variants have parameters."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SelectionWarning)
        model = MOSAICOutlierDetector(random_state=seed, **parameters).fit(X)
    return Scores(-np.log(model.effective_count_), model.is_outlier_)


def detect_like_the_paper(X: Any, seed: int, alpha: float = 10.0, gamma: Any = "auto") -> Scores:
    """OP of the encoding at the paper's strength; rows below a count of two are rejected.

    Notes
    -----
    1. Up to 2000 points the program is that of the whole kernel, as in the paper, and not of a factor of lower rank.
    """
    gamma = _bandwidth(gamma)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # beyond that
        model = MOSAIC("auto", algorithm=Paper(alpha=alpha, max_rank=WHOLE), gamma=gamma, random_state=seed).fit(X)
    data: Any = model.selection_.data
    point_of = data.points.point_of
    R = data.encoding.rows(point_of)[:, point_of] / np.bincount(point_of)[point_of, None]  # copies share a row
    return Scores(model.outlier_probability_, model.is_outlier_, R=R)


def _bandwidth(gamma: Any) -> Any:
    """A number in a grid is the number of points that one resembles: grids are written to files as plain values."""
    return EffectiveCount(gamma) if isinstance(gamma, float) else gamma


#: Largest rank of the detector's program.
WHOLE = 2000
#: The paper states neither strength, nor bandwidth, nor whether rows are divided by their length.
STRENGTHS = (3.0, 5.0, 10.0, 50.0, 200.0)
SETTINGS = tuple({"alpha": alpha, "gamma": gamma} for alpha, gamma in product(STRENGTHS, ("auto", 20.0)))
SELECTOR_SETTINGS: tuple[dict[str, Any], ...] = (*SETTINGS, *({"alpha": alpha, "unit": True} for alpha in STRENGTHS))
#: Detection is asked for narrow bandwidths, too, as everybody is who has one.
DETECTOR_SETTINGS = tuple(
    {"alpha": alpha, "gamma": gamma} for alpha, gamma in product((3.0, 10.0, 50.0), ("auto", 20.0, 5.0, 2.0))
)
SELECTORS = (
    Selector("MOSAIC", "ours", select, largest=10_000_000),
    Selector("MOSAIC (cosine)", "ours", partial(select, kernel="cosine"), largest=10_000_000),
    Selector("MOSAIC (paper)", "ours", select_like_the_paper, SELECTOR_SETTINGS, largest=5000),
    Selector("MOSAIC (paper, scalable)", "ours", select_by_candidates, SETTINGS, largest=1_000_000),
    # As many candidates, all of them random.
    Selector("MOSAIC (paper, not refined)", "ours", partial(select_by_candidates, sketch=(120, 1, 1)), SETTINGS),
)
DETECTORS = (
    Detector("MOSAIC", "ours", detect, largest=10_000_000),
    Detector("MOSAIC (paper)", "ours", detect_like_the_paper, DETECTOR_SETTINGS, largest=5000),
)
#: Constants that are changed where the rules read them, for the time of one run: in both tasks, and in selection only.
CHANGED: dict[str, tuple[str, Any]] = {
    "narrow": ("geometry.RESEMBLED_SHARE", 1 / 12),
    "wide": ("geometry.RESEMBLED_SHARE", 1 / 3),
    "median density": ("geometry.DENSE_QUANTILE", 0.5),
    "eight programs": ("outliers.PROGRAMS", 8),
    "larger programs": ("outliers.PROGRAM_SIZE", 256),
    "weaker programs": ("outliers.PROGRAM_STRENGTH", 3.0),
    "stronger programs": ("outliers.PROGRAM_STRENGTH", 30.0),
}
CHANGED_IN_SELECTION: dict[str, tuple[str, Any]] = {
    "any valley": ("outliers.VALLEY_LEVEL", 1e-3),
    "clear valleys only": ("outliers.VALLEY_LEVEL", 1e-8),
    "no valley": ("outliers.VALLEY_LEVEL", 0.0),
    "no groups": ("outliers.HIGHER_DIMENSION", 0.0),
    "nobody alone": ("outliers.ALONE", 1.0),
    "more alone": ("outliers.ALONE", 1.3),
    "no doubt": ("choose.just_above", _no_doubt),
}
#: Each rule taken away, or its constant changed.
SELECTOR_VARIANTS = (
    Selector("no rejection", "ours", partial(select, outliers="keep")),
    Selector("greedy", "ours", select_greedily),
    Selector("unscaled", "ours", partial(select, scale=False)),
    *(
        Selector(name, "ours", partial(with_constant, select, *change))
        for name, change in (CHANGED | CHANGED_IN_SELECTION).items()
    ),
)
DETECTOR_VARIANTS = (
    Detector("one program", "ours", partial(with_constant, detect, "outliers.PROGRAMS", 1)),
    Detector("unscaled", "ours", partial(detect, scale=False)),
    *(Detector(name, "ours", partial(with_constant, detect, *change)) for name, change in CHANGED.items()),
)
