"""The paper's Algorithm 3: passes over blocks of rows, with small programs between them."""

from mosaic.sketch.blocks import ROWS_AT_ONCE, Basis, GramSum, LargestScores, Scores, triangle
from mosaic.sketch.rounds import Rule, Sketch, SketchRound, features, first_candidates, run_sketch
from mosaic.sketch.sample import Copies, FirstPass, Sample, counted, draw, with_rows

__all__ = [
    "ROWS_AT_ONCE",
    "Basis",
    "Copies",
    "FirstPass",
    "GramSum",
    "LargestScores",
    "Rule",
    "Sample",
    "Scores",
    "Sketch",
    "SketchRound",
    "counted",
    "draw",
    "features",
    "first_candidates",
    "run_sketch",
    "triangle",
    "with_rows",
]
