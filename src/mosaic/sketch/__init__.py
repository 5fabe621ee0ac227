"""The paper's Algorithm 3: passes over blocks of rows, with small programs between them."""

from mosaic.sketch.blocks import ROWS_AT_ONCE, Basis, GramSum, LargestScores, Scores, triangle
from mosaic.sketch.rounds import MOST_ROUNDS, Rule, Sketch, SketchRound, features, first_candidates, run_sketch
from mosaic.sketch.sample import Copies, Sample, counted, with_rows

__all__ = [
    "MOST_ROUNDS",
    "ROWS_AT_ONCE",
    "Basis",
    "Copies",
    "GramSum",
    "LargestScores",
    "Rule",
    "Sample",
    "Scores",
    "Sketch",
    "SketchRound",
    "counted",
    "features",
    "first_candidates",
    "run_sketch",
    "triangle",
    "with_rows",
]
