"""The paper's Algorithm 3, as passes over blocks of rows and small programs between them."""

from mosaic.sketch.blocks import Basis, GramSum, LargestScores, Scores, symmetric, triangle
from mosaic.sketch.rounds import Round, Rule, Sketch, features, first_candidates, run_sketch
from mosaic.sketch.sample import Copies, Look, Sample, counted, draw, with_rows

__all__ = [
    "Basis",
    "Copies",
    "GramSum",
    "LargestScores",
    "Look",
    "Round",
    "Rule",
    "Sample",
    "Scores",
    "Sketch",
    "counted",
    "draw",
    "features",
    "first_candidates",
    "run_sketch",
    "symmetric",
    "triangle",
    "with_rows",
]
