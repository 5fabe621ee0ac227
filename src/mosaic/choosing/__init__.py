"""Choosing: points, their geometry, the outliers, and the representatives of the rest. The result is a ``Selection``."""

from mosaic.choosing.certificate import EXPLAINED, SelectionCertificate, counted, excess, percent
from mosaic.choosing.choose import MOST_AUTOMATIC, choose, curve_settings, flag_only, knee, rank
from mosaic.choosing.explanation import (
    Decisions,
    Explanation,
    OfRow,
    contrasts,
    explain_point,
    fetch_rows,
    oddities,
    prepared_row,
)
from mosaic.choosing.geometry import Geometry, geometry_of, preparation_of
from mosaic.choosing.objectives import without_rounding
from mosaic.choosing.points import Material, Points, Solved, decision_sample, row_weights
from mosaic.choosing.reasons import ColumnReason, columns_of, odd_columns, row_of_point, typical_columns
from mosaic.choosing.selection import Answers, Selection
from mosaic.choosing.settings import CERTIFIED_GAP, Constraints, Settings, is_auto

__all__ = [
    "CERTIFIED_GAP",
    "EXPLAINED",
    "MOST_AUTOMATIC",
    "Answers",
    "ColumnReason",
    "Constraints",
    "Decisions",
    "Explanation",
    "Geometry",
    "Material",
    "OfRow",
    "Points",
    "Selection",
    "SelectionCertificate",
    "Settings",
    "Solved",
    "choose",
    "columns_of",
    "contrasts",
    "counted",
    "curve_settings",
    "decision_sample",
    "excess",
    "explain_point",
    "fetch_rows",
    "flag_only",
    "geometry_of",
    "is_auto",
    "knee",
    "odd_columns",
    "oddities",
    "percent",
    "preparation_of",
    "prepared_row",
    "rank",
    "row_of_point",
    "row_weights",
    "typical_columns",
    "without_rounding",
]
