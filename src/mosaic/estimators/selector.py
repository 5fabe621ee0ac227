"""MOSAIC: from data to representatives and outliers, with a certificate."""

from __future__ import annotations

from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted

from mosaic.arrays.blocks import NO_ROWS, FloatArray, IntArray
from mosaic.arrays.xp import to_device_of
from mosaic.choosing import CoverCertificate, Settings, certificate_for_all, certificate_of, choose
from mosaic.choosing.answers import counts_at, errors_of_belonging_at, labels_at, similarities_at
from mosaic.door import as_indices
from mosaic.estimators.fit import fit_data, take
from mosaic.estimators.fitted import FittedAttributes, ask, found, known, with_cells
from mosaic.estimators.progress import computing_in_threads, reporting, telling
from mosaic.exceptions import InvalidInputError
from mosaic.parameters import Named
from mosaic.program.encoding import Certificate
from mosaic.rows.frames import with_columns
from mosaic.rows.names import as_rows
from mosaic.rows.rows import chosen_rows

#: Parameters that ``rethreshold`` takes: those that say how many, and others.
NUMBERS = {"n_representatives": "auto", "coverage": None}
THRESHOLDS = (*NUMBERS, "outliers", "contamination", "min_group")
THRESHOLDS += ("algorithm__diversity", "algorithm__op_threshold")


@dataclass(eq=False, repr=False)
class SelectorParameters:
    n_representatives: Any = "auto"
    _: KW_ONLY
    coverage: float | None = None
    kernel: Any = "rbf"
    gamma: Any = "auto"
    scale: Any = "auto"
    outliers: str = "reject"
    contamination: Any = "auto"
    min_group: float | None = None
    algorithm: Any = None
    memory_budget: Any = None
    n_jobs: int | None = None
    random_state: Any = 0
    verbose: bool | int = False


@computing_in_threads
class BaseSelector(SelectorParameters, Named, FittedAttributes, ClusterMixin, BaseEstimator):
    """All of MOSAIC except the transformer methods: imbalanced-learn refuses samplers that are also transformers."""

    @reporting
    def fit(
        self,
        X: object,
        y: object = None,
        *,
        sample_weight: ArrayLike | str | None = None,
        groups: ArrayLike | str | None = None,
        quotas: object = None,
        must_include: ArrayLike | None = None,
        exclude: ArrayLike | None = None,
        candidates: ArrayLike | None = None,
        start: object = None,
        marks: object = None,
    ) -> Self:
        """Find the representatives and the outliers of X, and return the estimator.

        Parameters
        ----------
        X : array, CSR matrix, memory map or data frame, points × features; pairs if ``kernel="precomputed"`` or
            ``"distances"``. Or the path of any file that ``mosaic.read`` reads. Or data that stays where it is: Zarr array, HDF5
            data set, AnnData, Dask array, data frame of Dask or Spark, Ray data set, dataset of pyarrow. What does not fit into
            memory is read once, from first to last row
        y : ignored
        sample_weight : how often each point counts; whole numbers mean repetitions, 0 means absent. Or the name of a column
        groups : a label for every row, or the name of a column of labels, or a list of such names: then every combination that
            occurs is a group, called "Rome, plus". Rows without a label are the group "missing"
        quotas : "proportional" (the default, if groups are given), "equal", a number for every group, or a dict from label to
            number or share
        must_include : rows that are chosen in any case; they count towards the number, and are never outliers
        exclude : rows that are not chosen, but are still to be represented
        candidates : the only rows that may be chosen
        start : a fitted MOSAIC, or the path of a saved one (``"old.mosaic"``), whose picks stay unless others are clearly better;
            or the rows of earlier picks. X holds the rows of the earlier fit and new ones; ``explain()`` says what changed
        marks : the marks.csv that a reader of a report saved, or the same as a data frame. Rows that are marked as fine are no
            outliers; ``explain()`` says how many of the outliers are proven to be wrong

        Notes
        -----
        1. Rows are given by number, or by name where they have names: a whole number is always a row number, text is always a
           name. Names come from the index of a data frame or from a column of ids; ``row_names_`` has them.
        2. Columns of groups and weights that are given by name are not compared. To compare rows by them too, give their values.

        Examples
        --------
        >>> import polars as pl
        >>> from mosaic import MOSAIC, datasets
        >>> x, y = datasets.blobs_with_gross_outliers().X.T
        >>> frame = pl.DataFrame({"id": [f"C{i}" for i in range(len(x))], "x": x, "y": y, "shop": ["a", "b"] * (len(x) // 2)})
        >>> model = MOSAIC(10).fit(frame, groups="shop", quotas="equal", must_include=["C17"], exclude=["C3"])
        >>> model.select(frame)["id"][0], model.explain("C17").status
        ('C17', 'representative')
        """
        settings = Settings.of(self)
        named = {
            "must_include": must_include,
            "exclude": exclude,
            "candidates": candidates,
            "start": start,
        }
        constraints = [groups, *named.values()]
        if settings.mode == "paper" and any(each is not None for each in constraints):
            fault = "`algorithm='paper'` is Algorithm 1 as written, which knows no constraints"
            raise InvalidInputError(fault, "Leave `algorithm` at None.")
        with telling(self) as say:
            taken = take(self, X, settings, groups=groups, sample_weight=sample_weight)
            data = fit_data(self, taken, say, quotas=quotas, marks=marks, **named)
            say("choosing")
            self.selection_ = selection = choose(data, taken.settings)
            if taken.plan.passes:  # cells that reasons quote
                outliers = np.flatnonzero(selection.outliers_in_memory)
                quoted = np.append(selection.rows, selection.data.rows_in_data(outliers))
                self.encoder_ = with_cells(self.encoder_, taken.rows, quoted)
            answer = f"{len(selection.rows)} representatives, {selection.n_outliers} outliers"
            say("done", answer, 1.0)
        self._warn()
        return self

    representative_indices_: IntArray = found("rows", per_row=True)
    labels_: IntArray = found("labels_of_rows", per_row=True)
    representation_error_: FloatArray = found("errors_of_rows", per_row=True)
    outlier_threshold_: float = known("cut.count")
    coverage_: float = found("coverage")
    stands_for_: FloatArray = found("stands_for", per_row=True)
    influence_: FloatArray = found("influence", per_row=True)
    alpha_: float = found("program.alpha")
    lam_: float = found("program.lam")
    certificate_: CoverCertificate | Certificate = found("certificate")

    @property
    def n_iter_(self) -> int:
        return max(self._found.program.n_iter, 1)  # checking the start counts as a step

    @property
    def n_representatives_(self) -> int:
        return len(self._found.rows)

    def certify(
        self, picks: ArrayLike | None = None, *, all_rows: bool = False
    ) -> CoverCertificate:
        """How good anybody's choice of rows is, beside the best of its size and beside random ones.

        Parameters
        ----------
        picks : row numbers or names of rows of the data of ``fit``, or a mask; by default those that were chosen
        all_rows : whether to prove it for all rows where a sample was compared, with 95 % confidence. A few passes over the rows
            compare each with 16 384 random ones, which takes about a minute for each million

        Notes
        -----
        1. Rows that obey the constraints of the fit are compared with others that do, otherwise with all that belong; with
           ``all_rows`` always with all that belong.

        Examples
        --------
        >>> from mosaic import MOSAIC, datasets
        >>> model = MOSAIC(3).fit(datasets.swiss_roll(300))
        >>> print(model.certify([0, 1, 2]))  # doctest: +ELLIPSIS
        At least ... % below the best 3: exchange row ... for row ... first. ...
        """
        check_is_fitted(self)
        selection = self.selection_
        if selection.settings.mode == "paper":
            remedy = "Leave `algorithm` at None, or read `certificate_`."
            raise InvalidInputError(
                "certify is not for the paper's algorithm, whose picks cover nothing", remedy
            )
        rows = selection.rows
        if picks is not None:
            rows = as_indices(as_rows(picks, self.row_names_, "picks"), selection.n_rows, "picks")
        is_own = set(rows.tolist()) == set(selection.rows.tolist())
        certificate = selection.certificate if is_own else certificate_of(selection, rows)
        assert isinstance(certificate, CoverCertificate)
        if all_rows and not certificate.is_about_all:
            return certificate_for_all(selection, rows, certificate)
        return certificate

    def rethreshold(self, **changes: object) -> Self:
        """A new estimator that chooses with other thresholds, without reading the data again; the answer is that of a fresh fit.

        Parameters
        ----------
        **changes : new values of n_representatives, coverage, outliers, contamination, min_group;
            of the paper's algorithm, algorithm__diversity and algorithm__op_threshold

        Examples
        --------
        >>> from mosaic import MOSAIC, datasets
        >>> model = MOSAIC(10).fit(datasets.swiss_roll(300))
        >>> few = model.rethreshold(n_representatives=5, outliers="keep")
        >>> len(few.representative_indices_), len(model.representative_indices_)
        (5, 10)
        """
        check_is_fitted(self)
        for name in changes:
            if name not in THRESHOLDS:
                remedy = f"rethreshold takes {', '.join(THRESHOLDS)}."
                raise InvalidInputError("cannot change without a new fit", remedy, parameter=name)
        if NUMBERS.keys() & changes.keys():
            changes = {**NUMBERS, **changes}
        other = copy(self)
        other.algorithm = copy(self.algorithm)
        other.set_params(**changes)
        last = self.selection_
        new = Settings.of(other)
        names = [name.removeprefix("algorithm__") for name in THRESHOLDS]
        changed = replace(last.settings, **{name: getattr(new, name) for name in names})
        other.selection_ = choose(last.data.sampled or last.data, changed)
        other._warn()
        return other

    def select(self, X: object, *, with_reasons: bool = False) -> Any:
        """The rows of X that represent it, ranked, in the type of X: ids, index and columns are kept.

        X is the data of ``fit``, or anything else with one item for each of its rows (texts, file names, images). Of a file or a
        table on a cluster, the answer is a ``pyarrow.Table`` of its cells, or an array.
        ``with_reasons``: a data frame, or ``obs`` of AnnData, gets the columns mosaic_rank, mosaic_stands_for and mosaic_reason.

        Examples
        --------
        >>> from mosaic import MOSAIC, datasets
        >>> X = datasets.swiss_roll(300)
        >>> MOSAIC(10).fit(X).select(X).shape
        (10, 3)
        """
        check_is_fitted(self)
        chosen = chosen_rows(X, self.selection_.rows, self.selection_.n_rows)
        if not with_reasons:
            return chosen
        columns = {
            f"mosaic_{name}": [getattr(pick, name) for pick in self.facts_.picks]
            for name in ("rank", "stands_for", "reason")
        }
        return with_columns(chosen, columns)


@computing_in_threads
class MOSAIC(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseSelector):
    """Representatives that stand for the data, free of outliers, with a certificate of how good they are.

    One similarity between rows decides everything. Rows that few others look like, by the counts of small convex programs
    on random parts of the data, are outliers. Of the others, k are chosen so that every row is as similar as possible to the
    nearest of them. The first access to ``certificate_`` proves how far the choice can be from the best.

    Parameters
    ----------
    n_representatives : how many: a number, a share of the points, or "auto": one for each clear cluster, else √(n/2), at most
        100; of few distinct rows all
    coverage : instead of a number: as many as needed for this coverage, between 0 and 1 (``coverage_``)
    kernel : a name (``mosaic.kernels.KERNELS``), ``Polynomial(…)``, ``Diffusion(…)``, or a function of two sets of points.
        "precomputed" or "distances" if X is the matrix of similarities or distances, "cosine" if only directions count,
        "tanimoto" for sets of bits or counts, "haversine" for latitude and longitude
    gamma : bandwidth: "auto", "scale", "median", EffectiveCount or a number. "auto": a point in a denser place than three
        quarters of all points resembles a fifth of them, whatever the number of representatives, so that fits can be compared
    scale : True, False or "auto": whether columns are divided by their spread. "auto" does so if kernel and bandwidth are left to
        the library and a few columns would dominate all distances; rows of word counts and embeddings it divides by their length
    outliers : "reject", "keep" or "report": never choose them, do not look for them, or mark them and choose as if not marked
    contamination : share of outliers, if known; "auto": low effective counts and far neighbours decide, and of clean rows about
        1 % at most are rejected. Rejecting more than 5 % gives a warning, and so does a group of low counts that is kept:
        a dozen or more with a middle of their own, of no higher dimension than the rest
    min_group : rows with low counts are kept if at least this many are one another's nearest neighbours
    algorithm : None, "paper", or ``Paper(alpha=…)`` with settings: the paper's Algorithm 1 as written
    memory_budget : bytes that a fit may use, as a number or as "2G", "500MB"; by default a quarter of the memory that is free. A
        fit that needs more raises an error with the numbers
    n_jobs : threads, -1 for all cores, by default as many as the linear algebra library would use; the answer is the same
    random_state : a number, generator or None. Equal seeds give equal answers, whatever the order of the rows
    verbose : report the progress of the fit on stderr

    Attributes
    ----------
    selection_ : all findings and decisions, a ``mosaic.Selection``; the other attributes read it
    representative_indices_ : row numbers, ranked: the first m of them are a good choice of m
    n_representatives_ : number of representatives
    row_names_ : names of the rows, None where they have none
    effective_count_ : number of rows that look like each row, among 128 drawn at random, the mean over four draws; 1 if alone
    outlier_probability_ : the paper's OP, (n − count) / (n − 1), with n the number of rows; with ``algorithm="paper"`` only
    is_outlier_ : mask of the rows that are outliers
    outlier_threshold_ : effective count below which rows are outliers
    labels_ : representative of each row, as its place in ``representative_indices_``; -1 for rejected outliers
    stands_for_ : number of rows that each representative stands for, itself included; of a sample, scaled up
    representation_error_ : distance of each row to its representative, in units of the mean distance to the best single row
    coverage_ : 1 − mean distance of the rows that belong to their representative / their mean distance to the best single row;
        0 is no better than one row, 1 is every row. It is 1 − the mean of ``representation_error_`` over these rows
    certificate_ : what is proven, as numbers and as a sentence
    influence_ : norm of each row's row in the encoding; with ``algorithm="paper"`` only, as are
    n_iter_, alpha_, lam_ : steps of the solver, strength of the program
    gamma_, column_scale_ : bandwidth, and divisors of the columns, None if columns were taken as they are

    Notes
    -----
    1. The paper leaves bandwidth, strength and thresholds open. The defaults are ours; ``docs/constants.md`` gives reasons.
    2. The paper ranks by influence. At a large strength, the most influential rows are isolated points, so the ranking here
       is that of a greedy cover of the rows that belong, with exchanges. The set for m need not be part of that for k > m;
       ``mosaic.path`` has nested sets.
    3. Equal rows are one point and never chosen twice. Of more than 16 384 distinct rows, or 16 for each representative, a random
       sample decides, which depends on the rows and not on a seed, their order, or where they are. Picks are improved on up to
       131 072 rows, unless ``coverage`` says how many; a model that was saved or copied has lost these rows for ``rethreshold``.
    4. What is not needed to choose is computed on first access: ``certificate_``, and, of sampled rows, each by a pass over all
       of them, ``labels_`` and others with an entry for every row.

    Examples
    --------
    >>> from mosaic import MOSAIC, datasets
    >>> data = datasets.blobs_with_gross_outliers()
    >>> model = MOSAIC(n_representatives=20).fit(data.X)
    >>> len(model.representative_indices_), int(data.is_outlier[model.representative_indices_].sum())
    (20, 0)
    >>> bool((model.is_outlier_ == data.is_outlier).all())
    True
    >>> print(model.explain(int(model.representative_indices_[0])))  # doctest: +ELLIPSIS
    Row ...: chosen as number 1 of 20: it stands for ... rows; most similar: row ...
    """

    def predict(self, X: object) -> IntArray:
        """The representative of each point, as its place in ``representative_indices_``; -1 for outliers.

        The answer for a point depends on the point alone, not on the other rows of X. Files are read in passes as by ``fit``.
        Of a Dask array the answer is one, as of ``transform`` and ``score_samples``: its chunks are computed where they are.
        """
        check_is_fitted(self)
        return to_device_of(X, ask(self, X, labels_at, NO_ROWS))

    def transform(self, X: object) -> FloatArray:
        """Similarities to the representatives, points × representatives, in the order of their rank."""
        check_is_fitted(self)
        return to_device_of(
            X, ask(self, X, similarities_at, np.zeros((0, self.n_representatives_)))
        )

    def score_samples(self, X: object) -> FloatArray:
        """Log of the effective count of each point: how many points of the data look like it. Low values are unusual."""
        check_is_fitted(self)
        return to_device_of(X, np.log(ask(self, X, counts_at, np.zeros(0))))

    def score(self, X: object, y: object = None) -> float:
        """The coverage of the rows of X that belong, by the scale of the data of ``fit``; for choosing settings on new data.

        Without a scale, where all rows of ``fit`` that belong are equal, it is −∞ as soon as another row is among those of X.
        """
        check_is_fitted(self)
        errors = ask(self, X, errors_of_belonging_at)
        if np.isnan(errors).all():
            raise InvalidInputError(
                "has no row that belongs, so there is nothing to cover",
                "Pass other rows.",
                parameter="X",
            )
        return 1.0 - float(np.nanmean(errors))

    @property
    def _n_features_out(self) -> int:
        return self.n_representatives_
