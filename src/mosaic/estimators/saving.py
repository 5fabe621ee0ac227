"""Saved models: ``save`` writes a fitted estimator to one file, ``load`` reads it in another process, without pickle.

The file is NumPy's ``.npz`` of arrays of numbers, with their structure as JSON in one of them. Only the classes below are built,
and arrays are read with ``allow_pickle=False``, so that reading runs no code of the file. Members are not compressed and lie side
by side, so that all together take no more memory than the file has bytes. The checksums of the zip find damage.
"""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Mapping
from dataclasses import fields
from enum import Enum
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from mosaic import __version__, choosing
from mosaic.arrays.blocks import Prepare
from mosaic.arrays.codes import KnownRows
from mosaic.arrays.xp import is_on_device, on_host
from mosaic.choosing.answers import AllInMemory, ByPasses
from mosaic.choosing.outliers import CountingPrograms, Cut, KeptGroups
from mosaic.estimators.detector import MOSAICOutlierDetector
from mosaic.estimators.sampler import MOSAICSampler, Suspects
from mosaic.estimators.selector import MOSAIC
from mosaic.exceptions import InvalidInputError, MosaicError
from mosaic.kernels import POINT_KERNELS, DiffusionKernel, Distances, EffectiveCount, Precomputed
from mosaic.kernels.precomputed import WholeMatrix
from mosaic.parameters import BY_NAME, Sketch
from mosaic.program.encoding import Certificate, CountModel
from mosaic.program.solvers import Status
from mosaic.rows import Encoder, Rows
from mosaic.rows.arrays import header_of
from mosaic.rows.faults import FileFault, check_there
from mosaic.rows.frames import Values
from mosaic.rows.kinds import Category, Embedding, Number, Text
from mosaic.rows.names import RowNames
from mosaic.rows.rules import LeftOut
from mosaic.rows.saved import SavedRows
from mosaic.rows.text_values import Written
from mosaic.rows.write import replacing

#: The format that is written and read, and the array that holds the structure.
FORMAT = 9
STRUCTURE = "structure"
#: Attributes that are kept.
KEPT: tuple[str, ...] = (
    "selection_",
    "encoder_",
    "n_features_in_",
    "feature_names_in_",
    "offset_",
    "sample_indices_",
)
KEPT += ("sampling_strategy_", "suspects_", "kept_rows_", "held_out_")
#: Estimators that are saved, and what may be in them.
ESTIMATORS: dict[str, type[Any]] = {
    kind.__name__: kind for kind in (MOSAIC, MOSAICSampler, MOSAICOutlierDetector)
}
CLASSES: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        choosing.Constraints, choosing.CoverCertificate, choosing.Decisions, choosing.FitData,
        choosing.Geometry, choosing.NamedExchange, choosing.Points, choosing.Selection,
        choosing.Settings, choosing.Solved, ByPasses, Category, Embedding, Certificate, CountModel, Cut, DiffusionKernel,
        EffectiveCount, CountingPrograms, AllInMemory, KeptGroups,
        SavedRows,
        KnownRows, LeftOut, Number, Distances, Precomputed, Prepare, RowNames, Status, Suspects, Encoder, Text,
        Values, WholeMatrix, Written, *POINT_KERNELS.values(), *BY_NAME.values(), Sketch,
    )
}  # fmt: skip


def save(
    model: BaseEstimator, path: str | PathLike[str], *, table: object = None, force: bool = False
) -> None:
    name = type(model).__name__
    if ESTIMATORS.get(name) is not type(model):
        raise InvalidInputError(
            f"only {', '.join(ESTIMATORS)} are saved; this is a {name}", "Save its parts yourself."
        )
    parameters = model.get_params(deep=False)
    is_seed = isinstance(parameters["random_state"], int | np.integer)
    if not is_seed:  # a generator; its draw is known
        parameters["random_state"] = model.selection_.data.seed
    fitted = {name: getattr(model, name) for name in KEPT if hasattr(model, name)}
    if table is not None:
        fitted["kept_rows_"] = SavedRows.of(Rows.of(table), model.selection_)
    header = {"format": FORMAT, "mosaic": __version__, "estimator": name}
    arrays: dict[str, Any] = {}
    text = json.dumps(_plain({**header, "parameters": parameters, "fitted": fitted}, arrays))
    arrays[STRUCTURE] = np.frombuffer(text.encode(), np.uint8)
    with replacing(path, force=force) as temporary, temporary.open("wb") as file:
        np.savez(file, **arrays)


def load(path: str | PathLike[str]) -> Any:
    """Read a fitted estimator that ``save`` wrote. It answers as it did before, bit for bit on the same machine.

    Reading runs no code of the file. One that is damaged, no saved model, or of another version is refused.

    Examples
    --------
    >>> import tempfile
    >>> import mosaic
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mosaic.MOSAIC(10).fit(mosaic.datasets.swiss_roll(300)).save(f"{folder}/roll.mosaic")
    ...     mosaic.load(f"{folder}/roll.mosaic")
    MOSAIC(n_representatives=10)
    """
    target = Path(path)
    check_there(target)
    if target.suffix.lower() != ".mosaic" and not zipfile.is_zipfile(target):
        raise FileFault(
            target, "is no saved model", "Name the file that `save` wrote, which ends in .mosaic."
        )
    if target.is_dir() or not zipfile.is_zipfile(target):
        raise FileFault(target, "is no saved model, or not all of it", "Copy or write it again.")
    try:
        check_members(target)
        with np.load(target, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        content = _value(json.loads(arrays[STRUCTURE].tobytes()), arrays)
        if content["format"] == FORMAT:
            model = ESTIMATORS[content["estimator"]](**content["parameters"])
            fitted = content["fitted"]
            is_known = fitted.keys() <= set(KEPT)
            if not is_known or not isinstance(fitted["selection_"], choosing.Selection):
                raise TypeError("its attributes are not those of a fitted model")
            vars(model).update(fitted)
            return model
        fault = f"was written by another version of MOSAIC ({content['mosaic']}); this one is {__version__}"
    except MemoryError:
        raise
    except Exception as error:  # whatever a damaged or hostile file leads to
        said = error.fault if isinstance(error, MosaicError) else " ".join(str(error).split())
        raise FileFault(
            target, f"is damaged or no saved model ({said[:200]})", "Copy or write it again."
        ) from error
    raise FileFault(target, fault, "Fit and save it again, or load it with that version.")


def check_members(path: Path) -> None:
    """Refuse a file whose arrays would take more memory than it has bytes: compressed, one within another, or cut off."""
    with zipfile.ZipFile(path) as file:
        members = file.infolist()
        if any(member.compress_type != zipfile.ZIP_STORED for member in members):
            raise ValueError("its members are compressed, which those of a saved model are not")
        if sum(member.file_size for member in members) > path.stat().st_size:
            raise ValueError("its members lie in one another")
        for member in members:
            with file.open(member) as stored:
                shape, dtype = header_of(stored)
            if math.prod(shape) * dtype.itemsize > member.file_size:
                raise ValueError(f"{member.filename} has less numbers than it says")


def _plain(value: Any, arrays: dict[str, Any]) -> Any:
    """JSON of a value: numbers, texts, None and lists stand for themselves, all else is ``{what it is: its parts}``."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or (
        isinstance(value, bool | int | float | str) and not isinstance(value, Enum)
    ):
        return value
    if isinstance(value, slice):
        return {"slice": [value.start, value.stop, value.step]}
    if isinstance(value, Mapping):
        return {"dict": _plain([list(pair) for pair in value.items()], arrays)}
    if sp.issparse(value):
        parts = [value.data, value.indices, value.indptr, list(value.shape)]
        return {"csr": _plain(parts, arrays)}
    if isinstance(value, np.ndarray) or is_on_device(value):
        array = on_host(value)
        if array.dtype.kind in "OU":
            return {"texts": [_plain(item, arrays) for item in array.tolist()]}
        known = (name for name, other in arrays.items() if other is array)
        name = next(known, f"array{len(arrays)}")
        arrays[name] = array
        return {"array": name}
    name = type(value).__name__
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        items = [_plain(item, arrays) for item in value]
        if type(value) is list:
            return items
        if type(value) is tuple or name in CLASSES:
            return {name: items}
    if CLASSES.get(name) is not type(value):
        raise InvalidInputError(
            f"the model holds a {type(value).__qualname__}, which a file without code cannot hold",
            "Use numbers, texts, or the settings of this library; similarities of your own as 'precomputed'.",
        )
    if isinstance(value, Enum):
        return {name: value.name}
    if hasattr(value, "_asdict"):
        state = value._asdict()
    else:
        # What a copy has; of a class that does not say otherwise, all that it holds.
        kept = value.__getstate__()
        state = {
            each.name: kept.get(each.name, getattr(value, each.name)) for each in fields(value)
        }
    return {name: {key: _plain(part, arrays) for key, part in state.items()}}


def _value(plain: Any, arrays: Mapping[str, Any]) -> Any:
    if isinstance(plain, list):
        return [_value(item, arrays) for item in plain]
    if not isinstance(plain, dict):
        return plain
    ((what, parts),) = plain.items()
    match what:
        case "slice":
            return slice(*parts)
        case "array":
            return arrays[parts]
        case "texts":
            return np.array([str(part) for part in parts], dtype=object)
        case "tuple":
            return tuple(_value(parts, arrays))
        case "dict":
            return {_value(key, arrays): _value(item, arrays) for key, item in parts}
        case "csr":
            *three, shape = _value(parts, arrays)
            matrix = sp.csr_array(tuple(three), shape=tuple(shape))
            matrix.check_format(full_check=True)
            return matrix
    kind = CLASSES[what]
    if issubclass(kind, Enum):
        return kind[parts]
    if isinstance(parts, list):
        return kind(_value(parts, arrays))
    return kind(**{key: _value(part, arrays) for key, part in parts.items()})
