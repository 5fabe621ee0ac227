"""Why a row was chosen, rejected or left out, as plain data that reads as a sentence, and what was decided about the data.

Reasons name columns. The kernel's distance is a sum over columns, d(x, y) = Σ_c d_c(x, y), d_c = Σ_{j ∈ c} |x_j − y_j|^p over the
numbers j of column c, so d_c is what it falls by without column c. Named are, of an outlier, the columns that make up most of the
distance to the nearest row that belongs; of a representative, those in which it is farther from the mean than rows are on
average.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import numpy as np

from mosaic.arrays.blocks import FloatArray, IntArray, in_double, row_blocks
from mosaic.choosing.certificate import counted, percent
from mosaic.choosing.geometry import TableColumns
from mosaic.choosing.outliers import outlier_probability
from mosaic.choosing.settings import is_auto
from mosaic.exceptions import InvalidInputError
from mosaic.kernels import StationaryKernel
from mosaic.parameters import is_whole
from mosaic.text import NO_NAMES, html_card, html_table, listed

if TYPE_CHECKING:
    from mosaic.choosing.selection import Selection

#: Representatives, members and features that an explanation names, at most, and rows that are most like a representative.
MOST_EXPLAINED_BY, MOST_LIKE_IT = 5, 3
#: Columns that a reason names, at most, and the share of the distance from which on no further ones are named.
MOST_NAMED_COLUMNS, MOST_OF_DISTANCE = 3, 0.75
#: By the rule of the cut: why a row is an outlier, and why there are so many of them.
RULES = {
    "alone": ("is alone: {few} it", "{few} them, and their neighbours are far. Of clean rows, about 1 % are flagged at most"),
    "valley": (
        "belongs to a separate crowd, and {few} it (p = {p:.1g})",
        "a valley divides the effective counts (p = {p:.1g}); rows that {few} are outliers",
    ),
    "contamination": ("is among the share that was declared contaminated ({few} it)", "{below}, from the contamination"),
    "threshold": ("is below the threshold: {few} it", "{below}, from the threshold"),
    "none": ("", "more than 5 % of the rows are alone, so being alone is not unusual here"),
}
#: Where the threshold of a detector comes from.
DETECTOR_RULES = {
    "alone": "rows below it are alone",
    "valley": "a valley in the distribution separates the counts below it",
    "contamination": "contamination sets the share of rows below it",
}
#: Fields of a representative that are columns of a CSV file of picks.
PICK_COLUMNS = ("rank", "row", "stands_for", "effective_count", "reason")


@dataclass(frozen=True)
class Explanation:
    """One row and its part in the answer; annotations say what the fields are. A detector has no representatives."""

    row: Annotated[int, 0, "row, from 0"]
    name: Annotated[str | None, "name of the row, null if rows have only numbers"]
    status: Annotated[
        Literal["representative", "outlier", "represented", "belongs"],
        "role of the row; a model that only detects outliers knows outlier and belongs",
    ]
    reason: Annotated[str, "why, in a sentence"]
    rank: Annotated[int | None, 1, "place among the representatives, from 1"]
    stands_for: Annotated[int, 0, "number of rows that it represents, itself included"]
    effective_count: Annotated[float, "number of rows that look like it, of the rows that it was compared with"]
    is_outlier: Annotated[bool, "whether it is an outlier; of a representative with outliers='report' only"]
    outlier_probability: Annotated[float | None, "the paper's OP; null unless algorithm='paper'"]
    representation_error: Annotated[float | None, "share of it that the representatives cannot express"]
    represented_by: Annotated[int | None, 0, "row of the representative that stands for it; null for rejected outliers"]
    similarity: Annotated[float | None, "similarity to that representative"]
    gain: Annotated[
        float | None, "what a representative adds to the mean similarity of rows to theirs; in paper mode its influence"
    ]
    nearest: Annotated[tuple[tuple[int, float], ...], "nearest representatives: row and similarity"]
    members: Annotated[tuple[int, ...], "the most similar rows that it represents"]
    differs_in: Annotated[
        tuple[tuple[str, float], ...], "features and their shares of the distance to its representative, largest first"
    ]
    columns: Annotated[
        tuple[tuple[str, str, float], ...],
        "columns that the reason names, what the row has in them, and their shares of the distance",
    ]

    @property
    def called(self) -> str:
        """The row in a sentence: "C17 (row 3)", "Row 3"."""
        return f"Row {self.row}" if self.name is None else f"{self.name} (row {self.row})"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.called}: {self.reason}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        facts = [("rows that look like it", f"{self.effective_count:.3g}")]
        facts += [("left unexplained", percent(self.representation_error))] if self.representation_error else []
        facts += [("rows that it stands for", f"{self.stands_for:,}")] if self.rank else []
        columns = [(name, value, percent(share)) for name, value, share in self.columns]
        nearest = [(row, f"{similarity:.3g}") for row, similarity in self.nearest]
        return html_card(
            f"{self.called}: {self.status}",
            html_table(["", ""], facts),
            html_table(["column", "value", "share of the distance"], columns),
            html_table(["nearest picks: row", "similarity"], nearest),
            text=[f"{self.reason[0].upper()}{self.reason[1:]}"],
        )


@dataclass(frozen=True)
class RowLabels:
    """What rows are called: names that the fit knows; of an open file (``mosaic.rows.Rows``), its row numbers and names."""

    selection: Selection
    file: Any = None

    def numbers(self, rows: IntArray) -> list[int]:
        return rows.tolist() if self.file is None else [int(row) for row in self.file.numbers(rows)]

    def number(self, row: int) -> int:
        return self.numbers(np.array([row]))[0]

    def name(self, row: int) -> str | None:
        names = self.selection.material.row_names
        if names is not None and (names.rows is None or where_in_memory(self.selection, row) >= 0):
            return str(names[row])
        return self.file.names([row])[0] if self.file is not None and self.file.has_names else None

    def called(self, row: int, *, short: bool = False) -> str:
        name, number = self.name(row), f"row {self.number(row)}"
        return number if name is None else name if short else f"{name} ({number})"


def explain_row(selection: Selection, i: Any, columns: TableColumns | None = None) -> Explanation:
    """The explanation of row i of the data, which may count from the end; ``columns`` from ``columns_of``."""
    n = selection.n_rows
    if not (is_whole(i, -n) and int(i) < n):
        remedy = NO_NAMES if isinstance(i, str) else None
        raise InvalidInputError(f"must be a row number between 0 and {n - 1}", remedy, parameter="i", value=i)
    return explain_rows(selection, [int(i) % n], columns)[0]


def explain_rows(
    selection: Selection, rows: Sequence[int], columns: TableColumns | None = None, labels: RowLabels | None = None
) -> list[Explanation]:
    """The explanations of rows of the data, with columns from ``columns_of``, and called by ``labels``.

    Rows that a fit by passes did not keep are read in one pass.
    """
    fetched: dict[int, FloatArray] = {}
    missing, proof = sorted({row for row in rows if where_in_memory(selection, row) < 0}), selection.material.proof
    if missing and not proof.is_possible:
        raise InvalidInputError(
            f"`row {missing[0]}` is not among the {len(selection.counts_of_rows):,} rows that this model was saved with, and "
            "only these can be explained",
            "predict, transform and score_samples answer for any row.",
        )
    if missing:
        fetched = dict(zip(missing, in_double(proof.rows(np.array(missing), selection.material)), strict=True))
    labels = labels or RowLabels(selection)
    return [_explained(selection, row, fetched, columns, labels) for row in rows]


def _explained(
    selection: Selection, row: int, fetched: Mapping[int, FloatArray], columns: TableColumns | None, labels: RowLabels
) -> Explanation:
    material, rows, kernel, chosen = selection.material, selection.rows, selection.kernel, selection.chosen
    at, group = where_in_memory(selection, row), material.points.group
    point, similarity = int(group[at]) if at >= 0 else -1, np.zeros(0)
    if point >= 0:
        y: Any = kernel.X[[point]] if isinstance(kernel, StationaryKernel) else None
        similarity = np.asarray(kernel.block(np.array([point]), chosen).ravel() if len(rows) else similarity)
    else:  # elsewhere, or without weight
        y = fetched[row][None, :] if at < 0 else material.absent[[np.count_nonzero(group[:at] < 0)]]
        similarity = np.asarray(selection.chosen_kernel.cross(y).ravel() if len(rows) else similarity)
    place, answers = (0, selection.answers_at(y)) if at < 0 else (at, selection.answers_in_memory)
    count, is_outlier, label, error = (values[place].item() for values in answers)
    y = None if y is None else in_double(y)
    rank, closest, stands_for, reasons = None, np.zeros(0, np.intp), 0.0, []
    status: Any = "outlier" if is_outlier else "represented" if len(rows) else "belongs"
    if at >= 0 and at in selection.members:
        status, rank = "representative", int(np.flatnonzero(selection.members == at)[0])
        members = np.flatnonzero(selection.answers_in_memory.labels == rank)
        points = members[group[members] >= 0]
        near = kernel.block(group[points], chosen[[rank]]).ravel()
        closest = material.rows_in_data(points[np.argsort(-near, kind="stable")[:MOST_EXPLAINED_BY]])
        stands_for = float(selection.rows_for[members].sum())  # of a sample, scaled up from the rows in memory
    if status in ("outlier", "representative"):
        named = odd_columns if status == "outlier" else typical_columns
        reasons = named(selection, columns, y, np.array([row]), np.array([point]))[0]
    if not len(rows):
        reason = _why_detected(selection, at, count, is_outlier, reasons)
    elif rank is not None:
        why = contrasts(reasons) if columns is not None and selection.usual is not None else ""
        if not why:  # no columns can be named
            why = f"more typical than {percent(selection.share_of(material.counts < count))} of the rows"
            like = [labels.called(other, short=True) for other in closest.tolist() if other != row][:MOST_LIKE_IT]
            why += f"; most similar: {listed(like)}" if like else ""
        must = " It had to be included." if at in material.constraints.must else ""
        number = ("about " if selection.is_sampled else "") + counted(round(stands_for), "row")
        reason = f"chosen as number {rank + 1} of {len(rows)}: it stands for {number}; {why}.{must}"
    elif is_outlier:
        fate = "rejected" if selection.settings.outliers == "reject" else "reported"
        odd = f"{oddities(reasons)}. It" if reasons else "it"
        reason = f"{fate} as an outlier: {odd} {_rule(selection, 0)}; its own count is {count:.3g}."
    else:
        who = f"{labels.called(int(rows[label]))} stands for it with similarity {similarity[label]:.3g}"
        why = "" if at < 0 or material.constraints.allowed[at] else " It was not allowed to be chosen."
        reason = f"not chosen: {who}, and {100 * error:.0f} % of it are left unexplained by all representatives.{why}"
    order = np.argsort(-similarity, kind="stable")[:MOST_EXPLAINED_BY]
    op = float(outlier_probability(np.asarray(count), material.count_total))
    return Explanation(
        row=labels.number(row),
        name=labels.name(row),
        status=status,
        reason=reason,
        rank=None if rank is None else rank + 1,
        stands_for=round(stands_for),
        effective_count=count,
        is_outlier=is_outlier,
        outlier_probability=op if selection.settings.mode == "paper" else None,
        representation_error=error if len(rows) else None,
        represented_by=labels.number(int(rows[label])) if label >= 0 else None,
        similarity=float(similarity[label]) if label >= 0 else None,
        gain=None if rank is None else float(selection.gains[rank]),
        nearest=tuple(zip(labels.numbers(rows[order]), similarity[order].tolist(), strict=True)),
        members=tuple(labels.numbers(closest)),
        differs_in=_differences(selection, y, label, columns),
        columns=tuple((reason.column, reason.value, reason.share) for reason in reasons),
    )


def _rule(selection: Selection, which: int) -> str:
    cut, count = selection.cut, f"{selection.cut.count:.3g}"
    few, below = f"fewer than {count} rows look like", f"effective counts below {count}"
    return RULES[cut.rule][which].format(few=few, below=below, p=cut.p_value)


def _why_detected(selection: Selection, at: int, count: float, is_outlier: bool, reasons: Sequence[ColumnReason]) -> str:
    """What a detector says about a row."""
    cut, shown = selection.cut, f"{count:.3g}"
    says = f"{shown} of {selection.material.count_total:,.0f} rows look like it, itself included"
    says = "no other row looks like it" if shown == "1" else says
    why = f"the threshold is {cut.count:.3g}, and {DETECTOR_RULES[cut.rule]}" if cut.count > 0 else "there is no threshold"
    protected, smallest = selection.protected, selection.settings.min_group
    if protected is not None and at >= 0 and protected[at] and cut.count > 0:
        group = f"one of a group of at least {smallest:g} rows" if smallest else "near to other rows"
        why = f"that is below the threshold {cut.count:.3g}, but it is {group}"
    says = f"{oddities(reasons)}. {says[0].upper()}{says[1:]}" if reasons else says
    return f"{'an outlier' if is_outlier else 'belongs'}: {says}; {why}."


def _differences(selection: Selection, y: Any, label: int, columns: TableColumns | None) -> tuple[tuple[str, float], ...]:
    """Shares of the features in the distance to the representative of a row that the kernel measures."""
    kernel = selection.kernel
    if label < 0 or not isinstance(kernel, StationaryKernel):
        return ()
    apart = np.abs(y - in_double(kernel.X[[selection.chosen[label]]])) ** kernel.order
    names = [f"x{j}" for j in range(apart.shape[1])] if columns is None else list(columns.blocks)
    shares = (apart if columns is None else _sums(apart, columns))[0] / (apart.sum() or 1.0)
    top = np.argsort(-shares, kind="stable")[:MOST_EXPLAINED_BY]
    return tuple((names[j], float(shares[j])) for j in top if shares[j])


def where_in_memory(selection: Selection, row: int) -> int:
    """Where a row of the data is in memory; -1 for a row that a fit by passes did not keep."""
    numbers = selection.material.row_numbers
    if numbers is None:
        return row
    place = int(np.searchsorted(numbers, row))
    return place if place < len(numbers) and numbers[place] == row else -1


class ColumnReason(NamedTuple):
    """A column, what a row has in it, what is usual there, on which side that is, and its share of the distance."""

    column: str
    value: str
    usual: str
    side: str
    share: float


def oddities(reasons: Sequence[ColumnReason]) -> str:
    """What makes a row odd, as in "age 999, usual 19 to 88; income missing"."""
    usual = (f", usual {r.usual}" if r.usual and r.value != "missing" else "" for r in reasons)
    return "; ".join(f"{r.column} {r.value}{more}" for r, more in zip(reasons, usual, strict=True))


def contrasts(reasons: Sequence[ColumnReason]) -> str:
    """What is typical of a representative, as in "high age (61, usual 19 to 88), segment 'premium'"."""
    told = [f"{r.side} {r.column} ({r.value}, usual {r.usual})" if r.side else f"{r.column} {r.value}" for r in reasons]
    return ", ".join(told) or "not far from the middle in any column"


def odd_columns(
    selection: Selection, columns: TableColumns | None, Y: FloatArray, numbers: IntArray, points: IntArray | None = None
) -> list[list[ColumnReason]]:
    """For each prepared row, the columns that make up most of its distance from the nearest other row that belongs.

    ``numbers`` are the rows in the data, ``points`` their points, -1 for none.
    """
    usual, found = selection.usual, []
    if columns is None or usual is None:
        return [[] for _ in numbers]
    for part in row_blocks(len(Y), usual.kernel.n, least=1):
        D = usual.kernel.distances_at(Y[part])
        if points is not None:
            D[points[part, None] == usual.points] = np.inf
        apart = np.abs(Y[part] - in_double(usual.kernel.X[D.argmin(axis=1)])) ** usual.kernel.order
        apart[np.isinf(D.min(axis=1))] = 0.0  # no other row belongs
        for at, sums in enumerate(_sums(apart, columns), part.start):
            shares = sums / (sums.sum() or 1.0)
            order = np.argsort(-shares, kind="stable")[:MOST_NAMED_COLUMNS]
            before = np.cumsum(shares[order]) - shares[order]
            named = order[(shares[order] > 0) & (before < MOST_OF_DISTANCE)]
            found.append(_reasons(selection, columns, Y[at], int(numbers[at]), named, shares))
    return found


def typical_columns(
    selection: Selection, columns: TableColumns | None, Y: FloatArray, numbers: IntArray, points: IntArray | None = None
) -> list[list[ColumnReason]]:
    """For each prepared row, the columns in which it is farther from the mean than rows are on average, farthest first."""
    usual, found = selection.usual, []
    if columns is None or usual is None:
        return [[] for _ in numbers]
    usually = _sums(usual.apart[None, :], columns)[0]
    for y, number, own in zip(Y, numbers, _sums(np.abs(Y - usual.middle) ** usual.kernel.order, columns), strict=True):
        order = np.argsort(-own, kind="stable")
        far = order[own[order] > usually[order]][:MOST_NAMED_COLUMNS]
        found.append(_reasons(selection, columns, y, int(number), far, own / (own.sum() or 1.0)))
    return found


def _sums(apart: FloatArray, columns: TableColumns) -> FloatArray:
    """Sums of rows of distances in numbers, over the numbers of each column."""
    return np.asarray(np.add.reduceat(apart, [block.start for block in columns.blocks.values()], axis=1))


def _reasons(
    selection: Selection, columns: TableColumns, y: FloatArray, number: int, named: IntArray, shares: FloatArray
) -> list[ColumnReason]:
    """What a prepared row, with this number in the data, has in the named columns."""
    names, found = list(columns.blocks), []
    for j in named.tolist():
        name, block = names[j], columns.blocks[names[j]]
        z = selection.material.geometry.prepare.undone(y[block], block)
        value, side = columns.value(name, z, number), columns.contrast(name, z)
        found.append(ColumnReason(name, value, columns.usually(name), side, float(shares[j])))
    return found


class Decisions(tuple[str, ...]):
    """Sentences, one for each decision; printed one a line."""

    def __str__(self) -> str:
        return "\n".join(self)

    def _repr_html_(self) -> str:
        return html_card("What was decided, and why", text=self)


def decisions(selection: Selection) -> Decisions:
    """What was decided for the user, and why."""
    material, settings = selection.material, selection.settings
    told = [*material.geometry.decisions]
    how = "Chosen so that the rows that belong are as similar as possible to the nearest representative."
    if settings.mode == "paper":
        given, solved = settings.alpha is not None or settings.lam is not None, material.solved
        why = "as it was set" if given else "as in later work of the paper's first author"
        told.append(
            f"Strength {solved.lam:.3g}, {solved.alpha:.3g} times the critical one, {why}. It says how much a good fit counts, "
            "against using few rows; below the critical one no row is used."
        )
        how = "Chosen by influence, and thinned by distance."
    if len(selection.chosen):
        told += [f"{counted(len(selection.rows), 'representative')}: {_why_so_many(selection)}.", how]
    if selection.changes is not None:
        told += _changes(selection)
    number, about = selection.n_outliers, "About " if selection.is_sampled else ""
    found = f"{about if selection.is_estimated else ''}{counted(number, 'outlier')}" if number else "No outliers"
    told.append("Outliers were not looked for." if settings.outliers == "keep" else f"{found}{_why_outliers(selection)}")
    if selection.protected is not None and settings.min_group is not None:
        number, smallest = selection.n_protected, settings.min_group
        told.append(f"{about}{number:,} more would be outliers, if they were not in groups of at least {smallest:g}.")
    if material.row_numbers is not None:
        rows = f"{len(material.row_numbers):,} of {material.n_rows:,} rows"
        told.append(f"A sample of {rows} says so; the program is that of all rows.")
    return Decisions(told)


def _why_so_many(selection: Selection) -> str:
    settings, auto = selection.settings, is_auto(selection.settings.n_representatives)
    if selection.material.constraints.fixed_total is not None:
        return "the number that was given"
    if settings.mode == "paper":
        return f"what pruning and outliers leave{'' if auto else ', or the first of it'}"
    if settings.coverage is not None:
        return f"as many as explain {100 * settings.coverage:g} % of the points that belong"
    if settings.min_support is not None:
        return f"as many as can each stand for {settings.min_support:g} points"
    if auto and selection.silhouette:
        return f"as many as there are clear clusters (mean silhouette {selection.silhouette:.2f})"
    return "no number of clusters stands out, so √(n/2), a rule of thumb" if auto else "the number that was given"


def _why_outliers(selection: Selection) -> str:
    cut = selection.cut
    if cut.rule != "none" or cut.sparse_group == 0:
        return f": {_rule(selection, 1)}."
    crowd = f"{100 * selection.crowd_share:.0f} % of the rows, those with a count below {cut.sparse_group:.3g},"
    return f", but {crowd} are a sparse crowd, noise or a group. They are kept; `selection_.crowd` has their row numbers."


def _changes(selection: Selection) -> list[str]:
    """What became of earlier picks, with the names of the rows."""
    material, changes = selection.material, selection.changes
    assert changes is not None

    def named(row: int) -> str:
        return material.called(int(material.rows_in_data(np.array([row]))[0]))

    told = [f"{len(changes.kept):,} of {counted(changes.n_before, 'earlier pick')} kept."]
    if changes.replaced:
        shown = [f"{named(a)} → {named(b)} (+{gain:.2g})" for a, b, gain in changes.replaced]
        told.append(f"Replaced, with what that adds to the mean similarity: {listed(shown)}.")
    for why in dict.fromkeys(why for _, why in changes.dropped):
        told.append(f"Not kept, {why}: {listed([named(row) for row, other in changes.dropped if other == why])}.")
    if changes.gone:
        told.append(f"Not among the rows any more: {listed(list(changes.gone))}.")
    told.append(
        f"The mean similarity to the nearest pick is {changes.similarity_after:.4g}; with the earlier picks alone it is "
        f"{changes.similarity_before:.4g}."
    )
    return told
