"""What was decided for the user, and why, in sentences."""

from __future__ import annotations

from typing import Any

import numpy as np

from mosaic.estimators._two_scales import FAR, NEAR, TAIL_SHARE
from mosaic.kernels import RBF, Kernel, Laplacian
from mosaic.outliers import Cut
from mosaic.tuning import typical_count
from mosaic.view import directions_for

#: Columns that are named with what they were divided by.
MOST_COLUMNS = 3


class Settings(tuple[str, ...]):
    """Sentences, one for each decision; printed one a line."""

    def __str__(self) -> str:
        return "\n".join(self)


def explain_selector(model: Any) -> Settings:
    """The decisions behind a fitted selector."""
    solved, wants, choice = model._solved, model._wanted, model._choice
    return Settings(
        [
            _columns(model),
            _bandwidth(model, solved.kernel, model._neighbours_wanted if _is_ours(model) else None),
            _strength(model),
            _number(model),
            _directions(model),
            _outliers(int(model.is_outlier_.sum()), choice.cut, solved.cut is not None, wants.outliers),
            *_protected(
                wants.min_group, None if choice.groups is None else solved.points.spread(choice.groups.members, False)
            ),
        ]
    )


def explain_detector(detector: Any) -> Settings:
    """The decisions behind a fitted detector."""
    scales = detector._scales
    half = 0.5 * scales.kernel.n
    looks = (
        [_bandwidth(detector, scales.kernel, None), _strength(detector)]
        if scales.far is None
        else [
            f"Bandwidths {scales.kernel.gamma:.3g} and {scales.wide_kernel.gamma:.3g}: so that a typical one of "
            f"{scales.kernel.n:,} reference points resembles {min(NEAR, half):.0f} of them, and {min(FAR, half):.0f}. How "
            "odd a point is nearby decides, unless it is odder by more than one standard deviation from afar."
        ]
    )
    return Settings(
        [
            _columns(detector),
            *looks,
            _outliers(int(detector.is_outlier_.sum()), detector._cut, False, "report", two=scales.far is not None),
            *_protected(detector.min_group, detector._protected),
        ]
    )


def _is_ours(model: Any) -> bool:
    """Whether the bandwidth follows the share of a representative."""
    return model._wanted.mode == "auto" and isinstance(model._solved.kernel, RBF | Laplacian)


def _columns(estimator: Any) -> str:
    scale = estimator.column_scale_
    if scale is None:
        return "Columns are taken as they are."
    names = getattr(estimator, "feature_names_in_", None)
    largest = np.argsort(-scale, kind="stable")[:MOST_COLUMNS]
    shown = ", ".join(f"{names[j] if names is not None else f'column {j}'} by {scale[j]:.3g}" for j in largest)
    why = (
        "as was asked for"
        if not isinstance(estimator.scale, str)
        else "since otherwise few of them would be all that distances see"
    )
    more = " …" if len(scale) > MOST_COLUMNS else ""
    return f"Columns are divided by their spread, {why}: {shown}{more}."


def _bandwidth(estimator: Any, kernel: Kernel, wanted: float | None) -> str:
    if not hasattr(kernel, "gamma"):
        return f"Similarity: {estimator.kernel if isinstance(estimator.kernel, str) else 'as given'}, which has no bandwidth."
    count = typical_count(kernel)
    sentence = (
        f"Bandwidth {kernel.gamma:.3g}: so that a typical point resembles about {count:.0f} points, itself included"
    )
    if not (isinstance(estimator.gamma, str) and estimator.gamma == "auto"):
        return sentence.replace("so that", "as it was set;") + "."
    if wanted is not None and count > 1.2 * wanted:
        return f"{sentence}; a kernel in which it resembles {wanted:.0f}, its share, needs a higher rank than is affordable."
    return f"{sentence}, its share." if wanted is not None else f"{sentence}."


def _strength(estimator: Any) -> str:
    given = estimator.alpha is not None or estimator.lam is not None
    why = "as it was set" if given else "at which points that nobody else expresses are clearly apart"
    if not given and getattr(estimator, "mode", "auto") == "paper":
        why = "as in later work of the paper's first author"
    return f"Strength {estimator.lam_:.3g}, {estimator.alpha_:.3g} times the critical one, {why}."


def _number(model: Any) -> str:
    wants, k = model._wanted, model.n_representatives_
    if model._solved.demands.fixed_total is not None:
        why = "as was asked for"
    elif wants.mode == "paper":
        why = "what pruning and outliers leave" + ("" if wants.n_representatives == "auto" else ", or the first of it")
    elif wants.coverage is not None:
        why = f"as many as explain {100 * wants.coverage:g} % of the points that belong"
    elif wants.min_support is not None:
        why = f"as many as can each stand for {wants.min_support:g} points"
    elif isinstance(wants.n_representatives, str):
        why = "where more of them add little (the knee of the curve)"
    else:
        why = "as was asked for"
    return f"{k} {'representative' if k == 1 else 'representatives'}: {why}."


def _directions(model: Any) -> str:
    solved, k = model._solved, model.n_representatives_
    if model._wanted.mode == "paper":
        return "Chosen by influence, and thinned by distance."
    if solved.vectors is None:
        return "Chosen to be similar to the points that belong, in the similarity that was set."
    r, d = directions_for(k), solved.vectors.shape[1]
    seen = (
        "in all directions"
        if d <= r
        else f"in the {r} directions in which they differ most (20 and one for three picks)"
    )
    return f"Chosen to be similar to the points that belong, {seen}."


def _outliers(number: int, cut: Cut, narrow: bool, policy: str, two: bool = False) -> str:
    if policy == "keep":
        return "Outliers were not looked for."
    counted = f"{number:,} {'outlier' if number == 1 else 'outliers'}" if number else "No outliers"
    if cut.rule == "valley":
        where = ", in a kernel in which a typical point resembles five" if narrow else ""
        found = f"a valley divides the effective counts (p = {cut.p_value:.1g}){where}"
        return f"{counted}: {found}; those below {cut.count:.3g} are out."
    if cut.rule == "isolated" and two:
        most = f"at most {100 * TAIL_SHARE:g} % of all unless they are alone even from afar"
        return f"{counted}: no crowd stands apart by its effective counts, so only points that stand alone are out, {most}."
    if cut.rule == "isolated":
        return f"{counted}: no crowd stands apart by its effective counts, so only who stands for itself alone is out."
    if cut.rule == "none":
        return f"{counted}: the points with low counts are too many, or hold together as well as the others do."
    return f"{counted}: effective counts below {cut.count:.3g}, from the {cut.rule}."


def _protected(smallest: float | None, members: Any) -> list[str]:
    if smallest is None or members is None:
        return []
    number = int(np.sum(members))
    return [f"{number:,} more would be outliers, if they were not in groups of at least {smallest:g}."]
