"""Photos with a mask of the salient object, cut into small patches.

The photos are 100 of MSRA-B (Liu et al., CVPR 2007) at their original size, the masks those of MSRA10K (Cheng et al., PAMI
2015); research use only. JPEG is decoded by the library that Pillow brings, whose versions may differ by a grey level.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from functools import lru_cache
from numbers import Integral
from pathlib import PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.datasets import files
from experiments.datasets.cases import Case
from mosaic.arrays.blocks import BoolArray, FloatArray, IntArray
from mosaic.exceptions import InvalidInputError

NAME, FILE = "msra_b", "msra_b_100_originals.zip"
#: Pixels along one side of a patch.
SIDE = 8
#: A pixel belongs to the object if the mask is brighter; some masks have soft edges.
THRESHOLD = 127
#: Stream of random numbers of its own, apart from those of other cases.
PURPOSE = 7


@dataclass(frozen=True, eq=False)
class Picture:
    """A photo as a set of points.

    Attributes
    ----------
    name : of the photo
    X : patches, row by row of the grid; each SIDE × SIDE × 3 numbers in [0, 1], rows of pixels first, flattened
    grid : rows and columns of patches
    mask : whether a pixel belongs to the object, for the area that the patches cover
    image : the same area of the photo, bytes
    """

    name: str
    X: FloatArray = field(repr=False)
    grid: tuple[int, int]
    mask: BoolArray = field(repr=False)
    image: NDArray[np.uint8] = field(repr=False)

    @property
    def object_pixels(self) -> IntArray:
        """Number of pixels of each patch that belong to the object."""
        return np.asarray(cut(self.mask[:, :, None]).sum(axis=1), np.intp)


def picture(number: int) -> Picture:
    """A photo by its place in the order of names, −1 for the last.

    Notes
    -----
    Patches do not overlap and start at the upper left corner; what is left at the right and below is dropped. A photo of
    400 × 300 has 37 × 50 patches.
    """
    members = _members()
    names = _names(members)
    if not isinstance(number, Integral) or isinstance(number, bool) or not -len(names) <= number < len(names):
        raise InvalidInputError(f"number must be a place among {len(names)} photos; got {number!r}.")
    name = names[int(number)]
    image = _covered(_decoded(members[f"{name}.jpg"], "RGB"))
    mask = _covered(_decoded(members[f"{name}.png"], "L")) > THRESHOLD
    grid = (image.shape[0] // SIDE, image.shape[1] // SIDE)
    return Picture(name, cut(image).astype(np.float64) / 255.0, grid, mask, image)


def patches(n: int | None, seed: int) -> Case:
    """Patches at random, n of them without replacement, of all photos; no classes, no outliers, no test part.

    Parameters
    ----------
    n : how many; None for all, in random order
    seed : same seed, same patches in the same order. ``rows`` counts through the patches of all photos, by name
    """
    everything = _all_patches()
    total = len(everything)
    size = total if n is None else n
    if not isinstance(size, Integral) or isinstance(size, bool) or not 1 <= size <= total:
        raise InvalidInputError(f"n must be a whole number from 1 to the {total} patches there are; got {n!r}.")
    rows = np.random.default_rng([seed, PURPOSE]).choice(total, int(size), replace=False)
    X = everything[rows].astype(np.float64) / 255.0
    return Case(f"{NAME}/patches", X, None, np.zeros(len(X), np.bool_), X[:0], None, rows, (SIDE, SIDE, 3))


def cut(pixels: NDArray[Any]) -> NDArray[Any]:
    """Rows of patches: row c·i + j is pixels[SIDE·i : SIDE·(i + 1), SIDE·j : SIDE·(j + 1)], flattened; c patches in a row.

    Parameters
    ----------
    pixels : height × width × channels; height and width are multiples of SIDE

    Examples
    --------
    >>> cut(np.zeros((16, 24, 3))).shape
    (6, 192)
    """
    height, width, channels = pixels.shape
    blocks = pixels.reshape(height // SIDE, SIDE, width // SIDE, SIDE, channels)
    return blocks.swapaxes(1, 2).reshape(-1, SIDE * SIDE * channels)


@lru_cache(maxsize=1)
def _all_patches() -> NDArray[np.uint8]:
    """Bytes: all of them as float64 would be eight times as large. Decoding takes longer than most runs."""
    members = _members()
    return np.concatenate([cut(_covered(_decoded(members[f"{name}.jpg"], "RGB"))) for name in _names(members)])


def _members() -> dict[str, bytes]:
    return files.read_archive(NAME, FILE)


def _names(members: dict[str, bytes]) -> list[str]:
    return sorted(PurePosixPath(member).stem for member in members if member.endswith(".jpg"))


def _decoded(content: bytes, mode: str) -> NDArray[np.uint8]:
    from PIL import Image  # part of the extra for plots, which most experiments do without

    with Image.open(io.BytesIO(content)) as image:
        return np.asarray(image.convert(mode), np.uint8)


def _covered(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The area of whole patches."""
    height, width = (SIDE * (length // SIDE) for length in pixels.shape[:2])
    return pixels[:height, :width]
