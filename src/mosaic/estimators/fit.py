"""From X to the input of choosing, on one road: rows, what their columns mean, a plan, numbers, points."""

from __future__ import annotations

from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from mosaic.arrays.blocks import IntArray
from mosaic.arrays.codes import KnownRows, row_codes
from mosaic.arrays.sources import MAPPED_BYTES, Source
from mosaic.arrays.xp import is_on_device
from mosaic.choosing import Constraints, FitData, Geometry, Selection, Settings, is_auto
from mosaic.choosing.data import Builder
from mosaic.choosing.plan import Place, Plan, Shape, needs_a_pass, plan_of
from mosaic.door import canonical, check_entries, points_on_device, refuse_masked
from mosaic.estimators.progress import Say
from mosaic.exceptions import InvalidInputError, NoNumbersError, warn
from mosaic.kernels import PointKernel, to_kernel_device
from mosaic.parameters import check_seed
from mosaic.rows import Encoder, Rows
from mosaic.rows.marks import read_marks
from mosaic.rows.names import as_rows
from mosaic.rows.parts import InParts, PartsSource

NAME_PICKS = "Give the rows of its picks instead."
#: How scikit-learn reads an array.
ARRAY = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "ensure_all_finite": False}


@dataclass(frozen=True)
class Taken:
    """What a fit was given: its rows, what their columns mean, the plan, and their numbers, an array or a source."""

    rows: Rows
    encoder: Encoder
    settings: Settings
    plan: Plan
    numbers: Any

    @property
    def names(self) -> Rows | None:
        """What finds rows by their names, where they have any."""
        return self.rows if self.rows.has_names else None


def take(
    estimator: BaseEstimator,
    X: object,
    settings: Settings,
    *,
    groups: object = None,
    sample_weight: object = None,
    may_pass: bool = True,
) -> Taken:
    """X as a fit takes it. What its columns mean becomes known to the estimator."""
    rows = Rows.of(X, groups=groups, weights=sample_weight, memory_budget=settings.memory_budget)
    encoder = learned(rows, settings)
    shape = shape_of_rows(rows, encoder)
    settings = without_memory(settings, shape.held)
    columns_have_rules = encoder.has_rules or rows.pictures_of is not None
    if columns_have_rules and is_auto(settings.scale):
        settings = replace(settings, scale=False)
    passes = may_pass and needs_a_pass(settings, shape)
    if passes:
        numbers: Any = encoder.source(rows, estimator.n_jobs)
        learn(estimator, encoder)
    else:
        numbers = checked_numbers(estimator, encoder, encoder.matrix(rows), is_fit=True)
        is_copy = shape.place not in ("array", "map") and rows.path is not None
        shape = replace(shape, place="array", array=numbers)
        if is_copy:
            settings = without_memory(settings, shape.size)
            shape = replace(shape, held=shape.held + shape.size)
    return Taken(rows, encoder, settings, plan_of(settings, shape, passes=passes), numbers)


def learned(rows: Rows, settings: Settings) -> Encoder:
    """What the columns mean for a kernel. A warning names those that a user would expect to be compared, and are not."""
    encoder = Encoder.fit(rows, as_given=settings.takes_as_given)
    if settings.kernel == "haversine":
        encoder = encoder.of_places()
    elif settings.kernel == "rbf":
        encoder = encoder.noting_places(rows)
    surprising = [
        f"{column.name!r} {column.why} ({column.remedy})"
        for column in encoder.left_out
        if column.remedy is not None
    ]
    if surprising:
        warn(f"Not compared: {'; '.join(surprising)}.")
    return encoder


def without_memory(settings: Settings, held: float) -> Settings:
    """The settings without these bytes of a given budget, which are not free any more."""
    if settings.memory_budget is None:
        return settings
    return replace(settings, memory_budget=max(settings.memory_budget - held, 1.0))


def shape_of_rows(rows: Rows, encoder: Encoder) -> Shape:
    """What a plan has to know of rows before their numbers are there."""
    place: Place = "array"
    more: dict[str, Any] = {}
    match rows.table if rows.array is None else rows.array:
        case InParts() as parts:
            place = "cluster"
            more = {"n_parts": parts.n_parts}
        case PartsSource() as parts:
            place = "cluster"
            more = {"n_parts": parts.n_parts, "in_parts": parts.itemsize}
        case Source() as source:
            place = "file"
            more = {"buffers": source.buffers}
        case np.memmap(ndim=2) as mapped:
            place = "map"
            more = {"buffers": float(min(mapped.nbytes, MAPPED_BYTES))}
        case table if rows.array is None:
            place = "file" if rows.stays else "table"
            more = {"buffers": float(getattr(table, "pages", 0.0))}
    return Shape(rows.n, encoder.width, place, rows.weights is not None, rows.held, **more)


def learn(estimator: BaseEstimator, encoder: Encoder) -> None:
    """What the columns mean becomes an attribute, and their names as scikit-learn calls them."""
    names = encoder.names
    estimator.encoder_ = encoder
    estimator.n_features_in_ = encoder.width if names is None else len(names)
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def checked_numbers(
    estimator: BaseEstimator, encoder: Encoder, matrix: Any, *, is_fit: bool = False
) -> Any:
    """Finite numbers of rows, dense or CSR or on the device where the kernel computes; new rows have those of the fit."""
    matrix = to_kernel_device(matrix, estimator.kernel)
    if is_on_device(matrix):
        matrix = points_on_device(matrix)
        if not is_fit and matrix.shape[1] != encoder.width:
            fault = f"has {matrix.shape[1]} features, the data of fit had {encoder.width}"
            raise InvalidInputError(fault, "Pass the same columns.", parameter="X")
    else:
        refuse_masked(matrix)
        try:
            if is_fit or encoder.names is None:
                matrix = validate_data(estimator, matrix, reset=is_fit, **ARRAY)
            else:  # the names of columns were compared already
                matrix = check_array(matrix, **ARRAY)
        except (TypeError, ValueError) as error:
            raise no_table_of_numbers(error) from error
        matrix = canonical(matrix) if sp.issparse(matrix) else matrix
        check_entries(matrix, encoder.number_names)
    if is_fit:
        learn(estimator, encoder)
    return matrix


def no_table_of_numbers(error: Exception) -> InvalidInputError:
    """What scikit-learn says of an array that it refuses, in our words."""
    remedy = "Convert it, or pass a data frame."
    if isinstance(error, TypeError):
        return NoNumbersError(f"holds what is no number: {error}", remedy, parameter="X")
    lines = str(error).split("\n")
    # Between the first and the last line are numbers of X.
    said = " ".join(dict.fromkeys((lines[0], lines[-1]))).strip()
    if "is expecting" in said:
        return InvalidInputError(said.removeprefix("X "), "Pass the same columns.", parameter="X")
    return InvalidInputError(f"is no table of numbers: {said}", remedy, parameter="X")


def numbers_of(model: BaseEstimator, X: object) -> Any:
    """The numbers of new rows as the fit of the model made them: an array, or a source of rows that are read in passes."""
    encoder: Encoder = model.encoder_
    rows = Rows.of(X, memory_budget=model.selection_.settings.memory_budget)
    shape = shape_of_rows(rows, encoder)
    if rows.stays or (shape.place == "table" and needs_a_pass(model.selection_.settings, shape)):
        return encoder.source(rows, model.n_jobs, is_new=True)
    matrix = encoder.matrix(rows)
    encoder.warn_of(encoder.strange_cells(matrix))
    return checked_numbers(model, encoder, matrix)


def fit_data(
    estimator: BaseEstimator,
    taken: Taken,
    say: Say,
    *,
    start: object = None,
    quotas: object = None,
    marks: object = None,
    **named: object,
) -> FitData:
    """The input of choosing; ``named`` are the rows of constraints, as numbers or names."""
    rows = taken.rows
    numbers = taken.numbers
    build = Builder(
        taken.settings, taken.plan, seed_of(estimator.random_state), taken.encoder.number_names, say
    )
    given = {"groups": rows.groups, "quotas": quotas}
    given |= {
        name: as_rows(value, taken.names, name)
        for name, value in named.items()
        if value is not None
    }
    if start is not None:
        given |= found_again(start, taken)
    if marks is not None:
        given |= read_marks(marks, rows)
    may_be_picked = None
    if isinstance(numbers, Source):
        data = build.by_passes(numbers, given)
        may_be_picked = data.row_numbers
        if may_be_picked is not None and data.larger is not None:
            may_be_picked = np.union1d(may_be_picked, data.larger.numbers)
    else:
        data = build.in_memory(numbers, rows.weights, Constraints.read(rows.n, **given))
    geometry = described(data.geometry, taken.encoder)
    return replace(data, geometry=geometry, row_names=rows.row_names(may_be_picked))


def described(geometry: Geometry, encoder: Encoder) -> Geometry:
    """The same, with how columns are compared among the decisions."""
    decisions = geometry.decisions
    if encoder.has_rules and geometry.prepare.scale is None:
        _, about_bandwidth = decisions  # that columns are taken as they are is not true
        decisions = (about_bandwidth,)
    return replace(geometry, decisions=(*encoder.describe(), *decisions), mixed=encoder.has_rules)


def found_again(start: Any, taken: Taken) -> dict[str, Any]:
    """The arguments of ``Constraints.read`` for earlier picks, of a fitted selector or given as rows: where they are in X, and
    the names of the others. The picks of a model are found by name where the rows of both fits have names, else by value.
    """
    if isinstance(start, PathLike) or (isinstance(start, str) and start.endswith(".mosaic")):
        from mosaic.estimators.saving import load  # it imports the estimators

        start = load(start)
    if not hasattr(start, "get_params"):
        return {"start": as_rows(start, taken.names, "start")}
    if isinstance(taken.numbers, Source):
        fault = (
            "is a model, whose picks are looked for among rows in memory; these are read in passes"
        )
        raise InvalidInputError(fault, NAME_PICKS, parameter="start")
    check_is_fitted(start)
    selection = getattr(start, "selection_", None)
    if not isinstance(selection, Selection) or not len(selection.rows):
        fault = f"must be a fitted MOSAIC or MOSAICSampler, or rows; got {type(start).__name__}"
        raise InvalidInputError(fault, "Leave it out to choose anew.", parameter="start")
    data = selection.data
    names = taken.rows.row_names()
    if data.row_names is not None and names is not None:
        rows = names.first(data.row_names[row] for row in selection.rows.tolist())
    else:
        rows = _by_values(start, selection, taken.rows)
    lost = tuple(data.called(row) for row in selection.rows[rows < 0].tolist())
    return {"start": rows[rows >= 0], "lost": lost}


def _by_values(start: Any, selection: Selection, rows: Rows) -> IntArray:
    """The first of the rows, prepared as in the earlier fit, that is equal to each pick; -1 where none is."""
    kernel = selection.chosen_kernel
    if not isinstance(kernel, PointKernel):
        fault = "is a model whose picks cannot be found by their values, since it was given similarities"
        raise InvalidInputError(fault, NAME_PICKS, parameter="start")
    numbers = checked_numbers(start, start.encoder_, start.encoder_.matrix(rows))
    Y = selection.data.geometry.prepare(numbers)
    if sp.issparse(Y) != sp.issparse(kernel.X):
        fault = "is a model of sparse rows, and X is not sparse, or the other way round"
        raise InvalidInputError(fault, "Pass rows of the same kind.", parameter="start")
    known = KnownRows.of(row_codes(Y.astype(kernel.X.dtype, copy=False)))
    return known.find(row_codes(kernel.X))


def seed_of(random_state: Any) -> int:
    """A whole number from what scikit-learn takes for a random state; None draws a new one."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    if random_state is None or isinstance(random_state, np.random.Generator):
        return int(np.random.default_rng(random_state).integers(2**31))
    check_seed(random_state)
    return int(random_state)
