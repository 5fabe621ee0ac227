"""From data to representatives and outliers, with a certificate: what all faces of the selector share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted

from mosaic._arrays import BoolArray, FloatArray, IntArray
from mosaic._frames import n_rows, take_rows
from mosaic.choosing import (
    Constraints,
    Decisions,
    Explanation,
    Geometry,
    Points,
    Selection,
    SelectionCertificate,
    Settings,
    choose,
    explain_point,
)
from mosaic.engines import is_source, open_source
from mosaic.estimators._fitted import ReadsSelection, material_in_memory
from mosaic.estimators._notebook import ShownInNotebooks
from mosaic.estimators._passes import select_by_passes
from mosaic.estimators._progress import CallbackSupport, Narrator, with_callbacks
from mosaic.estimators._proof import InMemory, same_kernel, strength
from mosaic.estimators._strategy import Strategy, rank_for, read_for
from mosaic.exceptions import InvalidInputError
from mosaic.passes import TakeRows

#: Parameters that ``rethreshold`` takes.
THRESHOLDS = (
    "n_representatives", "coverage", "min_support", "outliers", "contamination", "diversity", "objective", "min_group",
    "op_threshold",
)  # fmt: skip


class Representatives(ReadsSelection, ShownInNotebooks, CallbackSupport, ClusterMixin, BaseEstimator):
    """All of MOSAIC but what makes it a transformer; imbalanced-learn refuses samplers that transform as well."""

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
        objective: str = "similar",
        mode: str = "auto",
        op_threshold: float | None = None,
        solver: Any = "auto",
        tol: float = 1e-3,
        max_iter: int = 10_000,
        warm_start: bool = False,
        max_rank: int | None = None,
        memory_budget: Any = None,
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
        self.objective = objective
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
        X : array, CSR matrix, memory map or data frame, points × features; similarities if ``kernel="precomputed"``. Or the
            path of any file that ``mosaic.data.open_table`` reads: small ones are read into memory, large ones in passes. Or
            data that is read in passes: Zarr array, HDF5 data set, AnnData, Dask array or data frame, Ray data set
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
        settings = Settings.of(self)
        constraints = {"groups": groups, "must_include": must_include, "exclude": exclude, "candidates": candidates}
        if settings.mode == "paper" and any(value is not None for value in constraints.values()):
            raise InvalidInputError(
                "mode='paper' is Algorithm 1 as written, which knows no constraints; use mode='auto'."
            )
        with Narrator(self) as narrator:
            strategy, data = read_for(self, settings, X, sample_weight)
            if strategy == "sketch":
                selection = select_by_passes(self, settings, data, quotas, constraints, narrator)
            else:
                selection = self._select(data, strategy, settings, sample_weight, quotas, constraints, narrator)
            # No answer of an earlier fit is touched before here: whoever interrupts keeps it.
            self.selection_ = selection
            narrator.done(f"{len(selection.rows)} representatives, {selection.n_outliers} outliers")
        self._warn()
        return self

    def _select(
        self,
        X: Any,
        strategy: Strategy,
        settings: Settings,
        sample_weight: ArrayLike | None,
        quotas: Any,
        constraints: dict[str, Any],
        narrator: Narrator,
    ) -> Selection:
        """All points, at once."""

        def proof(matrix: Any, points: Points, geometry: Geometry, seed: int) -> InMemory:
            max_rank = rank_for(settings, strategy, points.n, matrix)
            return InMemory(settings, max_rank, *self._warm(points, settings, geometry.gamma, max_rank, seed))

        def checked(n: int) -> Constraints:
            return Constraints.read(n, quotas=quotas, **constraints)

        material = material_in_memory(self, X, settings, sample_weight, checked, proof, narrator)
        narrator.say("choosing")
        return choose(material, settings)

    def _warm(self, points: Points, settings: Settings, gamma: Any, max_rank: int, seed: int) -> tuple[Any, bool]:
        """The encoding of the fit before, if it was solved for the same points and kernel, and whether it is the same program."""
        before: Selection | None = self.__dict__.get("selection_")
        if not self.warm_start or before is None or not before.is_solved or before.material.row_numbers is not None:
            return None, False
        old, proof = before.material.points, before.material.proof
        same = np.array_equal(old.first, points.first) and np.array_equal(old.weights, points.weights)
        same = same and np.array_equal(old.priority, points.priority)
        if not same or same_kernel(settings, gamma) != same_kernel(before.settings, before.material.geometry.gamma):
            return None, False
        assert isinstance(proof, InMemory)
        program = ("solver", "tol", "max_iter")
        solved = strength(settings) == strength(proof.settings) and (max_rank, seed) == (
            proof.max_rank,
            before.material.seed,
        )
        solved = solved and all(getattr(settings, name) == getattr(proof.settings, name) for name in program)
        return before.encoding, solved

    @property
    def representative_indices_(self) -> IntArray:
        """Row numbers, ranked."""
        return self._found.rows

    @property
    def n_representatives_(self) -> int:
        """Their number."""
        return len(self._found.rows)

    @property
    def labels_(self) -> IntArray:
        """Which representative stands for each row; -1 for rejected outliers."""
        return self._found.answers.labels

    @property
    def representation_error_(self) -> FloatArray:
        """Share of each row that the representatives cannot express."""
        return self._found.answers.representation_error

    @property
    def outlier_threshold_(self) -> float:
        """Effective count below which rows are outliers."""
        return self._found.cut.count

    @property
    def coverage_(self) -> float:
        """Share of the rows that belong which the representatives express."""
        return self._found.coverage

    @property
    def influence_(self) -> FloatArray:
        """Norm of each row's row in the encoding; the program is solved when this is first asked for."""
        return self._found.influence

    @property
    def certificate_(self) -> SelectionCertificate:
        """What is proven: the gap of the program, and how far the choice can be from the best one of its size.

        The program is solved when this is first asked for; after a fit by passes the bound takes one more pass.
        """
        return self._found.certificate

    def rethreshold(self, **changes: Any) -> Self:
        """Choose again with other thresholds, without looking at the data again.

        Parameters
        ----------
        **changes : new values of n_representatives, coverage, min_support, outliers, contamination, min_group, diversity,
            objective, op_threshold

        Returns
        -------
        self

        Notes
        -----
        1. The parameters of the estimator change with it. The answer is that of a fresh fit with these parameters.

        Examples
        --------
        >>> from mosaic import MOSAIC, datasets
        >>> model = MOSAIC(10).fit(datasets.swiss_roll(300))
        >>> model.rethreshold(n_representatives=5, outliers="keep").representative_indices_.shape
        (5,)
        """
        check_is_fitted(self)
        unknown = [name for name in changes if name not in THRESHOLDS]
        if unknown:
            raise InvalidInputError(
                f"{unknown[0]} cannot change without a new fit; rethreshold takes {', '.join(THRESHOLDS)}."
            )
        if {"coverage", "min_support", "n_representatives"} & set(changes):
            reset = {"coverage": None, "min_support": None, "n_representatives": "auto"}
            changes = {**reset, **changes}
        before = self.selection_
        selection = choose(before.material, replace(before.settings, **changes))
        self.set_params(**changes)
        self.selection_ = replace(selection, ask_all_rows=before.ask_all_rows)
        self._warn()
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
        n = self.selection_.material.n_rows
        source = open_source(X, self.n_jobs) if is_source(X) else None
        given = n_rows(X) if source is None else source.n
        if given != n:
            raise InvalidInputError(f"X must have the {n} rows of fit, in their order; it has {given}.")
        if source is None:
            return take_rows(X, self.representative_indices_)
        numbers, back = np.unique(self.representative_indices_, return_inverse=True)
        return source.run(TakeRows(numbers))["rows"][back]  # of a table, its columns of numbers

    def get_support(self, indices: bool = False) -> BoolArray | IntArray:
        """A mask of the representatives, or their row numbers in ascending order."""
        check_is_fitted(self)
        mask = np.zeros(self.selection_.material.n_rows, dtype=bool)
        mask[self.representative_indices_] = True
        return np.flatnonzero(mask) if indices else mask

    @overload
    def explain(self, i: None = None) -> Decisions: ...

    @overload
    def explain(self, i: int) -> Explanation: ...

    def explain(self, i: int | None = None) -> Decisions | Explanation:
        """Why row i of the data was chosen, rejected or left out; without a row, what was decided about the data, and why.

        Examples
        --------
        >>> from mosaic import MOSAIC, datasets
        >>> print(MOSAIC(20).fit(datasets.blobs_with_gross_outliers().X).explain())  # doctest: +ELLIPSIS
        Columns are taken as they are.
        Bandwidth ...: so that a point in a dense place resembles 80 of 400 points, a fifth of all.
        20 representatives: as was asked for.
        Chosen so that the rows that belong are as similar as possible to the nearest representative.
        8 outliers: rows that are alone, fewer than ... look like them, are out; of clean rows that is about 1 % at most, ...
        """
        check_is_fitted(self)
        if i is None:
            return Decisions(self.selection_.decisions)
        return explain_point(self.selection_, i, getattr(self, "feature_names_in_", None))

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
