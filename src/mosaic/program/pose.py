"""Posing the program: the roles of the points in it, and the design problem over distinct points."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from mosaic.arrays.blocks import BoolArray, FloatArray, IntArray, row_blocks
from mosaic.arrays.codes import EqualRows
from mosaic.door import as_indices, as_vector, as_weights
from mosaic.exceptions import InvalidInputError
from mosaic.program.factor import Factor
from mosaic.program.problem import DesignProblem, RowNorm, critical_lam, critical_strength, weighted_gram

#: The largest of the weights, and each price, is at most this and at least its inverse.
LARGEST_WEIGHT, LARGEST_PRICE = 2.0**200, 2.0**50


@dataclass(frozen=True)
class Roles:
    """The roles of points in the program, checked.

    Attributes
    ----------
    weights : how much each point counts as a target
    cost : price of each point as a candidate; None if all are 1
    allowed : candidates, in ascending order
    """

    weights: FloatArray
    cost: FloatArray | None
    allowed: IntArray

    @classmethod
    def read(
        cls,
        n: int,
        sample_weight: ArrayLike | None = None,
        cost: ArrayLike | None = None,
        candidates: ArrayLike | None = None,
    ) -> Roles:
        """Check the user's arguments for n points."""
        weights = np.ones(n) if sample_weight is None else as_weights(sample_weight, n)
        if not weights.any():
            fault = "must have a positive entry; all are 0, so there is nothing to represent"
            raise InvalidInputError(fault, parameter="sample_weight")
        _check_range("sample_weight", weights.max(keepdims=True), LARGEST_WEIGHT)
        costs = None if cost is None else as_vector(cost, n, "cost", minimum=0.0, strict=True)
        if costs is not None:
            _check_range("cost", costs, LARGEST_PRICE)
        allowed = np.arange(n) if candidates is None else np.sort(as_indices(candidates, n, "candidates"))
        if not len(allowed):
            raise InvalidInputError("must name at least one point; got none", parameter="candidates")
        return cls(weights, costs, allowed)

    @property
    def is_plain(self) -> bool:
        """Whether all points are candidates at the same price."""
        return self.cost is None and len(self.allowed) == len(self.weights)

    def on(self, groups: EqualRows) -> Roles:
        """The same roles for distinct points: a group may be chosen if a member may, at its lowest price."""
        if groups.is_trivial:
            return self
        allowed = np.unique(groups.group[self.allowed])
        cost = None if self.cost is None else self._lowest_price(groups, self.cost)
        return Roles(groups.sums(self.weights), cost, allowed)

    def takers(self, groups: EqualRows) -> FloatArray:
        """1 for the points that share the row of their group: its cheapest candidates."""
        takes = np.zeros(groups.n)
        takes[self.allowed] = 1.0
        if self.cost is not None:
            takes[self.cost > self._lowest_price(groups, self.cost)[groups.group]] = 0.0
        return takes

    def _lowest_price(self, groups: EqualRows, cost: FloatArray) -> FloatArray:
        """The lowest price of a candidate in each group, infinite for a group without candidates."""
        lowest = np.full(len(groups.first), np.inf)
        np.minimum.at(lowest, groups.group[self.allowed], cost[self.allowed])
        return lowest


def _check_range(name: str, values: FloatArray, limit: float) -> None:
    """Refuse numbers with which the terms of the program would leave the range of floats."""
    for value in (float(values.min()), float(values.max())):
        if not 1.0 / limit <= value <= limit:
            raise InvalidInputError(
                f"must be at least {1.0 / limit:.0e} and at most {limit:.0e} in size; got {value:.3g}",
                f"Divide all by {value:.3g}; `alpha` does not depend on their unit.",
                parameter=name,
            )


@dataclass(frozen=True)
class PosedProblem:
    """The design problem over distinct points: rows and prices of candidates.

    Attributes
    ----------
    problem : the design problem, at strength 1
    lam_crit : strength below which nothing is selected
    candidates, cost : distinct points that may be chosen, and their prices
    initial : candidates that the solver begins with, best first
    """

    problem: DesignProblem
    lam_crit: float
    candidates: IntArray
    cost: FloatArray | None
    initial: IntArray

    @classmethod
    def of(cls, factor: Factor, roles: Roles, row_norm: RowNorm) -> PosedProblem:
        """The problem for distinct points with these roles and the kernel F Fᵀ."""
        F, weights = factor.F, roles.weights
        all_allowed = len(roles.allowed) == F.shape[0]
        rows, initial, cost = F, factor.pivots, None
        if not all_allowed:
            rows = F[roles.allowed]
            initial = np.searchsorted(roles.allowed, initial[np.isin(initial, roles.allowed)])
        if roles.cost is not None:
            cost = roles.cost[roles.allowed]
            rows = rows / cost.astype(F.dtype)[:, None]
        square = all_allowed and cost is None and bool((weights == 1).all()) and isinstance(F, np.ndarray)
        square = square and F.dtype == np.float64
        problem = DesignProblem(rows, weighted_gram(F, weights), 1.0, square=square)
        if row_norm == "l2":
            lam_crit = critical_lam(problem)
        else:
            blocks = row_blocks(len(rows), len(F))
            lam_crit = critical_strength(np.concatenate([np.abs(rows[block] @ F.T).sum(axis=1) for block in blocks]))
        return cls(problem, lam_crit, roles.allowed, cost, initial)

    def restrict(self, kept: BoolArray) -> PosedProblem:
        """The same problem with fewer candidates; the solver begins with all of them."""
        problem = self.problem.restrict(np.flatnonzero(kept))
        cost = None if self.cost is None else self.cost[kept]
        initial = np.arange(int(kept.sum()))
        return replace(self, problem=problem, candidates=self.candidates[kept], cost=cost, initial=initial)
