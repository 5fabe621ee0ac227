"""The facts of a fit, built once and rendered by terminal, JSON, page, notebook and figures."""

from mosaic.facts.facts import Curve, Facts, Map, Outliers, coverage_text, facts_of, known_of

__all__ = ["Curve", "Facts", "Map", "Outliers", "coverage_text", "facts_of", "known_of"]
