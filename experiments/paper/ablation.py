"""What each rule of MOSAIC() is worth: the numbers without it, on the same cases and seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from experiments.items import KINDS
from experiments.paper._lines import AUC, NEAREST, OUTLIER_SHARE, Column, Line, Measure, cells, latest, tiers
from experiments.paper._markdown import table_of_columns

ITEM = "ablation"
WHOLE = "MOSAIC"
#: Variant → what it goes without.
SELECTION_RULES = {
    WHOLE: "nothing",
    "no rejection": "outliers are not chosen",
    "own kernel": "choosing is done in the directions in which points differ most",
    "greedy": "picks are exchanged while that helps",
    "unscaled": "features are scaled where their units differ",
}
DETECTION_RULES = {
    WHOLE: "nothing",
    "near only": "points are looked at from afar, too",
    "far only": "points are looked at from nearby, too",
    "one scale": "two scales, instead of one in between",
    "unscaled": "features are scaled where their units differ",
}


def parts(lines: Sequence[Line]) -> list[str]:
    """Words and tables of selection and detection."""
    mine = latest(lines, ITEM)
    if not mine:
        return [f"*Missing: no run of `{ITEM}` yet.*"]
    words = (
        "MOSAIC() with one of its rules left out at a time. Numbers are means over all cases of a column ± the standard "
        "deviation over seeds; all rows have the same cases and seeds. Selection: the choosing half, k = 30, without outliers "
        f"and with as many outliers as inliers, of its kinds ({', '.join(KINDS['choosing'])})."
    )
    selection = {
        "1-NN accuracy, no outliers": (_column(mine, NEAREST, "classify"), NEAREST),
        "1-NN accuracy, outliers": (_column(mine, NEAREST, "select"), NEAREST),
        OUTLIER_SHARE.title: (_column(mine, OUTLIER_SHARE, "select"), OUTLIER_SHARE),
    }
    detection = {
        "AUC, ADBench": (_column(mine, AUC, "detect as is", "adbench/"), AUC),
        "AUC, swiss roll": (_column(mine, AUC, "detect as is", "swiss_roll/"), AUC),
    }
    found = [words, _table(selection, SELECTION_RULES, mine)]
    return [
        *found,
        "Detection: all sets that mark their outliers, and the swiss roll.",
        _table(detection, DETECTION_RULES, mine),
    ]


def _column(lines: Sequence[Line], measure: Measure, task: str, start: str = "") -> Column:
    """Means over all cases of a task, one a seed."""
    mine = [line for line in lines if line["task"] == task and line["dataset"].startswith(start)]
    return cells(mine, measure, []).get((), {})


def _table(columns: Mapping[str, tuple[Column, Measure]], rules: Mapping[str, str], lines: Sequence[Line]) -> str:
    return table_of_columns(columns, list(rules), tiers(lines), {"rule left out": rules})
