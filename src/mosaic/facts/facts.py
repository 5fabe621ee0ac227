"""The facts of a fit: picks, outliers, certificate, curve, map and decisions, which terminal, JSON, page and figures render."""

from __future__ import annotations

import math
import platform
from dataclasses import asdict, dataclass, fields, is_dataclass
from functools import cached_property
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mosaic.arrays.blocks import FloatArray, IntArray
from mosaic.arrays.threads import one_thread
from mosaic.choosing import CoverCertificate, Explanation, Selection, columns_of, counted, explain_rows, suggested_number
from mosaic.choosing.certificate import GOOD
from mosaic.exceptions import InvalidInputError, MemoryBudgetError
from mosaic.facts.map import Plane, framed, plane_of, plane_of_neighbours, thinned
from mosaic.facts.ranks import NO_RANKING, Changes, CountBins, Ranking, RowsInMemory, bins_of, changes_of, ranking_of
from mosaic.text import at_most, jsonable

#: Largest number of points on the map.
MOST_POINTS = 20_000
#: What all of the facts are, in an order in which the certificate is known before the sentence is made.
PARTS = ("certificate", "sentence", "coverage", "picks", "outliers", "curve", "map", "decisions", "settings")
NOT_COMPUTED = "The certificate has not been computed."


@dataclass(frozen=True)
class Outliers:
    """Outliers explained, oddest first, at most 50, and a histogram of effective counts; ``protected`` are kept in groups."""

    n: int
    rule: str
    threshold: float | None
    lowest: tuple[Explanation, ...]
    edges: list[float]
    belonging: list[int]
    outlying: list[int]
    protected: int


@dataclass(frozen=True)
class Curve:
    """The row that is added at each k, similarity and coverage of the first k, and the choice of n_representatives="auto"."""

    row: list[int]
    similarity: list[float]
    coverage: list[float]
    suggested: int | None


@dataclass(frozen=True)
class Map:
    """Points on the map: first of equal rows, coordinates, and rank of the representative, from 0; -1 without one."""

    method: str
    axes: list[str]
    row: IntArray
    x: FloatArray
    y: FloatArray
    status: list[str]
    label: IntArray
    effective_count: FloatArray


class Facts:
    """All facts of a fit that a reader needs: ``fitted.facts_``. A part is computed when it is first read, and then kept.

    Attributes
    ----------
    picks : explanations of the representatives, by rank; empty for a detector
    outliers : outliers with their explanations, threshold, and the distribution of counts
    certificate : what is proven, in a ``sentence``, in ``details``, and in numbers: those of ``CoverCertificate``, or for the
        paper's algorithm of ``Certificate``
    curve : coverage of 1, 2, 3, … representatives; None for a detector
    map : the data in the plane
    decisions : what was decided about the data, in sentences
    settings : parameters, constraints and versions, to repeat the fit
    sentence, title : the result in one sentence, and in one line

    Notes
    -----
    1. After a fit by passes the facts are about the rows in memory, and numbers of rows are scaled up from them.

    Examples
    --------
    >>> from mosaic import MOSAIC, datasets
    >>> facts = MOSAIC(20).fit(datasets.blobs_with_gross_outliers().X).facts_
    >>> facts.title
    '20 representatives of 400 rows, 8 outliers'
    >>> len(facts.picks), facts.map.method, facts.outliers.rule
    (20, 'features', 'alone')
    >>> facts.to_dict()["outliers"]["n"]
    8
    """

    def __init__(self, model: Any, file: Any = None, *, outliers_only: bool = False):
        self.model, self.file = model, file  # the open table of its rows, which numbers and names them
        self.selection: Selection = model.selection_
        self.detects, self.scaled = outliers_only or not len(self.selection.rows), self.selection.is_sampled
        self.n_rows, self.k = self.selection.n_rows, 0 if self.detects else len(self.selection.rows)
        names = getattr(model, "feature_names_in_", None)
        self.feature_names = None if names is None else [str(name) for name in names]
        self.is_estimated = self.selection.is_estimated

    @cached_property
    def rows(self) -> RowsInMemory:
        return RowsInMemory(self.selection)

    @cached_property
    def bins(self) -> CountBins:
        return bins_of(self.selection)

    @property
    def decisions(self) -> tuple[str, ...]:
        return self.selection.decisions

    @property
    def coverage(self) -> float | None:
        return None if self.detects else finite(self.selection.coverage)

    @cached_property
    def columns(self) -> Any:
        """Columns that reasons name; None where they have no names."""
        encoder = self.model.encoder_
        return columns_of(self.selection, encoder if encoder.has_rules else None, encoder.names)

    @cached_property
    @one_thread()
    def picks(self) -> tuple[Explanation, ...]:
        return tuple(explain_rows(self.selection, self.selection.rows[: self.k].tolist(), self.columns, self.file))

    @cached_property
    @one_thread()
    def outliers(self) -> Outliers:
        selection, bins = self.selection, self.bins
        odd = np.flatnonzero(selection.outlier_rows)
        odd = odd[np.argsort(selection.counts_of_rows[odd], kind="stable")[:50]]  # these are listed
        rows = selection.data.rows_in_data(odd).tolist()
        lowest, cut = tuple(explain_rows(selection, rows, self.columns, self.file)), float(selection.cut.count)
        is_odd, threshold = selection.outlier_rows, cut if cut > 0 else None
        sides = (np.cumsum(bins.sums(self.rows.weight_of * side)) for side in (~is_odd, is_odd))
        below, above = (np.diff(np.rint(side), prepend=0.0).astype(int).tolist() for side in sides)  # the sums are kept
        kept, n = selection.n_protected, selection.n_outliers
        return Outliers(n, selection.cut.rule, threshold, lowest, bins.edges.tolist(), below, above, kept)

    @cached_property
    def certificate(self) -> SimpleNamespace:
        selection = self.selection
        if self.detects:
            return known_of(None, "Nothing is chosen, so there is nothing to prove.")
        try:
            return known_of(selection.certificate)
        except MemoryBudgetError as error:
            return known_of(None, f"There is no certificate: {error}")

    @property
    def known_certificate(self) -> SimpleNamespace:
        return self.certificate if self.detects or self.selection.is_proven else known_of(None, NOT_COMPUTED)

    @cached_property
    def curve(self) -> Curve | None:
        if self.detects:
            return None
        rows = self.selection.data.rows_in_data(self.ranking.members).tolist()
        return Curve(rows, self.ranking.similarity.tolist(), self.ranking.coverage.tolist(), self.suggested)

    @cached_property
    @one_thread()
    def map(self) -> Map:
        selection, shown = self.selection, self.shown
        rest = np.where(selection.is_outlier[shown], "outlier", "belongs" if self.detects else "represented")
        chosen = np.isin(shown, selection.chosen[: self.k])
        status, counts = np.where(chosen, "representative", rest).tolist(), np.asarray(selection.data.counts)[shown]
        plane, rows, (x, y) = self.plane, self.row_of_point[shown], self.plane.points.T
        return Map(plane.method, list(plane.axes), rows, x, y, status, selection.labels[shown], counts)

    @property
    def settings(self) -> dict[str, Any]:
        data, constraints = self.selection.data, None
        if not self.detects:
            given = data.constraints
            constraints = {
                "must_include": data.rows_in_data(given.must).tolist(),
                "n_not_allowed": int((~given.allowed).sum()),
                "quotas": jsonable(given.quotas),
            }
        versions = {name: import_module(name).__version__ for name in ("mosaic", "numpy", "scipy", "sklearn")}
        return {
            "parameters": jsonable(self.model.get_params(deep=False)),
            "gamma": finite(self.model.gamma_),
            "constraints": constraints,
            "versions": versions | {"python": platform.python_version()},
        }

    # What the page shows, too

    @cached_property
    def suggested(self) -> int | None:
        return None if self.selection.settings.mode == "paper" else suggested_number(self.selection)

    @cached_property
    @one_thread()
    def ranking(self) -> Ranking:
        return NO_RANKING if self.detects else ranking_of(self.selection, self.rows, self.suggested or 0)

    @cached_property
    def row_of_point(self) -> IntArray:
        """For each point, the row of the data that names it: the ranked one, or the first."""
        data = self.selection.data
        rows = data.rows_in_data(data.points.first).copy()
        rows[self.ranking.points] = data.rows_in_data(self.ranking.members)
        return rows

    @cached_property
    def shown(self) -> IntArray:
        """Points on the map: the ranked ones, those with the lowest counts, and others drawn at random."""
        data = self.selection.data
        counts, everybody, rng = np.asarray(data.counts), np.arange(data.points.n), np.random.default_rng(data.seed)
        few = len(everybody) <= MOST_POINTS
        return everybody if few else thinned(self.ranking.points, everybody, counts, MOST_POINTS, rng)

    @cached_property
    def plane(self) -> Plane:
        """Coordinates of the points on the map; numbers that a table became are no columns."""
        names = None if self.model.encoder_.has_rules else self.feature_names
        belongs = ~self.selection.is_outlier[self.shown]
        return plane_of(self.selection, self.shown, belongs, names, np.random.default_rng(self.selection.data.seed))

    @cached_property
    @one_thread()
    def neighbours(self) -> Plane:
        """The points on the map, moved so that those that are similar lie together."""
        selection, shown = self.selection, self.shown
        start = framed(self.plane.points, ~selection.is_outlier[shown]).shares
        first, rng = np.flatnonzero(np.isin(shown, self.ranking.points)), np.random.default_rng(selection.data.seed)
        return plane_of_neighbours(selection.kernel, shown, first, start, rng)

    @cached_property
    @one_thread()
    def changes(self) -> Changes:
        selection = self.selection
        aside = selection.is_outlier & (selection.settings.outliers == "reject")
        return changes_of(selection.kernel, self.ranking.points, self.rows.copies, self.shown, self.k, aside)

    # Texts

    @property
    def title(self) -> str:
        points, n = counted(self.n_rows, "row"), self.selection.n_outliers
        outliers = counted(n, "outlier") if n else "no outliers"
        if self.detects:
            return f"{outliers[0].upper()}{outliers[1:]} among {points}"
        return f"{counted(self.k, 'representative')} of {points}, {outliers}"

    @property
    def sentence(self) -> str:
        if self.detects:
            return f"{self.title}."
        templates = headline(self.n_rows, self.selection.settings.outliers, scaled=self.selection.is_estimated)
        n, excess = self.selection.n_outliers, self.known_certificate.excess
        return sentence(templates, self.k, self.coverage or 0.0, n, excess).replace("**", "")

    def __str__(self) -> str:
        proof = self.known_certificate.sentence
        return self.sentence if proof == NOT_COMPUTED else f"{self.sentence} {proof}"

    __repr__ = __str__

    @one_thread()
    def to_dict(self, *parts: str) -> dict[str, Any]:
        """Some parts, or all, as dicts and lists of plain values, for ``json.dumps``; all include the certificate."""
        found = {name: getattr(self, name) for name in parts or PARTS}
        found |= {name: vars(part) for name, part in found.items() if isinstance(part, SimpleNamespace)}
        found |= {name: asdict(part) for name, part in found.items() if is_dataclass(part)}  # type: ignore[arg-type]
        found |= {"picks": [asdict(pick) for pick in self.picks]} if "picks" in found else {}
        return jsonable(found)  # type: ignore[no-any-return]


def known_of(certificate: Any, sentence: str = "") -> SimpleNamespace:
    """What is known of a certificate of a selection, or of a program; None is not to be proven, or was not asked for."""
    if isinstance(certificate, CoverCertificate):
        parts = {each.name: getattr(certificate, each.name) for each in fields(certificate) if each.repr}
        parts |= {"exchanges": [each._asdict() for each in certificate.exchanges], "excess": certificate.gap}
        return SimpleNamespace(sentence=str(certificate), details=certificate.details(), **parts)
    if certificate is None:
        return SimpleNamespace(sentence=sentence, details="", gap=None, excess=None)
    told, numbers = f"The program behind this is {certificate}.", jsonable(asdict(certificate))
    return SimpleNamespace(sentence=told, details=told, gap=finite(certificate.gap), excess=None, **numbers)


def facts_of(model: Any) -> Facts:
    if not hasattr(type(model), "facts_"):
        fault = f"must be a fitted MOSAIC, MOSAICSampler or MOSAICOutlierDetector; got {type(model).__name__}"
        remedy = "Pass its last step." if hasattr(model, "steps") else "Fit one of these and pass it."
        raise InvalidInputError(fault, remedy, parameter="model")
    check_is_fitted(model)
    return model.facts_  # type: ignore[no-any-return]


def headline(n_points: int, outliers: str, *, scaled: bool, picks: bool = True) -> dict[str, list[str]]:
    """Templates of the parts of the sentence, each for zero, one and several; emphasis stands between ``**``."""
    points, about = counted(n_points, "row"), "about " if scaled else ""
    if not picks:
        many = f"**{about.capitalize()}{{n}} outliers** among {points}"
        found = [f"**No outliers** among {points}", many.replace("{n} outliers", "1 outlier"), many]
        return {"covering": [""] * 3, "chosen": [""] * 3, "outliers": found, "proven": [""] * 3}
    done = "set aside" if outliers == "reject" else "reported"
    found = ["; **no outliers**", f"; **{about}1 outlier** {done}", f"; **{about}{{n}} outliers** {done}"]
    best = "; provably within **{excess}** of the best {k}"
    chosen = f"**{{k}} representatives** of {points}"
    cover = f"{chosen} cover **{{share}}** of those that belong"
    return {
        "covering": [cover, cover.replace("{k} representatives", "1 representative").replace(" cover ", " covers "), cover],
        "chosen": [chosen, chosen.replace("{k} representatives", "1 representative"), chosen],
        "outliers": [""] * 3 if outliers == "keep" else found,
        "proven": [best, best.replace("{k}", "one"), best],
    }


def sentence(templates: dict[str, list[str]], k: int, share: float, n_outliers: int, excess: float | None) -> str:
    told = excess_text(excess)
    text = templates["covering"][min(k, 2)] + templates["outliers"][min(n_outliers, 2)]
    text += "." if told is None else f"{templates['proven'][min(k, 2)]}."
    return text.format(k=f"{k:,}", share=share_text(share), n=f"{n_outliers:,}", excess=told)


def share_text(share: float) -> str:
    """A share in percent with one digit after the point; a share below 1 never reads as 100 %."""
    if share >= 1 or share <= 0:
        return "100 %" if share >= 1 else "0 %"
    return f"{min(100 * share, 99.9):.1f} %"


def excess_text(excess: float | None) -> str | None:
    """The proven excess in percent; None where it says too little to be mentioned."""
    return None if excess is None or excess > GOOD else at_most(excess)


def finite(value: Any) -> float | None:
    """A float, or None for NaN and infinity, which do not exist in JSON."""
    return float(value) if value is not None and math.isfinite(value) else None
