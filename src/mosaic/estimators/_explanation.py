"""Why a point was chosen, rejected or left out, as plain data that reads as a sentence."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from numbers import Integral
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from mosaic.exceptions import InvalidInputError
from mosaic.kernels import RBF, Laplacian

#: Representatives, members and features that are named.
MOST_NAMED = 5


@dataclass(frozen=True)
class Explanation:
    """One point and its part in the answer.

    Attributes
    ----------
    index : row of the data
    status : "representative", "outlier" (reported or rejected) or "represented"
    reason : why, in a sentence
    rank : place among the representatives, from 0, or None
    influence : norm of its row in the encoding
    effective_count : number of points that it stands, or would stand, for
    outlier_probability : the paper's OP
    count_threshold : effective count below which points are outliers
    representation_error : share of it that the representatives cannot express
    represented_by : row of the representative that stands for it, None for rejected outliers
    similarity : to that representative
    nearest : (row, similarity) of the nearest representatives
    stands_for : number of rows that it represents
    members : the most similar of them
    differs_in : (feature, share of the distance to its representative), largest first, where the kernel has features
    """

    index: int
    status: Literal["representative", "outlier", "represented"]
    reason: str
    rank: int | None
    influence: float
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

    def to_dict(self) -> dict[str, Any]:
        """The same as a dict of plain values."""
        return asdict(self)

    def __str__(self) -> str:
        return f"Row {self.index}: {self.reason}"


def explain_point(model: Any, i: int) -> Explanation:
    """The explanation of row i for a fitted selector."""
    n = len(model.labels_)
    if isinstance(i, bool) or not isinstance(i, Integral) or not -n <= int(i) < n:
        raise InvalidInputError(f"i must be a row number between 0 and {n - 1}; got {i!r}.")
    i = int(i) % n
    rows, solved = model.representative_indices_, model._solved
    chosen, point = model._choice.points, int(solved.points.group[i])
    if point >= 0:
        similarity = solved.kernel.block(np.array([point]), chosen).ravel()
    else:
        absent = np.flatnonzero(solved.points.group < 0)
        at = int(np.searchsorted(absent, i))
        similarity = model._chosen_kernel.cross(model._absent[at : at + 1]).ravel()
    order = np.argsort(-similarity, kind="stable")[:MOST_NAMED]
    place = np.flatnonzero(rows == i)
    rank = int(place[0]) if len(place) else None
    label = int(model.labels_[i])
    status: Literal["representative", "outlier", "represented"] = "represented"
    if rank is not None:
        status = "representative"
    elif model.is_outlier_[i]:
        status = "outlier"
    members = np.flatnonzero(model.labels_ == rank) if rank is not None else np.zeros(0, np.intp)
    return Explanation(
        index=i,
        status=status,
        reason=_reason(model, i, status, rank, label, similarity, members),
        rank=rank,
        influence=float(model.influence_[i]),
        effective_count=float(model.effective_count_[i]),
        outlier_probability=float(model.outlier_probability_[i]),
        count_threshold=float(model.outlier_threshold_),
        representation_error=float(model.representation_error_[i]),
        represented_by=int(rows[label]) if label >= 0 else None,
        similarity=float(similarity[label]) if label >= 0 else None,
        nearest=tuple((int(rows[j]), float(similarity[j])) for j in order),
        stands_for=len(members),
        members=_closest(model, chosen, rank, members),
        differs_in=_differences(model, point, chosen, label),
    )


def _reason(model: Any, i: int, status: str, rank: int | None, label: int, similarity: Any, members: Any) -> str:
    count, error = model.effective_count_[i], model.representation_error_[i]
    if status == "representative":
        gain = model._choice.gains[rank]
        must = " It had to be included." if i in model._solved.demands.must else ""
        what = "its influence" if model._wanted.mode == "paper" else "what it adds to the mean similarity"
        return (
            f"chosen as number {(rank or 0) + 1} of {len(model.representative_indices_)}: it stands for {len(members)} rows; "
            f"{what} is {gain:.3g}.{must}"
        )
    if status == "outlier":
        fate = "rejected" if model._wanted.outliers == "reject" else "reported"
        return f"{fate} as an outlier: it {model._choice.cut.reason}; its own count is {count:.3g}."
    who = f"row {int(model.representative_indices_[label])} stands for it with similarity {similarity[label]:.3g}"
    why = "" if model._solved.demands.allowed[i] else " It was not allowed to be chosen."
    return f"not chosen: {who}, and {100 * error:.0f} % of it are left unexplained by all representatives.{why}"


def _closest(model: Any, chosen: Any, rank: int | None, members: Any) -> tuple[int, ...]:
    points = model._solved.points.group[members]
    members, points = members[points >= 0], points[points >= 0]
    if rank is None or not len(members):
        return ()
    similarity = model._solved.kernel.block(points, chosen[[rank]]).ravel()
    return tuple(int(j) for j in members[np.argsort(-similarity, kind="stable")[:MOST_NAMED]])


def _differences(model: Any, point: int, chosen: Any, label: int) -> tuple[tuple[str, float], ...]:
    """Shares of the features in the distance that the kernel measures."""
    kernel = model._solved.kernel
    if label < 0 or point < 0 or not isinstance(kernel, (RBF, Laplacian)):
        return ()
    pair = kernel.X[np.array([point, chosen[label]])]
    pair = np.asarray(pair.toarray() if sp.issparse(pair) else pair, np.float64)
    parts = np.abs(pair[0] - pair[1]) ** (2 if isinstance(kernel, RBF) else 1)
    if not parts.any():
        return ()
    names = getattr(model, "feature_names_in_", None)
    top = np.argsort(-parts, kind="stable")[:MOST_NAMED]
    return tuple(
        (str(names[f]) if names is not None else f"x{f}", float(parts[f] / parts.sum())) for f in top if parts[f]
    )
