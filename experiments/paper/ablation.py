"""What each rule of MOSAIC() is worth: the numbers without it, on the same cases and seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from experiments.items import CHOOSING, CONFIRMING, KINDS, adbench_sets
from experiments.methods.ours import CHANGED
from experiments.paper._lines import AUC, NEAREST, OUTLIER_SHARE, Column, Line, Measure, cells, latest, tiers
from experiments.paper._markdown import table_of_columns

ITEM = "ablation"
WHOLE = "MOSAIC"
#: Variant → what is different.
SELECTION_RULES = {
    WHOLE: "nothing",
    "no rejection": "outliers are not looked for",
    "greedy": "no exchanges",
    "unscaled": "columns are never divided by their spread",
    "narrow": "a dense point resembles 1/12 of all",
    "wide": "a dense point resembles 1/3 of all",
    "median density": "the typical point resembles a fifth, not one in a dense place",
    "eight programs": "eight programs",
    "larger programs": "programs of 256 points",
    "weaker programs": "lam = 3",
    "stronger programs": "lam = 30",
    "any valley": "valleys with p < 1e-3",
    "clear valleys only": "valleys with p < 1e-8",
    "no valley": "no crowd is rejected",
    "no groups": "no crowd is kept for being a group",
    "nobody alone": "nobody is rejected for being alone",
    "more alone": "alone below 1.3",
    "no doubt": "rows just above a valley may be chosen",
}
DETECTION_RULES = {name: SELECTION_RULES[name] for name in (WHOLE, "unscaled", *CHANGED)} | {"one program": "one program"}


def parts(lines: Sequence[Line]) -> list[str]:
    """Words and tables of selection and detection."""
    mine = latest(lines, ITEM)
    if not mine:
        return [f"*Missing: no run of `{ITEM}` yet.*"]
    words = (
        "MOSAIC() with one of its rules left out, or another constant, at a time. Numbers are means over all cases of a column "
        "± the standard deviation over seeds; all rows have the same cases and seeds. Rules were chosen on the choosing half "
        f"({', '.join(CHOOSING)}; {', '.join(KINDS['choosing'])}); the confirming half ({', '.join(CONFIRMING)}; "
        f"{', '.join(KINDS['confirming'])}) had no say. k = 30; without outliers, and with 0.3 and 1 outliers per inlier."
    )
    found = [words]
    for half, sets in (("choosing", CHOOSING), ("confirming", CONFIRMING)):
        theirs = [line for line in mine if line["dataset"] in sets]
        if theirs:
            selection = {
                "1-NN accuracy, no outliers": (_column(theirs, NEAREST, "classify"), NEAREST),
                "1-NN accuracy, outliers": (_column(theirs, NEAREST, "select"), NEAREST),
                OUTLIER_SHARE.title: (_column(theirs, OUTLIER_SHARE, "select"), OUTLIER_SHARE),
            }
            found += [f"Selection, {half} half:", _table(selection, SELECTION_RULES, mine)]
    marked = adbench_sets()
    detection = {
        f"AUC, ADBench, {half} half": (_column([line for line in mine if line["dataset"] in sets], AUC, "detect as is"), AUC)
        for half, sets in (("choosing", marked[::2]), ("confirming", marked[1::2]))
    }
    return [*found, "Detection: all sets that mark their outliers.", _table(detection, DETECTION_RULES, mine)]


def _column(lines: Sequence[Line], measure: Measure, task: str) -> Column:
    """Means over all cases of a task, one a seed."""
    return cells([line for line in lines if line["task"] == task], measure, []).get((), {})


def _table(columns: Mapping[str, tuple[Column, Measure]], rules: Mapping[str, str], lines: Sequence[Line]) -> str:
    return table_of_columns(columns, list(rules), tiers(lines), {"what is different": rules})
