"""Pictures in an array: n of them, height × width or height × width × 3, as cameras and data sets leave them."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mosaic._files import Library
from mosaic.data.table import Table
from mosaic.exceptions import InvalidInputError

Image = Library("PIL.Image")

#: Values of a pixel: grey, red-green-blue, and the latter with opacity.
CHANNELS = (1, 3, 4)


class StackTable(Table):
    """Rows that are pictures in an array."""

    stack: Any

    def pictures(self, rows: ArrayLike, side: int = 64) -> list[bytes] | None:
        """The pictures, made small."""
        return thumbnails(list(np.asarray(self.stack[self.numbers(rows)])), side)


def is_stack(shape: Sequence[int]) -> bool:
    """Whether an array of this shape is a row of pictures.

    Examples
    --------
    >>> is_stack((1965, 28, 20)), is_stack((50, 32, 32, 3)), is_stack((50, 7)), is_stack((5, 4, 4, 9))
    (True, True, False, False)
    """
    flat = len(shape) == 3 or (len(shape) == 4 and shape[3] in CHANNELS)
    return flat and min(shape[1:3]) > 1


def thumbnails(images: Sequence[Any], side: int) -> list[bytes]:
    """PNG of pictures in arrays: height × width, or × 3 or × 4.

    Numbers other than 8 bits are scaled: the darkest pixel is 0 or the least value of all, the brightest is 1 or the largest.
    """
    pictures = [np.asarray(image) for image in images]
    if any(picture.dtype != np.uint8 for picture in pictures):
        pictures = [np.nan_to_num(picture.astype(np.float64)) for picture in pictures]
        low = min([0.0, *(float(picture.min(initial=0.0)) for picture in pictures)])
        high = max([1.0, *(float(picture.max(initial=1.0)) for picture in pictures)])
        pictures = [(picture - low) / (high - low) for picture in pictures]
    return [thumbnail(picture, side) for picture in pictures]


def thumbnail(image: Any, side: int) -> bytes:
    """PNG of a picture in an array of 8 bits, or of numbers from 0 to 1.

    Small ones are enlarged by whole pixels, so that they stay sharp.
    """
    pixels = np.asarray(image)
    if pixels.ndim == 3 and pixels.shape[2] == 1:
        pixels = pixels[:, :, 0]
    if pixels.ndim not in (2, 3) or pixels.size == 0 or (pixels.ndim == 3 and pixels.shape[2] not in CHANNELS):
        raise InvalidInputError(
            f"a picture must be height × width or height × width × 3; got shape {pixels.shape}",
            "Reshape images, as in images=X.reshape(-1, 8, 8).",
        )
    if pixels.dtype != np.uint8:
        pixels = np.clip(255 * pixels.astype(np.float64), 0, 255).astype(np.uint8)
    picture = Image.fromarray(pixels)
    longer = max(picture.size)
    if longer > side:
        picture.thumbnail((side, side))
    elif side // longer > 1:
        times = side // longer
        picture = picture.resize((picture.width * times, picture.height * times), Image.Resampling.NEAREST)
    out = BytesIO()
    picture.save(out, "PNG", optimize=True)
    return out.getvalue()
