"""From data to representatives and outliers, with a certificate: what all faces of the selector share."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Self, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted

from mosaic._arrays import BoolArray, FloatArray, IntArray, row_blocks
from mosaic._frames import n_rows, take_rows
from mosaic.counts import CountModel
from mosaic.encoding import Encoding
from mosaic.engines import is_source
from mosaic.estimators._by_passes import FitByPasses, explain_by_passes
from mosaic.estimators._certificate import SelectionCertificate
from mosaic.estimators._choice import Choice, Solved, Wants, choose
from mosaic.estimators._demands import Demands
from mosaic.estimators._explanation import Explanation, explain_point
from mosaic.estimators._nearby import Look, look_twice
from mosaic.estimators._notebook import ShownInNotebooks
from mosaic.estimators._points import Distinct, read_scaled
from mosaic.estimators._progress import CallbackSupport, Narrator, with_callbacks
from mosaic.estimators._settings import Settings, explain_selector
from mosaic.estimators._solving import build_kernel, seed_of, solve_for, strength
from mosaic.estimators._strategy import Strategy, rank_for, read_for
from mosaic.exceptions import InvalidInputError
from mosaic.factor import factorize
from mosaic.kernels import RBF, Kernel
from mosaic.lam_path import best_for_k
from mosaic.metrics import unexplained
from mosaic.outliers import outlier_probability
from mosaic.problem import DesignProblem, weighted_gram
from mosaic.program import KERNEL_SHARE
from mosaic.selection import without_rounding
from mosaic.tuning import neighbours_wanted


class Representatives(FitByPasses, ShownInNotebooks, CallbackSupport, ClusterMixin, BaseEstimator):
    """All of MOSAIC but what makes it a transformer; imbalanced-learn refuses samplers that transform as well."""

    representative_indices_: IntArray
    is_outlier_: BoolArray
    labels_: IntArray
    _certificate: SelectionCertificate | None

    def __init__(
        self,
        n_representatives: Any = "auto",
        *,
        coverage: float | None = None,
        min_support: float | None = None,
        alpha: float | None = None,
        lam: float | None = None,
        kernel: Any = "rbf",
        gamma: Any = "auto",
        scale: Any = "auto",
        degree: int = 3,
        coef0: float = 1.0,
        n_neighbors: int = 10,
        diffusion_time: int = 2,
        outliers: str = "reject",
        contamination: Any = "auto",
        min_group: float | None = None,
        diversity: Any = "auto",
        mode: str = "auto",
        op_threshold: float | None = None,
        solver: Any = "auto",
        tol: float = 1e-3,
        max_iter: int = 10_000,
        warm_start: bool = False,
        max_rank: int | None = None,
        memory_budget: float | None = None,
        strategy: str = "auto",
        n_initial: int | None = None,
        n_added: int | None = None,
        n_rounds: int | None = None,
        checkpoint: Any = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: bool | int = False,
    ):
        self.n_representatives = n_representatives
        self.coverage = coverage
        self.min_support = min_support
        self.alpha = alpha
        self.lam = lam
        self.kernel = kernel
        self.gamma = gamma
        self.scale = scale
        self.degree = degree
        self.coef0 = coef0
        self.n_neighbors = n_neighbors
        self.diffusion_time = diffusion_time
        self.outliers = outliers
        self.contamination = contamination
        self.min_group = min_group
        self.diversity = diversity
        self.mode = mode
        self.op_threshold = op_threshold
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.max_rank = max_rank
        self.memory_budget = memory_budget
        self.strategy = strategy
        self.n_initial = n_initial
        self.n_added = n_added
        self.n_rounds = n_rounds
        self.checkpoint = checkpoint
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        quotas: Any = None,
        must_include: ArrayLike | None = None,
        exclude: ArrayLike | None = None,
        candidates: ArrayLike | None = None,
    ) -> Self:
        """Find the representatives and the outliers of X.

        Parameters
        ----------
        X : array, CSR matrix, memory map or data frame, points × features; similarities if ``kernel="precomputed"``. Or data
            that is read in passes: path of a .npy, .parquet, .zarr or .h5ad file, Zarr array, HDF5 data set, AnnData, Dask array
            or data frame, Ray data set
        y : ignored
        sample_weight : how often each point counts; whole numbers are repetitions, 0 is absence
        groups : a label for every row
        quotas : "proportional" (the default, if groups are given), "equal", or a dict from label to number or share
        must_include : rows that are chosen whatever they add; they count, and they are never called outliers
        exclude : rows that are not chosen; they still have to be represented
        candidates : the only rows that may be chosen

        Returns
        -------
        self
        """
        wants = self._wants()
        if not (isinstance(self.tol, (int, float)) and np.isfinite(self.tol) and self.tol > 0):
            raise InvalidInputError(f"tol must be a finite number > 0; got {self.tol!r}.")
        constraints = {"groups": groups, "must_include": must_include, "exclude": exclude, "candidates": candidates}
        if wants.mode == "paper" and any(value is not None for value in constraints.values()):
            raise InvalidInputError(
                "mode='paper' is Algorithm 1 as written, which knows no constraints; use mode='auto'."
            )
        with Narrator(self) as narrator:
            strategy, data = read_for(self, X, sample_weight)
            if strategy == "sketch":
                self._fit_by_passes(data, wants, quotas, constraints, narrator)
            else:
                self._fit_in_memory(data, strategy, wants, sample_weight, quotas, constraints, narrator)
            narrator.done(f"{self.n_representatives_} representatives, {self._n_outliers_said()}")
        return self

    def _fit_in_memory(
        self,
        X: Any,
        strategy: Strategy,
        wants: Wants,
        sample_weight: ArrayLike | None,
        quotas: Any,
        constraints: dict[str, Any],
        narrator: Narrator,
    ) -> None:
        """All points, at once."""
        matrix, scale = read_scaled(self, X, sample_weight)
        demands = Demands.read(matrix.shape[0], quotas=quotas, **constraints)
        pairwise = self.kernel == "precomputed"
        points = Distinct.of(matrix, sample_weight, pairwise=pairwise)
        seed = seed_of(self.random_state)
        max_rank = rank_for(self, strategy, points.n, matrix)
        narrator.say("similarities")
        k = wants.number(matrix.shape[0])
        wanted = neighbours_wanted(points.n, points.n / wants.min_support if wants.min_support else k)
        kernel = build_kernel(self, matrix, points, wanted, max_rank, seed)
        warm = self._warm_encoding(points, kernel)
        program = (*strength(self), self.solver, self.tol, self.max_iter, max_rank, seed)
        # A solution of the very same program would only wander within its tolerance, and the choice with it.
        if warm is not None and program == getattr(self, "_previous_program", None):
            encoding = warm
        else:
            encoding = solve_for(self, kernel, points, max_rank, seed, narrator, warm)
        narrator.say("effective counts")
        look = look_twice(self, kernel, encoding, points, seed)
        solved, choice = self._chosen(points, encoding, look, demands, seed, wants, narrator)
        # No answer of an earlier fit is touched before here: whoever interrupts keeps it.
        self._forget_passes()
        self._absent = matrix[np.flatnonzero(points.group < 0)]
        self._previous = encoding if self.warm_start else None
        self._previous_settings = self._kernel_settings(kernel)
        self._previous_program = program
        self._max_rank, self._neighbours_wanted = max_rank, wanted
        self._keep(solved, look.model, scale, encoding)
        self._adopt(wants, choice)

    def _chosen(
        self,
        points: Distinct,
        encoding: Encoding,
        look: Look,
        demands: Demands,
        seed: int,
        wants: Wants,
        narrator: Narrator,
    ) -> tuple[Solved, Choice]:
        """All that choosing needs, and what is chosen."""
        narrator.say("choosing")
        kernel, ours = encoding.kernel, isinstance(self.gamma, str) and self.gamma == "auto" and wants.mode == "auto"
        vectors = kernel.X if ours and isinstance(kernel, RBF) else None
        solved = Solved(points, kernel, encoding.influence, look.counts, demands, seed, look.total, look.cut, vectors)
        return solved, choose(solved, wants)

    def _keep(self, solved: Solved, count_model: CountModel, scale: FloatArray | None, encoding: Encoding) -> None:
        """What solving has found out."""
        self._solved, self._count_model, self.column_scale_ = solved, count_model, scale
        self._encoding_certificate = encoding.certificate
        self.alpha_, self.lam_, self.gamma_ = encoding.alpha, encoding.lam, getattr(solved.kernel, "gamma", None)
        self.n_iter_ = max(encoding.n_iter, 1)  # to look whether the start will do is a step, too

    def _wants(self) -> Wants:
        return Wants(**{field.name: getattr(self, field.name) for field in fields(Wants)})

    def _warm_encoding(self, points: Distinct, kernel: Kernel) -> Encoding | None:
        """The encoding of the fit before, if it was for the same points and the same kernel."""
        before: Encoding | None = getattr(self, "_previous", None)
        if not self.warm_start or before is None:
            return None
        old = self._solved.points
        same = np.array_equal(old.codes, points.codes) and np.array_equal(old.weights, points.weights)
        return before if same and self._kernel_settings(kernel) == self._previous_settings else None

    def _kernel_settings(self, kernel: Kernel) -> tuple[Any, ...]:
        """All that the similarity of given points depends on."""
        gamma = getattr(kernel, "gamma", None)
        return self.kernel, gamma, self.degree, self.coef0, self.n_neighbors, self.diffusion_time

    def _adopt(self, wants: Wants, choice: Choice) -> None:
        """Turn a choice into attributes."""
        solved, points = self._solved, self._solved.points
        self._wanted, self._choice = wants, choice
        self._chosen_kernel = solved.kernel.take(choice.points)
        self._certificate = None
        absent = points.group < 0
        counts = points.spread(solved.counts, 1.0)
        counts[absent] = self._count_model.counts(self._absent) if absent.any() else 0.0
        copies = np.bincount(points.group[~absent], minlength=points.n)
        diagonal = solved.kernel.diagonal()
        left = unexplained(solved.kernel, choice.points)
        belongs = ~choice.is_outlier if wants.outliers != "keep" else np.ones(points.n, dtype=bool)
        weights = points.weights * belongs
        errors = np.divide(left, diagonal, out=np.zeros(points.n), where=diagonal > 0)

        self.representative_indices_ = choice.rows
        self.n_representatives_ = len(choice.rows)
        self.influence_ = points.spread(solved.influence / copies, 0.0)
        self.effective_count_ = counts
        self.outlier_probability_ = outlier_probability(counts, solved.count_total)
        self.outlier_threshold_ = choice.cut.count
        self.is_outlier_ = points.spread(choice.is_outlier, choice.cut.below(counts)).astype(bool)
        odd = np.flatnonzero(absent & self.is_outlier_)
        if choice.groups is not None and len(odd):
            near = choice.groups.near(self._absent[np.searchsorted(np.flatnonzero(absent), odd)])
            self.is_outlier_[odd[near]] = False
        self.labels_ = points.spread(self._labels_of_distinct(wants, choice), -1).astype(np.intp)
        self.representation_error_ = points.spread(errors, 0.0)
        if absent.any():
            self.labels_[absent] = self._nearest(self._absent, counts[absent])
            self.representation_error_[absent] = self._errors_at(self._absent)
        self.coverage_ = 1.0 - float(weights @ left) / float(weights @ diagonal)

    def _labels_of_distinct(self, wants: Wants, choice: Choice) -> IntArray:
        kernel = self._solved.kernel
        lengths = kernel.diagonal()[choice.points]
        labels = np.empty(kernel.n, np.intp)
        for rows in row_blocks(kernel.n, len(choice.points)):
            distances = lengths - 2.0 * kernel.block(rows, choice.points)
            labels[rows] = without_rounding(distances, float(lengths.max())).argmin(axis=1)
        if wants.outliers == "reject":
            labels[choice.is_outlier] = -1
        labels[choice.points] = np.arange(len(choice.points))
        return labels

    def _nearest(self, Y: Any, counts: FloatArray | None) -> IntArray:
        """Number of the representative at the smallest distance k_jj − 2 k_yj (+ k_yy), -1 for outliers."""
        kernel = self._chosen_kernel
        lengths, own = kernel.diagonal(), kernel.diagonal_at(Y)
        labels = np.empty(Y.shape[0], np.intp)
        for rows in row_blocks(Y.shape[0], len(lengths)):
            distances = lengths - 2.0 * kernel.cross(Y[rows])
            labels[rows] = without_rounding(distances, float(lengths.max())).argmin(axis=1)
            if counts is not None:
                apart = distances.min(axis=1) + own[rows] > 1e-12 * np.abs(
                    own[rows]
                )  # a representative stands for itself
                odd = np.flatnonzero(self._choice.cut.below(counts[rows]) & apart)
                if len(odd) and self._choice.groups is not None:
                    odd = odd[~self._choice.groups.near(Y[rows][odd])]
                labels[rows][odd] = -1
        return labels

    def _errors_at(self, Y: Any) -> FloatArray:
        """Unexplained share of each new point."""
        diagonal = self._chosen_kernel.diagonal_at(Y)
        left = unexplained(self._chosen_kernel, np.arange(self._chosen_kernel.n), at=Y)
        return np.asarray(np.divide(left, diagonal, out=np.zeros(len(left)), where=diagonal > 0))

    def _answers(self, Y: Any) -> dict[str, Any]:
        """What is said of points of which it is not known whether they are in the data, columns divided."""
        counts = self._count_model.counts(Y)
        flagged = (
            self._choice.cut.below(counts) if self._wanted.outliers != "keep" else np.zeros(len(counts), dtype=bool)
        )
        odd = np.flatnonzero(flagged)
        if self._choice.groups is not None and len(odd):
            flagged[odd[self._choice.groups.near(Y[odd])]] = False
        return {
            "effective_count_": counts,
            "outlier_probability_": outlier_probability(counts, self._solved.count_total),
            "is_outlier_": flagged,
            "labels_": self._nearest(Y, counts if self._rejects else None),
            "representation_error_": self._errors_at(Y),
        }

    @property
    def _rejects(self) -> bool:
        """Whether outliers have no representative."""
        return bool(self._wanted.outliers == "reject" and self._choice.cut.count > 1.0)

    @property
    def certificate_(self) -> SelectionCertificate:
        """What is proven: the gap of the program, and how far the choice can be from the best one of its size.

        The bound for k solves one more program, the first time it is asked for; after a fit by passes it makes one more.
        """
        check_is_fitted(self)
        if self._certificate is None and "_passes" in self.__dict__:
            self._certificate = self._certificate_by_passes()
        if self._certificate is None:
            kernel, weights = self._solved.kernel, self._solved.points.weights
            factor = factorize(
                kernel,
                tol=KERNEL_SHARE * self.tol,
                max_rank=self._max_rank,
                weights=weights,
                random_state=self._solved.random_state,
            )
            problem = DesignProblem(factor.F, weighted_gram(factor.F, weights), 1.0)
            ridge = float(weights @ kernel.diagonal()) / float(weights.sum())
            k = len(self._choice.points)
            bounds = best_for_k(problem, k, ridge=ridge, tol=1e-2, initial=factor.pivots).bounds(ridge)
            error = float(weights @ unexplained(kernel, self._choice.points, ridge))
            self._certificate = SelectionCertificate(
                self._encoding_certificate, k, error, bounds, explain_selector(self)
            )
        return self._certificate

    def rethreshold(self, **changes: Any) -> Self:
        """Choose again with other thresholds, without solving again.

        Parameters
        ----------
        **changes : new values of n_representatives, coverage, min_support, outliers, contamination, min_group, diversity,
            op_threshold

        Returns
        -------
        self

        Notes
        -----
        1. The parameters of the estimator change with it. The kernel and the strength, and with them effective counts and
           certificate, stay those of the fit; a fresh fit gives the same answer if it has the same kernel and strength. With
           gamma="auto" the bandwidth of a fresh fit follows the number, unless points are few; with a number for gamma, and
           ``lam=self.lam_``, it stays.

        Examples
        --------
        >>> from mosaic import MOSAIC, datasets
        >>> model = MOSAIC(10).fit(datasets.swiss_roll(300))
        >>> model.rethreshold(n_representatives=5, outliers="keep").representative_indices_.shape
        (5,)
        """
        check_is_fitted(self)
        names = [field.name for field in fields(Wants) if field.name != "mode"]
        unknown = [name for name in changes if name not in names]
        if unknown:
            raise InvalidInputError(
                f"{unknown[0]} cannot change without a new fit; rethreshold takes {', '.join(names)}."
            )
        if {"coverage", "min_support", "n_representatives"} & set(changes):
            reset = {"coverage": None, "min_support": None, "n_representatives": "auto"}
            changes = {**reset, **changes}
        if "_passes" in self.__dict__:
            self._rethreshold_by_passes(changes)
            return self
        wants = Wants(**{field.name: changes.get(field.name, getattr(self, field.name)) for field in fields(Wants)})
        choice = choose(self._solved, wants)
        self.set_params(**changes)
        self._adopt(wants, choice)
        return self

    def select(self, X: Any) -> Any:
        """The rows of X that represent it, ranked, as the kind of thing that X is: ids, index and columns are kept.

        Parameters
        ----------
        X : what ``fit`` was given, or anything else with a row for each of its points (texts, file names, images)

        Examples
        --------
        >>> from mosaic import MOSAIC, datasets
        >>> X = datasets.swiss_roll(300)
        >>> MOSAIC(10).fit(X).select(X).shape
        (10, 3)
        """
        check_is_fitted(self)
        if is_source(X):
            return self._rows_of_source(X)
        if n_rows(X) != self._n_rows:
            raise InvalidInputError(f"X must have the {self._n_rows} rows of fit, in their order; it has {n_rows(X)}.")
        return take_rows(X, self.representative_indices_)

    def get_support(self, indices: bool = False) -> BoolArray | IntArray:
        """A mask of the representatives, or their row numbers in ascending order."""
        check_is_fitted(self)
        mask = np.zeros(self._n_rows, dtype=bool)
        mask[self.representative_indices_] = True
        return np.flatnonzero(mask) if indices else mask

    @overload
    def explain(self, i: None = None) -> Settings: ...

    @overload
    def explain(self, i: int) -> Explanation: ...

    def explain(self, i: int | None = None) -> Settings | Explanation:
        """Why row i of the data was chosen, rejected or left out; without a row, what was decided about the data, and why.

        Examples
        --------
        >>> from mosaic import MOSAIC, datasets
        >>> print(MOSAIC(20).fit(datasets.blobs_with_gross_outliers().X).explain())  # doctest: +ELLIPSIS
        Columns are taken as they are.
        Bandwidth ...: so that a typical point resembles about 20 points, itself included, its share.
        Strength ..., 100 times the critical one, at which points that nobody else expresses are clearly apart.
        20 representatives: as was asked for.
        Chosen to be similar to the points that belong, in all directions.
        8 outliers: no crowd stands apart by its effective counts, so only who stands for itself alone is out.
        """
        check_is_fitted(self)
        if "_passes" in self.__dict__:
            told: Settings | Explanation = explain_by_passes(self._passes, i)
            return told
        return explain_selector(self) if i is None else explain_point(self, i)

    def fit_resample(self, X: Any, y: Any = None, **fit_params: Any) -> tuple[Any, Any]:
        """Fit, and return the representatives of X with their y, as samplers do; ``sample_indices_`` says which rows.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from mosaic import MOSAIC
        >>> X, y = load_iris(return_X_y=True)
        >>> X_few, y_few = MOSAIC(15).fit_resample(X, y)
        >>> X_few.shape, y_few.shape
        ((15, 4), (15,))
        """
        self.fit(X, y, **fit_params)
        self.sample_indices_ = self.representative_indices_
        return self.select(X), None if y is None else take_rows(y, self.sample_indices_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = True
        return tags
