"""Why a row was chosen, rejected or left out, as plain data that reads as a sentence, and what was decided about the data.

Reasons name columns. The kernel's distance is a sum over columns, d(x, y) = Σ_c d_c(x, y), d_c = Σ_{j ∈ c} |x_j − y_j|^p over the
numbers j of column c. Named are unusual values: of an outlier, those that make up most of the distance to the nearest row that
belongs; of a representative, those that are farthest from the mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from scipy.special import logsumexp

from mosaic.arrays.blocks import FloatArray, IntArray, in_double, subsample
from mosaic.arrays.xp import rows_of
from mosaic.choosing.answers import places_at
from mosaic.choosing.certificate import counted
from mosaic.choosing.geometry import ColumnReason, TableColumns
from mosaic.choosing.outliers import CROWD_SHARE, outlier_probability
from mosaic.choosing.settings import is_auto
from mosaic.exceptions import InvalidInputError
from mosaic.kernels import StationaryKernel
from mosaic.parameters import is_whole
from mosaic.text import NO_NAMES, html_card, html_table, listed

if TYPE_CHECKING:
    from mosaic.choosing.selection import Selection

#: Rows that an outlier is compared with to find its reasons, at most.
COMPARED_ROWS = 2048
#: Columns that a reason names, at most.
MOST_NAMED_COLUMNS = 3
#: By the rule of the cut: what is said of an outlier, and of all of them.
RULES = {
    "alone": ("", "too few similar rows. On clean data this rule rarely flags more than 1 %"),
    "valley": ("", "a valley in the effective counts separates them from the rest"),
    "contamination": (" It is within the given contamination.", "the given contamination"),
    "threshold": ("", "those below the threshold that was given"),
    "none": ("", "more than 5 % of the rows are alone, so being alone is not unusual here"),
}
#: What is said where none are found, if that is something else.
RULES_WITHOUT = {
    "alone": "every row has similar rows",
    "threshold": "no count is below the threshold",
}
#: What tables of picks say of each, in columns that begin with ``mosaic_``.
PICK_COLUMNS = ("rank", "row", "stands_for", "effective_count", "reason")


@dataclass(frozen=True)
class Explanation:
    """One row and its part in the answer; a detector has no representatives.

    ``stands_for`` is how many rows a representative stands for, itself included, ``members`` the most similar of them, ``gain``
    what it adds to the mean similarity of rows to theirs (in paper mode its influence). ``representation_error`` is the distance
    to its representative over the mean distance to the best single row. ``columns`` are those that the reason names, what the
    row has in them, and their shares of the distance. ``proven`` is what the certificate proves about the row, empty if it has
    not been computed.
    """

    row: int
    name: str | None
    status: Literal["representative", "outlier", "represented", "belongs"]
    reason: str
    rank: int | None
    stands_for: int
    effective_count: float
    is_outlier: bool
    outlier_probability: float | None  # in paper mode
    representation_error: float | None
    represented_by: int | None
    similarity: float | None
    gain: float | None
    members: tuple[int, ...]  # five at most
    columns: tuple[tuple[str, str, float], ...]
    proven: str

    @property
    def called(self) -> str:
        """The row in a sentence: "C17 (row 3)", "Row 3"."""
        return f"Row {self.row}" if self.name is None else f"{self.name} (row {self.row})"

    def __str__(self) -> str:
        return f"{self.called}: {self.reason} {self.proven}".strip()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        cells = [(column, cell, f"{share:.0%}") for column, cell, share in self.columns]
        return html_card(
            f"{self.called}: {self.status}",
            html_table(("column", "cell", "share"), cells),
            text=[f"{self.reason[0].upper()}{self.reason[1:]}", self.proven],
        )


def explain_rows(
    selection: Selection, rows: Sequence[Any], columns: TableColumns | None, file: Any = None
) -> list[Explanation]:
    """The explanations of rows of the data, which may count from the end, with columns from ``columns_of``; ``file`` is an open
    table that numbers and names them (``mosaic.rows.Rows``). Rows that a fit by passes did not keep are read.
    """
    n = selection.n_rows
    for i in rows:
        if not (is_whole(i, -n) and int(i) < n):
            fault = f"must be a row number between 0 and {n - 1}"
            remedy = NO_NAMES if isinstance(i, str) else None
            raise InvalidInputError(fault, remedy, parameter="i", value=i)
    numbers = [int(i) % n for i in rows]
    missing = sorted({row for row in numbers if where_in_memory(selection, row) < 0})
    all_rows = selection.data.all_rows
    if missing and not all_rows.is_possible:
        saved = f"the {len(selection.counts_in_memory):,} rows that this model was saved with, and only these can be explained"
        remedy = "predict, transform and score_samples answer for any row."
        raise InvalidInputError(f"`row {missing[0]}` is not among {saved}", remedy)
    fetched = {}
    if missing:
        numbers_of_missing = in_double(all_rows.rows(np.array(missing), selection.data))
        fetched = dict(zip(missing, numbers_of_missing, strict=True))
    return [_explained(selection, row, fetched, columns, file) for row in numbers]


def _explained(
    selection: Selection,
    row: int,
    fetched: Mapping[int, FloatArray],
    columns: TableColumns | None,
    file: Any,
) -> Explanation:
    found = _FoundRow.of(selection, row, fetched)
    names = _Names(selection, file)
    pick = _Pick.of(found)
    status: Any = "represented" if len(selection.rows) else "belongs"
    reasons: list[ColumnReason] = []
    if pick is not None:
        status = "representative"
        reasons = found.columns_by(typical_columns, columns)
        others = [other for other in pick.closest if other != row]
        if others and not reasons:
            reasons = shared_columns(selection, columns, found.point, pick.points)
        reason = _why_chosen(found, pick, reasons, [names.short(other) for other in others[:3]])
    elif found.is_outlier:
        status = "outlier"
        reasons = found.columns_by(odd_columns, columns)
        reason = _why_rejected(found, reasons, names)
    elif found.label >= 0:
        reason = _why_not_chosen(found, names)
    else:
        reason = _why_it_belongs(found)
    data = selection.data
    is_paper = selection.settings.mode == "paper"
    op = float(outlier_probability(np.asarray(found.count), data.count_total))
    return Explanation(
        row=row,
        name=names.of(row),
        status=status,
        reason=reason,
        rank=None if pick is None else pick.rank + 1,
        stands_for=0 if pick is None else pick.stands_for,
        effective_count=found.count,
        is_outlier=found.is_outlier,
        outlier_probability=op if is_paper else None,
        representation_error=found.error if len(selection.rows) else None,
        represented_by=found.representative,
        similarity=found.similarity,
        gain=None if pick is None else float(selection.gains[pick.rank]),
        members=() if pick is None else tuple(pick.closest),
        columns=tuple((reason.column, reason.value, reason.share) for reason in reasons),
        proven=selection.proven_of(row),
    )


@dataclass(frozen=True)
class _FoundRow:
    """A row of the data and what was found about it. ``place`` is its row in memory and ``point`` its point, -1 without one;
    ``numbers`` are prepared, None where the kernel compares no columns. ``label`` is the place of its representative, or -1.
    """

    selection: Selection
    row: int
    place: int
    point: int
    numbers: Any
    label: int
    error: float
    count: float
    is_outlier: bool

    @classmethod
    def of(cls, selection: Selection, row: int, fetched: Mapping[int, FloatArray]) -> _FoundRow:
        data = selection.data
        kernel = selection.kernel
        point_of = data.points.point_of
        place = where_in_memory(selection, row)
        if place < 0:
            numbers: Any = fetched[row][None, :]
            label, _, error, count, flagged = places_at(selection, numbers)[0].tolist()
            return cls(selection, row, -1, -1, numbers, int(label), error, count, flagged > 0)
        point = int(point_of[place])
        if point < 0:  # it has no weight
            numbers = data.absent[[np.count_nonzero(point_of[:place] < 0)]]
        else:
            numbers = kernel.X[[point]] if isinstance(kernel, StationaryKernel) else None
        return cls(
            selection,
            row,
            place,
            point,
            numbers,
            selection.labels_in_memory[place].item(),
            selection.errors_in_memory[place].item(),
            selection.counts_in_memory[place].item(),
            selection.outliers_in_memory[place].item(),
        )

    def similarities(self, points: IntArray) -> FloatArray:
        kernel = self.selection.kernel
        if self.point >= 0:
            return np.asarray(kernel.block(np.array([self.point]), points)[0])
        return np.asarray(kernel.take(points).cross(self.numbers)[0])

    @property
    def representative(self) -> int | None:
        return None if self.label < 0 else int(self.selection.rows[self.label])

    @property
    def similarity(self) -> float | None:
        if self.label < 0:
            return None
        return float(self.similarities(self.selection.chosen[[self.label]])[0])

    def columns_by(self, named: Any, columns: TableColumns | None) -> list[ColumnReason]:
        """The columns that a rule names: ``odd_columns`` or ``typical_columns``."""
        numbers = None if self.numbers is None else in_double(self.numbers)
        reasons: list[list[ColumnReason]] = named(
            self.selection, columns, numbers, np.array([self.row]), np.array([self.point])
        )
        return reasons[0]


class _Pick(NamedTuple):
    """A representative: its rank from 0, how many rows it stands for, of these the points, and the most similar rows."""

    rank: int
    stands_for: int
    points: IntArray
    closest: list[int]

    @classmethod
    def of(cls, found: _FoundRow) -> _Pick | None:
        selection = found.selection
        if found.place < 0 or found.place not in selection.members:
            return None
        rank = int(np.flatnonzero(selection.members == found.place)[0])
        members = np.flatnonzero(selection.labels_in_memory == rank)
        stands_for = round(float(selection.stands_for[rank]))
        point_of = selection.data.points.point_of
        weighted = members[point_of[members] >= 0]
        points = point_of[weighted]
        similar = selection.kernel.block(points, selection.chosen[[rank]]).ravel()
        closest = weighted[np.argsort(-similar, kind="stable")[:5]]
        return cls(rank, stands_for, points, selection.data.rows_in_data(closest).tolist())


@dataclass(frozen=True)
class _Names:
    """How rows are called: by the names of the fit, else by those of an open table."""

    selection: Selection
    file: Any

    def of(self, row: int) -> str | None:
        known = self.selection.data.row_names
        file = self.file
        if known is not None and (known.rows is None or where_in_memory(self.selection, row) >= 0):
            return str(known[row])
        return file.names([row])[0] if file is not None and file.has_names else None

    def short(self, row: int) -> str:
        return self.of(row) or f"row {row}"

    def long(self, row: int) -> str:
        name = self.of(row)
        return f"row {row}" if name is None else f"{name} (row {row})"


def _why_chosen(
    found: _FoundRow, pick: _Pick, reasons: Sequence[ColumnReason], similar: Sequence[str]
) -> str:
    selection = found.selection
    why = f"most similar: {listed(similar)}" if similar else "no other row is like it"
    if reasons:
        why = contrasts(reasons)
    forced = selection.data.constraints.must
    is_forced = found.place in forced and len(forced) < len(selection.rows)
    must = " It had to be included." if is_forced else ""
    about = "about " if selection.is_sampled else ""
    number = f"{about}{counted(pick.stands_for, 'row')}"
    place = f"number {pick.rank + 1} of {len(selection.rows)}"
    return f"chosen as {place}: it stands for {number}; {why}.{must}"


def _why_rejected(found: _FoundRow, reasons: Sequence[ColumnReason], names: _Names) -> str:
    selection = found.selection
    why = why_odd(selection, found.count, reasons)
    if not len(selection.rows):
        return f"an outlier: {why}"
    fate = "rejected" if selection.settings.outliers == "reject" else "reported"
    reason = f"{fate} as an outlier: {why}"
    if reasons:
        return reason
    # No columns can be named, as of pictures.
    nearest = int(selection.rows[np.argmax(found.similarities(selection.chosen))])
    return f"{reason} The representative nearest to it is {names.short(nearest)}."


def _why_not_chosen(found: _FoundRow, names: _Names) -> str:
    assert found.representative is not None
    is_allowed = found.place < 0 or found.selection.data.constraints.allowed[found.place]
    why = "" if is_allowed else " It was not allowed to be chosen."
    nearest = f"{names.long(found.representative)} stands for it"
    return f"not chosen: {nearest} with similarity {found.similarity:.3g}.{why}"


def _why_it_belongs(found: _FoundRow) -> str:
    selection = found.selection
    why = likeness(found.count, selection.data.count_total)
    if found.place in selection.data.constraints.fine:
        return f"belongs: {why}, but it is marked as fine."
    if found.place < 0 or selection.protected is None or not selection.protected[found.place]:
        return f"belongs: {why}."
    smallest = selection.settings.min_group
    near = f"one of a group of at least {smallest:g} rows" if smallest else "near to other rows"
    return f"belongs: {why}, but it is {near}."


def why_odd(selection: Selection, count: float, reasons: Sequence[ColumnReason]) -> str:
    """Why a row is an outlier: its unusual values, and how many rows look like it."""
    alike = likeness(count, selection.data.count_total)
    if reasons:
        alike = f"{oddities(reasons)}. {alike[0].upper()}{alike[1:]}"
    return f"{alike}.{RULES[selection.cut.rule][0]}"


def likeness(count: float, of: float) -> str:
    """What an effective count says, where a row was compared with ``of`` others."""
    if count < 2:
        return "no other row looks like it" if count < 1.1 else "hardly any row looks like it"
    return f"about {count:.2g} of {of:,.0f} rows look like it"


def where_in_memory(selection: Selection, row: int) -> int:
    """-1 for a row that a fit by passes did not keep."""
    numbers = selection.data.row_numbers
    if numbers is None:
        return row
    place = int(np.searchsorted(numbers, row))
    return place if place < len(numbers) and numbers[place] == row else -1


def oddities(reasons: Sequence[ColumnReason]) -> str:
    """What makes a row odd, as in "age 999, usual 19 to 88; income missing"; if no value does, the combination of two."""
    cells = [f"{reason.column} {reason.value}" for reason in reasons]
    if not any(reason.is_unusual for reason in reasons):
        return f"unusual together: {' and '.join(cells)}"
    usual = [f", usual {reason.usual}" if reason.side else "" for reason in reasons]
    return "; ".join(map(str.__add__, cells, usual))


def cause(reasons: Sequence[ColumnReason]) -> str:
    """What kind of error makes a row odd, as in "age", "spelling of country", "missing income", "city with segment"."""
    if any(each.is_unusual for each in reasons):
        return reasons[0].cause
    return " with ".join(each.column for each in reasons)


def contrasts(reasons: Sequence[ColumnReason]) -> str:
    """What a representative has, as in "high age (91, usual 19 to 88)", "low income (about 13,872)", "city 'Rome'"."""
    cells = []
    for r in reasons:
        figures = f"{r.value}, usual {r.usual}" if r.is_unusual else f"about {r.value}"
        cells.append(f"{r.side} {r.column} ({figures})" if r.side else f"{r.column} {r.value}")
    return ", ".join(cells)


def odd_columns(
    selection: Selection,
    columns: TableColumns | None,
    Y: FloatArray,
    numbers: IntArray,
    points: IntArray,
) -> list[list[ColumnReason]]:
    """For each prepared row y, the unusual values that make up three quarters of why it is rare; if none is unusual, two columns.
    ``numbers`` are the rows in the data, ``points`` their points, -1 for none.

    s_c = log Σ_i k_c(y, x_i) − log Σ_i k(y, x_i), over rows x_i that belong: by what factor more of them would be like y if
    column c were not compared, k_c = exp(−γ (d − d_c)).
    """
    usual = selection.usual
    found = []
    if columns is None or usual is None:
        return [[] for _ in numbers]
    some = subsample(usual.kernel.n, COMPARED_ROWS, 0)
    X = in_double(rows_of(usual.kernel.X, some))
    weights = selection.data.points.weights[usual.points[some]]
    Z = selection.data.geometry.prepare.undone(Y)
    for place, (y, z, number) in enumerate(zip(Y, Z, numbers.tolist(), strict=True)):
        d = usual.kernel.gamma * _sums(np.abs(X - y) ** usual.kernel.order, columns)
        others = weights * (usual.points[some] != points[place])
        without = logsumexp(d - d.sum(axis=1, keepdims=True), axis=0, b=others[:, None])
        gains = np.zeros(d.shape[1])
        if others.any():
            gains = np.maximum(without - logsumexp(-d.sum(axis=1), b=others), 0.0)
        shares = gains / (gains.sum() or 1.0)
        order = np.argsort(-shares, kind="stable")[:MOST_NAMED_COLUMNS]
        all_of = _reasons(columns, z, number, order[shares[order] > 0], shares)
        before = np.cumsum(shares[order]) - shares[order]
        unusual = [
            reason
            for reason, share in zip(all_of, before, strict=False)
            if reason.is_unusual and share < 0.75
        ]
        found.append(unusual or all_of[:2])
    return found


def typical_columns(
    selection: Selection,
    columns: TableColumns | None,
    Y: FloatArray,
    numbers: IntArray,
    points: IntArray,
) -> list[list[ColumnReason]]:
    """For each prepared row, its unusual values, farthest from the mean first."""
    usual = selection.usual
    found = []
    if columns is None or usual is None:
        return [[] for _ in numbers]
    Z = selection.data.geometry.prepare.undone(Y)
    apart = _sums(np.abs(Y - usual.middle) ** usual.kernel.order, columns)
    for z, number, own in zip(Z, numbers.tolist(), apart, strict=True):
        far = np.argsort(-own, kind="stable")[:MOST_NAMED_COLUMNS]
        reasons = _reasons(columns, z, number, far, own / (own.sum() or 1.0))
        found.append([reason for reason in reasons if reason.is_unusual])
    return found


def shared_columns(
    selection: Selection, columns: TableColumns | None, point: int, members: IntArray
) -> list[ColumnReason]:
    """The usual values in which a representative and the points that it stands for agree most: in columns of largest Σ_i d_c(y,
    x_i) / n over all rows that belong less the same over its own.
    """
    usual = selection.usual
    if columns is None or usual is None:
        return []
    y = in_double(selection.kernel.X[[point]])
    apart = []
    for points in (usual.points, members):
        some = points[subsample(len(points), COMPARED_ROWS, 0)]
        differences = np.abs(in_double(selection.kernel.X[some]) - y)
        apart.append(_sums(differences**usual.kernel.order, columns).mean(axis=0))
    gains = np.maximum(apart[0] - apart[1], 0.0)
    most = np.argsort(-gains, kind="stable")[:MOST_NAMED_COLUMNS]
    z = selection.data.geometry.prepare.undone(y)[0]
    reasons = _reasons(columns, z, None, most[gains[most] > 0], gains / (gains.sum() or 1.0))
    return [reason for reason in reasons if not reason.is_unusual]


def _sums(apart: FloatArray, columns: TableColumns) -> FloatArray:
    return np.add.reduceat(apart, [block.start for block in columns.blocks.values()], axis=1)


def _reasons(
    columns: TableColumns, z: FloatArray, number: int | None, named: IntArray, shares: FloatArray
) -> list[ColumnReason]:
    """What a row, with this number in the data, has in the named columns."""
    blocks = list(columns.blocks.items())
    some = [(*blocks[j], float(shares[j])) for j in named.tolist()]
    return [
        columns.reading(name, z[block], number)._replace(share=share) for name, block, share in some
    ]


class Decisions(tuple[str, ...]):
    """Sentences, one for each decision; printed one a line."""

    def __str__(self) -> str:
        return "\n".join(self)

    def _repr_html_(self) -> str:
        return html_card("What was decided, and why", text=self)


def decisions(selection: Selection) -> Decisions:
    data = selection.data
    settings = selection.settings
    sentences = [*selection.data.geometry.decisions]
    how = "Chosen so that the rows that belong are as similar as possible to the nearest representative."
    if settings.mode == "paper":
        solved = data.solved
        ours = settings.alpha is None and settings.lam is None
        why = "as in later work of the paper's first author" if ours else "as it was set"
        sentences.append(
            f"Strength {solved.lam:.3g}, {solved.alpha:.3g} times the critical one, {why}. A higher strength fits better with "
            "more rows; below the critical one no row is used."
        )
        how = "Chosen by influence, and thinned by distance."
    if len(selection.chosen):
        sentences += [
            f"{counted(len(selection.rows), 'representative')}: {_why_so_many(selection)}.",
            how,
        ]
    sentences += selection.changes
    if selection.kept_rows:
        sentences.append(_of_kept_groups(selection))
    sentences.append(_how_many_outliers(selection))
    about = "About " if selection.is_sampled else ""
    if selection.protected is not None and settings.min_group is not None:
        groups = f"in groups of at least {settings.min_group:g}"
        sentences.append(
            f"{about}{selection.n_protected:,} more would be outliers but are {groups}."
        )
    sentences += data.constraints.notes
    if data.row_numbers is not None and len(data.row_numbers) < data.n_rows:
        some = f"a sample of {len(data.row_numbers):,} of {data.n_rows:,} rows"
        sentences.append(f"Decided on {some}.")
    return Decisions(sentences)


def _how_many_outliers(selection: Selection) -> str:
    if selection.settings.outliers == "keep":
        return "Outliers were not looked for."
    number = selection.n_outliers
    why = RULES[selection.cut.rule][1]
    if not number:
        return f"No outliers: {RULES_WITHOUT.get(selection.cut.rule, why)}."
    about = "About " if selection.is_estimated else ""
    return f"{about}{counted(number, 'outlier')}: {why}."


def warnings_of(selection: Selection) -> list[str]:
    """What the user should know before trusting the answer."""
    settings = selection.settings
    n = selection.n_rows
    if settings.mode == "paper":
        k = settings.number(n)
        m = len(selection.rows)
        if k is None or m >= k:
            return []
        located = int(np.count_nonzero(selection.data.solved.influence))
        return [
            f"{k} representatives were asked for, and {counted(m, 'row')} left: of {counted(located, 'row')} with influence, "
            "the others are near to a more influential one (`diversity`) or outliers (`op_threshold`). Ask for fewer, "
            "raise `alpha`, or leave `algorithm` at None."
        ]
    sentences = []
    looks_itself = is_auto(settings.contamination) and settings.outliers != "keep"
    if looks_itself and selection.outlier_share > CROWD_SHARE:
        share = f"{selection.n_outliers:,} of {n:,} rows ({100 * selection.outlier_share:.0f} %)"
        sentences.append(
            f"{share} are taken for outliers: a crowd that few rows look like. If they belong, set "
            "`outliers='keep'` or `min_group`; if you know their share, set `contamination`."
        )
    if selection.kept_rows:
        sentences.append(f"{_of_kept_groups(selection)} If that is noise, set `contamination`.")
    return sentences


def _of_kept_groups(selection: Selection) -> str:
    sizes = np.bincount(selection.kept_groups.clip(0), selection.rows_for)[1:]
    shown = listed([f"{size:,.0f}" for size in sizes])
    is_one = len(sizes) == 1
    groups = f"A group of {shown} rows" if is_one else f"{len(sizes)} groups of {shown} rows"
    verb = "is" if is_one else "are"
    return f"{groups} that few rows look like {verb} kept; selection_.kept_rows has their numbers."


def _why_so_many(selection: Selection) -> str:
    settings = selection.settings
    if selection.data.constraints.fixed_total is not None:
        return "the number that was given"
    if settings.mode == "paper":
        which = "all" if is_auto(settings.n_representatives) else "the first"
        return f"{which} that remain after pruning and without outliers"
    return selection.why_so_many or "the number that was given"
