"""Choosing: points, their geometry, the outliers, and the representatives of the rest. The result is a ``Selection``."""

from mosaic.choosing.all_rows import certificate_for_all
from mosaic.choosing.answers import Question, with_outliers
from mosaic.choosing.certificate import COVERAGE, counted, percent
from mosaic.choosing.choose import (
    MOST_AUTOMATIC,
    Ranking,
    choose,
    coverage_bounds,
    flag_only,
    rank,
    suggested_number,
)
from mosaic.choosing.cover_certificate import CoverCertificate, NamedExchange, certificate_of
from mosaic.choosing.draw import Drawn
from mosaic.choosing.explain import (
    PICK_COLUMNS,
    Decisions,
    Explanation,
    cause,
    contrasts,
    explain_rows,
    odd_columns,
    oddities,
    typical_columns,
)
from mosaic.choosing.geometry import (
    ColumnReason,
    Geometry,
    TableColumns,
    columns_of,
    geometry_of,
    preparation_of,
)
from mosaic.choosing.points import FitData, Points, Solved
from mosaic.choosing.selection import Selection
from mosaic.choosing.settings import Constraints, Settings, is_auto

__all__ = [
    "COVERAGE",
    "MOST_AUTOMATIC",
    "PICK_COLUMNS",
    "ColumnReason",
    "Constraints",
    "CoverCertificate",
    "Decisions",
    "Drawn",
    "Explanation",
    "FitData",
    "Geometry",
    "NamedExchange",
    "Points",
    "Question",
    "Ranking",
    "Selection",
    "Settings",
    "Solved",
    "TableColumns",
    "cause",
    "certificate_for_all",
    "certificate_of",
    "choose",
    "columns_of",
    "contrasts",
    "counted",
    "coverage_bounds",
    "explain_rows",
    "flag_only",
    "geometry_of",
    "is_auto",
    "odd_columns",
    "oddities",
    "percent",
    "preparation_of",
    "rank",
    "suggested_number",
    "typical_columns",
    "with_outliers",
]
