"""MOSAIC for labelled rows: a sampler of imbalanced-learn that chooses within each class and names labels that do not fit."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from numbers import Real
from types import SimpleNamespace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from sklearn.base import OneToOneFeatureMixin
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import InputTags, Tags, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from mosaic.arrays.blocks import NO_ROWS, IntArray
from mosaic.arrays.codes import equal_rows
from mosaic.arrays.sources import Source
from mosaic.arrays.xp import on_host, rows_of
from mosaic.choosing import Settings, counted
from mosaic.choosing.budget import budget_of, may_load
from mosaic.choosing.settings import whole_numbers
from mosaic.estimators.fit import numbers_of
from mosaic.estimators.progress import computing_in_threads, reporting, telling
from mosaic.estimators.selector import MOSAIC, BaseSelector
from mosaic.exceptions import InvalidInputError, warn
from mosaic.parameters import CHOICES, PAIRWISE, as_bytes, fields_of, is_whole, one_of, real_number
from mosaic.rows import Rows
from mosaic.rows.frames import take_rows
from mosaic.rows.rows import chosen_rows
from mosaic.text import group_label, listed

#: Neighbours of a row that judge its label.
VOTERS = 10
#: Share of the rows of a class above which suspects are worth a warning.
MANY_SUSPECTS = 0.05
#: Words of ``sampling_strategy`` that divide ``n_representatives``, and those of imbalanced-learn.
DIVISIONS = ("proportional", "equal")
REDUCTIONS = ("majority", "not minority", "not majority", "all", "auto")

#: A number for each class.
Numbers = dict[Hashable, int]


class Suspects(NamedTuple):
    """Rows whose label does not fit, the labels that they have, those that most of their nearest rows share, and the classes that
    were not judged.
    """

    rows: IntArray
    labels: NDArray[Any]
    suggested: NDArray[Any]
    not_judged: NDArray[Any]

    def __repr__(self) -> str:
        each = zip(self.rows.tolist(), self.labels.tolist(), self.suggested.tolist(), strict=True)
        found = [f"row {row} has {label!r} instead of {other!r}" for row, label, other in each]
        return f"<{counted(len(found), 'label')} that may be wrong{': ' if found else ''}{listed(found, 5)}>"


def find_suspects(X: Any, y: NDArray[Any]) -> Suspects:
    """Rows that are outvoted, more than half of their ten nearest share another label, and whose own label is rarer among these
    than in the data. Classes that are outvoted in most of their rows are not judged.
    """
    labels, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    voters = min(VOTERS, len(y) - 1)
    if voters < 1 or len(labels) < 2:
        return Suspects(NO_ROWS, y[:0], y[:0], y[:0])
    near = codes[NearestNeighbors(n_neighbors=voters).fit(X).kneighbors(return_distance=False)]
    near.sort(axis=1)
    middle = near[:, voters // 2]  # a label of more than half is in the middle of the sorted ones
    agree = (near == middle[:, None]).sum(axis=1)
    outvoted = (middle != codes) & (2 * agree > voters)
    judged = 2 * np.bincount(codes[outvoted], minlength=len(labels)) <= counts
    own = (near == codes[:, None]).sum(axis=1)
    is_rare_here = own * len(y) < counts[codes] * voters
    rows = np.flatnonzero(outvoted & is_rare_here & judged[codes])
    return Suspects(rows, y[rows], labels[middle[rows]], labels[~judged])


def divided(k: int, weights: Mapping[Hashable, float], room: Numbers) -> Numbers:
    """Divide k in proportion to the weights, by largest remainders: at most the room of each class, at least one if k allows."""
    shares = np.array(list(weights.values()), float)
    most = np.array([room[label] for label in weights], float)
    least = float(k >= len(weights))
    k = min(k, int(most.sum()))

    def at(scale: float) -> Any:
        return np.clip(scale * shares, least, most)

    scale = brentq(lambda scale: at(scale).sum() - k, 0.0, (most / shares).max())
    return whole_numbers(dict(zip(weights, at(scale).tolist(), strict=True)), k)


def reduced(word: str, counts: Numbers) -> Numbers:
    """The words of imbalanced-learn: as many rows as the rarest class has, of those classes that the word names."""
    rarest = min(counts.values())
    largest = max(counts, key=counts.__getitem__)
    stays: set[Hashable] = set()
    if word == "not majority":
        stays = {largest}
    elif word == "majority":
        stays = set(counts) - {largest}
    return {label: count if label in stays else rarest for label, count in counts.items()}


def with_ratio(ratio: float, counts: Numbers) -> Numbers:
    """So many rows of the larger of two classes that the rarer one has ``ratio`` times as many."""
    meaning = "the rows of the rarer class for each of the other"
    real_number("sampling_strategy", ratio, above=0, at_most=1, meaning=meaning)
    if len(counts) != 2:
        fault = f"is a ratio, which is for two classes; there are {len(counts)}"
        remedy = "Give a dict from classes to numbers."
        raise InvalidInputError(fault, remedy, parameter="sampling_strategy", value=ratio)
    rarer = min(counts, key=counts.__getitem__)
    number = int(counts[rarer] / ratio)
    return checked({label: number for label in counts if label != rarer}, counts)


def checked(given: object, counts: Numbers) -> Numbers:
    """Numbers that were given, with all rows of the classes that they do not name."""
    if not isinstance(given, Mapping):
        fault = "must be a dict from classes to numbers, or a function of y that returns one"
        raise InvalidInputError(fault, parameter="sampling_strategy", value=given)
    for label, number in given.items():
        if label not in counts:
            fault = f"names {label!r}, which is no class"
            remedy = f"Classes: {listed(list(map(repr, counts)), 10)}."
            raise InvalidInputError(fault, remedy, parameter="sampling_strategy")
        if not is_whole(number, 0) or number > counts[label]:
            fault = f"asks for {number!r} rows of class {label!r}, which has {counts[label]}"
            remedy = "Give a whole number, at most that."
            raise InvalidInputError(fault, remedy, parameter="sampling_strategy")
    numbers = {label: int(given.get(label, count)) for label, count in counts.items()}
    if not any(numbers.values()):
        fault = "asks for no row at all"
        remedy = "Give a number above 0."
        raise InvalidInputError(fault, remedy, parameter="sampling_strategy", value=given)
    return numbers


def numbers_asked_for(strategy: object, y: NDArray[Any], counts: Numbers) -> Numbers:
    """How many rows of each class a strategy of imbalanced-learn asks for."""
    if isinstance(strategy, str):
        return reduced(one_of("sampling_strategy", strategy, (*DIVISIONS, *REDUCTIONS)), counts)
    if isinstance(strategy, Real) and not isinstance(strategy, bool):
        return with_ratio(float(strategy), counts)
    return checked(strategy(y) if callable(strategy) else strategy, counts)


def labels_of(y: object) -> NDArray[Any]:
    """Labels as one column; of a column for each class, the number of the one that is 1."""
    labels = np.asarray(y)
    may_miss = labels.ravel().tolist() if labels.dtype.kind in "Of" else []
    missing = sum(
        group_label(label) == "missing" for label in may_miss if not isinstance(label, str)
    )
    if missing:
        fault = f"{counted(missing, 'row')} {'has' if missing == 1 else 'have'} no label"
        raise InvalidInputError(
            fault, "Leave them out, or name a label for them, such as 'missing'."
        )
    check_classification_targets(y)
    has_columns = labels.ndim == 2 and labels.shape[1] > 1
    if has_columns and (labels.sum(axis=1) == 1).all():
        return np.asarray(labels.argmax(axis=1))
    return np.asarray(column_or_1d(labels))


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
    sampling_strategy : "proportional" divides the number in proportion to the classes, "equal" evenly: the largest remainders are
        rounded up, there is at least one row of each class if the number allows, and what a class does not have the others give.
        All else says how many itself, as in imbalanced-learn: "majority", "not minority" (the same as "auto"), "not majority" or
        "all" are the classes that are reduced to the number of the rarest; of two classes a ratio, rarer to larger; a dict from
        classes to numbers, or a function of y that returns one. Of other classes all rows are kept
    suspects : "drop" does not choose rows whose label does not fit, "keep" chooses among all
    coverage, kernel, gamma, scale, outliers, contamination, min_group, algorithm, memory_budget, n_jobs, random_state, \
verbose : as for ``MOSAIC``

    Attributes
    ----------
    sample_indices_ : rows that were chosen
    sampling_strategy_ : how many of each class were asked for, with labels only
    suspects_ : rows whose label does not fit, with the label that would: ``rows``, ``labels`` and ``suggested``; and the classes
        that were ``not_judged``. With labels only
    selection_, … : as for ``MOSAIC``; of equal rows that were chosen, one is a representative

    Notes
    -----
    1. A label does not fit if more than half of the ten nearest rows share another one, and it is rarer among them than in the
       data. A class is not judged if most of its rows have more neighbours of another class. The rule is ours, and so is the
       choice within each class, by the rows of that class alone. Without labels, rows are chosen as by ``MOSAIC``.
    2. Outliers of a class and copies of its rows are chosen if its other rows are fewer than asked for. There is a warning if
       fewer are chosen, or none of a class, and if a class is not judged or more than 5 % of it are left out.

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

    sampling_strategy: Any = "proportional"
    suspects: str = "drop"

    @reporting
    def fit(self, X: object, y: object = None, **constraints: Any) -> Self:
        """Find the suspects, and choose within each class; without labels as ``MOSAIC`` does, with its arguments."""
        with telling(self, has_tasks=y is not None):
            for name in ("sampling_strategy_", "suspects_"):  # of an earlier fit with labels
                if hasattr(self, name):
                    delattr(self, name)
            if y is None:
                super().fit(X, **constraints)
                self.sample_indices_ = self.selection_.rows
            else:
                rows = Rows.of(X, memory_budget=as_bytes(self.memory_budget))
                self._refuse_beside_labels(rows, constraints)
                self._fit_classes(rows, labels_of(y))
        return self

    def _refuse_beside_labels(self, rows: Rows, constraints: Mapping[str, Any]) -> None:
        """Refuse constraints, also groups and weights that a file was read with, and pairs."""
        given = list(constraints)
        given += ["groups"] * (rows.groups is not None)
        given += ["sample_weight"] * (rows.weights is not None)
        if given or (isinstance(self.kernel, str) and self.kernel in PAIRWISE):
            what = ", ".join(given) or "a matrix of similarities"
            remedy = "Leave y out, and give its values as `groups`."
            raise InvalidInputError(f"{what} cannot be combined with labels", remedy)

    def fit_resample(self, X: object, y: object = None, **constraints: Any) -> tuple[Any, Any]:
        """Choose, and return the chosen rows of X with their labels, ranked; ``sample_indices_`` holds their numbers."""
        self.fit(X, y, **constraints)
        rows = self.sample_indices_
        chosen = chosen_rows(X, rows, self.selection_.n_rows)
        return chosen, None if y is None else take_rows(y, rows)

    def _fit_classes(self, given: Rows, y: NDArray[Any]) -> None:
        one_of("suspects", self.suspects, CHOICES["suspects"])
        model = self._fitted(given, 1)
        numbers = numbers_of(model, given)
        if isinstance(numbers, Source):
            size = 8.0 * numbers.n * numbers.n_features
            if not may_load(size, budget_of(model.selection_.settings.memory_budget)):
                fault = "labels need rows that fit into memory"
                raise InvalidInputError(fault, "Raise `memory_budget`, or choose class by class.")
            numbers = numbers.take(np.arange(numbers.n))
        rows = on_host(model.selection_.data.geometry.prepare(numbers))
        check_consistent_length(rows, y)
        self.suspects_ = find_suspects(rows, y)
        may_be_chosen = np.ones(len(y), dtype=bool)
        if self.suspects == "drop":
            may_be_chosen[self.suspects_.rows] = False
        labels, each = np.unique(y, return_counts=True)
        counts = dict(zip(labels.tolist(), each.tolist(), strict=True))
        members = {label: np.flatnonzero((y == label) & may_be_chosen) for label in counts}
        room = {label: len(here) for label, here in members.items()}
        total = Settings.of(self).number(len(y))
        self.sampling_strategy_ = self._numbers(y, counts, room, total)
        by_class = []
        for label, here in members.items():
            some = self._chosen_of(rows_of(rows, here), self.sampling_strategy_[label])
            by_class.append(here[some])
        chosen = np.concatenate(by_class)
        for sentence in self._notes(counts, room, total):
            warn(sentence)
        distinct = chosen[equal_rows(rows_of(rows, chosen)).first]
        final = self._fitted(given, len(distinct), must_include=distinct)
        self.__dict__.update(
            {name: value for name, value in vars(final).items() if name.endswith("_")}
        )
        ranked = self.selection_.rows
        self.sample_indices_ = np.append(ranked, np.setdiff1d(chosen, ranked))

    def _fitted(self, rows: Rows, number: int, **constraints: Any) -> Self:
        """A copy that chooses so many of all rows."""
        model = type(self)(**self.get_params(deep=False))
        model.set_params(n_representatives=number, coverage=None)
        return super(MOSAICSampler, model).fit(rows, **constraints)

    def _chosen_of(self, rows: Any, number: int | None) -> IntArray:
        """So many rows of one class, with outliers and copies where there are not enough others."""
        n = rows.shape[0]
        if number is not None and number >= n:
            return np.arange(n)
        if number == 0:
            return NO_ROWS
        first = equal_rows(rows).first
        if number is not None and number >= len(first):
            return np.append(first, np.setdiff1d(np.arange(n), first)[: number - len(first)])
        parameters = self.get_params(deep=False) | {"scale": False}
        del parameters["sampling_strategy"], parameters["suspects"]
        model = MOSAIC(**parameters)
        if number is None:
            return model.fit(rows).selection_.rows
        model.n_representatives = number
        try:
            return model.fit(rows).selection_.rows
        except InvalidInputError:
            # Settings are right, since the fit of all rows has passed: outliers are needed.
            return model.set_params(outliers="keep").fit(rows).selection_.rows

    def _numbers(
        self, y: NDArray[Any], counts: Numbers, room: Numbers, total: int | None
    ) -> dict[Hashable, int | None]:
        """How many rows of each class are asked for, None where the class itself says."""
        strategy = self.sampling_strategy
        if not (isinstance(strategy, str) and strategy in DIVISIONS):
            if total is not None or self.coverage is not None:
                fault = "`sampling_strategy` says how many to choose, and so does `n_representatives` or `coverage`"
                remedy = f"Give one of them, or a strategy that divides: {', '.join(DIVISIONS)}."
                raise InvalidInputError(fault, remedy)
            return dict(numbers_asked_for(strategy, y, counts))
        if total is not None:
            if total > len(y):
                fault = f"is more than the {len(y)} rows"
                raise InvalidInputError(
                    fault, "Ask for fewer.", parameter="n_representatives", value=total
                )
            weights = counts if strategy == "proportional" else dict.fromkeys(counts, 1)
            return dict(divided(total, weights, room))
        if strategy == "equal":
            fault = "divides a number, and none is given"
            raise InvalidInputError(
                fault, "Give `n_representatives`.", parameter="sampling_strategy", value=strategy
            )
        return dict.fromkeys(counts)

    def _notes(self, counts: Numbers, room: Numbers, total: int | None) -> Iterator[str]:
        """What is not as a user may think who reads the chosen rows alone."""
        not_judged = [repr(label) for label in self.suspects_.not_judged.tolist()]
        if not_judged:
            whose = "its" if len(not_judged) == 1 else "their"
            said = f"were not judged: most of {whose} rows have more neighbours of another class."
            yield f"The labels of class {listed(not_judged, 10)} {said}"
        left_out = {label: counts[label] - room[label] for label in counts}
        many = [
            f"{n} of {counts[label]} of class {label!r}"
            for label, n in left_out.items()
            if n > MANY_SUSPECTS * counts[label]
        ]
        keep = "If the labels are right, set `suspects='keep'`."
        if many:
            yield f"Rows whose label does not fit are left out: {listed(many, 10)}. {keep}"
        numbers = {label: number or 0 for label, number in self.sampling_strategy_.items()}
        wanted = sum(numbers.values()) if total is None else total
        given = sum(min(number, room[label]) for label, number in numbers.items())
        if given < wanted:
            short = [
                f"{room[label]} of class {label!r}"
                for label, number in numbers.items()
                if number > room[label] or total
            ]
            yield f"{given:,} rows are chosen instead of {wanted:,}: with labels that fit there are {listed(short, 10)}. {keep}"
        empty = [repr(label) for label, number in numbers.items() if not number]
        if empty and total is not None:
            few = counted(total, "row")
            yield f"No row is chosen of class {listed(empty, 10)}: {few} cannot be of all."

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = _SamplerInputTags(**fields_of(tags.input_tags))
        return _SamplerTags(**fields_of(tags))
