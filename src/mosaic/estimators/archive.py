"""Objects in a file without code in it: NumPy's ``.npz`` of arrays of numbers, and their structure as JSON in one of them.

Only dataclasses, named tuples and enums that the reader names are built, and arrays are read with ``allow_pickle=False``, so that
reading runs no code of the file. Members are not compressed, so that none takes more memory than the file has bytes. The
checksums of the zip find damage.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from enum import Enum
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from mosaic.arrays.xp import is_on_device, on_host
from mosaic.exceptions import InvalidInputError, MosaicError
from mosaic.rows.faults import FileFault, check_there
from mosaic.rows.write import replacing

Classes: TypeAlias = Mapping[str, type[Any]]

#: The array that holds the structure.
STRUCTURE = "structure"
COPY_AGAIN = "Copy or write it again."


def write_archive(path: str | PathLike[str], content: Any, classes: Classes, *, force: bool = False) -> None:
    """Write an object, in which may be these classes by name, to a file; ``force`` replaces what is there."""
    arrays: dict[str, Any] = {}
    text = json.dumps(_plain(content, classes, arrays))
    arrays[STRUCTURE] = np.frombuffer(text.encode(), np.uint8)
    with replacing(path, force=force) as temporary, temporary.open("wb") as file:
        np.savez(file, **arrays)


def read_archive(path: str | PathLike[str], classes: Classes) -> Any:
    """The object that was written; ``FileFault`` if the file is none, damaged, or holds other classes than these."""
    target = Path(path)
    check_there(target)
    if target.is_dir() or not zipfile.is_zipfile(target):
        raise FileFault(target, "is no saved model, or not all of it", COPY_AGAIN)
    with as_fault(target):
        with zipfile.ZipFile(target) as file:
            if any(member.compress_type != zipfile.ZIP_STORED for member in file.infolist()):
                raise ValueError("its members are compressed, which those of a saved model are not")
        with np.load(target, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        return _value(json.loads(arrays[STRUCTURE].tobytes()), classes, arrays)


@contextmanager
def as_fault(path: Path) -> Iterator[None]:
    """Turn whatever a damaged or hostile file leads to into a fault of the file."""
    try:
        yield
    except (FileFault, MemoryError):
        raise
    except Exception as error:
        said = error.fault if isinstance(error, MosaicError) else " ".join(str(error).split())
        raise FileFault(path, f"is damaged or no saved model ({said[:200]})", COPY_AGAIN) from error


def _plain(value: Any, classes: Classes, arrays: dict[str, Any]) -> Any:
    """JSON of a value: numbers, texts, None and lists stand for themselves, all else is ``{what it is: its parts}``."""

    def plain(part: Any) -> Any:
        return _plain(part, classes, arrays)

    if isinstance(value, np.generic):
        value = value.item()
    if value is None or (isinstance(value, bool | int | float | str) and not isinstance(value, Enum)):
        return value
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, slice):
        return {"slice": [value.start, value.stop, value.step]}
    if type(value) is tuple:
        return {"tuple": [plain(item) for item in value]}
    if isinstance(value, Mapping):
        return {"dict": [[plain(key), plain(item)] for key, item in value.items()]}
    if isinstance(value, PathLike):
        return str(value)
    if sp.issparse(value):
        return {"csr": [*map(plain, (value.data, value.indices, value.indptr)), list(value.shape)]}
    if isinstance(value, np.ndarray) or is_on_device(value):
        array = on_host(value)
        if array.dtype.kind in "OU":
            return {"texts": [plain(item) for item in array.tolist()]}
        name = next((name for name, known in arrays.items() if known is array), f"array{len(arrays)}")
        arrays[name] = array
        return {"array": name}
    name = type(value).__name__
    if classes.get(name) is not type(value):
        raise InvalidInputError(
            f"holds a {type(value).__module__}.{type(value).__qualname__}, which a file without code cannot hold",
            "Use numbers, texts, or the settings of this library.",
        )
    if isinstance(value, Enum):
        return {name: value.name}
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return {name: [plain(item) for item in value]}
    return {name: {key: plain(part) for key, part in state_of(value).items()}}


def _value(plain: Any, classes: Classes, arrays: Mapping[str, Any]) -> Any:
    """The value of a piece of JSON."""

    def value(part: Any) -> Any:
        return _value(part, classes, arrays)

    if isinstance(plain, list):
        return [value(item) for item in plain]
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
            return tuple(value(parts))
        case "dict":
            return {value(key): value(item) for key, item in parts}
        case "csr":
            *three, shape = value(parts)
            matrix = sp.csr_array(tuple(three), shape=tuple(shape))
            matrix.check_format(full_check=True)
            return matrix
    kind = classes[what]
    if issubclass(kind, Enum):
        return kind[parts]
    if isinstance(parts, list):
        return kind(value(parts))
    return kind(**{key: value(part) for key, part in parts.items()})


def state_of(value: Any) -> dict[str, Any]:
    """The fields of a dataclass or named tuple, as a copy has them."""
    if hasattr(type(value), "_asdict"):
        return dict(value._asdict())
    state = value.__getstate__()  # of a class that does not say otherwise, all that it holds
    return {each.name: state[each.name] if each.name in state else getattr(value, each.name) for each in fields(value)}
