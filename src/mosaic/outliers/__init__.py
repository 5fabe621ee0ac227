"""Who does not belong: how many rows look like a row, and from which number on it is an outlier."""

from mosaic.outliers.counts import EffectiveCounts
from mosaic.outliers.cut import NOBODY, Cut, cut_for_share, find_cut, find_valley, outlier_probability
from mosaic.outliers.groups import Groups, find_groups, group_sizes

__all__ = [
    "NOBODY",
    "Cut",
    "EffectiveCounts",
    "Groups",
    "cut_for_share",
    "find_cut",
    "find_groups",
    "find_valley",
    "group_sizes",
    "outlier_probability",
]
