"""Why a point was chosen, rejected or left out, as plain data that reads as a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from mosaic._frames import NO_NAMES
from mosaic.arrays.blocks import FloatArray, IntArray, in_double
from mosaic.checks import is_whole
from mosaic.choosing.certificate import counted, percent
from mosaic.choosing.outliers import outlier_probability
from mosaic.choosing.reasons import (
    ColumnReason,
    TableColumns,
    columns_of,
    odd_columns,
    row_of_point,
    shares_of_columns,
    typical_columns,
)
from mosaic.choosing.selection import Selection
from mosaic.choosing.settings import is_auto
from mosaic.exceptions import InvalidInputError
from mosaic.kernels import StationaryKernel
from mosaic.text import html_card, html_table, listed

#: Representatives, members and features that an explanation names, at most.
MOST_EXPLAINED_BY = 5
#: Rows that are named as most like a representative.
MOST_LIKE_IT = 3


class OfRow:
    """What explanations of a row share: how the row is called, and themselves as text and as plain values."""

    index: int
    reason: str
    name: str | None

    @property
    def called(self) -> str:
        """The row in a sentence: "C17 (row 3)", "Row 3"."""
        return f"Row {self.index}" if self.name is None else f"{self.name} (row {self.index})"

    def to_dict(self) -> dict[str, Any]:
        """The same as a dict of plain values."""
        return asdict(self)  # type: ignore[call-overload, no-any-return]

    def __str__(self) -> str:
        return f"{self.called}: {self.reason}"


@dataclass(frozen=True)
class Explanation(OfRow):
    """One point and its part in the answer.

    Attributes
    ----------
    index : row of the data
    status : "representative", "outlier" (reported or rejected) or "represented"
    reason : why, in a sentence
    rank : place among the representatives, from 0, or None
    influence : norm of its row in the encoding; None while nobody has asked for the program
    effective_count : number of rows that look like it, of those that a program compares
    outlier_probability : the paper's OP
    count_threshold : effective count below which points are outliers
    representation_error : share of it that the representatives cannot express
    represented_by : row of the representative that stands for it, None for rejected outliers
    similarity : to that representative
    nearest : (row, similarity) of the nearest representatives
    stands_for : number of rows that it represents
    members : the most similar of them
    differs_in : (feature, share of the distance to its representative), largest first, where the kernel has features
    columns : (column, what the row has in it, share of the distance): of an outlier, the columns that make up most of its
        distance from the nearest row that belongs; of a representative, those in which it is farther from the mean than rows
        are on average. Empty where columns have no names
    name : of the row; None where rows have none
    gain : of a representative, what it adds to the mean similarity of rows to their representative; in paper mode, its influence
    """

    index: int
    status: Literal["representative", "outlier", "represented"]
    reason: str
    rank: int | None
    influence: float | None
    effective_count: float
    outlier_probability: float
    count_threshold: float
    representation_error: float
    represented_by: int | None
    similarity: float | None
    nearest: tuple[tuple[int, float], ...]
    stands_for: int
    members: tuple[int, ...]
    differs_in: tuple[tuple[str, float], ...]
    columns: tuple[tuple[str, str, float], ...] = ()
    name: str | None = None
    gain: float | None = None

    def _repr_html_(self) -> str:
        facts = [("rows that look like it", f"{self.effective_count:.3g}")]
        facts += [("left unexplained", percent(self.representation_error))]
        facts += [] if self.rank is None else [("rows that it stands for", f"{self.stands_for:,}")]
        columns = [(name, value, percent(share)) for name, value, share in self.columns]
        nearest = [(row, f"{similarity:.3g}") for row, similarity in self.nearest]
        return html_card(
            f"{self.called}: {self.status}",
            html_table(["", ""], facts),
            html_table(["column", "value", "share of the distance"], columns),
            html_table(["nearest picks: row", "similarity"], nearest),
            text=[f"{self.reason[0].upper()}{self.reason[1:]}"],
        )


def explain_point(
    selection: Selection,
    i: int,
    names: Any = None,
    table: TableColumns | None = None,
    fetched: Mapping[int, FloatArray] | None = None,
) -> Explanation:
    """The explanation of row i of the data.

    Parameters
    ----------
    selection : what was fitted
    i : row of the data
    names : of its columns, None if they have none
    table : how its columns became numbers, None if they are taken as they are
    fetched : prepared rows that a fit by passes did not keep in memory, by number; others are read when they are asked for
    """
    material, n = selection.material, selection.material.n_rows
    if not (is_whole(i, -n) and int(i) < n):
        remedy = NO_NAMES if isinstance(i, str) else None
        raise InvalidInputError(f"must be a row number between 0 and {n - 1}", remedy, parameter="i", value=i)
    row = int(i) % n
    at = where_in_memory(selection, row)
    point = int(material.points.group[at]) if at >= 0 else -1
    elsewhere = _not_a_point(selection, row, at, fetched) if point < 0 else None
    answers = selection.answers_at(elsewhere) if at < 0 else selection.answers_in_memory.at(at)
    if elsewhere is None:
        similarity = selection.kernel.block(np.array([point]), selection.chosen).ravel()
    else:
        similarity = selection.chosen_kernel.cross(elsewhere).ravel()
    order = np.argsort(-similarity, kind="stable")[:MOST_EXPLAINED_BY]
    found = np.flatnonzero(selection.members == at)
    rank = int(found[0]) if len(found) else None
    label = int(answers.labels[0])
    status: Literal["representative", "outlier", "represented"] = "represented"
    if rank is not None:
        status = "representative"
    elif answers.is_outlier[0]:
        status = "outlier"
    members = np.flatnonzero(selection.answers_in_memory.labels == rank) if rank is not None else np.zeros(0, np.intp)
    rows, columns = selection.rows, columns_of(selection, table, names)
    reasons: tuple[ColumnReason, ...] = ()
    if columns is not None and selection.usual is not None and status != "represented":
        own = row_of_point(selection, point) if elsewhere is None else in_double(elsewhere)[0]
        reasons = (
            odd_columns(selection, columns, own, row, point)
            if status == "outlier"
            else typical_columns(selection, columns, own, row)
        )
    count = float(answers.effective_count[0])
    told = Explanation(
        index=row,
        status=status,
        reason="",
        rank=rank,
        influence=float(selection.influence[row]) if selection.is_solved else None,
        effective_count=count,
        outlier_probability=float(outlier_probability(np.array([count]), material.count_total)[0]),
        count_threshold=float(selection.cut.count),
        representation_error=float(answers.representation_error[0]),
        represented_by=int(rows[label]) if label >= 0 else None,
        similarity=float(similarity[label]) if label >= 0 else None,
        nearest=tuple((int(rows[j]), float(similarity[j])) for j in order),
        stands_for=round(_stands_for(selection, members)),
        members=_closest(selection, rank, members),
        differs_in=_differences(selection, point, elsewhere, label, columns),
        columns=tuple((reason.column, reason.value, reason.share) for reason in reasons),
        name=None if material.row_names is None or at < 0 else material.row_names[row],
        gain=None if rank is None else float(selection.gains[rank]),
    )
    has_contrasts = columns is not None and selection.usual is not None
    return replace(told, reason=_reason(selection, told, at, has_contrasts, reasons))


def _not_a_point(selection: Selection, row: int, at: int, fetched: Mapping[int, FloatArray] | None) -> Any:
    """A prepared row without weight, or one that a fit by passes did not keep, as a matrix of one row."""
    if at < 0:
        return (fetched or fetch_rows(selection, [row]))[row][None, :]
    absent = np.flatnonzero(selection.material.points.group < 0)
    place = int(np.searchsorted(absent, at))
    return selection.material.absent[place : place + 1]


def fetch_rows(selection: Selection, rows: Sequence[int]) -> dict[int, FloatArray]:
    """Prepared rows, by number, of those that are not in memory; one pass reads them all."""
    missing = sorted({row for row in rows if where_in_memory(selection, row) < 0})
    if not missing:
        return {}
    proof: Any = selection.material.proof
    if not proof.is_possible:
        raise InvalidInputError(
            f"`row {missing[0]}` is not among the {len(selection.counts_of_rows):,} rows that this model was saved with, and "
            "only these can be explained",
            "predict, transform and score_samples answer for any row.",
        )
    found = proof.rows(np.array(missing), selection.material)
    return dict(zip(missing, np.asarray(in_double(found)), strict=True))


def prepared_row(selection: Selection, at: int) -> FloatArray:
    """A row in memory as the kernel compares it."""
    material = selection.material
    point = int(material.points.group[at])
    if point >= 0:
        return row_of_point(selection, point)
    return in_double(material.absent[int(np.searchsorted(np.flatnonzero(material.points.group < 0), at))])


def where_in_memory(selection: Selection, row: int) -> int:
    """Where a row of the data is in memory; -1 for a row that a fit by passes did not keep."""
    numbers = selection.material.row_numbers
    if numbers is None:
        return row
    place = int(np.searchsorted(numbers, row))
    return place if place < len(numbers) and numbers[place] == row else -1


def _stands_for(selection: Selection, members: IntArray) -> float:
    """Rows of the data; of data that is read in passes, scaled up from those in memory."""
    if selection.material.row_numbers is None:
        return len(members)
    points = selection.material.points
    return float(points.weights[np.unique(points.group[members])].sum())


def _reason(
    selection: Selection, told: Explanation, at: int, has_contrasts: bool, reasons: Sequence[ColumnReason]
) -> str:
    material, settings = selection.material, selection.settings
    if told.status == "representative":
        must = " It had to be included." if at in material.constraints.must else ""
        about = "about " if material.row_numbers is not None else ""
        why = contrasts(reasons) if has_contrasts else _likeness(selection, told)
        return (
            f"chosen as number {(told.rank or 0) + 1} of {len(selection.rows)}: it stands for {about}"
            f"{counted(told.stands_for, 'row')}; {why}.{must}"
        )
    if told.status == "outlier":
        fate = "rejected" if settings.outliers == "reject" else "reported"
        odd = "it" if not reasons else f"{oddities(reasons)}. It"
        return f"{fate} as an outlier: {odd} {selection.cut.reason}; its own count is {told.effective_count:.3g}."
    by = -1 if told.represented_by is None else told.represented_by
    who = f"{material.called(by)} stands for it with similarity {told.similarity:.3g}"
    why = "" if at < 0 or material.constraints.allowed[at] else " It was not allowed to be chosen."
    left = f"{100 * told.representation_error:.0f} % of it are left unexplained by all representatives"
    return f"not chosen: {who}, and {left}.{why}"


def _likeness(selection: Selection, told: Explanation) -> str:
    """How typical a representative is and which rows are most like it, where no columns can be named."""
    material = selection.material
    lower = material.points.weights[material.counts < told.effective_count]
    typical = f"more typical than {percent(float(lower.sum() / material.points.weights.sum()))} of the rows"
    most = [_short_name(selection, row) for row in told.members if row != told.index][:MOST_LIKE_IT]
    return f"{typical}; most similar: {listed(most)}" if most else typical


def _short_name(selection: Selection, row: int) -> str:
    names = selection.material.row_names
    return f"row {row}" if names is None else names[row]


def _closest(selection: Selection, rank: int | None, members: IntArray) -> tuple[int, ...]:
    material = selection.material
    points = material.points.group[members]
    members, points = members[points >= 0], points[points >= 0]
    if rank is None or not len(members):
        return ()
    similarity = selection.kernel.block(points, selection.chosen[[rank]]).ravel()
    return tuple(
        int(j) for j in material.rows_in_data(members[np.argsort(-similarity, kind="stable")[:MOST_EXPLAINED_BY]])
    )


def _differences(
    selection: Selection, point: int, elsewhere: Any, label: int, columns: TableColumns | None
) -> tuple[tuple[str, float], ...]:
    """Shares of the features in the distance that the kernel measures."""
    kernel = selection.kernel
    if label < 0 or not isinstance(kernel, StationaryKernel):
        return ()
    own, other = kernel.X[[point]] if elsewhere is None else elsewhere, kernel.X[[selection.chosen[label]]]
    apart: Any = in_double(own) - in_double(other)
    apart = np.abs(np.asarray(apart.toarray() if sp.issparse(apart) else apart).ravel()) ** kernel.order
    shares = {f"x{j}": float(apart[j] / apart.sum()) for j in np.flatnonzero(apart)}
    if columns is not None:
        shares = shares_of_columns(apart, columns)
    top = sorted(shares, key=lambda name: -shares[name])[:MOST_EXPLAINED_BY]
    return tuple((name, shares[name]) for name in top if shares[name])


def oddities(reasons: Sequence[ColumnReason]) -> str:
    """What makes a row odd, as in "age 999, usual 19 to 88; income missing"."""
    return "; ".join(reason.as_oddity for reason in reasons)


def contrasts(reasons: Sequence[ColumnReason]) -> str:
    """What is typical of a representative, as in "high age (61, usual 19 to 88), segment 'premium'"."""
    return ", ".join(reason.as_contrast for reason in reasons) or "not far from the middle in any column"


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
    if settings.mode == "paper":
        told.append(_on_strength(selection))
    if len(selection.chosen):
        told += [_on_number(selection), _on_choosing(selection)]
    if selection.changes is not None:
        told += selection.changes.sentences(material)
    told.append(_on_outliers(selection))
    if selection.protected is not None and settings.min_group is not None:
        number, smallest = int(selection.protected.sum()), settings.min_group
        told.append(f"{number:,} more would be outliers, if they were not in groups of at least {smallest:g}.")
    if material.row_numbers is not None:
        told.append(
            f"A sample of {len(material.row_numbers):,} of {material.n_rows:,} rows says so; the program is that of all rows."
        )
    return Decisions(told)


def _on_strength(selection: Selection) -> str:
    given = selection.settings.alpha is not None or selection.settings.lam is not None
    why = "as it was set" if given else "as in later work of the paper's first author"
    solved = selection.material.solved
    return (
        f"Strength {solved.lam:.3g}, {solved.alpha:.3g} times the critical one, {why}. It says how much a good fit counts, "
        "against using few rows; below the critical one no row is used."
    )


def _on_number(selection: Selection) -> str:
    settings, k = selection.settings, len(selection.rows)
    if selection.material.constraints.fixed_total is not None:
        why = "the number that was given"
    elif settings.mode == "paper":
        why = "what pruning and outliers leave"
        why += "" if is_auto(settings.n_representatives) else ", or the first of it"
    elif settings.coverage is not None:
        why = f"as many as explain {100 * settings.coverage:g} % of the points that belong"
    elif settings.min_support is not None:
        why = f"as many as can each stand for {settings.min_support:g} points"
    elif is_auto(settings.n_representatives):
        why = "no number of clusters stands out, so √(n/2), a rule of thumb"
        if selection.silhouette:
            why = f"as many as there are clear clusters (mean silhouette {selection.silhouette:.2f})"
    else:
        why = "the number that was given"
    return f"{k} {'representative' if k == 1 else 'representatives'}: {why}."


def _on_choosing(selection: Selection) -> str:
    if selection.settings.mode == "paper":
        return "Chosen by influence, and thinned by distance."
    return "Chosen so that the rows that belong are as similar as possible to the nearest representative."


def _on_outliers(selection: Selection) -> str:
    """How outliers were decided on."""
    if selection.settings.outliers == "keep":
        return "Outliers were not looked for."
    cut, number = selection.cut, selection.n_outliers
    about = "About " if selection.is_sampled else ""
    counted = f"{about}{number:,} {'outlier' if number == 1 else 'outliers'}" if number else "No outliers"
    if cut.rule == "valley":
        return (
            f"{counted}: a valley divides the effective counts (p = {cut.p_value:.1g}); "
            f"rows that fewer than {cut.count:.3g} rows look like are outliers."
        )
    if cut.rule == "alone":
        return (
            f"{counted}: fewer than {cut.count:.3g} rows look like them, and their neighbours are far. Of clean rows, about 1 % "
            "are flagged at most."
        )
    if cut.rule == "none":
        if cut.sparse_group > 0:
            return (
                f"{counted}, but {100 * selection.crowd_share:.0f} % of the rows, those with a count below "
                f"{cut.sparse_group:.3g}, are a sparse crowd, noise or a group. They are kept; `selection_.crowd` has their row "
                "numbers."
            )
        return f"{counted}: more than 5 % of the rows are alone, so being alone is not unusual here."
    return f"{counted}: effective counts below {cut.count:.3g}, from the {cut.rule}."
