"""MOSAICOutlierDetector: every point scored by how many others it stands for."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils.validation import check_is_fitted

from mosaic._arrays import FloatArray, IntArray, subsample
from mosaic.estimators._groups import find_groups
from mosaic.estimators._notebook import ShownInNotebooks
from mosaic.estimators._points import Distinct, read_points, read_scaled
from mosaic.estimators._progress import Narrator
from mosaic.estimators._pyod import PyODAdapter
from mosaic.estimators._settings import Settings, explain_detector
from mosaic.estimators._solving import build_kernel, seed_of, solve_for
from mosaic.estimators._two_scales import look_from_both, look_once
from mosaic.exceptions import InvalidInputError
from mosaic.outliers import ISOLATED, cut_for_share, find_cut, outlier_probability
from mosaic.tuning import SMALLEST_COUNT, affordable_rank, neighbours_wanted

#: Distinct points that the encoding is made for; the others are scored against them.
REFERENCE_SIZE = 1000


class MOSAICOutlierDetector(ShownInNotebooks, OutlierMixin, BaseEstimator):
    """Outliers are points that stand for nobody but themselves.

    The score of a point is the log of its effective count: the number of points, itself included, whose representation it
    would share in the certified encoding of the data. By default it is looked at from nearby and from afar, and the scale at
    which it is odder decides (see ``_two_scales``). **Signs are scikit-learn's: high scores are normal, -1 is an
    outlier.** ``to_pyod`` gives the opposite ones.

    Parameters
    ----------
    contamination : "auto" or float in (0, 0.5], default "auto"
        Share of outliers, if known. "auto" looks for a gap in the distribution of the scores; without one it flags points that
        are alone, one in a hundred at most unless they are alone even from afar.
    min_group : float, optional
        Outliers that are as close together as points that belong, at least so many, are a rare kind and no outliers. They
        keep the score of the threshold. Counted among the reference points, see ``max_samples``.
    kernel, gamma, scale, degree, coef0, n_neighbors, diffusion_time : the similarity, as in ``MOSAIC``
        With kernel="rbf" and gamma="auto" points are looked at in two kernels: one in which a typical point resembles five
        others, and one in which it resembles eighty. Otherwise there is one; gamma="auto" then makes it twenty.
    alpha, lam : strength of the program, if there is one; by default alpha = 100. Of two, lam = 30 nearby and 10 from afar
    max_samples : int, default 1000
        Distinct points, drawn at random, that the encoding is made for, at the cost of their cube. Scoring the others against
        them costs little each.
    solver, tol, max_iter, max_rank, memory_budget, random_state, verbose : as in ``MOSAIC``

    Attributes
    ----------
    effective_count_ : of every row of the data; nearby, or less, down to below one, if a row is odder from afar
    outlier_probability_ : the paper's OP of every row
    is_outlier_ : mask of the rows below the threshold
    offset_ : ``decision_function = score_samples − offset_``
    threshold_rule_ : where the threshold came from: "valley", "isolated", "contamination" or "none"
    certificate_ : what is proven about the encoding
    alpha_, lam_, gamma_, n_iter_ : strength, bandwidth and steps that were used, of two scales nearby
    column_scale_ : what columns were divided by, None if they were taken as they are

    Notes
    -----
    1. The paper defines its measure for points with a non-zero row; the effective count extends it to all points and to new
       ones (see ``counts``), and its log is what thresholds are set on. The automatic threshold is ours (see ``outliers``).
    2. A point of the data is scored as itself, a new one as if it had been added to the data.

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

    def __init__(
        self,
        contamination: Any = "auto",
        *,
        min_group: float | None = None,
        kernel: Any = "rbf",
        gamma: Any = "auto",
        scale: Any = "auto",
        degree: int = 3,
        coef0: float = 1.0,
        n_neighbors: int = 10,
        diffusion_time: int = 2,
        alpha: float | None = None,
        lam: float | None = None,
        max_samples: int = REFERENCE_SIZE,
        solver: Any = "auto",
        tol: float = 1e-3,
        max_iter: int = 10_000,
        max_rank: int | None = None,
        memory_budget: float | None = None,
        random_state: Any = 0,
        verbose: bool | int = False,
    ):
        self.contamination = contamination
        self.min_group = min_group
        self.kernel = kernel
        self.gamma = gamma
        self.scale = scale
        self.degree = degree
        self.coef0 = coef0
        self.n_neighbors = n_neighbors
        self.diffusion_time = diffusion_time
        self.alpha = alpha
        self.lam = lam
        self.max_samples = max_samples
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_rank = max_rank
        self.memory_budget = memory_budget
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, *, sample_weight: ArrayLike | None = None) -> Self:
        """Encode X and find the threshold.

        Parameters
        ----------
        X : array, CSR matrix, memory map or data frame, points × features; similarities if ``kernel="precomputed"``
        y : ignored
        sample_weight : how often each point counts; whole numbers are repetitions, 0 is absence

        Returns
        -------
        self
        """
        self._check()
        narrator = Narrator(self)
        matrix, scale = read_scaled(self, X, sample_weight)
        points = Distinct.of(matrix, sample_weight, pairwise=self.kernel == "precomputed")
        seed = seed_of(self.random_state)
        some = subsample(points.n, self.max_samples, seed)
        reference = Distinct(points.first[some], points.group, points.weights[some], points.codes[some])
        max_rank = affordable_rank(
            reference.n, matrix.dtype.itemsize, matrix.shape[1], self.memory_budget, self.max_rank
        )
        narrator.say("similarities")
        scales = look_from_both(self, matrix[reference.first], reference, seed)
        if scales is None:
            wanted = neighbours_wanted(reference.n, reference.n / SMALLEST_COUNT)
            kernel = build_kernel(self, matrix, reference, wanted, max_rank, seed)
            scales = look_once(solve_for(self, kernel, reference, max_rank, seed, narrator), reference)
        narrator.say("scoring")
        counts = np.empty(points.n)
        counts[some] = scales.reference_counts
        others = np.setdiff1d(np.arange(points.n), some)
        if len(others):
            counts[others] = scales.counts(matrix[points.first[others]])
        if isinstance(self.contamination, str):
            cut = find_cut(counts[some], scales.kernel, alone=scales.isolated() or ISOLATED, random_state=seed)
        else:
            cut = cut_for_share(counts, points.weights, float(self.contamination))
        self._scales, self.column_scale_, self.threshold_rule_ = scales, scale, cut.rule
        # Where nothing stands out, only what is odder than all of the data does.
        self.offset_ = float(np.log(cut.count)) if cut.count > 0 else float(np.log(counts).min()) - 1.0
        self.effective_count_ = points.spread(counts, 1.0)
        absent = points.group < 0
        if absent.any():
            self.effective_count_[absent] = scales.counts(matrix[np.flatnonzero(absent)])
        self.outlier_probability_ = outlier_probability(self.effective_count_, float(scales.weights.sum()))
        self._groups, self._protected, self._cut = None, None, cut
        self._reference_low = np.log(counts[some]) < self.offset_
        self.is_outlier_ = np.log(self.effective_count_) < self.offset_
        if self.min_group is not None:
            self._groups = find_groups(
                scales.wide_kernel, self._reference_low, scales.weights, self.min_group, random_state=seed
            )
            odd = np.flatnonzero(self.is_outlier_)
            self._protected = np.zeros_like(self.is_outlier_)
            self._protected[odd[self._groups.near(matrix[odd])]] = True
            self.is_outlier_ &= ~self._protected
        encoding = scales.near.encoding
        self.certificate_ = encoding.certificate
        self.alpha_, self.lam_, self.gamma_ = encoding.alpha, encoding.lam, getattr(scales.kernel, "gamma", None)
        self.n_iter_ = max(encoding.n_iter, 1)  # to look whether the start will do is a step, too
        narrator.done(f"{int(self.is_outlier_.sum())} outliers among {len(self.is_outlier_)}")
        return self

    def _check(self) -> None:
        g = self.min_group
        if g is not None and not (isinstance(g, Real) and not isinstance(g, bool) and float(g) >= 2):
            raise InvalidInputError(f"min_group must be a number >= 2 or None; got {g!r}.")
        c = self.contamination
        share = isinstance(c, Real) and not isinstance(c, bool) and 0 < float(c) <= 0.5
        if not (share or (isinstance(c, str) and c == "auto")):
            raise InvalidInputError(f"contamination must be 'auto' or a share in (0, 0.5]; got {c!r}.")
        whole = isinstance(self.max_samples, Integral) and not isinstance(self.max_samples, bool)
        if not (whole and self.max_samples >= 1):
            raise InvalidInputError(f"max_samples must be a whole number >= 1; got {self.max_samples!r}.")
        if not (isinstance(self.tol, Real) and np.isfinite(self.tol) and self.tol > 0):
            raise InvalidInputError(f"tol must be a finite number > 0; got {self.tol!r}.")

    def score_samples(self, X: Any) -> FloatArray:
        """Log of the effective count of each point; high is normal. Does not depend on what else is in X."""
        check_is_fitted(self)
        Y = read_points(self, X, reset=False)
        scores = np.log(self._scales.counts(Y))
        if self._groups is not None:
            odd = np.flatnonzero(scores < self.offset_)
            scores[odd[self._groups.near(Y[odd])]] = self.offset_
        return scores

    def decision_function(self, X: Any) -> FloatArray:
        """``score_samples(X) − offset_``; negative for outliers."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> IntArray:
        """1 for points that belong, -1 for outliers."""
        return np.where(self.decision_function(X) < 0, -1, 1)

    def explain(self) -> Settings:
        """What was decided about the data, and why, in sentences; ``mosaic.inspection.explain`` explains a row.

        Examples
        --------
        >>> from mosaic import MOSAICOutlierDetector, datasets
        >>> print(MOSAICOutlierDetector().fit(datasets.blobs_with_gross_outliers().X).explain()[0])
        Columns are taken as they are.
        """
        check_is_fitted(self)
        return explain_detector(self)

    def to_pyod(self) -> PyODAdapter:
        """The fitted detector with PyOD's names and signs: ``decision_scores_`` high for outliers, ``labels_`` 0 and 1.

        Examples
        --------
        >>> from mosaic import MOSAICOutlierDetector, datasets
        >>> data = datasets.blobs_with_gross_outliers()
        >>> pyod = MOSAICOutlierDetector().fit(data.X).to_pyod()
        >>> bool((pyod.labels_ == data.is_outlier).all())
        True
        """
        check_is_fitted(self)
        return PyODAdapter(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = True
        return tags
