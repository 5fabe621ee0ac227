"""What became of earlier picks when rows were added: who stayed, who was replaced by whom, who went and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mosaic.choosing.certificate import counted
from mosaic.text import listed

if TYPE_CHECKING:
    from mosaic.choosing.points import Material


@dataclass(frozen=True)
class Changes:
    """A choice that began with earlier picks. Rows are numbers of rows in memory.

    Attributes
    ----------
    n_before : number of earlier picks
    kept : those that are chosen again
    replaced : (earlier pick, the row in its place, what that adds to the mean similarity)
    dropped : (earlier pick, why it is not chosen any more)
    gone : what earlier picks are called that are not among the rows any more
    similarity_before, similarity_after : mean similarity of the rows that belong to the nearest earlier pick, and to the nearest
        pick
    """

    n_before: int
    kept: tuple[int, ...]
    replaced: tuple[tuple[int, int, float], ...]
    dropped: tuple[tuple[int, str], ...]
    gone: tuple[str, ...]
    similarity_before: float
    similarity_after: float

    def sentences(self, material: Material) -> list[str]:
        """The same for a reader, with the names of the rows."""

        def named(rows: list[int]) -> list[str]:
            return [material.called(row) for row in material.rows_in_data(np.array(rows, np.intp)).tolist()]

        told = [f"{len(self.kept):,} of {counted(self.n_before, 'earlier pick')} kept."]
        if self.replaced:
            pairs = zip(named([a for a, _, _ in self.replaced]), named([b for _, b, _ in self.replaced]), strict=True)
            gains = (gain for _, _, gain in self.replaced)
            shown = [f"{a} → {b} (+{gain:.2g})" for (a, b), gain in zip(pairs, gains, strict=True)]
            told.append(f"Replaced, with what that adds to the mean similarity: {listed(shown)}.")
        for why in dict.fromkeys(why for _, why in self.dropped):
            told.append(f"Not kept, {why}: {listed(named([row for row, other in self.dropped if other == why]))}.")
        if self.gone:
            told.append(f"Not among the rows any more: {listed(list(self.gone))}.")
        told.append(
            f"The mean similarity to the nearest pick is {self.similarity_after:.4g}; with the earlier picks alone it is "
            f"{self.similarity_before:.4g}."
        )
        return told
