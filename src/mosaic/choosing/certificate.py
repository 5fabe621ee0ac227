"""The certificate: what is proven about a choice of k points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mosaic.program.bounds import Bound
from mosaic.program.encoding import Certificate
from mosaic.text import html_card, html_table

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
    settings : what was decided about the data, in sentences
    constrained : whether the choice had to obey constraints: quotas, rows that must be chosen or must not

    Notes
    -----
    1. Do not mix the two measures: with the ridge even all points together leave something unexplained, and two sets with equal
       errors with the ridge can have errors without it that differ by a factor of several.
    2. The program has no constraints, and its bound holds for every set of k points. Sets that obey constraints, such as those
       that hold all ``must_include`` rows, are some of these. So the choice is at most ``excess`` above the best of them, too;
       it may be nearer to that one than is proven.
    """

    encoding: Certificate
    k: int
    error: float
    bounds: Bound
    settings: tuple[str, ...] = ()
    total: float = np.nan
    error_without_ridge: float = np.nan
    constrained: bool = False

    @property
    def bound(self) -> float:
        """The least that any set of k points leaves unexplained."""
        return self.bounds.at(self.k)

    @property
    def bound_without_ridge(self) -> float:
        """The least that any set of k points leaves unexplained where coefficients cost nothing."""
        return self.bounds.without_ridge(self.k)

    @property
    def ridge(self) -> float:
        """The price g of coefficients."""
        return self.bounds.ridge

    @property
    def gap(self) -> float:
        """Relative duality gap of the program."""
        return self.encoding.gap

    @property
    def kernel_error(self) -> float:
        """Share of the kernel that the factor misses."""
        return self.encoding.kernel_error

    @property
    def rank(self) -> int:
        """Columns of the factor."""
        return self.encoding.rank

    @property
    def excess(self) -> float:
        """Upper bound on the relative excess of the error over that of the best k points."""
        return excess(self.error, self.bound)

    def __str__(self) -> str:
        these, best = (f"These {self.k:,} leave", f"{self.k:,}") if self.k > 1 else ("This one leaves", "one")
        either = ", with the constraints or without" if self.constrained else ""
        return f"{these} at most {percent(self.excess)} more unexplained than the best possible {best} would{either}."

    __repr__ = __str__

    def details(self) -> str:
        """The certificate with all its numbers, in sentences."""
        them, they, others = ("them", "They leave", f"no {self.k:,} leave")
        if self.k == 1:
            them, they, others = ("it", "It leaves", "none leaves")
        error, bound, free_error, free_bound = (
            percent(value / self.total) for value in (self.error, self.bound, self.error_without_ridge, self.bound_without_ridge)
        )
        solved = (
            f"Nothing is known about the optimum of the program behind {them}."
            if self.gap > 1
            else f"The program behind {them} is solved to within {percent(self.gap)} of the value of choosing nothing "
            f"({percent(self.kernel_error)} of it for similarities that are computed from {self.rank} numbers a row)."
        )
        return (
            f"{self} {EXPLAINED} {they} {free_error} of the data unexplained, and {others} less than {free_bound}. "
            f"The {percent(self.excess)} are proven where large weights have a price, so that even a lone row that is chosen is "
            f"half unexplained: there {they.lower()} {error}, and {others} less than {bound}. {solved}"
        )

    def _repr_html_(self) -> str:
        return _html_of(self)


def _html_of(proven: SelectionCertificate) -> str:
    def of_all(*values: float) -> list[str]:
        return [percent(value / proven.total) for value in values]

    return html_card(
        str(proven),
        html_table(
            ["unexplained", f"these {proven.k:,}", f"no {proven.k:,} less than"],
            [
                [f"large weights have a price (ridge {proven.ridge:.3g})", *of_all(proven.error, proven.bound)],
                ["weights are free", *of_all(proven.error_without_ridge, proven.bound_without_ridge)],
            ],
        ),
        html_table(
            ["program", ""],
            [
                ["gap: how far it can be from its optimum, of the value of choosing nothing", percent(proven.gap)],
                ["kernel error: what similarities lose when they are computed from few numbers", percent(proven.kernel_error)],
                ["rank: how many numbers a row these are", proven.rank],
            ],
        ),
        text=[EXPLAINED],
    )


def excess(error: float, bound: float) -> float:
    """Error / bound − 1: an upper bound on the relative excess over the best set.

    Examples
    --------
    >>> round(excess(1.1, 1.0), 9), excess(1.0, 0.0)
    (0.1, inf)
    """
    return max(error / bound - 1.0, 0.0) if bound > 0 else float("inf")


def percent(share: float) -> str:
    """A share in percent: two significant digits, whole numbers from 100 % on.

    Examples
    --------
    >>> percent(0.0283), percent(14.42), percent(2e-9), percent(0.0)
    ('2.8 %', '1,442 %', 'less than 0.001 %', '0 %')
    """
    value = 100.0 * share
    if not value > 1e-10:
        return "0 %"
    return "less than 0.001 %" if value < 1e-3 else f"{value:.2g} %" if value < 99.5 else f"{value:,.0f} %"


def counted(number: int, noun: str) -> str:
    """A number and its noun, in the plural unless the number is 1.

    Examples
    --------
    >>> counted(1, "point"), counted(1887, "point")
    ('1 point', '1,887 points')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
