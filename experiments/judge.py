"""Every number about quality is computed here, for all methods alike, and nowhere else.

A number that has no meaning for a case is None: no classes, no outliers, nothing picked.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import f1_score, precision_recall_curve, roc_auc_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from experiments.datasets.cases import Case
from experiments.datasets.pictures import Picture
from experiments.methods import Picks
from mosaic.arrays.blocks import BoolArray, FloatArray, IntArray
from mosaic.door import as_indices
from mosaic.exceptions import InvalidInputError
from mosaic.kernels import RBF, Kernel, resolve_gamma

Verdict: TypeAlias = dict[str, float | int | None]
T = TypeVar("T")

#: Price of errors of the linear classifier, for data whose distances from the mean are 1 in the root mean square.
SVM_PRICE = 100.0
#: Light comes from a side if that half of the face is more than (1 + 1/4) / (1 − 1/4) = 5/3 times as bright as the other.
SIDE_LIGHT = 1 / 4
#: β² of F_β in work on salient objects, where precision counts more than recall.
BETA_SQUARED = 0.3


def judge_selection(case: Case, picks: Picks | ArrayLike) -> Verdict:
    """How good a set of rows is, as numbers that do not know which method chose it.

    Parameters
    ----------
    case : the task
    picks : rows of ``case.X``, none twice

    Returns
    -------
    n_picks : number of rows picked
    outlier_share : #{j ∈ S : j is an outlier} / #S
    accuracy_1nn : of the 1-nearest-neighbour classifier of the picked inliers and their classes, on the test part;
        0 if no inlier is picked
    accuracy_svm : of the linear support vector machine of the same, if they are of two classes or more
    explained_share : 1 − Σ_i err_i / Σ_i k_ii over the inliers, see ``explained_share``
    class_balance : −Σ_c p_c log p_c / log C with p_c the shares of the C classes among the picked inliers: 1 if all
        classes are picked equally often, 0 if one alone is, or none
    classes_hit, classes : distinct classes among the picked inliers, and among the inliers
    redundancy : how much of a pick the others express, see ``redundancy``

    Notes
    -----
    1. The kernel of explained share and redundancy is the same for all: exp(−‖x − y‖² / m), m the median of the squared
       distances between inliers. No method's own kernel is favoured.
    2. Picked outliers are part of the set. They have no class to teach, so they are slots wasted for the classifiers;
       what they happen to explain and to cover counts.
    3. The support vector machine sees the data divided by √(mean ‖x − x̄‖²) over the inliers, so that one price of errors
       means the same for all sets. It is scikit-learn's SVC, one against one.
    """
    indices = _checked_picks(case, picks)
    taught = indices[~case.is_outlier[indices]]
    inliers = ~case.is_outlier
    centre = case.X[inliers].mean(axis=0)
    scale = float(np.sqrt(((case.X[inliers] - centre) ** 2).sum(axis=1).mean()))
    kernel = RBF(case.X, resolve_gamma(RBF(case.X[inliers]), "median"))
    return {
        "n_picks": len(indices),
        "outlier_share": float(case.is_outlier[indices].mean()) if len(indices) else None,
        **_accuracies(case, taught, centre, scale),
        "explained_share": explained_share(kernel, indices, inliers),
        **_classes(case, taught),
        "redundancy": redundancy(kernel, indices) if len(indices) else None,
    }


def explained_share(kernel: Kernel, chosen: ArrayLike, weights: ArrayLike) -> float:
    """1 − Σ_i ω_i err_i / Σ_i ω_i k_ii, err_i = k_ii − k_iSᵀ K_SS⁻¹ k_iS: R² of the rows on the chosen in feature space. K_SS is
    inverted on its range, after scaling to unit diagonal, so that a threshold ignores units.

    Examples
    --------
    >>> kernel = make_kernel(np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 4.0]]), "linear")
    >>> round(explained_share(kernel, [0, 1], np.ones(3)), 9)  # 16 of 30 are left
    0.466666667
    """
    members, counted = np.asarray(chosen, np.intp), np.asarray(weights, np.float64)
    total = float(counted @ kernel.diagonal())
    if not (len(members) and total > 0):
        return 0.0 if total > 0 else 1.0
    K = kernel.block(slice(None), members)
    A = K[members]
    size = np.maximum(np.diagonal(A), 0.0)
    scale = np.divide(1.0, np.sqrt(size), out=np.zeros(len(A)), where=size > 0)
    w, U = np.linalg.eigh(scale[:, None] * (0.5 * (A + A.T)) * scale)
    keep = w > 1e-12 * w.max()
    root = scale[:, None] * U[:, keep] / np.sqrt(w[keep])
    left = np.maximum(kernel.diagonal() - ((K @ root) ** 2).sum(axis=1), 0.0)
    return 1.0 - float(counted @ left) / total


def redundancy(kernel: Kernel, chosen: ArrayLike) -> float:
    """Mean over j∈S of 1 − 1/(k_jj (K_SS⁻¹)_jj): the share of a pick that the others express; 1 for copies.

    Examples
    --------
    >>> kernel = make_kernel(np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 3.0]]), "linear")
    >>> round(redundancy(kernel, [0, 1]), 9), round(redundancy(kernel, [0, 2]), 9), round(redundancy(kernel, [0, 1, 2]), 9)
    (0.5, 0.0, 1.0)
    """
    members = np.asarray(chosen, np.intp)
    if not len(members):
        return 0.0
    K = kernel.block(members, members)
    size = np.maximum(np.diagonal(K), 0.0)
    scale = np.divide(1.0, np.sqrt(size), out=np.zeros(len(K)), where=size > 0)
    w, U = np.linalg.eigh(scale[:, None] * (0.5 * (K + K.T)) * scale)
    # Not the pseudo-inverse: (K⁻¹)_jj of a point with a part in the null space is infinite, and the floor keeps it very large.
    inverse = (U**2 / np.maximum(w, 1e-12 * w.max())).sum(axis=1)
    # A point that is zero in feature space is expressed by any others.
    return float(np.where(scale > 0, np.clip(1.0 - 1.0 / inverse, 0.0, 1.0), 1.0).mean())


def judge_outliers(is_outlier: ArrayLike, scores: ArrayLike, flagged: ArrayLike | None = None) -> Verdict:
    """How well scores rank outliers above inliers, and how good the method's own decision is, both ways round.

    Parameters
    ----------
    is_outlier : the truth
    scores : outlyingness, high is odd
    flagged : the rows that the method calls outliers; None if it does not decide

    Returns
    -------
    auc : P(score of an outlier > score of an inlier) + ½ P(equal); the same both ways round
    f1_outlier_best, f1_inlier_best : max_t 2 p_t r_t / (p_t + r_t) over thresholds t; rows of equal score are on the same
        side of each
    f1_outlier_own, f1_inlier_own : F1 of the method's own decision; 0 if it puts nothing into the positive class
    f1_outlier_true_share : F1 if as many rows are flagged as there are outliers, those of the highest scores; of rows with
        equal scores at the edge some are drawn by lot, and F1 is its expectation
    flagged_share : share of all rows that the method flags

    Notes
    -----
    1. F1 depends on which class is positive, and papers differ; compare only numbers of the same name.
    2. Without outliers, or without inliers, all but ``flagged_share`` is None.
    """
    truth = np.asarray(is_outlier, np.bool_)
    values = _checked_scores(scores, len(truth))
    decision = None if flagged is None else _checked_decision(flagged, len(truth))
    verdict: Verdict = {"auc": None}
    both = bool(truth.any() and not truth.all())
    if both:
        verdict["auc"] = float(roc_auc_score(truth, values))
    verdict["f1_outlier_true_share"] = _f1_of_true_share(truth, values) if both else None
    for name, positive, sign in (("outlier", truth, 1.0), ("inlier", ~truth, -1.0)):
        chosen = None if decision is None else decision == (name == "outlier")
        own = both and chosen is not None
        verdict[f"f1_{name}_best"] = _best_f1(positive, sign * values) if both else None
        verdict[f"f1_{name}_own"] = float(f1_score(positive, chosen, zero_division=0.0)) if own else None
    verdict["flagged_share"] = None if decision is None else float(decision.mean())
    return verdict


def judge_encoding(case: Case, R: FloatArray) -> Verdict:
    """What rows of R say of outliers and of copies among them.

    Returns
    -------
    own_outliers, own_inliers : mean over the rows of a kind of |r_jj| / Σ_i |r_ij|, the share of itself in its own representation
    part_repeated, part_inliers : mean over the outliers that are there more than once, and over the inliers, of Σ_i |r_ji| over
        the inliers i: the part that a row has in representing these; None where there are no such rows
    """
    size, inliers = np.abs(R), ~case.is_outlier
    total = size.sum(axis=0)
    own = np.divide(size.diagonal(), total, out=np.zeros(len(R)), where=total > 0)
    part = size[:, inliers].sum(axis=1)
    _, group, counts = np.unique(case.X, axis=0, return_inverse=True, return_counts=True)
    repeated = case.is_outlier & (counts[group.ravel()] > 1)
    kinds = {"own_outliers": (own, case.is_outlier), "own_inliers": (own, inliers)}
    kinds |= {"part_repeated": (part, repeated), "part_inliers": (part, inliers)}
    return {name: float(values[rows].mean()) if rows.any() else None for name, (values, rows) in kinds.items()}


def judge_light(case: Case, picks: Picks | ArrayLike) -> Verdict:
    """How picks are spread over subjects and over the lights under which these were taken.

    Parameters
    ----------
    case : images with the subject as class
    picks : rows of ``case.X``, none twice

    Returns
    -------
    light_groups_hit : #{(subject, light) of the picks} / #{(subject, light) that there are}; at most #picks of them can be hit
    lights_hit : distinct lights among the picks, of "left", "straight" and "right"

    Notes
    -----
    1. The grouping by light is ours: the files carry no angles, so the light is read from the picture. With L and R the mean
       brightness of the left and the right half, a = (L − R) / (L + R), 0 for a black picture; the light is left if
       a > 1/4, right if a < −1/4, else straight. This makes three groups of about a third of the faces each.
    2. Picked outliers, which are of no subject, do not count.
    """
    indices = _checked_picks(case, picks)
    if case.y is None or case.image_shape is None:
        return dict.fromkeys(("light_groups_hit", "lights_hit"))
    inliers = np.flatnonzero(~case.is_outlier)
    taught = indices[~case.is_outlier[indices]]
    groups = np.column_stack([case.y, _lights(case.X.reshape(len(case.X), *case.image_shape))])
    return {
        "light_groups_hit": len(np.unique(groups[taught], axis=0)) / len(np.unique(groups[inliers], axis=0)),
        "lights_hit": len(np.unique(groups[taught, 1])),
    }


def judge_saliency(picture: Picture, values: ArrayLike) -> Verdict:
    """How well scores of patches show where the salient object of a picture is.

    Parameters
    ----------
    picture : its patches, and its mask M of pixels, 1 in the object
    values : one number a patch, high is salient

    Returns
    -------
    auc : as in ``judge_outliers``, over patches; a patch is salient if more than half of its pixels are
    mae : mean over pixels of |s − M|, s = (v − min v) / (max v − min v) with the v of the pixel's patch; s = 0 if all are
        equal
    centre : the AUC of a map that looks at no picture, v = −‖(i, j) − centre‖₂ in units of half the height and half the width
    f_best : max over thresholds t of F_β of the pixels with s ≥ t; F_β = (1 + β²) p r / (β² p + r), β² = 0.3, with
        p = #{s ≥ t, M} / #{s ≥ t} and r = #{s ≥ t, M} / #M

    Notes
    -----
    Without an object, F is None.
    """
    inside = picture.object_pixels
    v = _checked_scores(values, len(inside))
    pixels = picture.mask.size / len(inside)  # of one patch
    rows, columns = picture.grid
    i, j = np.mgrid[:rows, :columns].reshape(2, -1)
    centre = -np.hypot((2 * i + 1) / rows - 1.0, (2 * j + 1) / columns - 1.0)
    verdict = {name: judge_outliers(inside > pixels / 2, map_)["auc"] for name, map_ in (("auc", v), ("centre", centre))}
    s = scaled(v)
    verdict["mae"] = float((inside * (1.0 - s) + (pixels - inside) * s).sum() / picture.mask.size)
    # Thresholds at which something changes: the distinct values, the last patch of each in falling order.
    order = np.argsort(-s, kind="stable")
    last = np.flatnonzero(np.append(np.diff(s[order]) < 0, True))
    hits = np.cumsum(inside[order])[last]
    truth = int(inside.sum())
    if truth == 0:
        return {**verdict, "f_best": None}
    precision, recall = hits / (pixels * (last + 1)), hits / truth
    below = BETA_SQUARED * precision + recall
    f = np.divide((1.0 + BETA_SQUARED) * precision * recall, below, out=np.zeros_like(below), where=below > 0)
    return {**verdict, "f_best": float(f.max())}


def scaled(v: FloatArray) -> FloatArray:
    """(v − min v) / (max v − min v), 0 if all are equal: how a map is judged, kept and shown.

    Examples
    --------
    >>> scaled(np.array([2.0, 3.0, 4.0])).tolist(), scaled(np.ones(2)).tolist()
    ([0.0, 0.5, 1.0], [0.0, 0.0])
    """
    spread = np.ptp(v)
    return (v - v.min()) / spread if spread > 0 else np.zeros(len(v))


def measure(function: Callable[..., T], *args: Any) -> tuple[T, float]:
    """function(*args), and the processor seconds it took, over all threads.

    With one BLAS thread these are the seconds on the clock of an idle machine, and stay so on a busy one.

    Examples
    --------
    >>> result, seconds = measure(sum, [1, 2, 3])
    >>> result, seconds >= 0
    (6, True)
    """
    start = time.process_time()
    result = function(*args)
    return result, time.process_time() - start


def _checked_picks(case: Case, picks: Picks | ArrayLike) -> IntArray:
    if not (~case.is_outlier).any():
        raise InvalidInputError(f"case {case.name} has no inliers; there is nothing to represent.")
    try:
        return as_indices(picks.indices if isinstance(picks, Picks) else picks, len(case.X), "picks")
    except InvalidInputError as error:
        raise InvalidInputError(f"{error} The method is at fault.") from error


def _accuracies(case: Case, taught: IntArray, centre: FloatArray, scale: float) -> Verdict:
    """Share of the test part that classifiers of the picked inliers get right."""
    nearest = svm = None
    if case.y is not None and case.y_test is not None and len(case.y_test):
        unit = scale if scale > 0 else 1.0
        X, y, X_test = (case.X[taught] - centre) / unit, case.y[taught], (case.X_test - centre) / unit
        nearest = float(KNeighborsClassifier(1).fit(X, y).score(X_test, case.y_test)) if len(y) else 0.0
        if len(np.unique(y)) > 1:
            svm = float(SVC(kernel="linear", C=SVM_PRICE).fit(X, y).score(X_test, case.y_test))
    return {"accuracy_1nn": nearest, "accuracy_svm": svm}


def _classes(case: Case, taught: IntArray) -> Verdict:
    """−Σ p log p / log C of the picked inliers' classes, and how many there are."""
    if case.y is None:
        return {"class_balance": None, "classes_hit": None, "classes": None}
    total = len(np.unique(case.y[~case.is_outlier]))
    counts = np.unique(case.y[taught], return_counts=True)[1]
    p = counts / max(counts.sum(), 1)
    entropy = float(np.abs(np.sum(p * np.log(p))))  # the sum is <= 0
    return {"class_balance": entropy / float(np.log(total)) if total > 1 else None, "classes_hit": len(counts), "classes": total}


def _checked_scores(scores: ArrayLike, n: int) -> FloatArray:
    values = np.asarray(scores, np.float64)
    if values.shape != (n,):
        raise InvalidInputError(f"scores must be one number for each of {n} rows; got shape {values.shape}.")
    finite = np.isfinite(values)
    if not finite.all():
        first = int(np.argmin(finite))
        raise InvalidInputError(
            f"scores must be finite; {int(np.isnan(values).sum())} are NaN and {int(np.isinf(values).sum())} infinite, "
            f"the first is {values[first]} for row {first}. The method is at fault: a score that cannot be compared "
            "ranks nothing."
        )
    return values


def _checked_decision(flagged: ArrayLike, n: int) -> BoolArray:
    decision = np.asarray(flagged)
    if decision.shape != (n,) or decision.dtype != np.bool_:
        raise InvalidInputError(
            f"flagged must be {n} truth values; got {decision.dtype}, shape {decision.shape}. The method is at fault."
        )
    return decision


def _lights(images: FloatArray) -> IntArray:
    """1, 0, −1 for a = (L − R) / (L + R) above 1/4, between, below −1/4; of an odd width the middle is in no half."""
    half = images.shape[2] // 2
    left, right = (part.reshape(len(images), -1).mean(axis=1) for part in (images[:, :, :half], images[:, :, -half:]))
    total = left + right
    a = np.divide(left - right, total, out=np.zeros_like(total), where=total > 0)
    return np.where(np.abs(a) > SIDE_LIGHT, np.sign(a), 0.0).astype(np.intp)


def _best_f1(positive: BoolArray, values: FloatArray) -> float:
    """max_t 2 p_t r_t / (p_t + r_t)."""
    precision, recall, _ = precision_recall_curve(positive, values)
    total = precision + recall
    return float(np.max(np.divide(2.0 * precision * recall, total, out=np.zeros_like(total), where=total > 0)))


def _f1_of_true_share(truth: BoolArray, values: FloatArray) -> float:
    """E #{outliers among the m highest} / m, m the number of outliers: precision and recall are the same then."""
    m = int(truth.sum())
    edge = np.partition(values, -m)[-m]
    above, at = values > edge, values == edge
    return float((truth[above].sum() + (m - above.sum()) * truth[at].mean()) / m)
