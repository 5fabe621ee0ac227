"""The settings of an estimator and the constraints on the rows of the data, checked once; everything below reads these."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field, fields, replace
from numbers import Integral, Real
from typing import Any, Self, get_args

import numpy as np
from numpy.typing import ArrayLike

from mosaic import parameters
from mosaic.arrays.blocks import NO_ROWS, BoolArray, FloatArray, IntArray
from mosaic.choosing.cover import Slots
from mosaic.door import as_indices
from mosaic.exceptions import InvalidInputError
from mosaic.kernels import STATIONARY_KERNELS
from mosaic.parameters import (
    CHOICES,
    PAIRWISE,
    TAKEN_AS_GIVEN,
    Paper,
    Parameters,
    Sketch,
    check_kernel,
    fields_of,
    is_whole,
    real_number,
)
from mosaic.program import RowNorm, SolverName
from mosaic.text import group_label, listed

#: Lowest value, highest value and meaning of the optional numeric parameters.
RANGES = {
    "contamination": (0.0, 0.5, "the share of outliers; at most half can be outliers"),
    "diversity": (0.0, 1.0, "the share of distances that pruning keeps"),
    "coverage": (0.0, 1.0, "1 needs every row that belongs"),
    "min_group": (2.0, np.inf, "the number of points that make a group"),
    "op_threshold": (0.0, 1.0, "the outlier probability above which a row is rejected"),
}
#: Largest number of group names that a message lists.
MOST_LISTED_GROUPS = 8


def is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def _is_fraction(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, Integral)  # 1.0 is a share, 1 is not


@dataclass(frozen=True)
class Settings:
    """All parameters of an estimator that an answer depends on; parameters that a detector lacks are at their defaults.

    ``kernel`` is a name or a function, ``formula`` the kernel with its settings, if it has any.
    """

    n_representatives: Any = "auto"
    coverage: float | None = None
    outliers: str = "reject"
    contamination: Any = "auto"
    diversity: Any = "auto"
    min_group: float | None = None
    op_threshold: float | None = None
    mode: str = "auto"
    kernel: Any = "rbf"
    gamma: Any = "auto"
    scale: Any = "auto"
    formula: Any = None
    alpha: float | None = None
    lam: float | None = None
    row_norm: RowNorm = "l2"
    solver: Any = "auto"
    tol: float = 1e-10
    max_iter: int = 10_000
    max_rank: int | None = None
    memory_budget: float | None = None
    max_samples: int | None = None
    sketch: Sketch | None = None

    def __post_init__(self) -> None:
        parameters.one_of("outliers", self.outliers, CHOICES["outliers"])
        k = self.n_representatives
        is_given = not is_auto(k)
        if is_given and not (is_whole(k, 1) or (_is_fraction(k) and 0 < float(k) < 1)):
            fault = "must be a whole number >= 1, a share between 0 and 1, or 'auto'"
            raise InvalidInputError(fault, parameter="n_representatives", value=k)
        for name, (low, high, meaning) in RANGES.items():
            value = getattr(self, name)
            has_auto = name in ("contamination", "diversity")
            is_usual = is_auto(value) if has_auto else value is None
            if not is_usual:
                real_number(name, value, at_least=low, at_most=high, meaning=meaning)
        for name, least in {"max_rank": 1, "max_samples": 2}.items():
            value = getattr(self, name)
            if value is not None:
                parameters.whole_number(name, value, at_least=least, remedy="Leave it at None.")
        check_kernel(self.kernel)
        if is_given and self.coverage is not None:
            fault = f"`coverage={self.coverage}` and `n_representatives={k}` each say how many to choose"
            raise InvalidInputError(fault, "Give one of them.")
        if self.mode == "paper":
            self._check_paper()

    def _check_paper(self) -> None:
        """The settings of ``Paper``, and those that it does not know."""
        parameters.one_of("solver", self.solver, get_args(SolverName))
        parameters.one_of("row_norm", self.row_norm, get_args(RowNorm))
        if self.sketch is not None:
            self._check_sketch()
        real_number("tol", self.tol, above=0, remedy="Leave it at 1e-10.")
        parameters.whole_number("max_iter", self.max_iter, remedy="Leave it at 10000.")
        parameters.check_strength(self.alpha, self.lam)
        for name in ("min_group", "coverage"):
            value = getattr(self, name)
            if value is not None:
                instead = "" if name == "min_group" else ", or use `n_representatives`"
                remedy = f"Leave `algorithm` at None{instead}."
                fault = "is not for `algorithm='paper'`"
                raise InvalidInputError(fault, remedy, parameter=name, value=value)

    def _check_sketch(self) -> None:
        if not isinstance(self.sketch, Sketch):
            fault = "must be None or Sketch(…)"
            raise InvalidInputError(
                fault, "Leave it at None.", parameter="sketch", value=self.sketch
            )
        if self.row_norm == "linf":
            fault = "has an unknown for each pair of rows, which Algorithm 3 has not"
            raise InvalidInputError(
                fault, "Leave `sketch` at None.", parameter="row_norm", value="linf"
            )
        for name, least in {"n_initial": 2, "n_added": 1, "n_rounds": 1}.items():
            parameters.whole_number(name, getattr(self.sketch, name), at_least=least)

    @classmethod
    def of(cls, estimator: Any, **changes: Any) -> Self:
        """The settings of an estimator, with some of them changed."""
        given = estimator.get_params(deep=False) | changes
        algorithm = given.pop("algorithm", None)
        kernel = given["kernel"]
        if isinstance(algorithm, str):
            algorithm = Paper() if algorithm == "paper" else algorithm
        if not (algorithm is None or isinstance(algorithm, Paper)):
            remedy = "Leave it at None."
            if isinstance(algorithm, Sketch):
                remedy = "A Sketch is for Paper(sketch=Sketch(…))."
            raise InvalidInputError(
                "must be None, 'paper' or Paper(…)", remedy, parameter="algorithm", value=algorithm
            )
        if algorithm is not None:
            given |= fields_of(algorithm) | {"mode": "paper", "sketch": copy(algorithm.sketch)}
        if isinstance(kernel, Parameters):
            given |= {"kernel": kernel.name, "formula": copy(kernel)}
        given["memory_budget"] = parameters.as_bytes(given["memory_budget"])
        known = {each.name for each in fields(cls)}
        return cls(**{name: given[name] for name in known & given.keys()})

    @property
    def similarity_is_ours(self) -> bool:
        """Whether kernel and bandwidth are left to the library."""
        names = isinstance(self.kernel, str) and is_auto(self.gamma)
        scales = self.kernel in STATIONARY_KERNELS and not self.takes_as_given
        return names and scales and self.mode == "auto"

    @property
    def pairwise(self) -> bool:
        return self.kernel in PAIRWISE

    @property
    def takes_as_given(self) -> bool:
        """Whether columns are numbers that the kernel knows the meaning of."""
        return self.kernel in TAKEN_AS_GIVEN

    def number(self, n_rows: float) -> int | None:
        k = self.n_representatives
        if isinstance(k, str):
            return None
        return int(k) if isinstance(k, Integral) else max(1, round(float(k) * n_rows))


@dataclass(frozen=True)
class Constraints:
    """The rows that may be chosen (a mask), those that must be, the group of every row, the groups' names, and how many of each.

    ``start`` are rows that were chosen before and stay unless others are clearly better, ``lost`` what earlier picks are called
    that are no rows any more. ``fine`` are rows that are no outliers, ``notes`` what is said of them.
    """

    allowed: BoolArray
    must: IntArray
    group: IntArray
    names: tuple[Any, ...]
    quotas: Any
    start: IntArray = field(default_factory=NO_ROWS.copy)
    lost: tuple[str, ...] = ()
    fine: IntArray = field(default_factory=NO_ROWS.copy)
    notes: tuple[str, ...] = ()

    @property
    def are_given(self) -> bool:
        return bool(len(self.must)) or not self.allowed.all() or self.quotas is not None

    @classmethod
    def read(
        cls,
        n: int,
        *,
        groups: ArrayLike | None = None,
        quotas: Any = None,
        must_include: ArrayLike | None = None,
        exclude: ArrayLike | None = None,
        candidates: ArrayLike | None = None,
        start: ArrayLike | None = None,
        lost: tuple[str, ...] = (),
        fine: IntArray = NO_ROWS,
        notes: tuple[str, ...] = (),
    ) -> Constraints:
        """Check the constraints that ``fit`` was given for n rows."""
        named = np.arange(n) if candidates is None else as_indices(candidates, n, "candidates")
        excluded = NO_ROWS if exclude is None else as_indices(exclude, n, "exclude")
        must = NO_ROWS if must_include is None else as_indices(must_include, n, "must_include")
        both = np.intersect1d(must, excluded)
        if len(both):
            fault = f"{len(both)} rows are in `must_include` and in `exclude`, the first is `row {int(both[0])}`"
            raise InvalidInputError(fault, "Take them out of one of the two.")
        allowed = np.zeros(n, dtype=bool)
        allowed[named] = True
        allowed[excluded] = False
        allowed[must] = True
        if not allowed.any():
            fault = f"no row may be chosen: of {n}, `candidates` leave {len(named)} and `exclude` takes {len(excluded)} away"
            raise InvalidInputError(fault, "Name more candidates or exclude fewer.")
        names, group = _read_groups(groups, n)
        if groups is not None:
            quotas = _read_quotas(quotas, names)
        elif quotas is not None:
            raise InvalidInputError("need groups", "Give `groups`.", parameter="quotas")
        earlier = NO_ROWS if start is None else as_indices(start, n, "start")
        return cls(allowed, must, group, names, quotas, earlier, lost, fine, notes)

    def among(self, rows: IntArray) -> Constraints:
        """The same for some of the rows, in ascending order, which hold all that are named."""
        return replace(
            self,
            allowed=self.allowed[rows],
            group=self.group[rows],
            must=np.searchsorted(rows, self.must),
            start=np.searchsorted(rows, self.start),
            fine=np.searchsorted(rows, self.fine),
        )

    @property
    def fixed_total(self) -> int | None:
        """The sum of the quotas, if every group has a number; else None."""
        if not isinstance(self.quotas, Mapping) or set(self.quotas) != set(self.names):
            return None
        numbers = self.quotas.values()
        are_whole = all(isinstance(number, Integral) for number in numbers)
        return int(sum(numbers)) if are_whole else None

    def slots(
        self, k: int, candidates: IntArray, twins: IntArray, sizes: FloatArray | None = None
    ) -> Slots:
        """Slots for k picks among candidate rows, ``twins`` their points; quotas count where the sizes of groups are given."""
        forced = [int(np.flatnonzero(candidates == row)[0]) for row in self.must]
        slots = Slots(np.zeros(len(candidates), np.intp), np.array([k]), twins, forced)
        if self.quotas is None or sizes is None:
            return slots
        numbers = self._numbers(k, sizes)
        # Groups without a quota share the remaining places: one slot for all of them, the last.
        room = [numbers.get(name, 0) for name in self.names] + [k - sum(numbers.values())]
        named = np.array([name in numbers for name in self.names])
        of = np.where(named[self.group[candidates]], self.group[candidates], len(self.names))
        return replace(slots, of=of, room=np.array(room, np.intp))

    def _numbers(self, k: int, sizes: FloatArray) -> dict[Any, int]:
        if self.quotas == "proportional":
            return whole_numbers(dict(zip(self.names, sizes.tolist(), strict=True)), k)
        if self.quotas == "equal":
            return whole_numbers(dict.fromkeys(self.names, 1.0), k)
        fixed = {
            name: int(value) for name, value in self.quotas.items() if isinstance(value, Integral)
        }
        shares = {name: float(value) for name, value in self.quotas.items() if name not in fixed}
        if shares:
            rest: Any = object()  # the share that no group asks for
            filled = whole_numbers({**shares, rest: max(1.0 - sum(shares.values()), 0.0)}, k)
            fixed |= {name: filled[name] for name in shares}
        total = sum(fixed.values())
        if total > k or (total < k and len(fixed) == len(self.names)):
            shown = [f"{name!r}: {number}" for name, number in fixed.items()]
            if len(shown) > MOST_LISTED_GROUPS:
                shown = [*shown[:MOST_LISTED_GROUPS], "…"]
            rest = ", or leave groups without a quota to take the rest" if total < k else ""
            fault = f"ask for {total} ({' + '.join(shown)}) and `n_representatives` for {k}"
            raise InvalidInputError(fault, f"Make them agree{rest}.", parameter="quotas")
        return fixed

    def check_room(self, slots: Slots, candidates: IntArray, rejected: BoolArray) -> None:
        """Raise an error that shows the arithmetic if a slot has fewer distinct candidates than places."""
        for slot, room in enumerate(slots.room):
            here = slots.of == slot
            available = len(np.unique(slots.twins[here]))
            if available >= room:
                continue
            members = np.ones(len(self.allowed), dtype=bool)
            if self.quotas is not None:
                members = np.isin(
                    self.group, np.unique(self.group[candidates[here]]) if here.any() else [slot]
                )
            outliers = (members & rejected).sum()
            forbidden = (members & ~self.allowed & ~rejected).sum()
            copies = members.sum() - outliers - forbidden - available
            remedy = "Ask for fewer"
            remedy += ", or set `outliers='keep'`" if outliers else ""
            remedy += ", or allow more rows" if forbidden else ""
            raise InvalidInputError(
                f"{int(room)} representatives of {self._name_of(slot)} are asked for, but {available} are available: "
                f"{members.sum()} rows − {outliers} outliers − {forbidden} not allowed − {copies} copies or without weight "
                f"= {available}",
                f"{remedy}.",
            )
        must = np.bincount(slots.of[np.isin(candidates, self.must)], minlength=len(slots.room))
        over = np.flatnonzero(must > slots.room)
        if len(over):
            whose = self._name_of(int(over[0]))
            wanted = int(slots.room[over[0]])
            fault = f"names {int(must[over[0]])} rows of {whose}, but only {wanted} are asked for"
            raise InvalidInputError(fault, "Name fewer or ask for more.", parameter="must_include")

    def _name_of(self, slot: int) -> str:
        if self.quotas is None:
            return "the data"
        if slot < len(self.names):
            return f"group {self.names[slot]!r}"
        return "the groups without a quota"


def whole_numbers(shares: Mapping[Any, float], k: int) -> dict[Any, int]:
    """Whole numbers that add up to k and are as near to k·share as possible: the largest remainders are rounded up."""
    total = sum(shares.values())
    if not total > 0:
        raise InvalidInputError("must have a positive sum", parameter="quotas", value=dict(shares))
    exact = {name: k * value / total for name, value in shares.items()}
    whole = {name: int(np.floor(value + 1e-9)) for name, value in exact.items()}
    left = k - sum(whole.values())
    # The sort is stable: of equal remainders, the first wins. They are rounded, since equal ones may differ in the last bits.
    for name in sorted(exact, key=lambda name: round(whole[name] - exact[name], 9))[:left]:
        whole[name] += 1
    return whole


def _read_groups(groups: ArrayLike | None, n: int) -> tuple[tuple[Any, ...], IntArray]:
    """Names of the groups, and the number of the group of every row."""
    if groups is None:
        return ("all",), np.zeros(n, np.intp)
    labels = np.asarray(groups)
    if labels.ndim not in (1, 2) or len(labels) != n:
        raise InvalidInputError(
            f"must have one label for each of {n} rows; got shape {labels.shape}",
            parameter="groups",
        )
    if labels.ndim == 2:
        labels = np.array([group_label(*row) for row in labels.tolist()])
    cells = labels.tolist()
    missing = {cell for cell in set(cells) if group_label(cell) == "missing"}
    if missing:  # a group of their own
        labels = labels.astype(object)
        labels[[cell in missing for cell in cells]] = "missing"
    cells = labels.tolist()
    if labels.dtype == object and len(set(map(type, cells))) > 1:  # 1 and "1" are different labels
        names = sorted(set(cells), key=lambda label: (isinstance(label, str), str(label)))
        place = {name: number for number, name in enumerate(names)}
        return tuple(names), np.array([place[label] for label in cells], np.intp)
    distinct, numbers = np.unique(labels, return_inverse=True)
    return tuple(distinct.tolist()), numbers.astype(np.intp)


def _read_quotas(quotas: Any, names: tuple[Any, ...]) -> Any:
    """The checked quotas of the named groups; "proportional" by default."""
    if quotas is None or (isinstance(quotas, str) and quotas in ("proportional", "equal")):
        return "proportional" if quotas is None else quotas
    if is_whole(quotas, 1):
        return dict.fromkeys(names, int(quotas))
    if not isinstance(quotas, Mapping):
        fault = "must be 'proportional', 'equal', a whole number >= 1, or a dict from group to number or share"
        raise InvalidInputError(fault, parameter="quotas", value=quotas)
    for name, value in quotas.items():
        if name not in names:
            there = listed([repr(known) for known in names], MOST_LISTED_GROUPS)
            raise InvalidInputError(
                f"name the group {name!r}, which no row has",
                f"Groups are {there}.",
                parameter="quotas",
            )
        if not (is_whole(value, 0) or (_is_fraction(value) and 0 <= float(value) <= 1)):
            raise InvalidInputError(
                f"must be whole numbers >= 0 or shares between 0.0 and 1.0; that of group {name!r} is {value!r}",
                parameter="quotas",
            )
    shares = sum(float(value) for value in quotas.values() if not isinstance(value, Integral))
    if shares > 1 + 1e-9:
        raise InvalidInputError(
            f"have shares that add up to {shares:g}", "Lower them to 1 in all.", parameter="quotas"
        )
    return dict(quotas)
