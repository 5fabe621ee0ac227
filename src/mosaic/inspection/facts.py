"""The facts of a fit as plain data, in frozen dataclasses of lists, numbers and strings."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

#: "belongs" is what a detector says of a row that is no outlier: nobody represents it.
RowStatus: TypeAlias = Literal["representative", "outlier", "represented", "belongs"]


@dataclass(frozen=True)
class PointMap:
    """The data in the plane, one entry of each list for each row that is shown.

    Attributes
    ----------
    method : "features" (two features as they are), "principal axes of the features" or "… of the similarity"
    axes : what the two coordinates are
    row : row numbers, ascending
    x, y : coordinates
    status : "representative", "outlier" or "represented"; of a detector "outlier" or "belongs"
    label : rank of the representative that stands for each, -1 for rejected outliers; None for a detector
    effective_count : number of rows that look like each
    representation_error : share of each that the representatives cannot express; None for a detector
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
    """One of the chosen.

    Attributes
    ----------
    rank : place among the chosen, from 0
    row : row number
    name : of the row, if names were given
    stands_for : rows that it represents, itself included
    gain : what it added to the mean similarity of the points that belong to their nearest pick; in paper mode its influence
    influence : norm of its row in the encoding; None while nobody has asked for the program
    effective_count : number of rows that look like it, among those that it was compared with
    is_outlier : possible with outliers="report" only
    reason : why it was chosen, in a sentence
    members : the most similar of the rows that it represents
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
    """One of the outliers: its row, name, effective count, and why it is one."""

    row: int
    name: str | None
    effective_count: float
    reason: str


@dataclass(frozen=True)
class TradeOff:
    """How many outliers there would be with this ``min_group``, by weight."""

    min_group: int
    n_outliers: int


@dataclass(frozen=True)
class OutlierPart:
    """Outliers, and the distribution that tells them from the others.

    Attributes
    ----------
    threshold : effective count below which rows are outliers, None if there is no such count
    rule : where it came from: "valley", "alone", "contamination", "threshold" or "none"
    lowest : outliers with the lowest counts, lowest first
    edges : of the bins of the histogram, in log of the effective count; a threshold between the first and the last is one of them
    belonging, outlying : rows in each bin that belong, and that are outliers
    protected : rows below the threshold that are no outliers because min_group of them are a group
    trade_off : TradeOff for some sizes of groups; none if there are no outliers, or more than 2000
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
    """What 1, 2, 3, … representatives cover, one entry of each list for each k. The sets are nested.

    Attributes
    ----------
    k : 1, 2, 3, …
    row : the row that comes in at k
    similarity : mean similarity of the points that belong to their nearest representative
    coverage : share of the points that belong which the first k express
    knee : k at which ``similarity`` turns from steep to flat, what n_representatives="auto" takes
    """

    k: list[int]
    row: list[int]
    similarity: list[float]
    coverage: list[float]
    knee: int


@dataclass(frozen=True)
class CertificatePart:
    """What is proven, as in ``mosaic.choosing.SelectionCertificate``; None what nobody has asked for."""

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
    """Everything about a fit that a person or a report wants to know, as plain data.

    Attributes
    ----------
    estimator : name of its class
    n_points, n_features, feature_names : of the data
    n_outliers : rows below the threshold
    n_representatives, coverage : how many were chosen, and the share of the points that belong which they express
    certificate : CertificatePart
    map : PointMap, the data in the plane
    representatives : Representative for each, by rank
    outliers : OutlierPart
    curve : CurvePart
    settings : parameters, what was made of them, constraints and versions, to do it again
    scaled : whether numbers of rows are scaled up from a sample, as after a fit by passes

    Notes
    -----
    1. What an estimator does not have is None: a detector has no representatives and no curve.
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
        """The same as dicts and lists of plain values, which ``json.dumps`` takes."""
        return asdict(self)

    @property
    def title(self) -> str:
        """The answer in one line."""
        points = counted(self.n_points, "point")
        outliers = counted(self.n_outliers, "outlier") if self.n_outliers else "no outliers"
        if self.n_representatives is None:
            return f"{outliers[0].upper()}{outliers[1:]} among {points}"
        return f"{counted(self.n_representatives, 'representative')} of {points}, {outliers}"

    def __str__(self) -> str:
        return f"{self.title}. {self.certificate.sentence}"


def counted(number: int, noun: str) -> str:
    """A number and its noun.

    Examples
    --------
    >>> counted(1, "point"), counted(1887, "point")
    ('1 point', '1,887 points')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
