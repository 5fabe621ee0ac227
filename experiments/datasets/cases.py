"""What a method is given and what it is judged on: a training part, spoiled in a known way, and a test part."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral
from typing import Literal

import numpy as np

from experiments.datasets import synthetic
from experiments.datasets.contamination import Kind, outliers_of
from experiments.datasets.natural import SOURCES, natural_images
from experiments.datasets.real import Dataset, load
from mosaic.arrays.blocks import BoolArray, FloatArray, IntArray
from mosaic.exceptions import InvalidInputError

#: Most rows of a test part, and the share of a labelled set that it gets when the training part has no given size.
MOST_TEST, TEST_SHARE = 1000, 0.3
#: Inliers of a manifold when their number is not given.
MANIFOLD_SIZE = 1000
#: Label of outliers, which belong to no class.
NO_CLASS = -1
#: Shares of validation and test in ``split``; the rest is for training.
VALIDATION, TEST = 0.1, 0.2


@dataclass(frozen=True, eq=False)
class Case:
    """One task.

    Attributes
    ----------
    name : of the set
    X : training part, inliers and outliers mixed
    y : their classes, −1 for outliers; None without classes
    is_outlier : the truth about the rows of X
    X_test, y_test : inliers that are not in X; no rows if there are none
    rows : row in the set of each row of X, −1 where an outlier has been added
    image_shape : of one row, if rows are images
    """

    name: str
    X: FloatArray = field(repr=False)
    y: IntArray | None = field(repr=False)
    is_outlier: BoolArray = field(repr=False)
    X_test: FloatArray = field(repr=False)
    y_test: IntArray | None = field(repr=False)
    rows: IntArray = field(repr=False)
    image_shape: tuple[int, ...] | None = None


@dataclass(frozen=True, eq=False)
class Splits:
    """Row numbers for training, for choosing settings, and for the number that is reported; in order, no row twice."""

    train: IntArray
    validation: IntArray
    test: IntArray


def case(name: str, *, contamination: Kind | None = None, ratio: float = 0.0, n: int | None = None, seed: int = 0) -> Case:
    """The named set as a task: n inliers, ratio · n outliers among them, and up to 1000 other inliers for testing.

    Parameters
    ----------
    name : see ``load``. Manifolds are drawn anew for each seed
    contamination : kind of the added outliers, see ``outliers_of``; "images" are natural images, grey
        where the set is, resized to its shape
    ratio : outliers to inliers
    n : inliers of the training part. Without it 1000 of a manifold, all but the test part (30 %, at most 1000) of a
        set with classes, and all of a set without
    seed : same seed, same case. The inliers do not depend on the contamination

    Notes
    -----
    A set that marks its own outliers (ADBench) takes no others. Of it, n inliers, or all if it has fewer, come with
    as many outliers as keep the set's proportion, and there is no test part.

    Examples
    --------
    >>> task = case("digits", contamination="uniform", ratio=0.1, n=500, seed=3)
    >>> task.X.shape, int(task.is_outlier.sum()), task.X_test.shape
    ((550, 64), 50, (1000, 64))
    """
    if not synthetic.is_manifold(name):
        return make_case(load(name), contamination=contamination, ratio=ratio, n=n, seed=seed)
    n = MANIFOLD_SIZE if n is None else _size(n)
    dataset = Dataset(name, synthetic.draw(name, n + MOST_TEST, random_state=_stream(seed, 0)))
    return make_case(dataset, contamination=contamination, ratio=ratio, n=n, seed=seed)


def make_case(
    dataset: Dataset, *, contamination: Kind | None = None, ratio: float = 0.0, n: int | None = None, seed: int = 0
) -> Case:
    """As ``case``, of a set that is at hand (some classes of one, say)."""
    if not (np.isfinite(ratio) and ratio >= 0) or (contamination is None and ratio > 0):
        raise InvalidInputError(
            f"ratio must be >= 0, and 0 without contamination; got ratio={ratio} and contamination={contamination!r}."
        )
    if dataset.is_outlier is not None:
        if contamination is not None:
            raise InvalidInputError(f"{dataset.name} marks its own outliers; use it with contamination=None.")
        return _case_with_own_outliers(dataset, n, seed)
    train, test = _parts(dataset, n, _stream(seed, 1))
    X = dataset.X[train]
    if contamination is not None:
        images = _images_for(dataset) if contamination == "images" else None
        X = np.vstack([X, outliers_of(X, float(ratio), contamination, images, _stream(seed, 2))])
    return _mixed(dataset, X, train, np.arange(len(X)) >= len(train), test, seed)


def split(dataset: Dataset, seed: int) -> Splits:
    """70 % for training, 10 % for validation, 20 % for testing; each class in these proportions.

    Examples
    --------
    >>> parts = split(load("digits"), seed=0)
    >>> len(parts.train), len(parts.validation), len(parts.test)
    (1258, 180, 359)
    """
    n, rng = len(dataset.X), _stream(seed, 4)
    test = _stratified(dataset.y, np.arange(n), round(TEST * n), rng)
    rest = np.setdiff1d(np.arange(n), test)
    validation = _stratified(dataset.y, rest, round(VALIDATION * n), rng)
    return Splits(np.setdiff1d(rest, validation), validation, test)


def case_of_split(
    dataset: Dataset, splits: Splits, on: Literal["validation", "test"], *, n: int | None = None, seed: int = 0
) -> Case:
    """Select among the training rows, or n of them, be judged on one of the other two parts; no outliers."""
    if on not in ("validation", "test"):
        raise InvalidInputError(f"on must be 'validation' or 'test'; got {on!r}.")
    train, other = splits.train, splits.validation if on == "validation" else splits.test
    if n is not None and _size(n) < len(train):
        train = _stratified(dataset.y, train, n, _stream(seed, 5))
    y, y_test = (None, None) if dataset.y is None else (dataset.y[train], dataset.y[other])
    clean = np.zeros(len(train), np.bool_)
    return Case(dataset.name, dataset.X[train], y, clean, dataset.X[other], y_test, train, dataset.image_shape)


def _parts(dataset: Dataset, n: int | None, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Rows of the training part, n of them, and of the test part."""
    total = len(dataset.X)
    if n is None:
        n = total - (0 if dataset.y is None else min(MOST_TEST, round(TEST_SHARE * total)))
    if _size(n) > total:
        raise InvalidInputError(f"n must be at most the {total} rows of {dataset.name}; got {n}.")
    train = _stratified(dataset.y, np.arange(total), n, rng)
    rest = np.setdiff1d(np.arange(total), train)
    return train, _stratified(dataset.y, rest, min(MOST_TEST, len(rest)), rng)


def _case_with_own_outliers(dataset: Dataset, n: int | None, seed: int) -> Case:
    marks = np.asarray(dataset.is_outlier, np.bool_)
    inliers, outliers, rng = np.flatnonzero(~marks), np.flatnonzero(marks), _stream(seed, 1)
    n = len(inliers) if n is None else min(_size(n), len(inliers))
    kept = round(n * len(outliers) / len(inliers))
    train = np.concatenate([np.sort(rng.choice(part, size, False)) for part, size in ((inliers, n), (outliers, kept))])
    return _mixed(dataset, dataset.X[train], train, marks[train], train[:0], seed)


def _mixed(dataset: Dataset, X: FloatArray, train: IntArray, is_outlier: BoolArray, test: IntArray, seed: int) -> Case:
    """The case with the rows of X, of which the first are the training rows of the set, in random order."""
    order = _stream(seed, 3).permutation(len(X))
    rows = np.full(len(X), -1, np.intp)
    rows[: len(train)] = train
    y = y_test = None
    if dataset.y is not None:
        y = np.where(is_outlier, NO_CLASS, dataset.y[np.maximum(rows, 0)])[order]
        y_test = dataset.y[test]
    return Case(dataset.name, X[order], y, is_outlier[order], dataset.X[test], y_test, rows[order], dataset.image_shape)


def _stratified(y: IntArray | None, rows: IntArray, total: int, rng: np.random.Generator) -> IntArray:
    """Some of the rows, in order: of class c the share n_c / n of them, rounded so that they add up to the total."""
    if y is None:
        return np.sort(rng.choice(rows, total, replace=False))
    classes, counts = np.unique(y[rows], return_counts=True)
    # Largest remainders, in whole numbers: exact, so that the same sample comes out on every machine.
    quotas, remainders = np.divmod(total * counts, max(len(rows), 1))
    quotas[np.argsort(-remainders, kind="stable")[: total - quotas.sum()]] += 1
    chosen = [rng.choice(rows[y[rows] == c], quota, replace=False) for c, quota in zip(classes, quotas, strict=True)]
    return np.sort(np.concatenate([*chosen, rows[:0]]))


def _images_for(dataset: Dataset) -> FloatArray:
    if dataset.image_shape is None:
        raise InvalidInputError(f"contamination='images' needs a set of images; {dataset.name} is none. Use another kind.")
    if dataset.name in SOURCES:
        raise InvalidInputError(f"the images of {dataset.name} are the natural images themselves. Use another kind.")
    return natural_images(dataset.image_shape)


def _size(n: int) -> int:
    if not isinstance(n, Integral) or isinstance(n, bool) or n < 1:
        raise InvalidInputError(f"n must be a whole number >= 1; got {n!r}.")
    return int(n)


def _stream(seed: int, purpose: int) -> np.random.Generator:
    """Independent random numbers for each purpose, so that a change of one leaves the others as they are."""
    return np.random.default_rng([seed, purpose])
