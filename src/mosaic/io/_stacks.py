"""Pictures in an array: n of them, height × width or height × width × 3, as cameras and data sets leave them."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mosaic.engines._reading import library
from mosaic.exceptions import InvalidInputError
from mosaic.io._table import Table

#: Values of a pixel: grey, red-green-blue, and the latter with opacity.
CHANNELS = (1, 3, 4)


class StackTable(Table):
    """Rows that are pictures in an array."""

    _stack: Any

    def pictures(self, rows: ArrayLike, side: int = 64) -> list[bytes] | None:
        """The pictures, the brightest pixel of all that are asked for white, unless they have 8 bits."""
        shown = np.asarray(self._stack[self.numbers(rows)])
        if shown.dtype != np.uint8 and shown.size:
            low, high = min(float(shown.min()), 0.0), max(float(shown.max()), 1e-12)
            shown = (shown - low) / max(high - low, 1e-12)
        return [thumbnail(picture, side) for picture in shown]


def is_stack(shape: Sequence[int]) -> bool:
    """Whether an array of this shape is a row of pictures.

    Examples
    --------
    >>> is_stack((1965, 28, 20)), is_stack((50, 32, 32, 3)), is_stack((50, 7)), is_stack((5, 4, 4, 9))
    (True, True, False, False)
    """
    flat = len(shape) == 3 or (len(shape) == 4 and shape[3] in CHANNELS)
    return flat and min(shape[1:3]) > 1


def thumbnail(image: Any, side: int) -> bytes:
    """PNG of a picture in an array: height × width, or × 3 or × 4; floats from 0 to 1, or to their largest value.

    Small ones are enlarged by whole pixels, so that they stay sharp.
    """
    Image = library("PIL.Image", "A picture")
    pixels = np.asarray(image)
    if pixels.ndim == 3 and pixels.shape[2] == 1:
        pixels = pixels[:, :, 0]
    if pixels.ndim not in (2, 3) or pixels.size == 0 or (pixels.ndim == 3 and pixels.shape[2] not in CHANNELS):
        raise InvalidInputError(
            f"a picture must be height × width or height × width × 3; got shape {pixels.shape}. Reshape images, as in "
            "images=X.reshape(-1, 8, 8)."
        )
    if pixels.dtype != np.uint8:
        pixels = np.nan_to_num(pixels.astype(np.float64))
        high = max(1.0 if pixels.max() <= 1 else float(pixels.max()), 1e-12)
        pixels = np.clip(255 * pixels / high, 0, 255).astype(np.uint8)
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
