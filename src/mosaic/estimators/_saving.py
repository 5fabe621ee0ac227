"""Saved models: ``save`` writes a fitted estimator to one file, ``load`` reads it in another process, without pickle.

A saved model keeps what predictions, explanations and a report need: parameters, geometry, the points in memory, small programs,
decisions, and what was proven. It does not keep what can be computed again, such as the factor of the kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from mosaic import __version__
from mosaic._codes import KnownRows
from mosaic._units import Prepare
from mosaic.bounds import Bound, Largest, Spectrum
from mosaic.choosing import (
    Answers,
    Constraints,
    Decisions,
    Geometry,
    Material,
    Points,
    Selection,
    SelectionCertificate,
    Settings,
    Solved,
)
from mosaic.choosing.changes import Changes
from mosaic.data.archive import as_fault, read_archive, write_archive
from mosaic.data.cells import Values
from mosaic.data.faults import FileFault
from mosaic.data.kept import KeptRows
from mosaic.data.mixed import LeftOut, SomeTexts, TableEncoder
from mosaic.data.naming import RowNames
from mosaic.data.rules import Category, Moment, Number, Text
from mosaic.data.written import Dates, Numbers
from mosaic.encoding import Certificate, CountModel
from mosaic.estimators._detector import MOSAICOutlierDetector
from mosaic.estimators._passes import ByPasses
from mosaic.estimators._proof import InMemory
from mosaic.estimators._sampler import MOSAICSampler
from mosaic.estimators._selector import MOSAIC
from mosaic.estimators._strategy import Plan
from mosaic.exceptions import InvalidInputError, MosaicError
from mosaic.kernels import POINT_KERNELS, Diffusion, EffectiveCount, Precomputed
from mosaic.kernels.diffusion import Graph
from mosaic.kernels.precomputed import Whole
from mosaic.outliers import Cut, EffectiveCounts, KeptGroups
from mosaic.solvers.base import Status

#: The format that is written and read. In format 1, which no release wrote, small programs were kept one by one.
FORMAT = 2
#: Estimators that are saved, and what may be in them.
ESTIMATORS: dict[str, type[Any]] = {kind.__name__: kind for kind in (MOSAIC, MOSAICSampler, MOSAICOutlierDetector)}
CLASSES: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        Answers, Bound, ByPasses, Category, Certificate, Changes, Constraints, CountModel, Cut, Dates, Decisions, Diffusion,
        EffectiveCount, EffectiveCounts, Geometry, Graph, InMemory, KeptGroups, KeptRows, KnownRows, Largest, LeftOut, Material,
        Moment, Number, Numbers, Plan, Points, Precomputed, Prepare, RowNames, Selection, SelectionCertificate, Settings,
        Solved, SomeTexts, Spectrum, Status, TableEncoder, Text, Values, Whole, *POINT_KERNELS.values(),
    )
}  # fmt: skip


def save(model: Any, path: str | PathLike[str], *, table: Any = None, force: bool = False) -> None:
    """Write a fitted estimator to a file; ``mosaic.load`` reads it.

    Parameters
    ----------
    model : fitted MOSAIC, MOSAICSampler or MOSAICOutlierDetector
    path : of the file, by custom ending in .mosaic
    table : table of the fitted rows, from ``mosaic.data.open_table``: names of rows and cells of picks and outliers are kept
    force : replace what is there
    """
    name = type(model).__name__
    if ESTIMATORS.get(name) is not type(model):
        raise InvalidInputError(f"only {', '.join(ESTIMATORS)} are saved; this is a {name}", "Save its parts yourself.")
    parameters = model.get_params(deep=False)
    if callable(parameters["kernel"]):
        raise InvalidInputError(
            "is a function, and a saved model holds no code",
            f"Use one of {', '.join(map(repr, POINT_KERNELS))}, or compute the similarities and use 'precomputed'.",
            parameter="kernel",
            value=parameters["kernel"],
        )
    if not isinstance(parameters["random_state"], (int, np.integer)):  # a generator; its draw is known
        parameters["random_state"] = model.selection_.material.seed
    fitted = {key: value for key, value in vars(model).items() if key.endswith("_") and not key.startswith("_")}
    if table is not None:
        fitted["kept_rows_"] = KeptRows.of(table, model.selection_)
    header = {"format": FORMAT, "mosaic": __version__, "estimator": name}
    try:
        write_archive(path, header, {"parameters": parameters, "fitted": fitted}, CLASSES, force=force)
    except (TypeError, ValueError) as error:
        if isinstance(error, MosaicError):
            raise
        raise InvalidInputError(
            f"the model cannot be saved: {error}", "Fit it with parameters of these types."
        ) from error


def load(path: str | PathLike[str]) -> Any:
    """Read a fitted estimator that ``save`` wrote. It answers as it did before, bit for bit on the same machine.

    Reading runs no code of the file. Digests find damage; they are no proof of who wrote it.

    Parameters
    ----------
    path : of the file

    Returns
    -------
    MOSAIC, MOSAICSampler or MOSAICOutlierDetector

    Raises
    ------
    mosaic.InvalidInputError
        if the file is damaged, no saved model, or written by a newer or an earlier version.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import mosaic
    >>> X = mosaic.datasets.swiss_roll(300)
    >>> model = mosaic.MOSAIC(10).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(Path(folder, "roll.mosaic"))
    ...     again = mosaic.load(Path(folder, "roll.mosaic"))
    >>> bool((again.predict(X) == model.labels_).all())
    True
    """
    target = Path(path)

    def accept(header: Mapping[str, Any]) -> None:
        version = header.get("format")
        if isinstance(version, int) and version > FORMAT:
            raise FileFault(
                target,
                f"was written by a newer version of MOSAIC (format {version}); this one, {__version__}, reads format {FORMAT}",
                "Upgrade: pip install -U mosaic-select",
            )
        if version == 1:
            raise FileFault(target, "was written by an earlier version of MOSAIC (format 1)", "Fit and save it again.")
        if version != FORMAT or header.get("estimator") not in ESTIMATORS:
            raise ValueError("it does not say what it holds")

    header, content = read_archive(target, CLASSES, accept)
    with as_fault(target):
        kind, fitted = ESTIMATORS[header["estimator"]], content["fitted"]
        model = kind(**content["parameters"])
        for name in fitted:
            if not name.endswith("_") or name.startswith("_") or hasattr(kind, name):
                raise ValueError(f"{name} is no attribute of a fitted model")
        _check(fitted)
        for name, value in fitted.items():
            setattr(model, name, value)
    return model


def _check(fitted: dict[str, Any]) -> None:
    """Refuse parts that do not fit together: lengths of arrays, and numbers of rows and points out of range."""
    selection, table = fitted["selection_"], fitted["table_"]
    if not isinstance(selection, Selection) or not (table is None or isinstance(table, TableEncoder)):
        raise TypeError("it holds no selection")
    material, geometry = selection.material, selection.material.geometry
    points, constraints, kernel = material.points, material.constraints, geometry.kernel
    n, m, k = points.n, len(points.group), len(selection.chosen)
    width = _width(kernel)
    numbers = material.row_numbers
    of_names = len(constraints.names) if constraints.names else 1

    def lengths(*arrays: Any, size: int) -> bool:
        return all(array.shape == (size,) for array in arrays)

    def within(numbers: Any, size: int, least: int = 0) -> bool:
        return numbers.ndim == 1 and (not len(numbers) or bool(numbers.min() >= least and numbers.max() < size))

    expected = {
        "points": kernel.n == n and lengths(points.first, points.weights, points.priority, size=n),
        "rows": within(points.group, n, -1) and within(points.first, m) and m > 0,
        "picks": lengths(selection.members, selection.gains, size=k) and within(selection.members, m),
        "chosen points": within(selection.chosen, n),
        "constraints": lengths(constraints.allowed, constraints.group, size=m) and within(constraints.must, m),
        "groups": within(constraints.group, of_names),
        "number of rows": material.n_rows == m
        if numbers is None
        else len(numbers) == m and within(numbers, material.n_rows) and bool((np.diff(numbers) > 0).all()),
        "rows without weight": material.absent.dtype.kind == "f"
        and material.absent.shape == (int((points.group < 0).sum()), width),
        "scale": geometry.prepare.scale is None or lengths(geometry.prepare.scale, size=width),
        "columns": table is None or table.width == width,
        "kept groups": selection.groups is None or _groups_fit(selection.groups, n, width),
        "small programs": material.counting is None or _counting_fits(material.counting, n, width),
        "influence": numbers is not None
        or "solved" not in material.__dict__
        or lengths(material.solved.influence, size=n),
        "influence of rows": "influence" not in selection.__dict__
        or lengths(selection.influence, size=material.n_rows),
        "counts": "counts" not in material.__dict__ or lengths(material.counts, size=n),
        "answers": "answers" not in selection.__dict__ or lengths(*selection.answers, size=material.n_rows),
        "program": isinstance(material.proof, (InMemory, ByPasses)),
        "all rows": numbers is None
        or not isinstance(material.proof, InMemory)
        or material.proof.X.shape == (material.n_rows, width),
        "paper's counts": material.counting is not None
        or {"counts", "_paper_counts", "solved"} <= set(material.__dict__),
    }
    for what, is_as_expected in expected.items():
        if not is_as_expected:
            raise ValueError(f"its {what} do not fit together")


def _width(kernel: Any) -> int:
    """Numbers of a row that is put to a kernel, which must be numbers of floating point."""
    given = kernel.K if isinstance(kernel, Precomputed) else kernel.X
    tables = [given, kernel.graph.points, kernel.graph.features] if isinstance(kernel, Diffusion) else [given]
    if any(table.ndim != 2 or table.dtype.kind != "f" for table in tables):
        raise TypeError("its kernel compares no rows of numbers")
    if isinstance(kernel, Precomputed):
        return kernel.n if kernel.part_of is None else kernel.part_of.n
    return int(tables[len(tables) // 2].shape[1])


def _groups_fit(groups: KeptGroups, n: int, width: int) -> bool:
    size = int(groups.members.sum())
    return groups.members.shape == (n,) and groups.reach.shape == (size,) and _width(groups.kernel) == width


def _counting_fits(counting: EffectiveCounts, n: int, width: int) -> bool:
    reference, places = counting.reference, counting.places
    if reference.n != len(places) or _width(reference) != width or places.max() >= n or counting.weights.ndim != 2:
        return False
    programs, size = counting.weights.shape
    if programs * size != len(places) or counting.R.shape != (programs, size, size):
        return False
    if counting.strengths.shape != (programs, size):
        return False
    return bool(places.min() >= 0)
