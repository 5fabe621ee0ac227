"""Archives of objects without code in them: JSON for their structure, ``.npy`` for their arrays, in one zip file.

An archive has ``model.json`` and, for every array that it mentions, a member ``0.npy``, ``1.npy``, … Only dataclasses, named
tuples and enums that the reader names are built from it, every field is checked against its annotation, and arrays hold numbers
only, so that reading runs no code of the archive. Members are stored as they are and not compressed, so that an archive never
takes more memory than its file has bytes. ``model.json`` has a digest of itself and of every array. It is that of the values and
not of the text, so that line endings do not matter. A digest finds damage; it is no signature.
"""

from __future__ import annotations

import hashlib
import json
import math
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from enum import Enum
from io import BytesIO
from os import PathLike
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NoReturn, TypeAlias, Union, get_args, get_origin, get_type_hints

import numpy as np
import scipy.sparse as sp

from mosaic._devices import is_on_device, on_host
from mosaic.data.faults import FileFault, check_there
from mosaic.data.writing import replacing
from mosaic.exceptions import InvalidInputError, MosaicError

Classes: TypeAlias = Mapping[str, type[Any]]

#: Name of the member with the structure.
STRUCTURE = "model.json"
#: Date of the members, the same in all archives, so that equal objects have equal bytes.
DATE = (1980, 1, 1, 0, 0, 0)
#: Classes whose numbers need not be finite: a bound that was not computed, a reach without end.
NOT_FINITE = ("Parameters", "SelectionCertificate", "Spectrum", "Bound", "KeptGroups")
COPY_AGAIN = "Copy or write it again."


def write_archive(
    path: str | PathLike[str], header: Mapping[str, Any], content: Any, classes: Classes, *, force: bool = False
) -> None:
    """Write an object to a file, complete or not at all.

    Parameters
    ----------
    path : of the file
    header : what is known before the content is read, such as versions
    content : the object
    classes : those that may be in it, by name
    force : replace what is there
    """
    arrays: dict[int, tuple[int, Any]] = {}
    told = {**header, "arrays": dict[str, str](), "content": _Writer(classes, arrays).plain(content)}
    with replacing(path, force=force) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as file:
        for number, array in arrays.values():
            data = _npy(array)
            told["arrays"][f"{number}.npy"] = hashlib.sha256(data).hexdigest()
            file.writestr(zipfile.ZipInfo(f"{number}.npy", DATE), data)
        text = json.dumps({**told, "digest": _digest(told)}, ensure_ascii=True, allow_nan=False) + "\n"
        file.writestr(zipfile.ZipInfo(STRUCTURE, DATE), text)


def read_archive(
    path: str | PathLike[str], classes: Classes, accept: Callable[[Mapping[str, Any]], None]
) -> tuple[dict[str, Any], Any]:
    """The header and the object that were written.

    Parameters
    ----------
    path : of the file
    classes : those that may be in it, by name
    accept : refuses what the header says, before anything else is checked

    Raises
    ------
    FileFault
        if the file is no archive, incomplete, changed, or not what these classes are.
    """
    target = Path(path)
    check_there(target)
    if target.is_dir() or not zipfile.is_zipfile(target):
        raise FileFault(target, "is no saved model, or not all of it", COPY_AGAIN)
    with as_fault(target), zipfile.ZipFile(target) as file:
        told = _structure(target, file, accept)
        arrays = {}
        for name, digest in told.pop("arrays").items():
            data = file.read(name)
            if hashlib.sha256(data).hexdigest() != digest:
                raise ValueError(f"{name} does not match its digest")
            arrays[name] = _array(name, data)
        return told, _Reader(classes, arrays).value(told.pop("content"))


@contextmanager
def as_fault(path: Path) -> Iterator[None]:
    """Turn whatever a damaged or hostile archive leads to into a fault of the file."""
    try:
        yield
    except (FileFault, MemoryError):
        raise
    except Exception as error:
        said = error.fault if isinstance(error, MosaicError) else " ".join(str(error).split())
        raise FileFault(path, f"is damaged or no saved model ({said[:200]})", COPY_AGAIN) from error


def _structure(path: Path, file: zipfile.ZipFile, accept: Callable[[Mapping[str, Any]], None]) -> dict[str, Any]:
    """The structure, if it is accepted and whole, and members are those that it lists, each in a place of its own."""
    members = file.infolist()
    for member in members:
        if member.compress_type != zipfile.ZIP_STORED or member.file_size != member.compress_size:
            raise FileFault(
                path, f"{member.filename} is compressed, which members of a saved model are not", COPY_AGAIN
            )
    if sum(member.file_size for member in members) > path.stat().st_size:
        raise FileFault(path, "claims to hold more than the file can", COPY_AGAIN)
    names = [member.filename for member in members]
    if names != [*(f"{number}.npy" for number in range(len(names) - 1)), STRUCTURE]:
        raise FileFault(path, "has other members than a saved model", COPY_AGAIN)
    told = json.loads(file.read(STRUCTURE).decode(), parse_constant=_refuse_constant)
    if not isinstance(told, dict):
        raise TypeError(f"{STRUCTURE} holds no object")
    accept(told)
    if told.pop("digest", None) != _digest(told):
        raise ValueError(f"{STRUCTURE} does not match its digest")
    if not isinstance(told.get("arrays"), dict) or {STRUCTURE, *told["arrays"]} != set(names):
        raise ValueError("its arrays are not those that it lists")
    return told


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


def _digest(told: Mapping[str, Any]) -> str:
    """Of the values: keys in order, no white space."""
    text = json.dumps(told, ensure_ascii=True, allow_nan=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


# ---------------------------------------------------------------------------------------------------------------- arrays


def _npy(array: Any) -> bytes:
    stream = BytesIO()
    little = array.astype(array.dtype.newbyteorder("<"), order="K", copy=False)
    np.lib.format.write_array(stream, little, version=(1, 0), allow_pickle=False)
    return stream.getvalue()


def _array(name: str, data: bytes) -> Any:
    """An array of numbers; its header is compared with the number of bytes before it is built."""
    stream = BytesIO(data)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError(f"{name} has another version of its format")
    shape, by_columns, dtype = np.lib.format.read_array_header_1_0(stream)
    begin = stream.tell()
    if dtype.kind not in "fiub" or math.prod(shape) * dtype.itemsize != len(data) - begin or min(shape, default=0) < 0:
        raise ValueError(f"{name} holds no numbers, or not as many as it says")
    flat = np.frombuffer(data, dtype, offset=begin).astype(dtype.newbyteorder("="))
    return flat.reshape(shape, order="F" if by_columns else "C")


# ------------------------------------------------------------------------------------------------------- objects and JSON


class _Writer:
    """Objects as JSON. A number, a text, None and a list stand for themselves; all else is ``{what it is: its parts}``."""

    def __init__(self, classes: Classes, arrays: dict[int, tuple[int, Any]]):
        self.classes, self.arrays, self.hints = classes, arrays, _Hints(classes)

    def plain(self, value: Any) -> Any:
        """The JSON of a value."""
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, Enum):
            return {self.name(value): value.name}
        if value is None or isinstance(value, (bool, int)):
            return value
        if isinstance(value, str):
            return str(value)
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, slice):
            return {"slice": [value.start, value.stop, value.step]}
        if isinstance(value, list):
            return [self.plain(item) for item in value]
        if isinstance(value, tuple) and not hasattr(value, "_fields"):
            return {"tuple" if type(value) is tuple else self.name(value): [self.plain(item) for item in value]}
        if isinstance(value, Mapping):
            return {"dict": [[self.plain(key), self.plain(item)] for key, item in value.items()]}
        if sp.issparse(value):
            parts = [self.plain(part) for part in (value.data, value.indices, value.indptr)]
            return {"csr": [*parts, list(value.shape)]}
        if isinstance(value, np.ndarray) or is_on_device(value):
            return self.array(on_host(value))
        if isinstance(value, PathLike):
            return str(value)
        name = self.name(value)
        state = state_of(value)
        self.hints.check(type(value), state)
        return {name: {key: self.plain(part) for key, part in state.items()}}

    def array(self, value: Any) -> Any:
        if value.dtype.kind in "OU":
            return {"texts": [self.plain(item) for item in value.tolist()]}
        if value.dtype.kind not in "fiub":
            raise InvalidInputError(f"an array of {value.dtype} cannot be saved", "Use numbers.")
        number, _ = self.arrays.setdefault(id(value), (len(self.arrays), value))
        return {"array": f"{number}.npy"}

    def name(self, value: Any) -> str:
        name = type(value).__name__
        if self.classes.get(name) is not type(value):
            raise InvalidInputError(
                f"holds a {type(value).__module__}.{type(value).__qualname__}, which a file without code cannot hold",
                "Use numbers, texts, or the settings of this library.",
            )
        return name


class _Reader:
    """Objects from JSON."""

    def __init__(self, classes: Classes, arrays: Mapping[str, Any]):
        self.classes, self.arrays, self.hints = classes, arrays, _Hints(classes)

    def value(self, plain: Any) -> Any:
        """The value of a piece of JSON."""
        if isinstance(plain, list):
            return [self.value(item) for item in plain]
        if not isinstance(plain, dict):
            return plain
        ((what, parts),) = plain.items()
        match what:
            case "float":
                return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[parts]
            case "slice":
                return slice(*(None if part is None else int(part) for part in parts))
            case "array":
                return self.arrays[parts]
            case "texts":
                texts = np.empty(len(parts), dtype=object)
                texts[:] = [str(part) for part in parts]
                return texts
            case "tuple":
                return tuple(self.value(parts))
            case "dict":
                return {self.value(key): self.value(item) for key, item in parts}
            case "csr":
                *three, shape = self.value(parts)
                matrix = sp.csr_array(tuple(three), shape=tuple(shape))
                matrix.check_format(full_check=True)
                return matrix
        kind = self.classes[what]
        if issubclass(kind, Enum):
            return kind[parts]
        if isinstance(parts, list) and issubclass(kind, tuple):
            return kind(self.value(parts))
        state = {key: self.value(part) for key, part in parts.items()}
        self.hints.check(kind, state)
        return built(kind, state)


def state_of(value: Any) -> dict[str, Any]:
    """The fields of a dataclass or named tuple, and what it keeps of what was computed (``kept``)."""
    if "__getstate__" in vars(type(value)):
        return dict(value.__getstate__())
    return {each.name: getattr(value, each.name) for each in fields(value)} if is_dataclass(value) else value._asdict()


def built(kind: type[Any], state: Mapping[str, Any]) -> Any:
    """The object of a class with this state; the constructor checks its fields."""
    kept = {name: part for name, part in state.items() if name in getattr(kind, "kept", ())}
    value = kind(**{name: part for name, part in state.items() if name not in kept})
    if kept:
        value.__dict__.update(kept)
    return value


# ---------------------------------------------------------------------------------------------------- values and annotations


class _Hints:
    """The annotations of classes, to compare values with."""

    def __init__(self, classes: Classes):
        self.classes, self.known = classes, dict[type[Any], dict[str, Any]]()

    def check(self, kind: type[Any], state: Mapping[str, Any]) -> None:
        """Refuse a state whose values are not what the class says, or not finite."""
        if kind not in self.known:
            names = dict(self.classes)
            computed = {name: getattr(kind, name).func for name in getattr(kind, "kept", ())}
            self.known[kind] = get_type_hints(kind, localns=names) | {
                name: get_type_hints(function, localns=names)["return"] for name, function in computed.items()
            }
        hints = self.known[kind]
        for name, value in state.items():
            what = f"{kind.__name__}.{name}"
            if name not in hints or not self.fits(value, hints[name]):
                raise TypeError(f"{what} is {_shown(value)}, and must be {hints.get(name, 'absent')}")
            if kind.__name__ not in NOT_FINITE and not _is_finite(value):
                raise ValueError(f"{what} is not finite")

    def fits(self, value: Any, hint: Any) -> bool:
        """Whether a value is what an annotation says."""
        origin, args = get_origin(hint), get_args(hint)
        if hasattr(origin, "__value__"):  # NumPy's NDArray is an alias of its own kind where Python has such
            return self.fits(value, origin.__value__[args])
        if hint is Any or getattr(hint, "_is_protocol", False):
            return True
        if hint in (None, NoneType):
            return value is None
        if origin in (Union, UnionType):
            return any(self.fits(value, one) for one in args)
        if origin is Literal:
            return value in args
        if origin is tuple:
            if not isinstance(value, tuple):
                return False
            kinds = [args[0]] * len(value) if args[-1] is Ellipsis else list(args)
            return len(kinds) == len(value) and all(self.fits(v, kind) for v, kind in zip(value, kinds, strict=True))
        if origin is np.ndarray:
            (number,) = get_args(args[1])
            return isinstance(value, np.ndarray) and np.issubdtype(value.dtype, get_origin(number) or number)
        if hint is float:
            return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
        if hint is int:
            return isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        if hint is bool:
            return isinstance(value, (bool, np.bool_))
        return isinstance(value, origin or hint)


def _shown(value: Any) -> str:
    dtype = f" of {value.dtype}" if hasattr(value, "dtype") else ""
    return f"a {type(value).__name__}{dtype}"


def _is_finite(value: Any) -> bool:
    """Whether all numbers of a value are finite; parts of other classes are looked at when these are."""
    if sp.issparse(value):
        value = value.data
    if isinstance(value, np.ndarray):
        return value.dtype.kind != "f" or bool(np.isfinite(value).all())
    if isinstance(value, (float, np.floating)):
        return math.isfinite(value)
    return not isinstance(value, (tuple, list)) or all(_is_finite(item) for item in value)
