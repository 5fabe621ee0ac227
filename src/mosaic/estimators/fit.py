"""From X to the input of choosing, on one road: rows in memory, a sample of many, or the sample that one pass draws."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted, validate_data

from mosaic.arrays.codes import EqualRows, KnownRows, priority, row_codes
from mosaic.arrays.sources import LocalSource, Passes, Source
from mosaic.arrays.xp import as_double, free_memory, is_on_device, numpy_dtype, rows_of
from mosaic.choosing import Constraints, FitData, Geometry, Selection, Settings, geometry_of, preparation_of
from mosaic.choosing.budget import (
    EXACT_SIZE,
    LARGEST_RANK,
    LESS_MEMORY,
    budget_of,
    leaves_room,
    memory_of_fit,
    memory_of_program,
    memory_on_device,
    refuse_beyond,
)
from mosaic.choosing.draw import Drawn, draw_by_passes, draw_in_memory
from mosaic.choosing.outliers import CountingPrograms
from mosaic.choosing.points import Points, copies_of_rows
from mosaic.door import check_entries, refuse_masked
from mosaic.estimators.progress import Say
from mosaic.estimators.proof import (
    AllInMemory,
    ByPasses,
    larger_sample_size,
    memory_of_picks,
    memory_of_sample,
    sample_by_passes,
    sample_size,
    threads_by_passes,
)
from mosaic.estimators.reading import (
    ARRAY,
    ColumnArguments,
    ReadRows,
    prepare_for,
    read_for_fit,
    read_rows,
    seed_of,
    with_encoder,
    without_scaling,
)
from mosaic.exceptions import ConvergenceWarning, InvalidInputError, MemoryBudgetError, warn
from mosaic.kernels import POINT_KERNELS, PointKernel
from mosaic.program.encoding import Encoding
from mosaic.program.sketch import encode_with_few
from mosaic.program.solve import Program
from mosaic.program.solvers import Status
from mosaic.rows import Rows, is_source, open_source
from mosaic.rows.names import as_rows
from mosaic.text import readable_size

NAME_PICKS = "Give the rows of its picks instead."


def read_data(
    estimator: Any, X: Any, settings: Settings, asked: ColumnArguments, *, passes: bool = True
) -> tuple[ReadRows, Settings]:
    """X as the fit takes it; names and number of the columns become attributes of the estimator. Passes are for data outside
    memory or on a cluster.
    """
    read = read_for_fit(estimator, X, settings.memory_budget, asked)
    settings, weights = read.within_budget(settings), read.arguments.sample_weight
    outside = is_source(read.rows)
    compares_any = callable(settings.kernel) or settings.kernel in POINT_KERNELS
    mapped = isinstance(read.rows, np.memmap) and read.rows.ndim == 2 and compares_any and weights is None
    if not passes or not (outside or mapped):
        return read, settings
    if mapped and fits_into_memory(open_source(read.rows), settings):
        return read, settings
    source = _source(estimator, read)
    if outside and fits_into_memory(source, settings):
        names = list(source.names) if read.names is None and source.names is not None else read.names
        return read._replace(rows=source.take(np.arange(source.n)), names=names), settings
    if settings.mode == "paper":
        budget, numbers = budget_of(settings.memory_budget), readable_size(8.0 * source.n * source.n_features)
        fault = f"the paper's algorithm is for rows in memory; {source.n:,} rows × {source.n_features:,} features are {numbers}, "
        fault += f"and may be a quarter of the budget, {readable_size(budget / 4)}"
        raise MemoryBudgetError(fault, "Leave `algorithm` at None, or read a sample of the rows.")
    instead = "Pass an array in memory."
    if not compares_any:
        known = f"the kernels {', '.join(map(repr, POINT_KERNELS))} or a function of two sets of points"
        got = f"got {settings.kernel!r}, which needs all points at once"
        raise InvalidInputError(f"rows that are read in passes need {known}; {got}", instead)
    if weights is not None:
        fault = "rows that are read in passes have no `sample_weight`; copies of a row are counted"
        raise InvalidInputError(fault, instead)
    return read._replace(source=source), without_scaling(settings, read.encoder)


def fits_into_memory(source: Source, settings: Settings) -> bool:
    """Whether few rows, or rows on this machine that leave room for a fit, are taken into memory."""
    n, d = source.n, source.n_features
    here = isinstance(source, LocalSource) or settings.mode == "paper"
    return (here and leaves_room(n, d, budget_of(settings.memory_budget))) or n <= sample_size(settings, n, d)


def _source(estimator: Any, read: ReadRows) -> Source:
    X, encoder = read.rows, read.encoder
    estimator.table_ = encoder
    if read.names is None and not is_source(X) and not isinstance(X, np.memmap):
        refuse_masked(X)
        return open_source(validate_data(estimator, X, **ARRAY), estimator.n_jobs)
    source = open_source(X, estimator.n_jobs)
    names = source.names if read.names is None else read.names
    source.names = names if encoder is None else encoder.number_names
    estimator.n_features_in_ = source.n_features if encoder is None else len(encoder.names)
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    return source


def fit_data(
    estimator: Any, read: ReadRows, settings: Settings, say: Say, *, start: Any = None, quotas: Any = None, **rows: Any
) -> FitData:
    """The input of choosing; ``rows`` of constraints are given by number or name."""
    seed, encoder = seed_of(estimator.random_state), read.encoder
    given = {name: as_rows(value, read.row_names, name) for name, value in rows.items()}
    given |= {"groups": read.arguments.groups, "quotas": quotas} | found_again(start, read)
    if read.source is not None:
        data = _by_passes(settings, read.source, given, seed, say)
    else:
        say("similarities")
        matrix = read_rows(estimator, read, reset=True)
        constraints = Constraints.read(matrix.shape[0], **given)
        columns = getattr(estimator, "feature_names_in_", None) if encoder is None else encoder.number_names
        settings = without_scaling(settings, encoder)
        data = _in_memory(settings, matrix, read.arguments.sample_weight, constraints, seed, columns, say)
    geometry = with_encoder(data.geometry, encoder, read.notes)
    named = None if read.source is None else data.row_numbers
    if named is not None and data.larger is not None:  # picks may be any of these
        named = np.union1d(named, data.larger.numbers)
    row_names = read.names_of_rows(named)
    return replace(data, geometry=geometry, row_names=row_names)


def _in_memory(settings: Settings, matrix: Any, weights: Any, constraints: Any, seed: int, columns: Any, say: Say) -> FitData:
    n, d = matrix.shape
    if settings.mode == "paper" and settings.kernel != "precomputed":
        matrix = as_double(matrix)  # single precision does not tell which rows of R are zero
    memory_of_rows(settings, matrix)
    if is_sampled(settings, n, d):
        copies = None if weights is None else copies_of_rows(weights, n)
        all_rows = AllInMemory(matrix, copies)
        weightless = [] if copies is None else constraints.must[copies[constraints.must] == 0]
        if len(weightless):
            fault = f"names `row {int(weightless[0])}`, whose `sample_weight` is 0"
            raise InvalidInputError(fault, "Give it a weight.", parameter="must_include")
        larger = larger_sample_size(settings, n, d)
        drawn = draw_in_memory(matrix, sample_size(settings, n, d), constraints, copies, larger=larger)
        return _of_sample(drawn, n, settings, constraints, seed, all_rows, say, columns)
    prepare = prepare_for(matrix, weights, settings)
    matrix = prepare(matrix)
    points = Points.of(matrix, weights, pairwise=settings.kernel == "precomputed")
    geometry = geometry_of(matrix, points, settings, prepare, columns, seed)
    counting = None
    if settings.mode != "paper":
        say("effective counts")
        counting = CountingPrograms.of(geometry.kernel, points.weights, seed, settings.max_samples)
    absent = rows_of(matrix, np.flatnonzero(points.point_of < 0))
    data = FitData(n, points, geometry, constraints, counting, seed, AllInMemory(), absent)
    if counting is not None:
        return data
    say("program")
    return replace(data, encoding=_encoding(settings, data, rank_for(settings, points.n)))


def _encoding(settings: Settings, data: FitData, max_rank: int) -> Encoding:
    """The paper's program of the points, solved: Algorithm 1, or Algorithm 3 with a sketch."""
    n, sketch = data.points.n, settings.sketch
    if settings.row_norm == "linf" and not (data.points.weights == 1).all():
        fault = "takes no weights, and some rows are equal or have one"
        raise InvalidInputError(fault, "Leave out copies and `sample_weight`.", parameter="row_norm", value="linf")
    program = Program(
        data.kernel,
        data.points.weights,
        EqualRows.trivial(n),
        row_norm=settings.row_norm,
        solver=settings.solver,
        tol=settings.tol,
        max_iter=settings.max_iter,
        max_rank=max_rank,
        random_state=data.seed,
        thin=False,
    )
    # By default as the paper's first author in later work.
    alpha = 10.0 if settings.alpha is None and settings.lam is None else settings.alpha
    if sketch is None:
        encoding = program.encode(alpha, settings.lam)
    else:
        first = np.sort(np.random.default_rng(data.seed).permutation(n)[: sketch.n_initial])
        encoding = encode_with_few(program, first, sketch.n_added, sketch.n_rounds, alpha, settings.lam)
    unfinished = encoding.status not in (Status.CONVERGED, Status.TRIVIAL, Status.KERNEL_ERROR)
    if unfinished or encoding.dual_gap > max(0.25, settings.tol):
        fault = f"the certified gap is {encoding.dual_gap:.2e}, above the tolerance {settings.tol:g}. {encoding.status.value}"
        warn(ConvergenceWarning(fault))
    return encoding


def is_sampled(settings: Settings, n: int, n_features: int) -> bool:
    """Whether a sample decides a fit of n rows in memory: not for the paper, nor for similarities that a sample has not."""
    possible = settings.mode != "paper" and (callable(settings.kernel) or settings.kernel in POINT_KERNELS)
    return possible and n > sample_size(settings, n, n_features)


def memory_of_rows(settings: Settings, matrix: Any) -> float:
    """Bytes at the peak of a fit of rows in memory; an error if they do not fit into the budget."""
    (n, d), itemsize, what = matrix.shape, numpy_dtype(matrix).itemsize, "{:,} rows × {:,} features".format(*matrix.shape)
    if settings.mode == "paper":
        rank = rank_for(settings, n)
        on_device = is_on_device(matrix)
        memory = memory_on_device(n, rank, itemsize, d) if on_device else memory_of_program(n, rank, itemsize, d, size_of(matrix))
        remedy = "Lower `max_rank`." if settings.sketch is None else "Lower `n_initial`."
        refuse_beyond(_budget_for(settings, matrix), f"{what} with a factor of rank {rank:,}", memory, remedy)
        return memory
    picks = memory_of_picks(settings, n, d)
    sampled, sample = is_sampled(settings, n, d), min(sample_size(settings, n, d), n)
    if is_on_device(matrix):
        memory = memory_on_device(sample, 0, itemsize, d)
    elif sampled and not sp.issparse(matrix):
        memory = memory_of_sample(sample, d)
    else:
        memory = memory_of_fit(sample, itemsize, d, size_of(matrix) * sample / n)
    memory += 24.0 * n if sampled else 0.0
    refuse_beyond(_budget_for(settings, matrix), what, memory, LESS_MEMORY)
    return memory + picks


def _budget_for(settings: Settings, matrix: Any) -> float:
    """The budget, of the device on which the rows are; by default a fit uses three quarters of what is free there."""
    free = free_memory(matrix) if is_on_device(matrix) and settings.memory_budget is None else None
    return budget_of(settings.memory_budget) if free is None else 0.75 * free


def rank_for(settings: Settings, n: int) -> int:
    """Columns of the factor of n points: with a sketch one for each candidate, by default full rank for few points."""
    if settings.sketch is not None:
        return min(n, settings.sketch.n_initial + (settings.sketch.n_rounds - 1) * settings.sketch.n_added)
    return min(n, settings.max_rank or (n if n <= EXACT_SIZE else LARGEST_RANK))


def size_of(matrix: Any) -> float:
    if sp.issparse(matrix):
        return float(matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes)
    return float(matrix.shape[0] * matrix.shape[1] * numpy_dtype(matrix).itemsize)


def _by_passes(settings: Settings, source: Source, given: dict[str, Any], seed: int, say: Say) -> FitData:
    n, columns = source.n, None if source.names is None else tuple(source.names)
    memory_of_picks(settings, n, source.n_features)
    sample = sample_by_passes(settings, n, source.n_features)
    source.most_threads = threads_by_passes(settings, sample, n, source.n_features)

    def on_pass(name: str, share: float, rate: float) -> None:
        say(name, f"{name}: {100 * share:.0f} %, {rate:,.0f} rows/s", share)

    passes = Passes(source, on_pass)
    # Without any, nothing has an entry for every row, of which there may be billions.
    constraints = None if all(value is None for value in given.values()) else Constraints.read(n, **given)
    larger = larger_sample_size(settings, n, source.n_features)
    check = partial(_check_block, columns)
    drawn = draw_by_passes(passes.run, n, sample, constraints, check, larger=larger)
    return _of_sample(drawn, n, settings, constraints, seed, ByPasses(passes), say, columns)


def _check_block(columns: tuple[str, ...] | None, rows: Any, start: int) -> None:
    check_entries(rows, columns, first_row=start)


def _of_sample(
    drawn: Drawn, n: int, settings: Any, constraints: Any, seed: int, all_rows: Any, say: Say, columns: Any
) -> FitData:
    """The points of some of n rows; similarity and effective counts are those of the sample, without rows that were named."""
    geometry, points, matrix = geometry_of_sample(drawn, settings, columns, seed)
    rare = float((drawn.weights / drawn.copies)[drawn.is_drawn].max())
    # A rare point counts with its number of copies, a frequent one in proportion to rare ones.
    say("effective counts")
    counting = CountingPrograms.of(geometry.kernel, points.weights / rare, seed, settings.max_samples)
    points, geometry = _with_named(drawn, points, geometry, matrix)
    numbers = drawn.numbers
    constraints = Constraints.read(len(numbers)) if constraints is None else constraints.among(numbers)
    absent = rows_of(matrix, slice(0, 0))
    return FitData(n, points, geometry, constraints, counting, seed, all_rows, absent, numbers, larger=drawn.larger)


def geometry_of_sample(drawn: Drawn, settings: Settings, columns: Any, seed: int) -> tuple[Geometry, Points, Any]:
    """The geometry and the points of a sample, and all rows in memory, prepared. Rows that were named do not change these."""
    everyone = bool(drawn.is_drawn.all())
    rows = drawn.rows if everyone else rows_of(drawn.rows, np.flatnonzero(drawn.is_drawn))
    weights = drawn.weights[drawn.is_drawn]
    prepare = preparation_of(rows, None if (weights == weights[0]).all() else weights, settings)
    matrix = prepare(rows)
    points = Points.of(matrix, weights)
    points = replace(points, weights=points.weights * (weights.sum() / points.total))
    geometry = geometry_of(matrix, points, settings, prepare, columns, seed)
    return geometry, points, matrix if everyone else prepare(drawn.rows)


def _with_named(drawn: Drawn, points: Points, geometry: Geometry, matrix: Any) -> tuple[Points, Geometry]:
    """The points of the sample, then those of rows that were named, which stand for themselves; equal rows are one point."""
    sampled, added = np.flatnonzero(drawn.is_drawn), np.flatnonzero(~drawn.is_drawn)
    if not len(added):
        return points, geometry
    kernel = geometry.kernel
    assert isinstance(kernel, PointKernel)
    codes, known = row_codes(rows_of(matrix, added)), KnownRows.of(row_codes(kernel.X))
    point_of = np.empty(len(drawn.numbers), np.intp)
    point_of[sampled], point_of[added] = points.point_of, known.find(codes)
    new = added[point_of[added] < 0]
    _, first, of = np.unique(codes[known.find(codes) < 0], return_index=True, return_inverse=True)
    point_of[new] = points.n + of
    numbers = np.concatenate([sampled[points.first], new[first]])
    rows = rows_of(matrix, numbers)
    weights = np.concatenate([points.weights, np.bincount(of).astype(np.float64)])
    return Points(numbers, point_of, weights, priority(row_codes(rows))), replace(geometry, kernel=kernel.over(rows))


def found_again(start: Any, read: ReadRows) -> dict[str, Any]:
    """The arguments of ``Constraints.read`` for earlier picks, of a fitted selector or given as rows: where they are in X, and
    those that are gone. The picks of a model are found by name where the rows of both fits have names, else by value.
    """
    if start is None:
        return {}
    if isinstance(start, PathLike) or (isinstance(start, str) and start.endswith(".mosaic")):
        from mosaic.estimators.saving import load  # it imports the estimators

        start = load(start)
    if not hasattr(start, "get_params"):
        return {"start": as_rows(start, read.row_names, "start")}
    if read.source is not None:
        fault = "is a model, whose picks are looked for among rows in memory; these are read in passes"
        raise InvalidInputError(fault, NAME_PICKS, parameter="start")
    check_is_fitted(start)
    selection = getattr(start, "selection_", None)
    if not isinstance(selection, Selection) or not len(selection.rows):
        fault = f"must be a fitted MOSAIC or MOSAICSampler, or rows; got {type(start).__name__}"
        raise InvalidInputError(fault, "Leave it out to choose anew.", parameter="start")
    data, old = selection.data, selection.rows.tolist()
    names = read.names_of_rows()
    if data.row_names is not None and names is not None:
        place = {name: row for row, name in reversed(list(enumerate(names.names)))}  # of equal names the first
        rows = [place.get(data.row_names[row], -1) for row in old]
    else:
        rows = _by_values(start, selection, read.given)
    gone = tuple(data.called(row) for row, new in zip(old, rows, strict=True) if new < 0)
    return {"start": np.array([row for row in rows if row >= 0], np.intp), "gone": gone}


def _by_values(start: Any, selection: Selection, X: Any) -> list[int]:
    """The first row of X, prepared as in the earlier fit, that is equal to each pick; -1 where none is."""
    kernel = selection.chosen_kernel
    if not isinstance(kernel, PointKernel):
        fault = "is a model whose picks cannot be found by their values, since it was given similarities"
        raise InvalidInputError(fault, NAME_PICKS, parameter="start")
    if isinstance(X, Rows) and X.encoder is not None:  # its numbers are those of this fit
        X = X.cells(np.arange(X.n))
    Y = selection.data.geometry.prepare(read_rows(start, X, reset=False))
    if sp.issparse(Y) != sp.issparse(kernel.X):
        fault = "is a model of sparse rows, and X is not sparse, or the other way round"
        raise InvalidInputError(fault, "Pass rows of the same kind.", parameter="start")
    codes, rows = np.unique(row_codes(Y.astype(kernel.X.dtype, copy=False)), return_index=True)
    wanted = row_codes(kernel.X)
    places = np.minimum(np.searchsorted(codes, wanted), len(codes) - 1)
    return [int(row) if same else -1 for row, same in zip(rows[places], codes[places] == wanted, strict=True)]
