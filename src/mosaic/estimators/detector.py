"""MOSAICOutlierDetector: scores every row by the number of rows that look like it."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils.validation import check_is_fitted

from mosaic.arrays.blocks import FloatArray, IntArray
from mosaic.arrays.xp import rows_of
from mosaic.choosing import Selection, Settings, flag_only
from mosaic.choosing.answers import kept_at
from mosaic.estimators.fit import fit_data, take
from mosaic.estimators.fitted import FittedAttributes, ask, known
from mosaic.estimators.progress import computing_in_threads, reporting, telling
from mosaic.parameters import Named


@dataclass(eq=False, repr=False)
class DetectorParameters:
    contamination: Any = "auto"
    _: KW_ONLY
    min_group: float | None = None
    kernel: Any = "rbf"
    gamma: Any = "auto"
    scale: Any = "auto"
    max_samples: int | None = None
    memory_budget: Any = None
    n_jobs: int | None = None
    random_state: Any = 0
    verbose: bool | int = False


@computing_in_threads
class MOSAICOutlierDetector(
    DetectorParameters, Named, FittedAttributes, OutlierMixin, BaseEstimator
):
    """Outliers are rows that few others look like.

    The score of a row is the log of its effective count: the number of rows, itself included, that look like it, among 128
    drawn at random, the mean over four draws. Scores and decisions are those of ``MOSAIC`` with the same settings. **Signs are
    scikit-learn's: high scores are normal, -1 is an outlier.** ``to_pyod`` gives the opposite signs.

    Parameters
    ----------
    contamination : share of outliers, at most 0.5, if known. "auto" looks for a crowd that a valley in the distribution of the
        counts separates and that is no group; without one it flags rows that are alone and far from others: of clean rows about
        1 % at most. Groups that are kept are told of in a warning
    max_samples : rows that each of the four programs compares, 128 by default
    min_group, kernel, gamma, scale, memory_budget, n_jobs, random_state, verbose : as in ``MOSAIC``

    Attributes
    ----------
    selection_ : all findings and decisions
    effective_count_ : effective count of every row of the data; 1 if it is alone
    is_outlier_ : mask of the rows below the threshold
    offset_ : ``decision_function = score_samples − offset_``
    held_out_ : scores of the rows that were given to ``hold_out``, from the lowest
    threshold_rule_ : rule that gave the threshold: "valley", "alone", "contamination" or "none"
    gamma_, column_scale_ : as in ``MOSAIC``

    Notes
    -----
    1. The paper defines its measure for points with a non-zero row of one program; the effective count extends it to all
       points, including new ones, and thresholds apply to its log. The automatic threshold is ours
       (``mosaic.choosing.outliers``).
    2. Nothing is chosen here, so there is no certificate; ``mosaic.solve`` solves and certifies the program of all rows.
    3. A row of the data has the same score in ``fit`` and afterwards, whatever other rows it is passed with; a new row is scored
       as if it had been added to the data.

    Examples
    --------
    >>> import numpy as np
    >>> from mosaic import MOSAICOutlierDetector, datasets
    >>> data = datasets.blobs_with_gross_outliers()
    >>> detector = MOSAICOutlierDetector().fit(data.X)
    >>> bool(((detector.predict(data.X) == -1) == data.is_outlier).all())
    True
    >>> detector.predict([[1000.0, 1000.0]])
    array([-1])
    """

    @reporting
    def fit(
        self,
        X: object,
        y: object = None,
        *,
        sample_weight: ArrayLike | str | None = None,
        marks: object = None,
    ) -> Self:
        """Compute the effective count of every row of X, find the threshold, and return the estimator.

        X, ``sample_weight`` and ``marks`` are as for ``MOSAIC.fit``; a file is loaded into memory. y is ignored.
        """
        settings = Settings.of(self, outliers="report")
        with telling(self) as say:
            taken = take(self, X, settings, sample_weight=sample_weight, may_pass=False)
            data = fit_data(self, taken, say, marks=marks)
            self.selection_ = selection = flag_only(data, taken.settings)
            # Without outliers in the data, only new rows that score well below all of its rows are outliers.
            cut = selection.cut.count
            self.offset_ = float(np.log(cut) if cut > 0 else np.log(data.counts).min() - 1.0)
            say("done", f"{selection.n_outliers} outliers among {data.n_rows}", 1.0)
        self._warn()
        return self

    threshold_rule_: str = known("cut.rule")

    def score_samples(self, X: object) -> FloatArray:
        """Log of the effective count of each row; high is normal. It does not depend on the other rows of X."""
        check_is_fitted(self)
        scores: FloatArray = ask(self, X, partial(log_counts_of, floor=self.offset_), np.zeros(0))
        return scores

    def decision_function(self, X: object) -> FloatArray:
        """``score_samples(X) − offset_``; negative for outliers."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: object) -> IntArray:
        """1 for rows that belong, -1 for outliers."""
        return np.where(self.decision_function(X) < 0, -1, 1)

    def hold_out(self, X: object) -> Self:
        """Keep the scores of rows that belong and were not in the fit, for ``p_values``; ``save`` keeps them, too."""
        self.held_out_ = np.sort(self.score_samples(X))
        return self

    def p_values(self, X: object) -> FloatArray:
        """Conformal p-values of new rows, p(y) = (1 + #{held-out rows i: s_i ≤ s(y)}) / (1 + #{held-out rows}).

        For a new row like the held-out ones p ≤ α has at most the probability α, whatever their distribution. Take the rows that
        ``scipy.stats.false_discovery_control(p) <= α`` names: if all new rows are such, it names one with at most the
        probability α (Bates et al., Testing for outliers with conformal p-values, 2023).

        Examples
        --------
        >>> from mosaic import MOSAICOutlierDetector, datasets
        >>> X = datasets.swiss_roll(600)
        >>> detector = MOSAICOutlierDetector().fit(X[:300]).hold_out(X[300:])
        >>> bool(detector.p_values([[99.0, 99.0, 99.0]])[0] == 1 / 301)
        True
        """
        check_is_fitted(
            self,
            "held_out_",
            msg="%(name)s holds no rows out. Call hold_out with rows that were not in the fit.",
        )
        rank = np.searchsorted(self.held_out_, self.score_samples(X), "right")
        return (1.0 + rank) / (1.0 + len(self.held_out_))

    def to_pyod(self) -> Any:
        """The fitted detector as one of PyOD's: ``decision_scores_`` high for outliers, ``labels_`` 0 and 1. Needs PyOD."""
        check_is_fitted(self)
        from mosaic.estimators.adapters import PyODDetector  # imports PyOD

        return PyODDetector.of(self)


def log_counts_of(selection: Selection, Y: Any, floor: float) -> FloatArray:
    """The scores of prepared rows; rows that are kept score no lower than the floor."""
    scores = np.log(selection.data.counts_at(Y))
    odd = np.flatnonzero(scores < floor)
    if len(odd):
        scores[odd[kept_at(selection, rows_of(Y, odd))]] = floor
    return scores
