"""MOSAIC and its sampler: the faces that users meet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mosaic._arrays import FloatArray, IntArray, refuse_missing
from mosaic.engines import is_source, open_source
from mosaic.estimators._reading import read_rows
from mosaic.estimators._representatives import Representatives
from mosaic.exceptions import InvalidInputError
from mosaic.passes import PerRow, Small


@dataclass(frozen=True)
class Question:
    """One of a model's methods for points, as a task for rows."""

    model: Any
    name: str

    def __call__(self, rows: Any, start: int) -> Small:
        """The answers for the rows of a block."""
        refuse_missing(rows, None, first_row=start)
        prepare = self.model.selection_.material.geometry.prepare
        return {"answer": getattr(self.model, self.name)(prepare(rows))}


class MOSAIC(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Representatives):
    """Representatives that stand for the data, free of outliers, with a certificate of how good they are.

    One similarity between rows decides on everything. Rows that few others look like, by the counts of small convex programs
    on random parts of the data, are outliers. Of the others, k are chosen so that everybody is as similar as possible to the
    nearest of them. Asked for its certificate, it solves the program of all rows and says how far the choice can be from the
    best.

    Parameters
    ----------
    n_representatives : int, float or "auto", default "auto"
        How many: a number, a share of the points, or the knee of the coverage curve.
    coverage : float, optional
        Instead: as many as explain this share of the points that belong.
    min_support : float, optional
        Instead: as many as can each be the nearest one for at least this number of points.
    alpha, lam : float, optional
        Strength of the program, as a multiple of the critical one or itself. By default alpha = 100, in paper mode 10.
    kernel : "rbf", "laplacian", "polynomial", "linear", "cosine", "diffusion", "precomputed" or function of two sets of points
    gamma : "auto", "scale", "median", EffectiveCount or float, default "auto"
        Bandwidth. "auto": a point in a dense place, denser than three quarters of all are, resembles a fifth of all. It does not
        depend on the number of representatives, so that numbers of different fits can be compared.
    scale : "auto", True or False, default "auto"
        Whether columns are divided by their spread (the interquartile range; of sparse data the deviation). "auto" does so if
        otherwise few columns would be all that distances see, as where units differ, and kernel and bandwidth are left to us.
        Word counts and embeddings are recognised then, too, and rows divided by their length; ``explain()`` says so.
    degree, coef0 : of the polynomial kernel
    n_neighbors, diffusion_time : of the diffusion kernel
    outliers : "reject", "keep" or "report", default "reject"
        Never choose them, do not look for them, or mark them and choose as if they were not marked.
    contamination : "auto" or float, default "auto"
        Share of outliers, if it is known; otherwise the distribution of the effective counts tells (``mosaic.outliers.cut``): of
        clean rows about 1 % at most are rejected, more where tails are heavy; a rejection of more than 5 % is warned of.
    min_group : float, optional
        Outliers that are one another's nearest neighbours, at least so many, are a rare kind and no outliers.
    diversity : "auto" or float, default "auto"
        Smallest shared information distance 1 − 2k_ij/(k_ii + k_jj) between two representatives; "auto" forbids copies only,
        since near neighbours add little. In paper mode the share of distances that pruning keeps, 0.95.
    objective : "similar" or "explained", default "similar"
        What picks are best for. "similar": every row that belongs is as similar as possible to the nearest of them. "explained":
        all of them together leave as little as possible unexplained, by least squares in which coefficients have a price, which
        is what ``certificate_`` bounds; such picks are a little nearer to what is proven best, and less like single rows.
    mode : "auto" or "paper", default "auto"
        "paper" is Algorithm 1 as written: non-zero rows by influence, pruning by distance, outliers by their probability.
    op_threshold : float, optional
        In paper mode, rows with a higher outlier probability are rejected; by default those with an effective count below 2.
    solver : "auto", "interior-point", "admm", "fista", "admm-paper" or "reference"
    tol : float, default 0.001
        Relative gap to certify.
    max_iter : int
        Steps of first-order solvers.
    warm_start : bool, default False
        Start the program from the solution of the fit before, if that was for the same points and kernel.
    max_rank : int, optional
        Columns of the kernel's factor. By default as many as points, up to 1000 of them, and at most 500 for more. A
        higher rank makes a finer kernel and a tighter certificate, and costs its cube.
    memory_budget : float or str, optional
        Bytes that a fit may use, as a number or as "1GiB", "500MB"; by default 2 GiB. The rank is limited accordingly; what
        cannot fit is refused with the numbers.
    strategy : "auto", "exact", "low-rank" or "sketch", default "auto"
        All points at full rank, all points at a lower one, or few candidates for all points by passes over the rows (the paper's
        Algorithm 3), which is for data that is not in memory. "auto" decides by size, memory and what X is; ``docs/scale.md``.
    n_initial, n_added, n_rounds : int, optional
        Of passes: candidates at first (the paper's r; by default 500, fewer beyond four million rows), candidates that a round
        adds (r̂; a tenth of them), and rounds (I; by default up to three, while they promise to lower the gap).
    checkpoint : path, optional
        Of passes: a file that keeps what is done. After an interruption the same fit goes on from there, to the identical answer.
    n_jobs : int, optional
        Of passes on one machine: threads, -1 for all cores.
    random_state : int, generator or None, default 0
        Same seed, same answer, in whatever order the rows come.
    verbose : bool, default False
        Tell on stderr how far the fit is.

    Attributes
    ----------
    selection_ : all that was found and decided, a ``mosaic.Selection``; the other attributes read it
    representative_indices_ : row numbers, ranked: the first m of them are a good choice of m
    n_representatives_ : their number
    effective_count_ : number of rows that look like each row, among 128 drawn at random, the mean over four draws; 1 is alone
    outlier_probability_ : the paper's OP, (n − count) / (n − 1), n the rows that a row was compared with
    is_outlier_ : mask
    outlier_threshold_ : effective count below which rows are outliers
    labels_ : which representative stands for each row, its place in ``representative_indices_``; -1 for rejected outliers
    representation_error_ : share of each row that the representatives cannot express
    coverage_ : share of the rows that belong which the representatives express
    certificate_ : what is proven, as numbers and as a sentence
    influence_ : norm of each row's row in the encoding
    n_iter_, alpha_, lam_ : steps of the solver, strength of the program
    gamma_ : bandwidth
    column_scale_ : what columns were divided by, None if they were taken as they are

    Notes
    -----
    1. The paper leaves bandwidth, strength and thresholds open. The defaults are ours; ``docs/constants.md`` gives reasons.
    2. Exactly k: the paper ranks by influence. The most influential rows at a large strength are isolated points, so the
       ranking here is that of a greedy cover of the rows that belong, with exchanges (see ``mosaic.choosing.cover``).
    3. A number or share that is said has a set of its own: the picks of the cover are exchanged while that makes the rows
       that belong more similar to their nearest pick (or better explained, see ``objective``), then ranked by what they add.
       So the set for m need not be part of the set for k > m. Where the number is read off the curve ("auto", coverage,
       min_support), or diversity is given, nothing is exchanged; ``mosaic.path`` has nested sets.
    4. Equal rows are one point and never chosen twice. Of more than 16 384 distinct rows a random sample decides, which
       depends on the rows themselves and on no seed; 10 000 of it are to be covered.
    5. The program of all rows is solved once, when ``certificate_``, ``influence_``, ``alpha_``, ``lam_`` or ``n_iter_`` is first
       asked for, and in paper mode, which chooses by it. A fit by passes solves it in ``fit``.
    6. ``labels_``, ``is_outlier_``, ``effective_count_``, ``outlier_probability_`` and ``representation_error_`` of data that is
       sampled or read in passes are found when the first of them is asked for.

    Examples
    --------
    >>> from mosaic import MOSAIC, datasets
    >>> data = datasets.blobs_with_gross_outliers()
    >>> model = MOSAIC(n_representatives=20).fit(data.X)
    >>> len(model.representative_indices_), int(data.is_outlier[model.representative_indices_].sum())
    (20, 0)
    >>> bool((model.is_outlier_ == data.is_outlier).all())
    True
    >>> explained = MOSAIC(n_representatives=20, objective="explained").fit(data.X)
    >>> explained.certificate_.error < model.certificate_.error
    True
    >>> print(model.explain(int(model.representative_indices_[0])))  # doctest: +ELLIPSIS
    Row ...: chosen as number 1 of 20: it stands for ... rows; what it adds to the mean similarity is ...
    """

    def predict(self, X: Any) -> IntArray:
        """Which representative stands for each point: its place in ``representative_indices_``, -1 for outliers.

        The answer for a point depends on the point alone, not on what else is in X. Files and collections that ``fit`` reads in
        passes are read so here, too.
        """
        return np.asarray(self._ask(X, "_labels_at"))

    def transform(self, X: Any) -> FloatArray:
        """Similarities to the representatives, points × representatives, in the order of their rank."""
        return np.asarray(self._ask(X, "_similarities_at"))

    def score_samples(self, X: Any) -> FloatArray:
        """Log of the effective count of each point: how many points of the data it would stand for. Low is odd."""
        return np.asarray(self._ask(X, "_log_counts_at"))

    def score(self, X: Any, y: Any = None) -> float:
        """Share of X that the representatives explain, between 0 and 1; for choosing settings on held-out data."""
        explained, total = self._ask(X, "_explained_at").sum(axis=0)
        return float(explained / total)

    def _ask(self, X: Any, question: str) -> Any:
        """An answer for each point, from a method for points whose columns are divided."""
        check_is_fitted(self)
        if not is_source(X):
            prepare = self.selection_.material.geometry.prepare
            return getattr(self, question)(prepare(read_rows(self, X, reset=False)))
        source = open_source(X, self.n_jobs)
        if source.n_features != self.n_features_in_:
            raise InvalidInputError(
                f"X has {source.n_features} columns of numbers, the data of fit had {self.n_features_in_}. Pass the same columns."
            )
        names = getattr(self, "feature_names_in_", None)
        if names is not None and source.names is not None and list(names) != list(source.names):
            raise InvalidInputError(
                f"X has the columns {', '.join(map(repr, source.names))}; those of fit were {', '.join(map(repr, names))}. Write "
                "them in this order, or pass a data frame, whose columns are found by their names."
            )
        return source.run(PerRow(Question(self, question)))["answer"]

    def _labels_at(self, Y: Any) -> IntArray:
        return self.selection_.labels_at(Y)

    def _similarities_at(self, Y: Any) -> FloatArray:
        return self.selection_.chosen_kernel.cross(Y)

    def _log_counts_at(self, Y: Any) -> FloatArray:
        return np.log(self.selection_.material.counts_at(Y))

    def _explained_at(self, Y: Any) -> FloatArray:
        diagonal = self.selection_.chosen_kernel.diagonal_at(Y)
        return np.column_stack([(1.0 - self.selection_.errors_at(Y)) * diagonal, diagonal])

    @property
    def _n_features_out(self) -> int:
        return self.n_representatives_


class MOSAICSampler(Representatives):
    """MOSAIC as a sampler for imbalanced-learn pipelines, which take no sampler that can transform as well.

    Parameters and attributes are those of ``MOSAIC``; the methods are ``fit``, ``fit_resample``, ``select``, ``get_support``,
    ``explain`` and ``rethreshold``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mosaic import MOSAICSampler
    >>> X, y = load_iris(return_X_y=True)
    >>> MOSAICSampler(30).fit_resample(X, y)[0].shape
    (30, 4)
    """
