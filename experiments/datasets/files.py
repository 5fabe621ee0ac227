"""Files of sets: where they lie, and their SHA-256 as ``checksums.json`` has it."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mosaic.exceptions import InvalidInputError, MosaicError

Arrays: TypeAlias = dict[str, NDArray[Any]]

REPOSITORY = Path(__file__).resolve().parents[2]
CHECKSUMS = Path(__file__).with_name("checksums.json")
VARIABLE = "MOSAIC_DATA"


class MissingData(MosaicError, FileNotFoundError):
    """A set is not in the folder. The message names folder, file and remedy."""


class WrongData(InvalidInputError):
    """A file is not the one that ``checksums.json`` describes. The message names both hashes."""


def data_folder() -> Path:
    """The folder of real sets: MOSAIC_DATA or, if that is not set, shared/data next to the repository."""
    given = os.environ.get(VARIABLE)
    return Path(given).expanduser() if given else REPOSITORY.parent / "shared" / "data"


@cache
def checksums() -> Mapping[str, str]:
    """SHA-256 of each file, by its path in the folder."""
    table: dict[str, str] = json.loads(CHECKSUMS.read_text())
    return table


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def find(name: str, file: str) -> Path:
    """The path of a file of the set, after its SHA-256 has been found as expected."""
    path = data_folder() / file
    if not path.is_file():
        raise MissingData(
            f"the set {name!r} is missing: {path} is not there. Set the environment variable {VARIABLE} to the folder that "
            f"holds {file}; experiments/datasets/real.py says where it comes from."
        )
    found, expected = sha256_of(path), checksums()[file]
    if found != expected:
        raise WrongData(
            f"{path} is not the file that this experiment knows: its SHA-256 is {found}, expected {expected}. "
            "Remove it and get it again."
        )
    return path


def read(name: str, file: str) -> Arrays:
    """The arrays of a .npz file."""
    with np.load(find(name, file), allow_pickle=False) as packed:
        return {key: packed[key] for key in packed.files}


def read_archive(name: str, file: str) -> dict[str, bytes]:
    """What a ZIP archive holds, by name and in the order of names."""
    with zipfile.ZipFile(find(name, file)) as archive:
        return {member: archive.read(member) for member in sorted(archive.namelist())}
