"""From the rows in memory to the input of choosing: of all rows, or of a sample of many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mosaic.arrays.blocks import FloatArray
from mosaic.arrays.codes import KnownRows, priority, row_codes
from mosaic.arrays.xp import rows_of
from mosaic.choosing import (
    Constraints,
    Drawn,
    Geometry,
    Material,
    Points,
    Proof,
    Settings,
    copies_of_rows,
    draw_in_memory,
    geometry_of,
    preparation_of,
)
from mosaic.choosing.outliers import EffectiveCounts
from mosaic.estimators._base import Narrator
from mosaic.estimators._proof import InMemory
from mosaic.estimators._reading import NamedRows, prepare_for, read_rows, seed_of, with_table, without_scaling
from mosaic.estimators._strategy import is_sampled, rank_for, sample_size
from mosaic.exceptions import InvalidInputError
from mosaic.kernels import PointKernel
from mosaic.rows.naming import RowNames


def read_material(
    estimator: Any,
    X: Any,
    settings: Settings,
    sample_weight: ArrayLike | None,
    constraints: dict[str, Any],
    narrator: Narrator,
    told: Sequence[str] = (),
) -> Material:
    """The points of rows in memory, with their similarity and their effective counts.

    Parameters
    ----------
    estimator : provides the seed; its attributes for the names and the number of features are set
    X, settings, sample_weight : arguments of the fit
    constraints : arguments of ``Constraints.read``
    narrator : reports the progress
    told : what is told of columns that are not compared, in sentences
    """
    narrator.say("similarities")
    matrix, seed = read_rows(estimator, X, reset=True), seed_of(estimator.random_state)
    table, n = estimator.table_, matrix.shape[0]
    settings = without_scaling(settings, table)
    names = getattr(estimator, "feature_names_in_", None) if table is None else table.number_names
    whole = Constraints.read(n, **constraints)
    row_names = X.names_of_rows() if isinstance(X, NamedRows) else None
    if is_sampled(settings, n, matrix.shape[1]):
        weights = None if sample_weight is None else copies_of_rows(sample_weight, n)
        max_rank = rank_for(settings, n, matrix)
        proof = InMemory(settings, max_rank, matrix, weights)
        _refuse_without_weight(whole, weights)
        drawn = draw_in_memory(matrix, sample_size(settings, n, matrix.shape[1]), whole, weights)
        return material_of_sample(drawn, n, settings, whole, seed, proof, narrator, names, table, told, row_names)
    prepare = prepare_for(matrix, sample_weight, settings)
    matrix = prepare(matrix)
    points = Points.of(matrix, sample_weight, pairwise=settings.kernel == "precomputed")
    geometry = with_table(geometry_of(matrix, points, settings, prepare, names, seed), table, told)
    proof = InMemory(settings, rank_for(settings, points.n, matrix))
    return Material(
        n_rows=n,
        points=points,
        geometry=geometry,
        constraints=whole,
        counting=_counting(geometry, points.weights, settings, seed, narrator),
        seed=seed,
        proof=proof,
        absent=rows_of(matrix, np.flatnonzero(points.group < 0)),
        row_names=row_names,
    )


def material_of_sample(
    drawn: Drawn,
    n: int,
    settings: Settings,
    whole: Constraints,
    seed: int,
    proof: Proof,
    narrator: Narrator,
    names: Sequence[str] | None,
    table: Any = None,
    told: Sequence[str] = (),
    row_names: RowNames | None = None,
) -> Material:
    """The points of some of n rows; similarity and effective counts are those of the sample, without rows that were named.

    Parameters
    ----------
    drawn : the rows
    n, settings, whole, seed : number of all rows, settings of the fit, constraints on all rows, seed of the programs
    proof : answers for all rows
    narrator : reports the progress
    names, table, told : names of the columns of numbers, how they became numbers, what is told of others
    row_names : of the rows
    """
    geometry, points, matrix = geometry_of_sample(drawn, settings, names, seed)
    rare = float((drawn.weights / drawn.copies)[drawn.is_drawn].max())
    # A rare point counts with its number of copies, a frequent one in proportion to rare ones.
    counting = _counting(geometry, points.weights / rare, settings, seed, narrator)
    points, geometry = _with_named(drawn, points, geometry, matrix)
    return Material(
        n_rows=n,
        points=points,
        geometry=with_table(geometry, table, told),
        constraints=_of_rows(whole, drawn),
        counting=counting,
        seed=seed,
        proof=proof,
        absent=rows_of(matrix, slice(0, 0)),
        row_numbers=drawn.numbers,
        row_names=row_names,
    )


def geometry_of_sample(
    drawn: Drawn, settings: Settings, names: Sequence[str] | None, seed: int
) -> tuple[Geometry, Points, Any]:
    """The geometry and the points of a sample, and all rows in memory, prepared. Rows that were named do not change these."""
    everyone = bool(drawn.is_drawn.all())
    rows = drawn.rows if everyone else rows_of(drawn.rows, np.flatnonzero(drawn.is_drawn))
    weights = drawn.weights[drawn.is_drawn]
    prepare = preparation_of(rows, None if (weights == weights[0]).all() else weights, settings)
    matrix = prepare(rows)
    points = Points.of(matrix, weights)
    points = replace(points, weights=points.weights * (weights.sum() / points.total))
    geometry = geometry_of(matrix, points, settings, prepare, names, seed)
    return geometry, points, matrix if everyone else prepare(drawn.rows)


def _counting(
    geometry: Geometry, weights: FloatArray, settings: Settings, seed: int, narrator: Narrator
) -> EffectiveCounts | None:
    if settings.mode == "paper":
        return None
    narrator.say("effective counts")
    return EffectiveCounts.of(geometry.kernel, weights, seed, settings.max_samples)


def _with_named(drawn: Drawn, points: Points, geometry: Geometry, matrix: Any) -> tuple[Points, Geometry]:
    """The points of the sample, then those of rows that were named, which stand for themselves; equal rows are one point."""
    sampled, added = np.flatnonzero(drawn.is_drawn), np.flatnonzero(~drawn.is_drawn)
    if not len(added):
        return points, geometry
    kernel = geometry.kernel
    assert isinstance(kernel, PointKernel)
    codes, known = row_codes(rows_of(matrix, added)), KnownRows.of(row_codes(kernel.X))
    group = np.empty(len(drawn.numbers), np.intp)
    group[sampled], group[added] = points.group, known.find(codes)
    new = added[group[added] < 0]
    _, first, of = np.unique(codes[known.find(codes) < 0], return_index=True, return_inverse=True)
    group[new] = points.n + of
    numbers = np.concatenate([sampled[points.first], new[first]])
    rows = rows_of(matrix, numbers)
    weights = np.concatenate([points.weights, np.bincount(of).astype(np.float64)])
    return Points(numbers, group, weights, priority(row_codes(rows))), replace(geometry, kernel=kernel.over(rows))


def _of_rows(whole: Constraints, drawn: Drawn) -> Constraints:
    """The constraints, for the rows in memory."""
    numbers = drawn.numbers
    must = np.searchsorted(numbers, whole.must)
    start = None if whole.start is None else np.searchsorted(numbers, whole.start)
    return replace(whole, allowed=whole.allowed[numbers], must=must, group=whole.group[numbers], start=start)


def _refuse_without_weight(whole: Constraints, weights: FloatArray | None) -> None:
    absent = whole.must[:0] if weights is None else whole.must[weights[whole.must] == 0]
    if len(absent):
        fault = f"names `row {int(absent[0])}`, whose `sample_weight` is 0"
        raise InvalidInputError(fault, "Give it a weight.", parameter="must_include")
