"""The facts of a fit as plain data: frozen dataclasses of lists, numbers and strings, and the sentence that sums them up."""

from __future__ import annotations

import math
import platform
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from mosaic.choosing import counted, percent
from mosaic.text import html_card, html_table

#: A detector has no representatives: its rows that are not outliers "belong" instead of being "represented".
RowStatus: TypeAlias = Literal["representative", "outlier", "represented", "belongs"]

#: Rows of a table in a notebook.
MOST_SHOWN = 6


@dataclass(frozen=True)
class PointMap:
    """The data in the plane, one entry of each list for each row that is shown.

    Attributes
    ----------
    method : "features" (two features as they are), "principal axes of the features" or "… of the similarity"
    axes : names of the two coordinates
    row : row numbers, ascending
    x, y : coordinates
    status : "representative", "outlier" or "represented"; for a detector "outlier" or "belongs"
    label : rank of each row's representative, -1 for rejected outliers; None for a detector
    effective_count : number of rows that look like each row
    representation_error : share of each row that the representatives cannot express; None for a detector
    name : names of the rows, if they were given
    """

    method: str
    axes: list[str]
    row: list[int]
    x: list[float]
    y: list[float]
    status: list[RowStatus]
    label: list[int] | None
    effective_count: list[float]
    representation_error: list[float] | None
    name: list[str] | None


@dataclass(frozen=True)
class Representative:
    """One representative.

    Attributes
    ----------
    rank : place among the representatives, from 0
    row : row number
    name : name of the row, if names were given
    stands_for : rows that it represents, itself included
    gain : increase of the mean similarity of points to their nearest representative; in paper mode its influence
    influence : norm of its row in the encoding; None while the program is not solved
    effective_count : number of rows that look like it, of the rows that it was compared with
    is_outlier : possible with outliers="report" only
    reason : why it was chosen, in a sentence
    members : the most similar rows that it represents
    """

    rank: int
    row: int
    name: str | None
    stands_for: int
    gain: float | None
    influence: float | None
    effective_count: float
    is_outlier: bool
    reason: str
    members: list[int]


@dataclass(frozen=True)
class OutlierRow:
    """One outlier: its row, name, effective count, and the reason."""

    row: int
    name: str | None
    effective_count: float
    reason: str


@dataclass(frozen=True)
class TradeOff:
    """The number of outliers, by weight, with this ``min_group``."""

    min_group: int
    n_outliers: int


@dataclass(frozen=True)
class OutlierPart:
    """Outliers, and the distribution of effective counts that separates them from the other rows.

    Attributes
    ----------
    threshold : effective count below which rows are outliers, None if there is no such count
    rule : how the threshold was found: "valley", "alone", "contamination", "threshold" or "none"
    lowest : outliers with the lowest counts, lowest first
    edges : edges of the histogram, in log of the effective count; a threshold between the first and the last is one of them
    belonging, outlying : number of rows in each bin that belong, and that are outliers
    protected : rows below the threshold that are no outliers because they form a group of at least ``min_group``
    trade_off : TradeOff for some values of ``min_group``; empty without outliers or with more than 2000
    """

    threshold: float | None
    rule: str
    lowest: list[OutlierRow]
    edges: list[float]
    belonging: list[int]
    outlying: list[int]
    protected: int = 0
    trade_off: list[TradeOff] = field(default_factory=list)


@dataclass(frozen=True)
class CurvePart:
    """Similarity and coverage of 1, 2, 3, … representatives, one entry of each list for each k. The sets are nested.

    Attributes
    ----------
    k : 1, 2, 3, …
    row : the row that is added at k
    similarity : mean similarity of points to their nearest representative, without outliers
    coverage : share of the points, without outliers, that the first k express
    suggested : the choice of n_representatives="auto"
    """

    k: list[int]
    row: list[int]
    similarity: list[float]
    coverage: list[float]
    suggested: int


@dataclass(frozen=True)
class CertificatePart:
    """The certificate, as in ``mosaic.choosing.SelectionCertificate``; None for values that were not computed."""

    gap: float | None
    kernel_error: float | None
    rank: int | None
    error: float | None
    bound: float | None
    excess: float | None
    sentence: str
    ridge: float | None = None
    total: float | None = None
    error_without_ridge: float | None = None
    bound_without_ridge: float | None = None


@dataclass(frozen=True)
class Summary:
    """All facts of a fit that a reader or a report needs, as plain data.

    Attributes
    ----------
    estimator : name of its class
    n_points, n_features, feature_names : numbers of rows and columns, and column names
    n_outliers : rows below the threshold
    n_representatives, coverage : number of representatives, and the share of the points, without outliers, that they express
    certificate : CertificatePart
    map : PointMap, the data in the plane
    representatives : list of Representative, by rank
    outliers : OutlierPart
    curve : CurvePart
    settings : parameters, values derived from them, constraints and versions, to repeat the fit
    scaled : whether numbers of rows are scaled up from a sample, as after a fit by passes

    Notes
    -----
    1. Parts that an estimator does not have are None: a detector has no representatives and no curve.
    """

    estimator: str
    n_points: int
    n_features: int
    feature_names: list[str] | None
    n_outliers: int
    n_representatives: int | None
    coverage: float | None
    certificate: CertificatePart
    map: PointMap | None = field(repr=False)
    representatives: list[Representative] | None = field(repr=False)
    outliers: OutlierPart = field(repr=False)
    curve: CurvePart | None = field(repr=False)
    settings: dict[str, Any] = field(repr=False)
    scaled: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The same as dicts and lists of plain values, for ``json.dumps``."""
        return asdict(self)

    @property
    def title(self) -> str:
        """The result in one line: ``20 representatives of 400 points, 8 outliers``."""
        points = counted(self.n_points, "point")
        outliers = counted(self.n_outliers, "outlier") if self.n_outliers else "no outliers"
        if self.n_representatives is None:
            return f"{outliers[0].upper()}{outliers[1:]} among {points}"
        return f"{counted(self.n_representatives, 'representative')} of {points}, {outliers}"

    @property
    def sentence(self) -> str:
        """The result in one sentence: how many rows are represented, how many are outliers, and the proven bound.

        Examples
        --------
        >>> from mosaic import MOSAIC, datasets
        >>> from mosaic.inspection import summary
        >>> summary(MOSAIC(5).fit(datasets.blobs_with_gross_outliers().X), certificate=False).sentence
        '5 representatives cover 72.2 % of 400 points; 8 outliers set aside.'
        """
        if self.n_representatives is None:
            return f"{self.title}."
        outliers, proven = self.settings["parameters"]["outliers"], self.certificate
        templates = headline(self.n_points, outliers, scaled=self.scaled)
        text = sentence(templates, self.n_representatives, self.coverage or 0.0, self.n_outliers, proven.excess)
        return text.replace("**", "")

    def __str__(self) -> str:
        return f"{self.title}. {self.certificate.sentence}"

    def _repr_html_(self) -> str:
        picks = [(p.rank + 1, p.name or p.row, f"{p.stands_for:,}", p.reason) for p in self.representatives or ()]
        odd = [(o.name or o.row, f"{o.effective_count:.3g}", o.reason) for o in self.outliers.lowest]
        return html_card(
            self.sentence,
            html_table(["", "representative", "stands for", "why"], picks, MOST_SHOWN),
            html_table(["outlier", "rows that look like it", "why"], odd, MOST_SHOWN),
            text=[self.certificate.sentence],
        )


def headline(n_points: int, outliers: str, *, scaled: bool) -> dict[str, list[str]]:
    """Templates of the parts of the sentence, each for zero, one and several; emphasis stands between ``**``.

    The page of a report fills in {k}, {share}, {n} and {excess} for the positions of its sliders.

    Parameters
    ----------
    n_points : rows of the data
    outliers : treatment of outliers: "reject", "report", or "keep", which does not detect any
    scaled : whether numbers of outliers are estimates
    """
    of = f"of {counted(n_points, 'point')}"
    many = "**{k} representatives**"
    about, done = "about " if scaled else "", "set aside" if outliers == "reject" else "reported"
    found = ["; **no outliers**", f"; **{about}1 outlier** {done}", f"; **{about}{{n}} outliers** {done}"]
    best = "; provably at most **{excess}** more unexplained than by the best {k}"
    return {
        "covering": [
            f"{many} cover **{{share}}** {of}",
            f"**1 representative** covers **{{share}}** {of}",
            f"{many} cover **{{share}}** {of}",
        ],
        "chosen": [f"{many} {of}", f"**1 representative** {of}", f"{many} {of}"],
        "outliers": ["", "", ""] if outliers == "keep" else found,
        "proven": [best, best.replace("{k}", "one"), best],
    }


def outlier_headline(n_points: int, *, scaled: bool) -> dict[str, list[str]]:
    """The same templates for a page about outliers, which has no representatives."""
    among, about = f"among {counted(n_points, 'point')}", "About " if scaled else ""
    found = [f"**No outliers** {among}", f"**{about}1 outlier** {among}", f"**{about}{{n}} outliers** {among}"]
    nothing = ["", "", ""]
    return {"covering": nothing, "chosen": nothing, "outliers": found, "proven": nothing}


def alike_text(count: float, of: float) -> str:
    """What an effective count says, ``of`` so many rows that a row was compared with.

    Examples
    --------
    >>> alike_text(1.004, 128), alike_text(3.14159, 128)
    ('no other row looks like it', 'about 3.1 of 128 rows look like it')
    """
    return "no other row looks like it" if count < 1.05 else f"about {count:.2g} of {of:,.0f} rows look like it"


def sentence(templates: dict[str, list[str]], k: int, share: float, n_outliers: int, excess: float | None) -> str:
    """The whole sentence from its templates."""
    told = excess_text(excess)
    text = templates["covering"][min(k, 2)] + templates["outliers"][min(n_outliers, 2)]
    text += "." if told is None else f"{templates['proven'][min(k, 2)]}."
    return text.format(k=f"{k:,}", share=share_text(share), n=f"{n_outliers:,}", excess=told)


def share_text(share: float) -> str:
    """A share in percent with one digit after the point; a share below 1 never reads as 100 %.

    Examples
    --------
    >>> share_text(0.7222), share_text(0.99999), share_text(1.0), share_text(0.0)
    ('72.2 %', '99.9 %', '100 %', '0 %')
    """
    if share >= 1 or share <= 0:
        return "100 %" if share >= 1 else "0 %"
    return f"{min(100 * share, 99.9):.1f} %"


def excess_text(excess: float | None) -> str | None:
    """The proven excess in percent; None above 100 %, which says too little to be mentioned."""
    return None if excess is None or excess > 1 else percent(excess)


def finite(value: Any) -> float | None:
    """A float, or None for NaN and infinity, which do not exist in JSON.

    Examples
    --------
    >>> finite(np.float32(0.5)), finite(float("nan")), finite(None)
    (0.5, None, None)
    """
    return float(value) if value is not None and math.isfinite(value) else None


def versions() -> dict[str, str]:
    """Versions of the library, of Python, and of the packages that affect the numbers."""
    import scipy
    import sklearn

    import mosaic  # here, because mosaic may still be importing this module

    modules = (mosaic, np, scipy, sklearn)
    return {module.__name__: str(module.__version__) for module in modules} | {"python": platform.python_version()}
