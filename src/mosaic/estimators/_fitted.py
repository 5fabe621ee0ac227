"""What fitted estimators share: how points in memory are prepared, and attributes that read the selection."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mosaic._arrays import BoolArray, FloatArray
from mosaic.choosing import (
    Constraints,
    Geometry,
    Material,
    Points,
    Selection,
    Settings,
    geometry_of,
    points_to_look_at,
)
from mosaic.estimators._progress import Narrator
from mosaic.estimators._proof import InMemory
from mosaic.estimators._reading import read_prepared, seed_of
from mosaic.exceptions import SelectionWarning
from mosaic.outliers import EffectiveCounts


def material_in_memory(
    estimator: Any,
    X: Any,
    settings: Settings,
    sample_weight: ArrayLike | None,
    constraints: Callable[[int], Constraints],
    proof: Callable[[Any, Points, Geometry, int], InMemory],
    narrator: Narrator,
) -> Material:
    """All points, at once.

    Parameters
    ----------
    estimator : is told names and number of its features; has the seed
    X, settings, sample_weight : of the fit
    constraints : for a number of rows
    proof : for the prepared rows, their points, their geometry and a seed
    narrator : is told how far it is
    """
    narrator.say("similarities")
    matrix, prepare = read_prepared(estimator, X, sample_weight, settings)
    checked = constraints(matrix.shape[0])
    points = Points.of(matrix, sample_weight, pairwise=settings.kernel == "precomputed")
    seed, names = seed_of(estimator.random_state), getattr(estimator, "feature_names_in_", None)
    geometry = geometry_of(matrix, points, settings, prepare, names, seed)
    solver = proof(matrix, points, geometry, seed)
    counting = None
    if settings.mode != "paper":
        narrator.say("effective counts")
        counting = EffectiveCounts.of(geometry.kernel, points.weights, seed, settings.max_samples)
    return Material(
        n_rows=matrix.shape[0],
        points=points,
        geometry=geometry,
        constraints=checked,
        counting=counting,
        sample=points_to_look_at(points, checked),
        seed=seed,
        proof=solver,
        absent=matrix[np.flatnonzero(points.group < 0)],
    )


class ReadsSelection:
    """Attributes of a fitted estimator, read from its ``selection_``. Before ``fit`` there are none, as scikit-learn expects."""

    selection_: Selection
    kernel: Any

    @property
    def _found(self) -> Selection:
        if "selection_" not in self.__dict__:
            raise AttributeError(f"This {type(self).__name__} instance is not fitted yet. Call 'fit' first.")
        return self.selection_

    def _warn(self, stacklevel: int = 3) -> None:
        for sentence in self.selection_.warnings:
            warnings.warn(sentence, SelectionWarning, stacklevel=stacklevel)

    @property
    def effective_count_(self) -> FloatArray:
        """How many rows look like each row, of those that a program compares; 1 is alone."""
        return self._found.effective_count

    @property
    def outlier_probability_(self) -> FloatArray:
        """The paper's OP of every row."""
        return self._found.outlier_probability

    @property
    def is_outlier_(self) -> BoolArray:
        """Mask of the rows."""
        return self._found.outlier_mask

    @property
    def n_iter_(self) -> int:
        """Steps of the solver; the program is solved when this is first asked for, as for alpha_ and lam_."""
        return max(self._found.encoding.n_iter, 1)  # to look whether the start will do is a step, too

    @property
    def alpha_(self) -> float:
        """Strength of the program, as a multiple of the critical one."""
        return self._found.encoding.alpha

    @property
    def lam_(self) -> float:
        """Strength of the program."""
        return self._found.encoding.lam

    @property
    def gamma_(self) -> float | None:
        """Bandwidth."""
        return self._found.material.geometry.gamma

    @property
    def column_scale_(self) -> FloatArray | None:
        """What columns were divided by, None if they were taken as they are."""
        return self._found.material.geometry.prepare.scale

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = True
        return tags
