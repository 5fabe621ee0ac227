"""Choosing: points, their geometry, who does not belong, and who stands for the rest. The result is a ``Selection``."""

from mosaic.choosing.certificate import SelectionCertificate, counted, excess, percent
from mosaic.choosing.choose import MOST_AUTOMATIC, choose, curve_settings, flag_only, rank
from mosaic.choosing.constraints import Constraints
from mosaic.choosing.cover import knee, without_rounding
from mosaic.choosing.explanation import Decisions, Explanation, explain_point, on_outliers
from mosaic.choosing.geometry import Geometry, geometry_of, preparation_of
from mosaic.choosing.material import Material, points_to_look_at
from mosaic.choosing.points import Points, as_weights
from mosaic.choosing.selection import Answers, Selection
from mosaic.choosing.settings import Settings, as_bytes

__all__ = [
    "MOST_AUTOMATIC",
    "Answers",
    "Constraints",
    "Decisions",
    "Explanation",
    "Geometry",
    "Material",
    "Points",
    "Selection",
    "SelectionCertificate",
    "Settings",
    "as_bytes",
    "as_weights",
    "choose",
    "counted",
    "curve_settings",
    "excess",
    "explain_point",
    "flag_only",
    "geometry_of",
    "knee",
    "on_outliers",
    "percent",
    "points_to_look_at",
    "preparation_of",
    "rank",
    "without_rounding",
]
