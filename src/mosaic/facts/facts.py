"""The facts of a fit: picks, outliers, certificate, curve, map and decisions, which terminal, JSON, page and figures render."""

from __future__ import annotations

import math
import platform
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mosaic.arrays.blocks import BoolArray, FloatArray, IntArray, in_double, lowest_first
from mosaic.arrays.threads import one_thread
from mosaic.arrays.xp import rows_of
from mosaic.choosing import (
    COVERAGE,
    CoverCertificate,
    Explanation,
    Ranking,
    Selection,
    TableColumns,
    columns_of,
    counted,
    coverage_bounds,
    explain_rows,
    suggested_number,
    with_outliers,
)
from mosaic.exceptions import InvalidInputError, MemoryBudgetError
from mosaic.facts.map import Plane, framed, plane_of, plane_of_neighbours, thinned
from mosaic.facts.ranks import (
    NO_RANKING,
    Changes,
    CountBins,
    RowsInMemory,
    bins_of,
    changes_of,
    ranking_of,
)
from mosaic.program.encoding import Certificate
from mosaic.rows import Rows
from mosaic.text import html_card, html_table, jsonable

#: Largest number of points on the map.
MOST_POINTS = 20_000
#: Picks, outliers and columns in the tables of notebooks, at most.
TABLE_ROWS = 6
TABLE_COLUMNS = 6
#: What all of the facts are, in an order in which the certificate is known before the sentence is made.
PARTS = (
    "certificate",
    "sentence",
    "coverage",
    "picks",
    "outliers",
    "curve",
    "map",
    "decisions",
    "settings",
)
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
    """The row that is added at each k, similarity and coverage of the first k, the coverage that no k rows exceed (None for many
    rows), and the choice of n_representatives="auto".
    """

    row: list[int]
    similarity: list[float]
    coverage: list[float]
    bound: list[float] | None
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
    1. Of many rows, outliers are looked for among all of them, by a pass; the 5000 with the lowest counts are known. All else is
       about the rows in memory, and numbers of rows are scaled up from them.

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

    def __init__(self, model: Any, file: Rows | None = None, *, outliers_only: bool = False):
        self.model = model
        self.file = file  # the open table of its rows, which numbers and names them
        self.selection: Selection = model.selection_
        self.scaled = self.selection.is_sampled
        self.n_rows = self.selection.n_rows
        self.k = 0 if outliers_only else len(self.selection.rows)
        self.detects = not self.k
        self.feature_names: list[str] | None = model.encoder_.names

    @cached_property
    @one_thread()
    def complete(self) -> Selection:
        """The selection with its outliers in memory, too."""
        return with_outliers(self.selection)

    @property
    def has_outliers(self) -> bool:
        """Whether all outliers are known."""
        return int(self.complete.outliers_in_memory.sum()) == self.selection.n_outliers

    @property
    def has_lowest(self) -> bool:
        """Whether no outlier that is not known has a lower count than one that is."""
        return self.complete is not self.selection or self.has_outliers

    @property
    def exact_bins(self) -> int:
        """The number of lowest bins whose numbers of rows are exact."""
        if not self.scaled:
            return len(self.bins.edges)
        return self.bins.threshold if self.has_outliers else 0

    @cached_property
    def rows(self) -> RowsInMemory:
        return RowsInMemory(self.complete)

    @cached_property
    def bins(self) -> CountBins:
        return bins_of(self.complete)

    @property
    def decisions(self) -> tuple[str, ...]:
        return self.selection.decisions

    @property
    def coverage(self) -> float | None:
        return None if self.detects else finite(self.selection.coverage)

    @cached_property
    def columns(self) -> TableColumns | None:
        """Columns that reasons name; None where they have no names."""
        return columns_of(self.selection, self.model.encoder_)

    @cached_property
    @one_thread()
    def picks(self) -> tuple[Explanation, ...]:
        return tuple(
            explain_rows(
                self.selection, self.selection.rows[: self.k].tolist(), self.columns, self.file
            )
        )

    @cached_property
    @one_thread()
    def outliers(self) -> Outliers:
        selection = self.complete
        bins = self.bins
        weights = self.rows.weight_of
        is_odd = selection.outliers_in_memory
        listed = lowest_first(is_odd, selection.counts_in_memory)[:50]
        rows = selection.data.rows_in_data(listed).tolist()

        def in_bins(those: BoolArray) -> list[int]:
            below = np.rint(np.cumsum(bins.sums(weights * those)))  # so that the sums are kept
            return [int(number) for number in np.diff(below, prepend=0.0)]

        cut = float(selection.cut.count)
        return Outliers(
            n=self.selection.n_outliers,
            rule=selection.cut.rule,
            threshold=cut if cut > 0 else None,
            lowest=tuple(explain_rows(self.selection, rows, self.columns, self.file)),
            edges=bins.edges.tolist(),
            belonging=in_bins(~is_odd),
            outlying=in_bins(is_odd),
            protected=self.selection.n_protected,
        )

    @property
    def certificate(self) -> SimpleNamespace:
        selection = self.selection
        if self.detects:
            return known_of(None, "Nothing is chosen, so there is nothing to prove.")
        try:
            certificate = selection.certificate
        except MemoryBudgetError as error:
            return known_of(None, f"There is no certificate: {error}")
        if (
            self.scaled and selection.rejects and isinstance(certificate, CoverCertificate)
        ):  # by now it may be known exactly
            n = selection.n_outliers
            certificate = replace(certificate, n_outliers=n, n_rows=self.n_rows - n)
        return known_of(certificate)

    @property
    def known_certificate(self) -> SimpleNamespace:
        if self.detects or self.selection.is_proven:
            return self.certificate
        return known_of(None, NOT_COMPUTED)

    @cached_property
    @one_thread()
    def curve(self) -> Curve | None:
        if self.detects:
            return None
        ranking = self.ranking
        # Of a sample it would be no answer.
        bound = None if self.scaled else coverage_bounds(self.selection, ranking.members)
        return Curve(
            row=self.selection.data.rows_in_data(ranking.members).tolist(),
            similarity=ranking.similarity.tolist(),
            coverage=ranking.coverage.tolist(),
            bound=None if bound is None else bound.tolist(),
            suggested=self.suggested,
        )

    @cached_property
    @one_thread()
    def map(self) -> Map:
        selection = self.complete
        shown = self.shown
        plane = self.plane
        rest = "belongs" if self.detects else "represented"
        status = np.where(selection.is_outlier[shown], "outlier", rest)
        status = np.where(np.isin(shown, selection.chosen[: self.k]), "representative", status)
        return Map(
            method=plane.method,
            axes=plane.axes,
            row=self.row_of_point[shown],
            x=plane.points[:, 0],
            y=plane.points[:, 1],
            status=status.tolist(),
            label=selection.labels[shown],
            effective_count=selection.data.counts[shown],
        )

    @property
    def settings(self) -> dict[str, Any]:
        data = self.selection.data
        constraints = None
        if not self.detects:
            given = data.constraints
            constraints = {
                "must_include": data.rows_in_data(given.must).tolist(),
                "n_not_allowed": int((~given.allowed).sum()),
                "quotas": jsonable(given.quotas),
            }
        versions = {
            name: import_module(name).__version__
            for name in ("mosaic", "numpy", "scipy", "sklearn")
        }
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
        return NO_RANKING if self.detects else ranking_of(self.selection, self.suggested or 0)

    @cached_property
    def place_of_point(self) -> IntArray:
        """For each point, the row in memory that names it: the ranked one, or the first."""
        data = self.complete.data
        members = self.ranking.members
        if data.row_numbers is not None:
            members = np.searchsorted(data.row_numbers, self.selection.data.rows_in_data(members))
        places = data.points.first.copy()
        places[self.ranking.points] = members
        return places

    @cached_property
    def row_of_point(self) -> IntArray:
        return self.complete.data.rows_in_data(self.place_of_point)

    @cached_property
    def shown(self) -> IntArray:
        """Points on the map: the ranked ones, outliers, those with the lowest counts, and others drawn at random."""
        data = self.complete.data
        if data.points.n <= MOST_POINTS:
            return np.arange(data.points.n)
        always = np.union1d(self.ranking.points, np.flatnonzero(self.complete.is_outlier))
        return thinned(always, data.counts, MOST_POINTS, self._rng)

    @property
    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(self.selection.data.seed)

    @cached_property
    def belongs(self) -> BoolArray:
        """Which of the points on the map are no outliers."""
        return ~self.complete.is_outlier[self.shown]

    @cached_property
    def plane(self) -> Plane:
        """Coordinates of the points on the map; numbers that a table became are no columns."""
        names = None if self.model.encoder_.has_rules else self.feature_names
        return plane_of(self.complete, self.shown, self.belongs, names, self._rng)

    @cached_property
    @one_thread()
    def neighbours(self) -> Plane:
        """The points on the map, moved so that those that are similar lie together."""
        start = framed(self.plane.points, self.belongs).shares
        first = np.flatnonzero(np.isin(self.shown, self.ranking.points))
        return plane_of_neighbours(self.complete.kernel, self.shown, first, start, self._rng)

    @cached_property
    @one_thread()
    def changes(self) -> Changes:
        selection = self.complete
        aside = selection.is_outlier & (selection.settings.outliers == "reject")
        return changes_of(
            selection.kernel, self.ranking.points, self.rows.copies, self.shown, self.k, aside
        )

    # Texts

    @property
    def n_outliers(self) -> str:
        return outliers_in_words(self.selection.n_outliers, self.selection.is_estimated)

    @property
    def title(self) -> str:
        if self.detects:
            return self.sentence.removesuffix(".")
        return f"{counted(self.k, 'representative')} of {counted(self.n_rows, 'row')}, {self.n_outliers}"

    @property
    def sentence(self) -> str:
        templates = headline(self.n_rows, self.selection.settings.outliers, picks=not self.detects)
        return sentence(
            templates, self.k, share_text(self.coverage or 0.0), self.n_outliers
        ).replace("**", "")

    def __str__(self) -> str:
        proof = self.known_certificate.sentence
        return self.sentence if proof == NOT_COMPUTED else f"{self.sentence} {proof}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        # Those of a sample are looked for by a pass, which nobody has asked for.
        return self.card(outliers=not self.scaled)

    def card(self, *, outliers: bool = False) -> str:
        """The sentence and the picks, for a notebook; and the outliers, which are all that a detector has."""
        said = str(self)
        tables = [] if self.detects else [self.picks_html()]
        if outliers or self.detects:
            tables.append(self.outliers_html())
        return html_card(said, *tables, text=[] if self.detects else [COVERAGE])

    def picks_html(self) -> str:
        """The first picks as a table, with their cells in the first columns that are compared, where these have names."""
        head = ["", "row", "stands for"]
        rows = [[p.rank, p.name or p.row, f"{p.stands_for:,}"] for p in self.picks]
        selection = self.selection
        columns = self.columns
        if columns is not None and selection.usual is not None:
            numbers = in_double(rows_of(selection.kernel.X, selection.chosen[:TABLE_ROWS]))
            Z = selection.data.geometry.prepare.undone(numbers)
            shown = list(columns.blocks.items())[:TABLE_COLUMNS]
            head += [name for name, _ in shown]
            for row, pick, z in zip(rows, self.picks, Z, strict=False):
                row += [columns.reading(name, z[block], pick.row).value for name, block in shown]
        return html_table(head, rows, TABLE_ROWS)

    def outliers_html(self) -> str:
        """The oddest outliers as a table, with the cells that make them odd."""
        rows = []
        for place, odd in enumerate(self.outliers.lowest, 1):
            cells = "; ".join(f"{column} {cell}" for column, cell, _ in odd.columns)
            rows.append([place, odd.name or odd.row, f"{odd.effective_count:.3g}", cells])
        return html_table(("", "row", "effective count", "odd cells"), rows, TABLE_ROWS)

    @one_thread()
    def to_dict(self, *parts: str) -> dict[str, Any]:
        """Some parts, or all, as dicts and lists of plain values, for ``json.dumps``; all include the certificate."""
        wanted = parts or PARTS
        if "outliers" in wanted:
            self.outliers  # noqa: B018 - from now on the number of outliers is exact, in the sentence, too
        found = {}
        for name in wanted:
            part = getattr(self, name)
            if isinstance(part, SimpleNamespace):
                part = vars(part)
            elif name == "picks":
                part = list(map(asdict, part))
            elif isinstance(part, Outliers | Curve | Map):
                part = asdict(part)
            found[name] = part
        return jsonable(found)  # type: ignore[no-any-return]


def known_of(
    certificate: CoverCertificate | Certificate | None, sentence: str = ""
) -> SimpleNamespace:
    """What is known of a certificate of a selection, or of a program; None is not to be proven, or was not asked for."""
    if isinstance(certificate, CoverCertificate):
        parts = {
            each.name: getattr(certificate, each.name) for each in fields(certificate) if each.repr
        }
        parts |= {"exchanges": [each._asdict() for each in certificate.exchanges]}
        return SimpleNamespace(sentence=str(certificate), details=certificate.details(), **parts)
    if certificate is None:
        return SimpleNamespace(sentence=sentence, details="", gap=None)
    told = f"The program behind this is {certificate}."
    numbers = jsonable(asdict(certificate))
    return SimpleNamespace(sentence=told, details=told, gap=finite(certificate.gap), **numbers)


def facts_of(model: Any) -> Facts:
    if not hasattr(type(model), "facts_"):
        fault = f"must be a fitted MOSAIC, MOSAICSampler or MOSAICOutlierDetector; got {type(model).__name__}"
        remedy = (
            "Pass its last step." if hasattr(model, "steps") else "Fit one of these and pass it."
        )
        raise InvalidInputError(fault, remedy, parameter="model")
    check_is_fitted(model)
    return model.facts_  # type: ignore[no-any-return]


def headline(n_points: int, outliers: str, *, picks: bool) -> dict[str, str]:
    """Templates of the parts of the sentence: with the coverage, without it, and the outliers; emphasis stands between ``**``."""
    points = counted(n_points, "row")
    if not picks:
        return {"covering": "", "chosen": "", "outliers": f"**{{n}}** among {points}"}
    chosen = f"**{{k}}** of {points}"
    done = {"reject": "; **{n}** set aside", "report": "; **{n}** reported", "keep": ""}
    return {
        "covering": f"{chosen}, coverage **{{share}}**",
        "chosen": chosen,
        "outliers": done[outliers],
    }


def outliers_in_words(number: int, is_estimated: bool) -> str:
    """How many there are: "no outliers", "8 outliers", "about 8 outliers"."""
    if not number:
        return "no outliers"
    return f"{'about ' if is_estimated else ''}{counted(number, 'outlier')}"


def sentence(templates: dict[str, str], k: int, share: str, outliers: str) -> str:
    """The result with this coverage; without representatives it begins with the outliers."""
    if not k:
        outliers = f"{outliers[0].upper()}{outliers[1:]}"
    text = f"{templates['covering']}{templates['outliers']}."
    return text.format(k=counted(k, "representative"), share=share, n=outliers)


def coverage_text(share: float, bound: float | None) -> str:
    """The coverage of k rows beside what no k rows exceed, where that is known."""
    if bound is None:
        return share_text(share)
    return f"{share_text(share)} of at most {bound_text(bound)}"


def share_text(share: float) -> str:
    """A share in percent with one digit after the point; a share below 1 never reads as 100 %."""
    if share >= 1:
        return "100 %"
    percent = f"{min(100 * share, 99.9):.1f}"
    return f"{percent} %" if float(percent) else "0 %"


def bound_text(share: float) -> str:
    """The same, rounded up."""
    return share_text(math.ceil(1000 * share) / 1000)


def finite(value: Any) -> float | None:
    """A float, or None for NaN and infinity, which do not exist in JSON."""
    return float(value) if value is not None and math.isfinite(value) else None
