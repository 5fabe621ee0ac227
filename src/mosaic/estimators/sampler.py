"""MOSAIC for labelled rows: a sampler of imbalanced-learn that chooses within each class and names labels that do not fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field, fields
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import InputTags, Tags, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from mosaic.arrays.blocks import IntArray
from mosaic.arrays.sources import Source
from mosaic.arrays.xp import on_host
from mosaic.choosing import Settings, counted
from mosaic.choosing.settings import whole_numbers
from mosaic.estimators.fit import numbers_of
from mosaic.estimators.progress import computing_in_threads
from mosaic.estimators.selector import MOSAIC, BaseSelector
from mosaic.exceptions import InvalidInputError
from mosaic.parameters import one_of
from mosaic.rows.frames import take_rows
from mosaic.text import listed


class Suspects(NamedTuple):
    """Rows whose label does not fit, the labels that they have, and those that most of their nearest rows share."""

    rows: IntArray
    labels: NDArray[Any]
    suggested: NDArray[Any]

    def __repr__(self) -> str:
        each = zip(*(values.tolist() for values in self), strict=True)
        found = [f"row {row} has {label!r} instead of {other!r}" for row, label, other in each]
        return f"<{counted(len(found), 'label')} that may be wrong{': ' if found else ''}{listed(found, 5)}>"


def find_suspects(X: Any, y: NDArray[Any]) -> Suspects:
    """Rows of which more than half of the ten nearest others share another label."""
    labels, codes = np.unique(y, return_inverse=True)
    voters = min(10, len(codes) - 1)  # as many decide how far the neighbours of a row are
    if voters < 1:
        return Suspects(np.zeros(0, np.intp), y[:0], y[:0])
    near = codes[NearestNeighbors(n_neighbors=voters).fit(X).kneighbors(return_distance=False)]
    near.sort(axis=1)
    middle = near[:, voters // 2]  # a label of more than half is in the middle of the sorted ones
    agree = (near == middle[:, None]).sum(axis=1)
    rows = np.flatnonzero((middle != codes) & (2 * agree > voters))
    return Suspects(rows, y[rows], labels[middle[rows]])


@dataclass
class _SamplerInputTags(InputTags):
    dataframe: bool = True


@dataclass
class _SamplerTags(Tags):  # with those that imbalanced-learn adds
    sampler_tags: Any = field(default_factory=lambda: SimpleNamespace(sample_indices=True))


@computing_in_threads
@dataclass(eq=False, repr=False, kw_only=True)
class MOSAICSampler(OneToOneFeatureMixin, BaseSelector):
    """MOSAIC as a sampler for imbalanced-learn pipelines: representatives of each class, without rows whose label does not fit.

    Parameters
    ----------
    n_representatives : how many rows of all classes together: a number, a share, or "auto", which finds one for each class
    sampling_strategy : "auto" divides the number in proportion to the classes, "equal" evenly; at least one row of each. A dict
        from classes to numbers decides it; of classes that it does not name all rows are kept
    coverage, kernel, gamma, scale, outliers, contamination, min_group, algorithm, memory_budget, n_jobs, random_state, \
verbose : as for ``MOSAIC``

    Attributes
    ----------
    sample_indices_ : rows that were chosen
    suspects_ : rows whose label does not fit, with the label that would: ``rows``, ``labels`` and ``suggested``. They are not
        chosen, and do not count in the choice of others
    selection_, … : as for ``MOSAIC``

    Notes
    -----
    1. A label does not fit if more than half of the ten nearest rows share another one. The rule is ours, and so is the choice
       within each class, by the rows of that class alone. Without labels, rows are chosen as by ``MOSAIC``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mosaic import MOSAICSampler
    >>> X, y = load_iris(return_X_y=True)
    >>> y[0] = 2  # a wrong label
    >>> sampler = MOSAICSampler(30)
    >>> X_few, y_few = sampler.fit_resample(X, y)
    >>> X_few.shape, sampler.suspects_.rows[0], sampler.suspects_.suggested[0]
    ((30, 4), np.int64(0), np.int64(0))
    """

    sampling_strategy: Any = "auto"

    def fit_resample(self, X: Any, y: Any = None, **fit_params: Any) -> tuple[Any, Any]:
        """Choose, and return the chosen rows of X with their labels, ranked; ``sample_indices_`` holds their numbers."""
        if y is None:
            self.fit(X, **fit_params)
        else:
            check_classification_targets(y)
            classes = np.asarray(y)
            one_column_each = classes.ndim == 2 and classes.shape[1] > 1 and bool((classes.sum(axis=1) == 1).all())
            self.fit_classes(X, classes.argmax(axis=1) if one_column_each else column_or_1d(classes), fit_params)
        self.sample_indices_ = self._found.rows
        return self.select(X), None if y is None else take_rows(y, self.sample_indices_)

    def fit_classes(self, X: Any, y: NDArray[Any], fit_params: Mapping[str, Any]) -> None:
        """Find the suspects, and choose within each class."""
        if fit_params or self.kernel == "precomputed":
            what = ", ".join(fit_params) or "a matrix of similarities"
            raise InvalidInputError(f"{what} cannot be combined with labels", "Leave y out, and give its values as `groups`.")
        self.fit(X)
        numbers = numbers_of(self, X)
        if isinstance(numbers, Source):
            raise InvalidInputError("labels need rows that fit into memory", "Raise `memory_budget`, or choose class by class.")
        rows = on_host(self.selection_.data.geometry.prepare(numbers))
        check_consistent_length(rows, y)
        self.suspects_ = find_suspects(rows, y)
        fits = np.ones(len(y), dtype=bool)
        fits[self.suspects_.rows] = False
        picks = np.concatenate(list(self._picks(rows, y, fits)))
        final = copy(self).set_params(n_representatives=len(picks), coverage=None)
        self.selection_ = final.fit(X, must_include=picks).selection_

    def _picks(self, rows: Any, y: NDArray[Any], fits: NDArray[np.bool_]) -> Iterator[IntArray]:
        numbers = self._numbers(y)
        parameters = {name: value for name, value in self.get_params(deep=False).items() if name != "sampling_strategy"}
        for label, number in numbers.items():
            here = np.flatnonzero((y == label) & fits)
            here = here if len(here) else np.flatnonzero(y == label)  # a class of suspects only keeps a row
            if isinstance(number, int) and number >= len(here):
                yield here
                continue
            single = MOSAIC(**parameters).set_params(n_representatives=number, scale=False)
            yield here[single.fit(rows[here]).representative_indices_]

    def _numbers(self, y: NDArray[Any]) -> dict[Any, Any]:
        """How many rows of each class; "auto" where the class itself says."""
        labels, counts = np.unique(y, return_counts=True)
        asked = self.sampling_strategy
        if isinstance(asked, Mapping):
            unknown = [label for label in asked if label not in labels]
            if unknown:
                fault, known = f"names {unknown[0]!r}, which is no class", listed(list(map(repr, labels.tolist())), 10)
                raise InvalidInputError(fault, f"Classes: {known}.", parameter="sampling_strategy")
            return {label: int(asked.get(label, count)) for label, count in zip(labels.tolist(), counts.tolist(), strict=True)}
        one_of("sampling_strategy", asked, ("auto", "equal"))
        total = Settings.of(self).number(len(y))
        if total is None:
            return dict.fromkeys(labels.tolist(), self.n_representatives)
        if total < len(labels):
            fault = f"must be at least {len(labels)}, one for each class"
            raise InvalidInputError(fault, parameter="n_representatives", value=self.n_representatives)
        weights = dict(zip(labels.tolist(), counts.tolist() if asked == "auto" else [1.0] * len(labels), strict=True))
        return {label: max(number, 1) for label, number in whole_numbers(weights, total).items()}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inputs = {each.name: getattr(tags.input_tags, each.name) for each in fields(tags.input_tags)}
        tags.input_tags = _SamplerInputTags(**inputs)
        return _SamplerTags(**{each.name: getattr(tags, each.name) for each in fields(tags)})
