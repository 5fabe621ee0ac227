"""From X to the input of choosing, on one road: rows, what their columns mean, a plan, numbers, points."""

from __future__ import annotations

from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

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
    passes: bool = True,
) -> Taken:
    """X as a fit takes it. What its columns mean becomes known to the estimator."""
    rows = Rows.of(X, groups=groups, weights=sample_weight, memory_budget=settings.memory_budget)
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
    shape = shape_of_rows(rows, encoder)
    settings = beside(settings, shape.held) if shape.held else settings
    compares_itself = encoder.has_rules or rows.pictures_of is not None
    if compares_itself and is_auto(settings.scale):  # rules say how columns compare
        settings = replace(settings, scale=False)
    numbers: Any
    passes = passes and needs_a_pass(settings, shape)
    if passes:
        numbers = encoder.source(rows, estimator.n_jobs)
        learn(estimator, encoder)
    else:
        numbers = checked_numbers(estimator, encoder, encoder.matrix(rows), is_fit=True)
        n, d = numbers.shape
        is_copy = shape.place not in ("array", "map") and rows.path is not None
        shape = Shape(n, d, "array", shape.is_weighted, shape.held, array=numbers)
        if is_copy:
            settings = beside(settings, shape.size)
            shape = replace(shape, held=shape.held + shape.size)
    return Taken(rows, encoder, settings, plan_of(settings, shape, passes=passes), numbers)


def beside(settings: Settings, held: float) -> Settings:
    """The settings with what is left of a given budget beside these bytes, which are not free any more."""
    if settings.memory_budget is None:
        return settings
    return replace(settings, memory_budget=max(settings.memory_budget - held, 1.0))


def shape_of_rows(rows: Rows, encoder: Encoder) -> Shape:
    """What a plan has to know of rows before their numbers are there."""
    weighted = rows.weights is not None
    held = rows.held
    if rows.array is None:
        place: Place = "file" if rows.stays else "table"
        buffers = float(getattr(rows.table, "pages", 0.0))
        if isinstance(rows.table, InParts):
            n_parts = rows.table.n_parts
            return Shape(rows.n, encoder.width, "cluster", weighted, held, n_parts=n_parts)
        return Shape(rows.n, encoder.width, place, weighted, held, buffers)
    if isinstance(rows.array, PartsSource):
        source = rows.array
        lie = {"n_parts": source.n_parts, "in_parts": source.itemsize}
        return Shape(rows.n, encoder.width, "cluster", weighted, held, **lie)
    if isinstance(rows.array, Source):
        return Shape(rows.n, encoder.width, "file", weighted, held, rows.array.buffers)
    if isinstance(rows.array, np.memmap) and rows.array.ndim == 2:
        return Shape(
            rows.n,
            encoder.width,
            "map",
            weighted,
            held,
            float(min(rows.array.nbytes, MAPPED_BYTES)),
        )
    return Shape(rows.n, encoder.width, "array", weighted, held)


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
        try:  # columns with names were compared already
            names_known = encoder.names is not None and not is_fit
            if names_known:
                matrix = check_array(matrix, **ARRAY)
            else:
                matrix = validate_data(estimator, matrix, reset=is_fit, **ARRAY)
        except TypeError as error:
            fault = f"holds what is no number: {error}"
            raise NoNumbersError(
                fault, "Convert it, or pass a data frame.", parameter="X"
            ) from error
        except ValueError as error:
            said = str(error).split("\n")
            fault = " ".join(
                dict.fromkeys((said[0], said[-1]))
            ).strip()  # between the first and the last line are numbers of X
            remedy = "Convert it, or pass a data frame."
            if "is expecting" in fault:
                remedy = "Pass the same columns."
                fault = fault.removeprefix("X ")
            else:
                fault = f"is no table of numbers: {fault}"
            raise InvalidInputError(fault, remedy, parameter="X") from error
        matrix = canonical(matrix) if sp.issparse(matrix) else matrix
        check_entries(matrix, encoder.number_names)
    if is_fit:
        learn(estimator, encoder)
    return matrix


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
    **rows: object,
) -> FitData:
    """The input of choosing; ``rows`` of constraints are numbers or names."""
    encoder = taken.encoder
    numbers = taken.numbers
    names = taken.encoder.number_names
    seed = seed_of(estimator.random_state)
    build = Builder(taken.settings, taken.plan, seed, None if names is None else tuple(names), say)
    named = {
        name: as_rows(value, taken.names, name) for name, value in rows.items() if value is not None
    }
    named |= {"groups": taken.rows.groups, "quotas": quotas}
    if start is not None:
        named |= found_again(start, taken)
    if marks is not None:
        named |= read_marks(marks, taken.rows)
    in_memory = None
    if isinstance(numbers, Source):
        data = build.by_passes(numbers, named)
        in_memory = data.row_numbers
        if in_memory is not None and data.larger is not None:  # picks may be any of these
            in_memory = np.union1d(in_memory, data.larger.numbers)
    else:
        data = build.in_memory(
            numbers, taken.rows.weights, Constraints.read(numbers.shape[0], **named)
        )
    geometry = described(data.geometry, encoder)
    return replace(data, geometry=geometry, row_names=taken.rows.row_names(in_memory))


def described(geometry: Geometry, encoder: Encoder) -> Geometry:
    """The same, with how columns are compared among the decisions."""
    decisions = geometry.decisions
    if encoder.has_rules and geometry.prepare.scale is None:
        decisions = decisions[1:]  # "Columns are taken as they are."
    return replace(geometry, decisions=(*encoder.describe(), *decisions), mixed=encoder.has_rules)


def found_again(start: Any, taken: Taken) -> dict[str, Any]:
    """The arguments of ``Constraints.read`` for earlier picks, of a fitted selector or given as rows: where they are in X, and
    those that are gone. The picks of a model are found by name where the rows of both fits have names, else by value.
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
    old = selection.rows.tolist()
    names = taken.rows.row_names()
    if data.row_names is not None and names is not None:
        # Of equal names the first.
        place = {name: row for row, name in reversed(list(enumerate(names.names)))}
        rows = [place.get(data.row_names[row], -1) for row in old]
    else:
        rows = _by_values(start, selection, taken.rows)
    gone = tuple(data.called(row) for row, new in zip(old, rows, strict=True) if new < 0)
    return {"start": np.array([row for row in rows if row >= 0], np.intp), "gone": gone}


def _by_values(start: Any, selection: Selection, rows: Rows) -> list[int]:
    """The first of the rows, prepared as in the earlier fit, that is equal to each pick; -1 where none is."""
    kernel = selection.chosen_kernel
    if not isinstance(kernel, PointKernel):
        fault = "is a model whose picks cannot be found by their values, since it was given similarities"
        raise InvalidInputError(fault, NAME_PICKS, parameter="start")
    Y = selection.data.geometry.prepare(
        checked_numbers(start, start.encoder_, start.encoder_.matrix(rows))
    )
    if sp.issparse(Y) != sp.issparse(kernel.X):
        fault = "is a model of sparse rows, and X is not sparse, or the other way round"
        raise InvalidInputError(fault, "Pass rows of the same kind.", parameter="start")
    known = KnownRows.of(row_codes(Y.astype(kernel.X.dtype, copy=False)))
    found: list[int] = known.find(row_codes(kernel.X)).tolist()
    return found


def seed_of(random_state: Any) -> int:
    """A whole number from what scikit-learn takes for a random state; None draws a new one."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    if random_state is None or isinstance(random_state, np.random.Generator):
        return int(np.random.default_rng(random_state).integers(2**31))
    check_seed(random_state)
    return int(random_state)
