"""Pictures in a folder or in an array: every picture is a row, its pixels are the features."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np

from mosaic.arrays.blocks import IntArray
from mosaic.exceptions import InvalidInputError, warn
from mosaic.rows.faults import FileFault
from mosaic.rows.roles import Request, Roles, check_names, refuse_columns
from mosaic.rows.rows import Rows
from mosaic.rows.tables import InMemory
from mosaic.text import Library, listed

if TYPE_CHECKING:
    import PIL.Image

pa = Library("pyarrow")
image = Library("PIL.Image")
ops = Library("PIL.ImageOps")

#: Pictures are of one colour if their grey deviates by less than this share of white, and noise if neighbouring pixels correlate
#: less than this; of 2,100 photographs, faces and digits all are above 0.035 and 0.25, noise of all kinds below 0.22.
ONE_COLOUR = 0.01
NOISE = 0.25
#: Pixels at most of a side, by which this is seen.
LOOKED_AT = 32
#: Up to this share of the pictures of a folder, those that show nothing do not count as rows.
HARDLY_ANY = 0.2
#: How far these stand apart, where 1 is the distance of black to white.
APART = 20.0

PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp")


class Album:
    def __init__(self, path: Path):
        self.path = path
        sizes = {}
        for file in filter(Path.is_file, path.rglob("*")):
            name = file.relative_to(path)
            # What begins with a point or is called so was put there by a system and not by a person.
            if not any(part[0] == "." or part == "Thumbs.db" for part in name.parts):
                sizes[name.as_posix()] = file.stat().st_size
        self.sizes = dict(sorted(sizes.items()))
        self.names = [name for name in self.sizes if PurePosixPath(name).suffix.lower() in PICTURES]
        if not self.names:
            raise FileFault(
                path,
                f"holds no pictures, Parquet files or Zarr array, but {listed(list(self.sizes)) or 'nothing'}",
                f"Name one of the files, or a folder of pictures ({', '.join(PICTURES)}).",
            )

    def picture(self, name: str, draft: int) -> Any:
        """A picture, turned as its camera says, in grey or colour over white; whole pictures are decoded, or refused."""
        try:
            with (self.path / name).open("rb") as stream, warnings.catch_warnings():
                warnings.simplefilter("error", image.DecompressionBombWarning)
                warnings.filterwarnings("ignore", category=UserWarning, module="PIL")
                opened = image.open(stream)
                opened.draft(None, (2 * draft, 2 * draft))
                return _grey_or_colour(ops.exif_transpose(opened))
        except Exception as error:
            said = " ".join(str(error).split()).rstrip(".")
            said = "cannot identify image file" if "cannot identify" in said else said
            fault = f"cannot be read as a picture ({said[:200]})"
            raise FileFault(
                self.path / name, fault, "It is damaged or too large: copy it again, or remove it."
            ) from error

    def thumbnails(self, numbers: IntArray, side: int) -> list[bytes]:
        """Pictures by their number, made smaller where they are larger: PNG if they were small, otherwise JPEG."""
        files = []
        for number in numbers:
            picture = self.picture(self.names[number], side)
            stream = io.BytesIO()
            small = max(picture.size) <= side
            picture.thumbnail((side, side))
            picture.save(stream, "PNG" if small else "JPEG", optimize=True, quality=82)
            files.append(stream.getvalue())
        return files


def open_images(request: Request) -> Rows:
    """Pictures of a folder, in the order of their names: size × size numbers from 0 (black) to 1 (white), or × 3, and two that
    set apart what shows nothing. If these are few, they do not count as rows: each is judged as if it were the only one.
    """
    path = request.path
    size = request.image_size
    if not 1 <= size <= 4096:
        raise InvalidInputError(
            "must lie between 1 and 4096 pixels", parameter="image_size", value=size
        )
    check_names(replace(request, id=None, weight=None, embedding=None), ["folder"])
    refuse_columns(replace(request, group=()), "holds pictures, which have no columns")
    album = Album(path)
    X, unreadable = _pixels(album, request)
    # Not every name is UTF-8.
    files = [os.fsencode(name).decode("utf-8", "backslashreplace") for name in album.names]
    folders = [str(PurePosixPath(name).parent) for name in files]
    columns = {"file": files} | (
        {"folder": folders} if request.group or set(folders) > {"."} else {}
    )
    notes = [
        f"{len(files):,} images resized to {size}×{size}, {'colour' if request.colour else 'grey'}."
    ]
    if len(album.sizes) > len(files) + len(unreadable):
        notes.append(
            f"Files that are no pictures were left out: {len(album.sizes) - len(files) - len(unreadable):,}."
        )
    if unreadable:
        told = listed([f"{name} ({why})" for name, why in unreadable.items()])
        of = f"{len(unreadable):,} of {len(files) + len(unreadable):,} pictures"
        warn(f"Left out, because they cannot be read: {of}: {told}.")
    about: dict[str, Any] = {
        "notes": notes,
        "unreadable": unreadable,
        "pictures_of": album.thumbnails,
    }
    shows_nothing = X[:, -2:].any(axis=1)
    if 0 < shows_nothing.mean() <= HARDLY_ANY:
        about["weights"] = np.where(shows_nothing, 0.0, 1.0)
        empty = [
            f"{files[row]} ({'noise' if X[row, -1] else 'one colour'})"
            for row in np.flatnonzero(shows_nothing).tolist()
        ]
        notes.append(
            f"{len(empty):,} of the pictures show nothing, and no other row is compared with them: {listed(empty)}."
        )
    return Rows.of_array(
        request, X, InMemory.of_arrow(pa.table(columns)), roles=Roles(id_name="file"), **about
    )


def _pixels(album: Album, request: Request) -> tuple[Any, dict[str, str]]:
    """The pixels of all pictures that can be read, which the album then has, and why others cannot."""
    size = request.image_size
    progress = request.progress
    shape = len(album.names), size**2 * (3 if request.colour else 1) + 2
    said = f"its {shape[0]:,} pictures of {shape[1]:,} numbers take"
    request.refuse_beyond_half(
        4.0 * shape[0] * shape[1],
        said,
        "Raise `memory_budget`, or make pictures smaller with `image_size`.",
    )
    X = np.empty(shape, np.float32)
    readable: list[str] = []
    unreadable: dict[str, str] = {}
    total = sum(album.sizes[name] for name in album.names)
    done = 0
    for name in album.names:
        try:
            picture = album.picture(name, size).convert("RGB" if request.colour else "L")
        except FileFault as fault:
            unreadable[name] = (
                str(fault.__cause__).partition(": ")[0].partition(" <")[0] or "damaged"
            )
            if len(unreadable) == len(album.names):
                raise
            continue
        resized = picture.resize((size, size), image.Resampling.LANCZOS, reducing_gap=3.0)
        X[len(readable), :-2] = np.asarray(resized, np.float32).ravel() / np.float32(255)
        X[len(readable), -2:] = APART * np.sqrt(shape[1]) * np.array(emptiness(picture))
        readable.append(name)
        done += album.sizes[name]
        if progress is not None:
            progress(done, total)
    album.names = readable
    return X[: len(readable)], unreadable


def emptiness(picture: PIL.Image.Image) -> tuple[bool, bool]:
    """Whether a picture is of one colour, and whether it is noise: 1 − mean (x_i − x_j)² / 2σ² of neighbours i, j is small."""
    grey = picture.convert("L")
    grey.thumbnail((LOOKED_AT, LOOKED_AT))
    pixels = np.asarray(grey, np.float64) / 255
    steps = np.concatenate([np.diff(pixels, axis=axis).ravel() for axis in (0, 1)])
    is_one_colour = bool(pixels.std() < ONE_COLOUR)
    return is_one_colour, not is_one_colour and bool(
        1 - (steps**2).mean() / (2 * pixels.var()) < NOISE
    )


def _grey_or_colour(picture: PIL.Image.Image) -> Any:
    """Grey (L) or colour (RGB), what is transparent over white; pixels of more than 8 bits are made darker to fit."""
    if picture.mode == "F":
        raise ValueError("its pixels are floating-point numbers; save it with 8 or 16 bits")
    if picture.mode.startswith("I"):
        pixels = np.maximum(np.asarray(picture, np.int64), 0)
        # I;16 says how many bits there are; of I, which has room for 32, the largest value does.
        if picture.mode != "I":
            bits = 16
        else:
            bits = max(8, 16 * (pixels.max() > 255), int(pixels.max()).bit_length())
        return image.fromarray((pixels >> (bits - 8)).astype(np.uint8))
    if picture.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in picture.info:
        over = picture.convert("RGBA")
        white = image.new("RGBA", over.size, "white")
        return image.alpha_composite(white, over).convert("RGB")
    return picture.convert("L" if picture.mode in ("1", "L") else "RGB")


def thumbnails(images: Sequence[Any], side: int) -> list[bytes]:
    """PNG of pictures in arrays, height × width (× 3 or 4). Small ones are enlarged by whole pixels; numbers other than 8 bits
    are scaled: 0 or the least value of all is black, 1 or the largest is white.
    """
    pictures = [np.asarray(pixels) for pixels in images]
    if any(picture.dtype != np.uint8 for picture in pictures):
        pictures = [np.nan_to_num(picture.astype(np.float64)) for picture in pictures]
        low = min([0.0, *(float(picture.min(initial=0.0)) for picture in pictures)])
        high = max([1.0, *(float(picture.max(initial=1.0)) for picture in pictures)])
        pictures = [
            (255 * ((picture - low) / (high - low))).astype(np.uint8) for picture in pictures
        ]
    files = []
    for pixels in pictures:
        if pixels.shape[2:] == (1,):
            pixels = pixels[:, :, 0]
        if (
            pixels.ndim not in (2, 3)
            or pixels.size == 0
            or pixels.shape[2:] not in ((), (3,), (4,))
        ):
            fault = (
                f"a picture must be height × width or height × width × 3; got shape {pixels.shape}"
            )
            raise InvalidInputError(fault, "Reshape images, as in images=X.reshape(-1, 8, 8).")
        picture = image.fromarray(pixels)
        out = io.BytesIO()
        times = side // max(picture.size)
        if times == 0:
            picture.thumbnail((side, side))
        elif times > 1:
            picture = picture.resize(
                (picture.width * times, picture.height * times), image.Resampling.NEAREST
            )
        picture.save(out, "PNG", optimize=True)
        files.append(out.getvalue())
    return files
