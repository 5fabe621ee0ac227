"""Constraints on the choice: rows that must or must not be in it, and quotas of groups; refused with the arithmetic if unmet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mosaic._arrays import BoolArray, IntArray, as_indices
from mosaic.choosing.cover import Slots, fill_slots
from mosaic.exceptions import InvalidInputError


@dataclass(frozen=True)
class Constraints:
    """Rows that may be chosen, rows that must be, and how many of each group."""

    allowed: BoolArray
    must: IntArray
    #: Number of the group of every row, names of the groups, and what is wanted of them.
    group: IntArray
    names: tuple[Any, ...]
    quotas: Any

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
    ) -> Constraints:
        """Check what was given to ``fit`` for n rows."""
        allowed = np.ones(n, dtype=bool)
        if candidates is not None:
            allowed[:] = False
            allowed[as_indices(candidates, n, "candidates")] = True
        excluded = np.zeros(0, np.intp) if exclude is None else as_indices(exclude, n, "exclude")
        allowed[excluded] = False
        must = np.zeros(0, np.intp) if must_include is None else as_indices(must_include, n, "must_include")
        both = np.intersect1d(must, excluded)
        if len(both):
            raise InvalidInputError(
                f"{len(both)} rows are in must_include and in exclude, the first is row {int(both[0])}. "
                "Take them out of one of the two."
            )
        allowed[must] = True
        if not allowed.any():
            raise InvalidInputError(
                f"no row may be chosen: of {n}, candidates leave {n if candidates is None else np.size(candidates)} and "
                f"exclude takes {len(excluded)} away. Name more candidates or exclude fewer."
            )
        names, group = _read_groups(groups, n)
        if quotas is not None and groups is None:
            raise InvalidInputError("quotas need groups: one label for every row, fit(X, groups=labels, quotas=...).")
        return cls(allowed, must, group, names, quotas if groups is None else _read_quotas(quotas, names))

    @property
    def fixed_total(self) -> int | None:
        """The number that the quotas add up to, where they say it for every group."""
        if isinstance(self.quotas, Mapping) and set(self.quotas) == set(self.names):
            values = list(self.quotas.values())
            if all(isinstance(value, Integral) for value in values):
                return int(sum(values))
        return None

    def slots(self, k: int, candidates: IntArray, sizes: Mapping[Any, float]) -> Slots:
        """Places for k picks among candidate rows. ``sizes`` are the groups' weights, for proportional quotas."""
        if self.quotas is None:
            return Slots.free(len(candidates), k)
        wanted = self._numbers(k, sizes)
        # Groups without a quota share what is left: one slot for all of them, the last.
        room = [wanted.get(name, 0) for name in self.names] + [k - sum(wanted.values())]
        named = np.array([name in wanted for name in self.names])
        of = np.where(named[self.group[candidates]], self.group[candidates], len(self.names))
        return Slots(of, np.array(room, np.intp))

    def _numbers(self, k: int, sizes: Mapping[Any, float]) -> dict[Any, int]:
        """How many of each group that has a quota."""
        if self.quotas == "proportional":
            return fill_slots({name: sizes[name] for name in self.names}, k)
        if self.quotas == "equal":
            return fill_slots(dict.fromkeys(self.names, 1.0), k)
        fixed = {name: int(value) for name, value in self.quotas.items() if isinstance(value, Integral)}
        shares = {name: float(value) for name, value in self.quotas.items() if name not in fixed}
        if shares:
            rest: Any = object()  # what is nobody's share
            filled = fill_slots({**shares, rest: max(1.0 - sum(shares.values()), 0.0)}, k)
            fixed |= {name: filled[name] for name in shares}
        total = sum(fixed.values())
        unnamed = len(fixed) < len(self.names)
        if total > k or (total < k and not unnamed):
            parts = " + ".join(f"{name!r}: {number}" for name, number in fixed.items())
            raise InvalidInputError(
                f"quotas ask for {total} ({parts}) and n_representatives for {k}. Make them agree"
                + (", or leave groups without a quota to take the rest." if total < k else ".")
            )
        return fixed

    def check_room(self, slots: Slots, k: int, distinct: IntArray, candidates: IntArray, rejected: BoolArray) -> None:
        """Refuse, with the arithmetic, if some slot has fewer distinct candidates than places.

        ``distinct`` are numbers of the points that candidate rows are copies of; ``rejected`` marks rows that are outliers.
        """
        for slot, room in enumerate(slots.room):
            here = slots.of == slot
            available = len(np.unique(distinct[here]))
            if available >= room:
                continue
            members = np.ones(len(self.allowed), dtype=bool)
            whose = "the data"
            if self.quotas is not None:
                whose = f"group {self.names[slot]!r}" if slot < len(self.names) else "the groups without a quota"
                members = np.isin(self.group, np.unique(self.group[candidates[here]]) if here.any() else [slot])
            outliers, forbidden = (members & rejected).sum(), (members & ~self.allowed & ~rejected).sum()
            copies = members.sum() - outliers - forbidden - available
            raise InvalidInputError(
                f"{int(room)} representatives of {whose} are wanted and {available} can be had: {members.sum()} rows − "
                f"{outliers} outliers − {forbidden} not allowed − {copies} copies or without weight = {available}. "
                "Ask for fewer, or set outliers='keep', or allow more rows."
            )
        must = np.bincount(slots.of[np.isin(candidates, self.must)], minlength=len(slots.room))
        over = np.flatnonzero(must > slots.room)
        if len(over):
            slot = int(over[0])
            whose = "" if self.quotas is None else f" of group {self.names[slot]!r}" if slot < len(self.names) else ""
            raise InvalidInputError(
                f"must_include names {int(must[slot])} rows{whose} and only {int(slots.room[slot])} are wanted. "
                "Name fewer or ask for more."
            )


def _read_groups(groups: ArrayLike | None, n: int) -> tuple[tuple[Any, ...], IntArray]:
    if groups is None:
        return ("all",), np.zeros(n, np.intp)
    labels = np.asarray(groups)
    if labels.shape != (n,):
        raise InvalidInputError(f"groups must have one label for each of {n} rows; got shape {labels.shape}.")
    missing = [_is_missing(label) for label in labels.tolist()]
    if any(missing):
        raise InvalidInputError(
            f"groups must not have missing labels; row {missing.index(True)} has none. Give such rows a label of their own."
        )
    if labels.dtype == object and len({type(label) for label in labels}) > 1:  # 1 and "1" are different labels
        keys = [(isinstance(label, str), label) for label in labels.tolist()]
        order = sorted(set(keys), key=lambda key: (key[0], str(key[1])))
        place = {key: number for number, key in enumerate(order)}
        return tuple(label for _, label in order), np.array([place[key] for key in keys], np.intp)
    names, numbers = np.unique(labels, return_inverse=True)
    return tuple(names.tolist()), numbers.astype(np.intp)


def _is_missing(label: Any) -> bool:
    """None, NaN, and what pandas has for missing values, which is not equal to itself or not comparable."""
    return label is None or type(label).__name__ in ("NAType", "NaTType") or bool(label != label)


def _read_quotas(quotas: Any, names: tuple[Any, ...]) -> Any:
    if quotas is None or (isinstance(quotas, str) and quotas in ("proportional", "equal")):
        return "proportional" if quotas is None else quotas
    if not isinstance(quotas, Mapping):
        raise InvalidInputError(
            f"quotas must be 'proportional', 'equal' or a dict from group to number or share; got {quotas!r}."
        )
    unknown = [name for name in quotas if name not in names]
    if unknown:
        raise InvalidInputError(f"quotas name the group {unknown[0]!r}, which no row has. Groups are {_listed(names)}.")
    for name, value in quotas.items():
        whole = isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 0
        share = isinstance(value, Real) and not isinstance(value, Integral) and 0 <= float(value) <= 1
        if not (whole or share):
            raise InvalidInputError(
                f"the quota of group {name!r} must be a whole number >= 0 or a share between 0.0 and 1.0; got {value!r}."
            )
    shares = sum(float(v) for v in quotas.values() if not isinstance(v, Integral))
    if shares > 1 + 1e-9:
        raise InvalidInputError(f"the shares in quotas add up to {shares:g}, more than 1.")
    return dict(quotas)


def _listed(names: tuple[Any, ...]) -> str:
    shown = ", ".join(repr(name) for name in names[:8])
    return shown + (f" and {len(names) - 8} more" if len(names) > 8 else "")
