"""The paper's Algorithm 3, as passes over blocks of rows and small programs between them."""

from mosaic.sketch.blocks import Basis, GramSum, Scores
from mosaic.sketch.rounds import Round, Rule, Sketch, features, first_candidates, run_sketch
from mosaic.sketch.sample import Look, Sample

__all__ = [
    "Basis",
    "GramSum",
    "Look",
    "Round",
    "Rule",
    "Sample",
    "Scores",
    "Sketch",
    "features",
    "first_candidates",
    "run_sketch",
]
