"""From a published file to the arrays of ours, where that takes no more than a few lines."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.io import loadmat

from experiments.datasets.files import Arrays
from mosaic.exceptions import InvalidInputError


def upright_faces(paths: Sequence[Path]) -> Arrays:
    """Deng Cai's files: ``fea`` n × 1024, pictures of 32 × 32 column by column, and ``gnd``, the person."""
    content = loadmat(paths[0])
    columns_first = _whole(content["fea"], np.uint8).reshape(-1, 32, 32)
    return {"X": columns_first.transpose(0, 2, 1), "y": _whole(content["gnd"], np.uint8).ravel()}


def frey_faces(paths: Sequence[Path]) -> Arrays:
    """``ff`` 560 × n, each column a picture of 28 × 20, row by row."""
    return {"X": _whole(loadmat(paths[0])["ff"], np.uint8).T.reshape(-1, 28, 20)}


def isolet(paths: Sequence[Path]) -> Arrays:
    """``X`` n × 617 of four decimals, stored as whole numbers of 1/10000, and ``Y``."""
    content = loadmat(paths[0])
    scaled = 10_000.0 * content["X"]
    if np.abs(scaled - np.rint(scaled)).max() > 1e-6:
        raise InvalidInputError(f"{paths[0]} has features with more than four decimals; it is another file.")
    return {"X10000": np.rint(scaled).astype(np.int16), "y": _whole(content["Y"], np.uint8).ravel()}


def term_counts(paths: Sequence[Path]) -> Arrays:
    """``X`` n × terms, sparse or not, and ``Y``."""
    content = loadmat(paths[0])
    counts = content["X"].toarray() if sp.issparse(content["X"]) else content["X"]
    return {"X": _whole(counts, np.uint8), "y": _whole(content["Y"], np.uint8).ravel()}


def mnist(paths: Sequence[Path]) -> Arrays:
    """IDX, gzipped: two zero bytes, type 8, number of sides, each side in four bytes, then the entries. Images, labels."""
    return {"X": _idx(paths[0], 3), "y": _idx(paths[1], 1)}


def _idx(path: Path, sides: int) -> NDArray[np.uint8]:
    content = gzip.decompress(path.read_bytes())
    if content[:4] != bytes([0, 0, 8, sides]):
        raise InvalidInputError(f"{path} is no IDX file of bytes with {sides} sides; it starts with {content[:4]!r}.")
    shape = np.frombuffer(content, ">u4", sides, offset=4).astype(int)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * sides).reshape(shape)


def _whole(values: NDArray[Any], dtype: type[np.uint8]) -> NDArray[np.uint8]:
    """The same numbers in another type; an error if they do not fit."""
    converted = values.astype(dtype)
    if not np.array_equal(converted, values):
        raise InvalidInputError(f"the file holds values that are no {np.dtype(dtype)}; it is another file.")
    return converted
