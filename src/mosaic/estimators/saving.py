"""Saved models: ``save`` writes a fitted estimator to one file, ``load`` reads it in another process, without pickle.

A saved model keeps what predictions, explanations and a report need: parameters, geometry, the points in memory, small programs,
decisions, and what was proven. It does not keep what can be computed again, such as the factor of the kernel.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from mosaic import __version__
from mosaic.arrays.codes import KnownRows
from mosaic.arrays.scaling import Prepare
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
from mosaic.choosing.outliers import Cut, EffectiveCounts, KeptGroups
from mosaic.estimators.archive import as_fault, read_archive, write_archive
from mosaic.estimators.by_passes import ByPasses, Plan
from mosaic.estimators.detector import MOSAICOutlierDetector
from mosaic.estimators.in_memory import InMemory
from mosaic.estimators.progress import FITTED
from mosaic.estimators.sampler import MOSAICSampler
from mosaic.estimators.selector import MOSAIC
from mosaic.exceptions import InvalidInputError, MosaicError
from mosaic.kernels import POINT_KERNELS, DiffusionKernel, EffectiveCount, Precomputed
from mosaic.kernels.precomputed import Matrix
from mosaic.parameters import BY_NAME
from mosaic.program.bounds import Bound, Largest, Spectrum
from mosaic.program.encoding import Certificate, CountModel
from mosaic.program.loop import Status
from mosaic.rows.encoder import LeftOut, TableEncoder
from mosaic.rows.faults import FileFault
from mosaic.rows.frames import Values
from mosaic.rows.kinds import Category, Number, Text, Written
from mosaic.rows.names import RowNames
from mosaic.rows.rows import SavedRows

#: The format that is written and read.
FORMAT = 4
#: Attributes that are kept.
KEPT = (*FITTED, "sample_indices_", "kept_rows_")
#: Estimators that are saved, and what may be in them.
ESTIMATORS: dict[str, type[Any]] = {kind.__name__: kind for kind in (MOSAIC, MOSAICSampler, MOSAICOutlierDetector)}
CLASSES: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        Answers, Bound, ByPasses, Category, Certificate, Changes, Constraints, CountModel, Cut, Decisions, DiffusionKernel,
        EffectiveCount, EffectiveCounts, Geometry, InMemory, KeptGroups, SavedRows, KnownRows, Largest, LeftOut, Material, Matrix,
        Number, Plan, Points, Precomputed, Prepare, RowNames, Selection, SelectionCertificate, Settings,
        Solved, Spectrum, Status, TableEncoder, Text, Values, Written, *POINT_KERNELS.values(), *BY_NAME.values(),
    )
}  # fmt: skip


def save(model: Any, path: str | PathLike[str], *, table: Any = None, force: bool = False) -> None:
    """See ``FittedAttributes.save``."""
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
    fitted = {name: getattr(model, name) for name in KEPT if hasattr(model, name)}
    if table is not None:
        fitted["kept_rows_"] = SavedRows.of(table, model.selection_)
    header = {"format": FORMAT, "mosaic": __version__, "estimator": name}
    try:
        write_archive(path, {**header, "parameters": parameters, "fitted": fitted}, CLASSES, force=force)
    except (TypeError, ValueError) as error:
        if isinstance(error, MosaicError):
            raise
        raise InvalidInputError(f"the model cannot be saved: {error}", "Fit it with parameters of these types.") from error


def load(path: str | PathLike[str]) -> Any:
    """Read a fitted estimator that ``save`` wrote. It answers as it did before, bit for bit on the same machine.

    Reading runs no code of the file. One that is damaged, no saved model, or of another version is refused.

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
    content = read_archive(target, CLASSES)
    with as_fault(target):
        if content["format"] != FORMAT:
            newer = content["format"] > FORMAT
            fault = f"was written by {'a newer' if newer else 'an older'} version of MOSAIC ({content['mosaic']})"
            remedy = "Upgrade: pip install -U mosaic-select" if newer else "Fit and save it again."
            raise FileFault(target, f"{fault}; this one is {__version__}", remedy)
        kind, fitted = ESTIMATORS[content["estimator"]], content["fitted"]
        if not isinstance(fitted["selection_"], Selection):
            raise TypeError("it holds no selection")
        model = kind(**content["parameters"])
        for name, value in fitted.items():
            if name not in KEPT:
                raise ValueError(f"{name} is no attribute of a fitted model")
            setattr(model, name, value)
    return model
