"""Files of arrays and what is known of them: where they lie, their SHA-256, and the shape and SHA-256 of each array."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mosaic.exceptions import InvalidInputError, MosaicError

Arrays: TypeAlias = dict[str, NDArray[Any]]
#: What ``checksums.json`` says of a file: {"sha256": …, "arrays": {name: {"shape": …, "dtype": …, "sha256": …}}}.
Entry: TypeAlias = Mapping[str, Any]

REPOSITORY = Path(__file__).resolve().parents[2]
CHECKSUMS = Path(__file__).with_name("checksums.json")
VARIABLE = "MOSAIC_DATA"
CHUNK = 1 << 20


class MissingData(MosaicError, FileNotFoundError):
    """A set is not in the folder. The message names folder, file and remedy."""


class WrongData(InvalidInputError):
    """A file is not the one that ``checksums.json`` describes. The message names both hashes."""


def data_folder() -> Path:
    """The folder of real sets: MOSAIC_DATA or, if that is not set, shared/data next to the repository."""
    given = os.environ.get(VARIABLE)
    return Path(given).expanduser() if given else REPOSITORY.parent / "shared" / "data"


@cache
def checksums() -> Mapping[str, Entry]:
    """What is known of each file, by its path in the folder."""
    table: dict[str, Entry] = json.loads(CHECKSUMS.read_text())
    return table


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def describe_array(array: NDArray[Any]) -> dict[str, Any]:
    """Shape, type, and SHA-256 of the numbers in row-major order: the same however the file is packed.

    Examples
    --------
    >>> describe_array(np.zeros((2, 3), np.uint8))["shape"]
    [2, 3]
    """
    bits = np.ascontiguousarray(array).tobytes()
    return {"shape": list(array.shape), "dtype": array.dtype.str, "sha256": hashlib.sha256(bits).hexdigest()}


def describe(path: Path) -> dict[str, Any]:
    """The entry of ``checksums.json`` for a file of arrays."""
    return {"sha256": sha256_of(path), "arrays": {key: describe_array(a) for key, a in _unpacked(path).items()}}


def write_checksums(folder: Path, target: Path = CHECKSUMS) -> None:
    """Describe every .npz in the folder and below. For when a set is added, never to silence a mismatch."""
    table = {path.relative_to(folder).as_posix(): describe(path) for path in sorted(folder.rglob("*.npz"))}
    target.write_text(json.dumps(table, indent=1, sort_keys=True) + "\n")


def read(name: str, file: str) -> Arrays:
    """The arrays of a file, after its SHA-256 and their shapes have been found as ``checksums.json`` has them.

    A file whose SHA-256 differs is accepted if every array in it has the shape, type and SHA-256 that it should have:
    the same numbers, packed by another version of zlib, as downloaded and converted sets may be.

    Parameters
    ----------
    name : of the set, for messages
    file : path in the folder
    """
    return checked(find(name, file), checksums()[file])


def read_archive(name: str, file: str, sha256: str) -> dict[str, bytes]:
    """What a ZIP archive holds, by name and in the order of names, after its SHA-256 has been found as expected.

    Parameters
    ----------
    name : of the set, for messages
    file : path in the folder
    sha256 : of the archive, in hexadecimal digits
    """
    path = find(name, file)
    found = sha256_of(path)
    if found != sha256:
        raise WrongData(
            f"{path} is not the file that this experiment knows: its SHA-256 is {found}, expected {sha256}. "
            "Remove it and get it again."
        )
    with zipfile.ZipFile(path) as archive:
        return {member: archive.read(member) for member in sorted(archive.namelist())}


def find(name: str, file: str) -> Path:
    """The path of a file, or MissingData."""
    folder = data_folder()
    if (folder / file).is_file():
        return folder / file
    state = "is not there" if folder.is_dir() else "cannot be there, as the folder does not exist"
    raise MissingData(
        f"the set {name!r} is missing: looked in the folder {folder} for {file}, which {state}. Set the environment "
        f"variable {VARIABLE} to the folder that holds {file}; experiments/datasets/real.py says where it comes from."
    )


def checked(path: Path, entry: Entry) -> Arrays:
    """The arrays of a file if they are those of the entry, else WrongData."""
    found = sha256_of(path)
    try:
        arrays = _unpacked(path)
        problems = differences(arrays, entry, hashes=found != entry["sha256"])
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        problems = [f"it cannot be read ({type(error).__name__}: {error})"]
    if problems:
        raise WrongData(
            f"{path} is not the file that this experiment knows: its SHA-256 is {found}, expected {entry['sha256']}; "
            f"{'; '.join(problems)}. Remove it and get it again."
        )
    return arrays


def differences(arrays: Arrays, entry: Entry, *, hashes: bool) -> list[str]:
    """In words, where arrays are not as described: names, shapes, types and, if asked for, SHA-256."""
    expected = entry["arrays"]
    if set(arrays) != set(expected):
        return [f"it holds the arrays {', '.join(sorted(arrays))}, expected {', '.join(sorted(expected))}"]
    problems = []
    for key, array in arrays.items():
        shape, dtype = tuple(expected[key]["shape"]), expected[key]["dtype"]
        if array.shape != shape or array.dtype.str != dtype:
            problems.append(f"{key} is {array.shape} {array.dtype.str}, expected {shape} {dtype}")
        elif hashes and (digest := describe_array(array)["sha256"]) != expected[key]["sha256"]:
            problems.append(f"the numbers of {key} have SHA-256 {digest}, expected {expected[key]['sha256']}")
    return problems


def _unpacked(path: Path) -> Arrays:
    # np.load does not close a file that it opened itself and cannot read.
    with path.open("rb") as file, np.load(file, allow_pickle=False) as packed:
        return {key: packed[key] for key in packed.files}
