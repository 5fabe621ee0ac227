"""The certificate: what is proven about a choice of k points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mosaic.program.bounds import Bound
from mosaic.program.encoding import Certificate
from mosaic.text import at_least, at_most, html_card

#: Largest proven excess of a choice that is good; beyond, the proof says too little.
GOOD = 0.25
#: What the word means, where it first appears.
EXPLAINED = "A row is explained, or covered, as far as a weighted sum of the representatives reproduces it."


@dataclass(frozen=True)
class SelectionCertificate:
    """How far the solved program and the chosen set can be from the best, for the kernel that the user asked for.

    Attributes
    ----------
    gap : relative duality gap of the program, approximation of the kernel included; above 1 nothing is known of its optimum
    kernel_error : share of the kernel that the factor misses, contained in the gap
    rank : columns of the factor
    k : number of representatives
    total : the amount to explain, the sum of k_ii over all rows
    ridge : g, the mean of k_ii: the price of a coefficient of size 1
    error : err_g, the amount that the representatives leave unexplained, over all rows: least squares in which coefficients
        cost g, so that a lone point stays half unexplained even if it is chosen
    bound : the least that *any* set of k distinct points leaves unexplained, at the same price
    excess : error / bound − 1
    error_without_ridge : the same as ``error`` where coefficients cost nothing; ``metrics.explained_share`` reports
        1 − error_without_ridge / total
    bound_without_ridge : the same as ``bound`` where coefficients cost nothing
    bounds : both bounds for any k, ``bounds.at(k)`` and ``bounds.without_ridge(k)``; the first is tightest for this k
    constrained : whether the choice had to obey constraints: quotas, rows that must be chosen or must not

    Notes
    -----
    1. Do not mix the two measures: two sets with equal errors with the ridge can have errors without it that differ by a factor
       of several.
    2. The program has no constraints, and its bound holds for every set of k points, those that obey constraints among them.
    """

    encoding: Certificate
    k: int
    error: float
    bounds: Bound
    total: float = np.nan
    error_without_ridge: float = np.nan
    constrained: bool = False

    @property
    def bound(self) -> float:
        return self.bounds.at(self.k)

    @property
    def bound_without_ridge(self) -> float:
        return self.bounds.without_ridge(self.k)

    @property
    def ridge(self) -> float:
        return self.bounds.ridge

    @property
    def gap(self) -> float:
        return self.encoding.gap

    @property
    def kernel_error(self) -> float:
        return self.encoding.kernel_error

    @property
    def rank(self) -> int:
        return self.encoding.rank

    @property
    def excess(self) -> float:
        return excess(self.error, self.bound)

    def __str__(self) -> str:
        them, number = (f"these {self.k:,}", f" {self.k:,}") if self.k > 1 else ("this one", "")
        if self.excess > GOOD:
            return (
                f"How close {them} {'are' if self.k > 1 else 'is'} to the best is not known: the proof is too loose here. "
                "A smaller `tol` or a larger `memory_budget` may tighten it."
            )
        verdict, most = "close to the best" if self.excess <= 0.05 else "good", at_most(self.excess)
        either = ", with or without constraints" if self.constrained else ""
        return f"Provably {verdict}: the error of {them} is at most {most} above that of any other{number}{either}."

    __repr__ = __str__

    def details(self) -> str:
        """The certificate with all its numbers, in sentences."""
        them, they, others = ("them", "They leave", f"no {self.k:,} leave")
        if self.k == 1:
            them, they, others = ("it", "It leaves", "none leaves")
        error, free_error = (percent(value / self.total) for value in (self.error, self.error_without_ridge))
        bound, free_bound = (at_least(value / self.total) for value in (self.bound, self.bound_without_ridge))
        solved = (
            f"Nothing is known about the optimum of the program behind {them}."
            if self.gap > 1
            else f"The program behind {them} is solved to a gap of {at_most(self.gap)}, of which {at_most(self.kernel_error)} "
            f"comes from a kernel of rank {self.rank}."
        )
        return (
            f"{self} {EXPLAINED} {they} {free_error} of the data unexplained, and {others} less than {free_bound}. "
            f"The error also counts large weights (ridge {self.ridge:.3g}): with them, {they.lower()} {error}, and {others} less "
            f"than {bound}. {solved}"
        )

    def _repr_html_(self) -> str:
        return html_card(str(self), text=[self.details().removeprefix(str(self)).strip()])


def excess(error: float, bound: float) -> float:
    """Error / bound − 1: an upper bound on the relative excess over the best set."""
    return max(error / bound - 1.0, 0.0) if bound > 0 else float("inf")


def percent(share: float) -> str:
    """A share in percent: two significant digits, whole numbers from 100 % on."""
    value = 100.0 * share
    if not value > 1e-10:
        return "0 %"
    return "less than 0.001 %" if value < 1e-3 else f"{value:.2g} %" if value < 99.5 else f"{value:,.0f} %"


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
